package softcuda

import "github.com/hostlaunch/cuda/internal/driver"

// GraphAddNode implements driver.Graphs.
func (m *machine) GraphAddNode(ctx driver.Context, raw driver.Graph, deps []driver.GraphNode, data []driver.EdgeData, p *driver.NodeParams) (driver.GraphNode, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	c, r := m.context(ctx)
	if r != driver.Success {
		return 0, r
	}
	g := m.graphs[raw]
	if g == nil || p == nil {
		return 0, driver.ErrorInvalidValue
	}
	behind, r := m.newEdges(g, deps, data)
	if r != driver.Success {
		return 0, r
	}
	n := &graphNode{graph: g, ctx: c, typ: p.Type, deps: behind}
	if r := m.furnish(n, p); r != driver.Success {
		return 0, r
	}
	m.addNode(g, n)
	return n.raw, driver.Success
}

// furnish gives n, which is about to be added to its graph, what a node of its type has.
func (m *machine) furnish(n *graphNode, p *driver.NodeParams) (r driver.Result) {
	switch p.Type {
	case driver.NodeGraph:
		return m.embed(n, p.Child)
	case driver.NodeConditional:
		return m.addConditional(n, p.Cond)
	case driver.NodeMemAlloc:
		return m.addAllocation(n, p.Alloc)
	case driver.NodeMemFree:
		return m.addFree(n, p.Free)
	case driver.NodeEmpty:
		n.act = &action{kind: opMark}
		return driver.Success
	}
	if n.act, r = m.newAction(n.ctx, p); r == driver.Success && n.act.event != 0 {
		n.ctx = m.events[n.act.event].ctx
	}
	return r
}

// settable finds what p makes of a node: its type must be p's, and have parameters that can be set.
func (m *machine) settable(ctx driver.Context, n *graphNode, p *driver.NodeParams) (*action, driver.Result) {
	if _, r := m.context(ctx); r != driver.Success {
		return nil, r
	}
	if p == nil || p.Type != n.typ {
		return nil, driver.ErrorInvalidValue
	}
	switch n.typ {
	case driver.NodeGraph, driver.NodeConditional, driver.NodeMemAlloc, driver.NodeMemFree:
		return nil, driver.ErrorNotSupported
	}
	return m.newAction(n.ctx, p)
}

// GraphNodeSetParams implements driver.Graphs. Executables keep the parameters that they have.
func (m *machine) GraphNodeSetParams(ctx driver.Context, raw driver.GraphNode, p *driver.NodeParams) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	n := m.nodes[raw]
	if n == nil {
		return driver.ErrorInvalidValue
	}
	act, r := m.settable(ctx, n, p)
	if r == driver.Success {
		n.act = act
	}
	return r
}

// nodeValue answers a question about a node of a type; any type will do if it is below zero.
func nodeValue[T any](m *machine, raw driver.GraphNode, typ driver.NodeType, get func(*graphNode) T) (T, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	n := m.nodes[raw]
	if n == nil || typ >= 0 && n.typ != typ {
		var zero T
		return zero, driver.ErrorInvalidValue
	}
	return get(n), driver.Success
}

// GraphNodeGetType implements driver.Graphs.
func (m *machine) GraphNodeGetType(_ driver.Context, raw driver.GraphNode) (driver.NodeType, driver.Result) {
	return nodeValue(m, raw, -1, func(n *graphNode) driver.NodeType { return n.typ })
}

// GraphChildGraphNodeGetGraph implements driver.Graphs. The graph is the node's.
func (m *machine) GraphChildGraphNodeGetGraph(_ driver.Context, raw driver.GraphNode) (driver.Graph, driver.Result) {
	return nodeValue(m, raw, driver.NodeGraph, func(n *graphNode) driver.Graph { return n.inner[0].raw })
}

// GraphHostNodeGetParams implements driver.Graphs.
func (m *machine) GraphHostNodeGetParams(_ driver.Context, raw driver.GraphNode) (uint64, driver.Result) {
	return nodeValue(m, raw, driver.NodeHost, func(n *graphNode) uint64 { return n.act.data })
}

// GraphKernelNodeGetParams implements driver.Graphs.
func (m *machine) GraphKernelNodeGetParams(_ driver.Context, raw driver.GraphNode) (f driver.Function, grid, block [3]uint32, r driver.Result) {
	call, r := nodeValue(m, raw, driver.NodeKernel, func(n *graphNode) *kernelCall { return n.act.call })
	if r != driver.Success {
		return 0, grid, block, r
	}
	return call.function, call.grid, call.block, r
}
