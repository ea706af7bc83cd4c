package cuda

import (
	"fmt"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/driver"
)

// Graph is a set of operations, its nodes, and the order between them. It is built by hand (AddNode) or by capture (Capture,
// GraphBuilder), and run by a GraphExec that Instantiate makes of it. One Graph must be used by one goroutine at a time.
//
// What a node uses (buffers, modules, pinned memory, events, slices, host functions) lives as long as anything can still run
// it: the graph, its clones, graphs that embed it, executables made of any of them, and their launches in flight (CONTRACT
// GR-03, GR-08). Closing a Buffer that a graph uses forbids its further use by the program; its memory is freed when nothing
// can run the graph any more. Nodes that one capture made share one owner: what they use goes when the last of them can.
type Graph struct {
	ctx      *Context
	raw      driver.Graph
	res      *resource
	nodes    *nodeTable
	building atomic.Bool  // captured into
	captures atomic.Int32 // into the graph, or into one inside its nodes
	outer    *Graph       // that has the node that this one is inside of; nil: it is in none
	spoiled  atomic.Bool  // by a recapture that failed
}

// GraphNodeType is what a node does.
type GraphNodeType int32

// Node types, by the driver's numbers.
const (
	KernelNode      GraphNodeType = GraphNodeType(driver.NodeKernel)
	MemcpyNode      GraphNodeType = GraphNodeType(driver.NodeMemcpy)
	MemsetNode      GraphNodeType = GraphNodeType(driver.NodeMemset)
	HostNode        GraphNodeType = GraphNodeType(driver.NodeHost)
	ChildGraphNode  GraphNodeType = GraphNodeType(driver.NodeGraph)
	EmptyNode       GraphNodeType = GraphNodeType(driver.NodeEmpty)
	WaitEventNode   GraphNodeType = GraphNodeType(driver.NodeWaitEvent)
	EventRecordNode GraphNodeType = GraphNodeType(driver.NodeEventRecord)
	MemAllocNode    GraphNodeType = GraphNodeType(driver.NodeMemAlloc)
	MemFreeNode     GraphNodeType = GraphNodeType(driver.NodeMemFree)
	BatchMemOpNode  GraphNodeType = GraphNodeType(driver.NodeBatchMemOp)
	ConditionalNode GraphNodeType = GraphNodeType(driver.NodeConditional)
)

// String names the type, as in "memory allocation".
func (t GraphNodeType) String() string {
	if name, ok := nodeTypeNames[t]; ok {
		return name
	}
	return fmt.Sprintf("node type %d", int32(t))
}

var nodeTypeNames = map[GraphNodeType]string{
	KernelNode: "kernel", MemcpyNode: "memcpy", MemsetNode: "memset", HostNode: "host", ChildGraphNode: "child graph",
	EmptyNode: "empty", WaitEventNode: "event wait", EventRecordNode: "event record", MemAllocNode: "memory allocation",
	MemFreeNode: "memory free", BatchMemOpNode: "batch memory operation", ConditionalNode: "conditional",
}

// GraphEdge orders two nodes: To runs after From.
type GraphEdge struct {
	From, To GraphNode
	Data     EdgeData
}

// NewGraph makes a graph without nodes. cuGraphCreate.
func (c *Context) NewGraph() (*Graph, error) {
	const op = "NewGraph"
	if err := c.enter(op); err != nil {
		return nil, err
	}
	defer c.leave()
	raw, r := c.drv.drv.GraphCreate(c.raw, 0)
	if err := c.result(op, r); err != nil {
		return nil, err
	}
	return newGraph(c, raw, new(nodeTable)), nil
}

func newGraph(c *Context, raw driver.Graph, nodes *nodeTable) *Graph {
	g := &Graph{ctx: c, raw: raw, nodes: nodes}
	perished := new(atomic.Bool)
	g.res = newResource(c, "Graph", 0, func() driver.Result {
		if perished.Load() {
			return driver.Success
		}
		return c.drv.drv.GraphDestroy(c.raw, raw)
	})
	dropped(g, g.res)
	nodes.graph, nodes.perished, nodes.open = g.res, perished, g
	return g
}

// innerGraph is the graph inside node n of g. It lives as long as the node.
func (g *Graph) innerGraph(n GraphNode, raw driver.Graph, kind graphKind) *Graph {
	return &Graph{ctx: g.ctx, raw: raw, res: g.res, nodes: &nodeTable{graph: g.res, kind: kind, inside: n}, outer: g}
}

