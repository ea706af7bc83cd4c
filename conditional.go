package cuda

import "github.com/hostlaunch/cuda/internal/driver"

// Condition is the value that a conditional node looks at. Kernels of the graph set it: passed to a kernel as an argument, it
// is a cudaGraphConditionalHandle, for cudaGraphSetConditional (softcuda.Launch.SetConditional on the software device). One
// conditional node can use it, and one must.
type Condition struct {
	of     *nodeTable
	handle driver.ConditionalHandle
}

// ConditionOption configures a Condition.
type ConditionOption func(*conditionOptions)

type conditionOptions struct{ value, flags uint32 }

// AtLaunch has every launch begin with the condition at value. Without it, the condition has what the launch before left, and
// before the first launch no certain value.
func AtLaunch(value uint32) ConditionOption {
	return func(o *conditionOptions) { o.value, o.flags = value, driver.CondAssignDefault }
}

// NewCondition makes a condition for a conditional node of g, or of a graph inside g. Needs CUDA 12.3.
// cuGraphConditionalHandleCreate.
func (g *Graph) NewCondition(opts ...ConditionOption) (Condition, error) {
	const op = "Graph.NewCondition"
	if err := g.change(op); err != nil {
		return Condition{}, err
	}
	defer g.end()
	var o conditionOptions
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	handle, r := g.ctx.drv.drv.GraphConditionalHandleCreate(g.ctx.raw, g.raw, o.value, o.flags)
	if r != driver.Success {
		return Condition{}, g.ctx.needs(op, r, "cuGraphConditionalHandleCreate", "")
	}
	return Condition{g.nodes.root(), handle}, nil
}

// AddIf adds a node that runs the graph then, which the program fills, if cond is not 0 when its turn comes. then can have
// kernel, empty, child graph, memset, memcpy and conditional nodes (a GraphBuilder can capture into it); it goes with the node.
// Needs CUDA 12.3. cuGraphAddNode.
func (g *Graph) AddIf(cond Condition, after ...GraphNode) (n GraphNode, then *Graph, err error) {
	n, bodies, err := g.addConditional("Graph.AddIf", "12.3", cond, driver.CondIf, 1, after)
	if err != nil {
		return GraphNode{}, nil, err
	}
	return n, bodies[0], nil
}

// AddIfElse is AddIf with a graph that is run if cond is 0. Needs CUDA 12.8.
func (g *Graph) AddIfElse(cond Condition, after ...GraphNode) (n GraphNode, then, otherwise *Graph, err error) {
	n, bodies, err := g.addConditional("Graph.AddIfElse", "12.8", cond, driver.CondIf, 2, after)
	if err != nil {
		return GraphNode{}, nil, nil, err
	}
	return n, bodies[0], bodies[1], nil
}

// AddWhile adds a node that runs the graph body again and again as long as cond is not 0, which is looked at before each run.
// See AddIf.
func (g *Graph) AddWhile(cond Condition, after ...GraphNode) (n GraphNode, body *Graph, err error) {
	n, bodies, err := g.addConditional("Graph.AddWhile", "12.3", cond, driver.CondWhile, 1, after)
	if err != nil {
		return GraphNode{}, nil, err
	}
	return n, bodies[0], nil
}

// AddSwitch adds a node that runs the graph cases[cond], and none if cond is count or more. Needs CUDA 12.8. See AddIf.
func (g *Graph) AddSwitch(cond Condition, count int, after ...GraphNode) (n GraphNode, cases []*Graph, err error) {
	const op = "Graph.AddSwitch"
	if count < 1 || count > 1<<16 {
		return GraphNode{}, nil, failf(op, ErrInvalidValue, "%d cases: a switch has 1 to 65536", count)
	}
	return g.addConditional(op, "12.8", cond, driver.CondSwitch, count, after)
}

func (g *Graph) addConditional(op, since string, cond Condition, kind int32, bodies int, after []GraphNode) (GraphNode, []*Graph, error) {
	if err := g.change(op); err != nil {
		return GraphNode{}, nil, err
	}
	defer g.end()
	switch cond.of {
	case g.nodes.root():
	case nil:
		return GraphNode{}, nil, failf(op, ErrInvalidValue, "cond is the zero Condition; make one with Graph.NewCondition")
	default:
		return GraphNode{}, nil, failf(op, ErrInvalidValue, "cond is a condition of another graph")
	}
	deps, err := g.nodes.raws(op, after, nil)
	if err != nil {
		return GraphNode{}, nil, err
	}
	c := &driver.Conditional{Handle: cond.handle, Kind: kind, Size: bodies}
	raw, r := g.ctx.drv.drv.GraphAddNode(g.ctx.raw, g.raw, deps, nil, &driver.NodeParams{Type: driver.NodeConditional, Cond: c})
	if r != driver.Success {
		return GraphNode{}, nil, g.ctx.needs(op, r, "cuGraphAddNode", "the driver refused the conditional node (it came with CUDA %s); the graph is as it was", since)
	}
	inner := new(innerGraphs)
	n := g.nodes.add(node{raw: raw, inner: inner})
	for _, body := range c.Bodies {
		inner.graphs = append(inner.graphs, g.innerGraph(n, body, bodyGraph))
	}
	return n, inner.graphs, nil
}
