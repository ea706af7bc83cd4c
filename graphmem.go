package cuda

import "github.com/hostlaunch/cuda/internal/driver"

// graphMemory is the kind of the resource of memory that a graph allocates.
const graphMemory = "GraphMemory"

// AddAlloc adds a node that allocates n bytes of device memory at every launch, and gives that memory, whose address is known
// at once. Its nodes after this one may use it, and so may work that is ordered behind a launch, until it is freed: by a node
// of MemFreeParams in this graph or in one launched later. While it is not freed, the graph cannot be launched again, unless
// it was instantiated with AutoFreeOnLaunch. Closing the Buffer ends its use by the program and frees nothing.
//
// A graph with such a node can be neither cloned nor embedded, no node or edge of it can be removed, and it can have one
// executable at a time. Needs CUDA 12.3. cuGraphAddNode.
func (g *Graph) AddAlloc(n int, after ...GraphNode) (GraphNode, *Buffer, error) {
	const op = "Graph.AddAlloc"
	if err := g.change(op); err != nil {
		return GraphNode{}, nil, err
	}
	defer g.end()
	switch {
	case n <= 0:
		return GraphNode{}, nil, failf(op, ErrInvalidValue, "size %d: allocate at least one byte", n)
	case g.nodes.kind == bodyGraph:
		return GraphNode{}, nil, failf(op, ErrNotSupported, "the body of a conditional node cannot allocate; allocate in the graph around it")
	}
	alloc := &driver.MemAllocate{Size: uintptr(n)}
	l := &lowering{op: op, ctx: g.ctx, nodes: g.nodes, params: driver.NodeParams{Type: driver.NodeMemAlloc, Alloc: alloc}}
	node, err := g.insert(l, after)
	if err != nil {
		return GraphNode{}, nil, err
	}
	b := &Buffer{ctx: g.ctx, ptr: alloc.Address, n: n}
	b.res = newResource(g.ctx, graphMemory, 0, func() driver.Result { return driver.Success })
	dropped(b, b.res)
	return node, b, nil
}