// acquire takes g for op; g.res.release must follow if it returns nil.
func (g *Graph) acquire(op string) error {
	if g == nil {
		return failf(op, ErrInvalidValue, "the graph is nil")
	}
	if !g.res.acquire() {
		return failf(op, ErrClosed, "the graph is closed")
	}
	if g.nodes.lost() {
		g.res.release()
		return failf(op, ErrClosed, "a capture into the graph has failed, and the driver has destroyed the graph; build it anew")
	}
	if g.nodes.removed() {
		g.res.release()
		return failf(op, ErrClosed, "the node that the graph is in was removed")
	}
	return nil
}

// begin is the beginning of every call on a graph: g.end must follow if it returns nil.
func (g *Graph) begin(op string) error {
	if err := g.acquire(op); err != nil {
		return err
	}
	if err := g.ctx.enter(op); err != nil {
		g.res.release()
		return err
	}
	return nil
}

func (g *Graph) end() {
	g.ctx.leave()
	g.res.release()
}

// change is begin for a call that changes g.
func (g *Graph) change(op string) error {
	if err := g.begin(op); err != nil {
		return err
	}
	if g.nodes.kind == embeddedGraph {
		g.end()
		return failf(op, ErrNotPermitted, "the graph is a copy inside a child graph node; change the graph before it is embedded")
	}
	return nil
}

// with refuses what is to be used together with g, which an error calls what, unless it is of g's context too: a launch is lost
// with one context, and all its host functions are told then (CONTRACT HL-17).
func (g *Graph) with(op, what string, c *Context) error {
	switch {
	case c.drv != g.ctx.drv:
		return failf(op, ErrInvalidValue, "the graph belongs to %s and %s to %s; use one Driver for both", g.ctx.describe(), what, c.describeBeside(g.ctx))
	case c != g.ctx:
		return failf(op, ErrInvalidContext, "the graph belongs to %s and %s to %s; use one context for both", g.ctx.describe(), what, c.describe())
	}
	return nil
}

// captured notes that a capture into g begins, or ends. It reports false, and notes nothing, if one has begun already.
func (g *Graph) captured(begins bool) bool {
	n := int32(-1)
	if begins {
		n = 1
	}
	if !g.building.CompareAndSwap(!begins, begins) {
		return false
	}
	for ; g != nil; g = g.outer {
		g.captures.Add(n)
	}
	return true
}

// refuseCaptured refuses what cannot be done with g, which an error calls what, while it, or a graph inside, is captured into.
func (g *Graph) refuseCaptured(op, what string) error {
	if g.captures.Load() == 0 {
		return nil
	}
	return failf(op, ErrIllegalState, "%s is being captured into, or a graph inside a node of it; end that first", what)
}

// Context is the context that g belongs to.
func (g *Graph) Context() *Context {
	if g == nil {
		return nil
	}
	return g.ctx
}

// Nodes are the nodes of g, in no particular order. cuGraphGetNodes.
func (g *Graph) Nodes() ([]GraphNode, error) {
	const op = "Graph.Nodes"
	if err := g.begin(op); err != nil {
		return nil, err
	}
	defer g.end()
	raw, r := g.ctx.drv.drv.GraphGetNodes(g.ctx.raw, g.raw)
	return g.nodes.all(raw), g.ctx.result(op, r)
}

// NodeType is what n, a node of g, does. cuGraphNodeGetType.
func (g *Graph) NodeType(n GraphNode) (GraphNodeType, error) {
	const op = "Graph.NodeType"
	if err := g.begin(op); err != nil {
		return 0, err
	}
	defer g.end()
	found, err := g.nodes.get(op, "n", n)
	if err != nil {
		return 0, err
	}
	t, r := g.ctx.drv.drv.GraphNodeGetType(g.ctx.raw, found.raw)
	return GraphNodeType(t), g.ctx.result(op, r)
}

// Edges are the edges of g, in no particular order. Needs CUDA 12.3. cuGraphGetEdges.
func (g *Graph) Edges() ([]GraphEdge, error) {
	const op = "Graph.Edges"
	if err := g.begin(op); err != nil {
		return nil, err
	}
	defer g.end()
	raw, r := g.ctx.drv.drv.GraphGetEdges(g.ctx.raw, g.raw)
	if r != driver.Success {
		return nil, g.ctx.needs(op, r, "cuGraphGetEdges", "")
	}
	edges := make([]GraphEdge, 0, len(raw))
	for _, e := range raw {
		edges = append(edges, GraphEdge{g.nodes.of(e.From), g.nodes.of(e.To), publicEdge(e.Data)})
	}
	return edges, nil
}

// Close destroys g. Clones, graphs that embed it and executables made of it are not affected (CONTRACT GR-04). On a graph
// inside a node, which goes with the node, it does nothing. cuGraphDestroy.
func (g *Graph) Close() error {
	if g == nil || g.outer != nil {
		return nil
	}
	return closeHandle(g.res)
}
