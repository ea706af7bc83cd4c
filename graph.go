package cuda

import (
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/driver"
)

// Graph is a set of operations, its nodes, and the order between them. It is made by capture and run by a GraphExec. It keeps
// what its nodes use. One Graph must be used by one goroutine at a time.
type Graph struct {
	ctx      *Context
	raw      driver.Graph
	res      *resource
	holds    *holdings
	building atomic.Bool // captured into
	spoiled  atomic.Bool // by a recapture that failed
}

// GraphNode is a node of a Graph. It is comparable, and valid as long as the Graph.
type GraphNode struct{ raw driver.GraphNode }

// GraphNodeType is what a node does.
type GraphNodeType int32

// Node types, by the driver's numbers.
const (
	KernelNode      GraphNodeType = GraphNodeType(driver.NodeKernel)
	MemcpyNode      GraphNodeType = GraphNodeType(driver.NodeMemcpy)
	MemsetNode      GraphNodeType = GraphNodeType(driver.NodeMemset)
	HostNode        GraphNodeType = GraphNodeType(driver.NodeHost)
	EmptyNode       GraphNodeType = GraphNodeType(driver.NodeEmpty)
	WaitEventNode   GraphNodeType = GraphNodeType(driver.NodeWaitEvent)
	EventRecordNode GraphNodeType = GraphNodeType(driver.NodeEventRecord)
	BatchMemOpNode  GraphNodeType = GraphNodeType(driver.NodeBatchMemOp)
)

// GraphEdge orders two nodes: To runs after From.
type GraphEdge struct {
	From, To GraphNode
	Data     EdgeData
}

// NewGraph makes a graph without nodes, for GraphBuilder.BeginToGraph. cuGraphCreate.
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
	return newGraph(c, raw), nil
}

// newGraph takes over the shares of hold.
func newGraph(c *Context, raw driver.Graph, hold ...*holding) *Graph {
	holds := &holdings{list: hold}
	g := &Graph{ctx: c, raw: raw, holds: holds}
	g.res = newResource(c, "Graph", 0, func() driver.Result {
		r := c.drv.drv.GraphDestroy(c.raw, raw)
		holds.release()
		return r
	})
	dropped(g, g.res)
	return g
}

// acquire takes g for op; g.res.release must follow if it returns nil.
func (g *Graph) acquire(op string) error {
	if g == nil {
		return failf(op, ErrInvalidValue, "the graph is nil")
	}
	if !g.res.acquire() {
		return failf(op, ErrClosed, "the graph is closed")
	}
	return nil
}

// graphValue is a call that asks the driver something about g.
func graphValue[T any](g *Graph, op string, get func(driver.Driver, driver.Context, driver.Graph) (T, driver.Result)) (v T, err error) {
	if err := g.acquire(op); err != nil {
		return v, err
	}
	defer g.res.release()
	if err := g.ctx.enter(op); err != nil {
		return v, err
	}
	defer g.ctx.leave()
	v, r := get(g.ctx.drv.drv, g.ctx.raw, g.raw)
	if r == driver.ErrorNotSupported {
		return v, g.ctx.resultf(op, r, "it came with CUDA 12.3; this driver is of %v", g.ctx.drv.version)
	}
	return v, g.ctx.result(op, r)
}

// Nodes are the nodes of g, in no particular order. cuGraphGetNodes.
func (g *Graph) Nodes() ([]GraphNode, error) {
	raw, err := graphValue(g, "Graph.Nodes", driver.Driver.GraphGetNodes)
	return publicNodes(raw), err
}

// NodeType is what n, a node of g, does. cuGraphNodeGetType.
func (g *Graph) NodeType(n GraphNode) (GraphNodeType, error) {
	t, err := graphValue(g, "Graph.NodeType", func(d driver.Driver, c driver.Context, _ driver.Graph) (driver.NodeType, driver.Result) {
		if n.raw == 0 {
			return 0, driver.ErrorInvalidValue
		}
		return d.GraphNodeGetType(c, n.raw)
	})
	return GraphNodeType(t), err
}

// Edges are the edges of g, in no particular order. Needs CUDA 12.3. cuGraphGetEdges.
func (g *Graph) Edges() ([]GraphEdge, error) {
	raw, err := graphValue(g, "Graph.Edges", driver.Driver.GraphGetEdges)
	var edges []GraphEdge
	for _, e := range raw {
		edges = append(edges, GraphEdge{GraphNode{e.From}, GraphNode{e.To}, publicEdge(e.Data)})
	}
	return edges, err
}

// Close destroys g. Executables made of it are not affected. cuGraphDestroy.
func (g *Graph) Close() error {
	if g == nil {
		return nil
	}
	return closeHandle(g.res)
}

func publicNodes(raw []driver.GraphNode) (nodes []GraphNode) {
	for _, n := range raw {
		nodes = append(nodes, GraphNode{n})
	}
	return nodes
}

func rawNodes(nodes []GraphNode) (raw []driver.GraphNode) {
	for _, n := range nodes {
		raw = append(raw, n.raw)
	}
	return raw
}
