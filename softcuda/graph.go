package softcuda

import (
	"slices"

	"github.com/hostlaunch/cuda/internal/driver"
)

// graph is a set of operations that are to run again and again, and what orders them.
type graph struct {
	raw     driver.Graph
	ctx     *context
	nodes   []*graphNode // in the order of their addition
	capture *capture     // that adds to it
	owner   *graphNode   // the node that it is the child graph or a body of; nil: the program's own

	copies map[driver.GraphNode]*graphNode    // its nodes that are copies, by what of; made when first asked for
	conds  map[driver.ConditionalHandle]*cond // the handles made for it
	memory bool                               // it has nodes that allocate or free memory
	live   *graphExec                         // the executable made of it, if it has such nodes

	objects map[*userObject]int // the references it has
}

// graphNode is an operation of a graph.
type graphNode struct {
	raw    driver.GraphNode
	graph  *graph
	ctx    *context // where it runs
	typ    driver.NodeType
	act    *action
	deps   edges
	origin driver.GraphNode // that it is a copy of
	inner  []*graph         // its child graph, or its bodies
	cond   *cond            // of a conditional node
	at     int              // scratch: its place in some order
}

// newNode is the node of an operation that is captured.
func newNode(o *op) *graphNode {
	typ := driver.NodeType(o.node)
	switch o.kind {
	case opMark:
		typ = driver.NodeEmpty
	case opHost:
		typ = driver.NodeHost
	}
	flat := typ == driver.NodeMemcpy || typ == driver.NodeMemset
	act := &action{kind: o.kind, work: o.work, data: o.data, flat: flat, load: o.notes().load}
	if list := o.notes().touches; list != nil {
		act.touches = &list
	}
	act.exact = o.notes().exact
	return &graphNode{typ: typ, act: act}
}

func (m *machine) newGraph(c *context) *graph {
	g := &graph{raw: driver.Graph(m.handle()), ctx: c}
	m.graphs[g.raw] = g
	return g
}

func (m *machine) addNode(g *graph, n *graphNode) {
	n.raw, n.graph = driver.GraphNode(m.handle()), g
	m.nodes[n.raw] = n
	g.nodes = append(g.nodes, n)
}

// dropGraph forgets g, and lets go of what it holds.
func (m *machine) dropGraph(g *graph) {
	for _, n := range g.nodes {
		m.dropNode(n)
	}
	for h := range g.conds {
		delete(m.conds, h)
	}
	m.letGoAll(g.objects)
	delete(m.graphs, g.raw)
}

// dropNode forgets n, and the graphs in it.
func (m *machine) dropNode(n *graphNode) {
	delete(m.nodes, n.raw)
	for _, g := range n.inner {
		m.dropGraph(g)
	}
	if n.cond != nil {
		delete(m.conds, n.cond.raw)
		delete(n.cond.graph.conds, n.cond.raw)
	}
	if n.typ == driver.NodeMemAlloc {
		m.release(n.act.mem)
	}
}

// every reports whether all graphs of the tree under g are as ok wants them.
func (g *graph) every(ok func(*graph) bool) bool {
	if !ok(g) {
		return false
	}
	for _, n := range g.nodes {
		for _, inner := range n.inner {
			if !inner.every(ok) {
				return false
			}
		}
	}
	return true
}

// capturing reports whether g, or a graph in it, is captured into.
func (g *graph) capturing() bool {
	return !g.every(func(g *graph) bool { return g.capture == nil })
}

// plain reports whether g has neither memory nodes nor conditional ones, nor has a graph in it.
func (g *graph) plain() bool {
	return g.unconditional() && g.every(func(g *graph) bool { return !g.memory })
}

// unconditional reports whether g has no conditional nodes, nor has a graph in it.
func (g *graph) unconditional() bool {
	conditional := func(n *graphNode) bool { return n.typ == driver.NodeConditional }
	return g.every(func(g *graph) bool { return !slices.ContainsFunc(g.nodes, conditional) })
}

// under reports whether g is above, or in it.
func (g *graph) under(above *graph) bool {
	for g != above && g.owner != nil {
		g = g.owner.graph
	}
	return g == above
}

// GraphCreate implements driver.Graphs. A lost context has graphs too: seen on an H200.
func (m *machine) GraphCreate(ctx driver.Context, flags uint32) (driver.Graph, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	c, r := m.context(ctx)
	switch {
	case c == nil:
		return 0, r
	case flags != 0:
		return 0, driver.ErrorInvalidValue
	}
	return m.newGraph(c).raw, driver.Success
}

// GraphDestroy implements driver.Graphs. What was instantiated from the graph goes on.
func (m *machine) GraphDestroy(_ driver.Context, raw driver.Graph) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	g := m.graphs[raw]
	switch {
	case g == nil, g.owner != nil:
		return driver.ErrorInvalidValue
	case g.capturing():
		return driver.ErrorIllegalState
	}
	m.dropGraph(g)
	return driver.Success
}

// GraphDestroyNode implements driver.Graphs. It takes time in the size of the graph.
func (m *machine) GraphDestroyNode(_ driver.Context, raw driver.GraphNode) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	n := m.nodes[raw]
	switch {
	case n == nil:
		return driver.ErrorInvalidValue
	case n.graph.memory:
		return driver.ErrorNotSupported
	case n.graph.capture != nil, slices.ContainsFunc(n.inner, (*graph).capturing):
		return driver.ErrorIllegalState
	}
	for _, other := range n.graph.nodes {
		other.deps.remove(n)
	}
	n.graph.nodes = slices.DeleteFunc(n.graph.nodes, func(other *graphNode) bool { return other == n })
	m.dropNode(n)
	return driver.Success
}

// graphValue answers a question about a graph.
func graphValue[T any](m *machine, raw driver.Graph, get func(*graph) T) (T, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	g := m.graphs[raw]
	if g == nil {
		var zero T
		return zero, driver.ErrorInvalidValue
	}
	return get(g), driver.Success
}

// GraphGetNodes implements driver.Graphs.
func (m *machine) GraphGetNodes(_ driver.Context, raw driver.Graph) ([]driver.GraphNode, driver.Result) {
	return graphValue(m, raw, func(g *graph) (list []driver.GraphNode) {
		for _, n := range g.nodes {
			list = append(list, n.raw)
		}
		return list
	})
}

// root is the graph that is in no other, which g is inside of, or g itself.
func (g *graph) root() *graph {
	for g.owner != nil {
		g = g.owner.graph
	}
	return g
}
