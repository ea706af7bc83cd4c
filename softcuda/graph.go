package softcuda

import "github.com/hostlaunch/cuda/internal/driver"

// graph is a set of operations that are to run again and again, and what orders them.
type graph struct {
	ctx     *context
	nodes   []*graphNode // each behind those that it depends on
	capture *capture     // that adds to it
}

// graphNode is an operation of a graph.
type graphNode struct {
	raw   driver.GraphNode
	graph *graph
	ctx   *context // where it runs
	typ   driver.NodeType
	kind  opKind
	work  func() driver.Result
	data  uint64
	event driver.Event // of event nodes
	deps  []dependency
}

// newNode is the node of an operation.
func newNode(o *op) *graphNode {
	n := &graphNode{typ: driver.NodeType(o.node), kind: o.kind, work: o.work, data: o.data}
	switch o.kind {
	case opMark:
		n.typ = driver.NodeEmpty
	case opHost:
		n.typ = driver.NodeHost
	}
	return n
}

func (m *machine) newGraph(c *context) driver.Graph {
	raw := driver.Graph(m.handle())
	m.graphs[raw] = &graph{ctx: c}
	return raw
}

func (m *machine) addNode(g *graph, n *graphNode) {
	n.raw, n.graph = driver.GraphNode(m.handle()), g
	m.nodes[n.raw] = n
	g.nodes = append(g.nodes, n)
}

func (m *machine) dropGraph(raw driver.Graph) {
	for _, n := range m.graphs[raw].nodes {
		delete(m.nodes, n.raw)
	}
	delete(m.graphs, raw)
}

// GraphCreate implements driver.Graphs.
func (m *machine) GraphCreate(ctx driver.Context, flags uint32) (driver.Graph, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	c, r := m.context(ctx)
	switch {
	case r != driver.Success:
		return 0, r
	case flags != 0:
		return 0, driver.ErrorInvalidValue
	}
	return m.newGraph(c), driver.Success
}

// GraphDestroy implements driver.Graphs. What was instantiated from the graph goes on.
func (m *machine) GraphDestroy(_ driver.Context, raw driver.Graph) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	g := m.graphs[raw]
	switch {
	case g == nil:
		return driver.ErrorInvalidValue
	case g.capture != nil:
		return driver.ErrorIllegalState
	}
	m.dropGraph(raw)
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

// GraphGetEdges implements driver.Graphs.
func (m *machine) GraphGetEdges(_ driver.Context, raw driver.Graph) ([]driver.GraphEdge, driver.Result) {
	return graphValue(m, raw, func(g *graph) (list []driver.GraphEdge) {
		for _, n := range g.nodes {
			for _, d := range n.deps {
				list = append(list, driver.GraphEdge{From: d.on.raw, To: n.raw, Data: d.data})
			}
		}
		return list
	})
}

// GraphNodeGetType implements driver.Graphs.
func (m *machine) GraphNodeGetType(_ driver.Context, raw driver.GraphNode) (driver.NodeType, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	n := m.nodes[raw]
	if n == nil {
		return 0, driver.ErrorInvalidValue
	}
	return n.typ, driver.Success
}

// graphExec is a graph made ready to run. It has nodes of its own: the graph may change or go.
type graphExec struct {
	ctx   *context
	nodes []execNode
	lanes int
	last  *op // the end of the latest launch
}

// execNode is a node, with those that it is behind by their places. Nodes of a lane run one behind the other.
type execNode struct {
	*graphNode
	behind []int
	lane   int
}

// GraphInstantiateWithFlags implements driver.Graphs.
func (m *machine) GraphInstantiateWithFlags(_ driver.Context, raw driver.Graph, flags uint64) (driver.GraphExec, driver.Result) {
	const known = 1 | 2 | 4 | 8
	m.mu.Lock()
	defer m.unlock()
	g := m.graphs[raw]
	switch {
	case g == nil, flags&^known != 0:
		return 0, driver.ErrorInvalidValue
	case g.capture != nil:
		return 0, driver.ErrorIllegalState
	}
	x := &graphExec{ctx: g.ctx}
	x.arrange(g)
	handle := driver.GraphExec(m.handle())
	m.execs[handle] = x
	return handle, g.ctx.lost
}

// arrange gives every node a lane: that of a node before it, if it is the first behind that one, or else a new one.
func (x *graphExec) arrange(g *graph) {
	place, taken := map[*graphNode]int{}, map[int]bool{}
	for i, n := range g.nodes {
		e := execNode{graphNode: n, lane: -1}
		for _, d := range n.deps {
			at := place[d.on]
			e.behind = append(e.behind, at)
			if before := x.nodes[at]; e.lane < 0 && !taken[at] && before.ctx == n.ctx {
				e.lane, taken[at] = before.lane, true
			}
		}
		if e.lane < 0 {
			e.lane = x.lanes
			x.lanes++
		}
		place[n] = i
		x.nodes = append(x.nodes, e)
	}
}

// GraphExecDestroy implements driver.Graphs. A launch in flight goes on.
func (m *machine) GraphExecDestroy(_ driver.Context, raw driver.GraphExec) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	if m.execs[raw] == nil {
		return driver.ErrorInvalidValue
	}
	delete(m.execs, raw)
	return driver.Success
}

// GraphLaunch implements driver.Graphs. The launch is a pair of operations of its stream, start and end, and between them the
// nodes, each lane on a stream that nobody else has. It starts behind the end of the executable's former launch.
func (m *machine) GraphLaunch(ctx driver.Context, raw driver.GraphExec, onto driver.Stream) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.queueable(ctx, onto)
	if r != driver.Success {
		return r
	}
	x := m.execs[raw]
	switch {
	case x == nil:
		return driver.ErrorInvalidValue
	case s.capture != nil:
		return s.capture.refuse()
	}
	start, end := &op{kind: opMark}, &op{kind: opMark}
	start.waitFor(x.last)
	m.enqueue(s, start)
	lanes, ops := make([]*stream, x.lanes), make([]*op, len(x.nodes))
	for i, n := range x.nodes {
		if lanes[n.lane] == nil {
			lanes[n.lane] = &stream{ctx: n.ctx, flags: driver.StreamNonBlocking, priority: s.priority}
			m.orderBehind(lanes[n.lane], s)
		}
		o := m.nodeOp(n.graphNode)
		o.waitFor(start)
		for _, at := range n.behind {
			o.waitFor(ops[at])
			m.orderBehind(lanes[n.lane], lanes[x.nodes[at].lane])
		}
		end.waitFor(o)
		ops[i] = o
		m.enqueue(lanes[n.lane], o)
	}
	for _, lane := range lanes {
		m.orderBehind(s, lane)
	}
	m.enqueue(s, end)
	x.last = end
	return driver.Success
}

// orderBehind has the end of s be ordered behind that of before, where that is tracked (see activity.go). mu is held.
func (m *machine) orderBehind(s, before *stream) {
	if m.tracked && s != before {
		m.after(s, m.history(before).clock)
	}
}

// nodeOp is the operation of one run of n.
func (m *machine) nodeOp(n *graphNode) *op {
	o := &op{kind: n.kind, work: n.work, data: n.data}
	e := m.events[n.event]
	switch {
	case e == nil:
	case n.typ == driver.NodeEventRecord:
		e.latest = &record{op: o}
		o.more().record = e.latest
	case n.typ == driver.NodeWaitEvent && e.latest != nil && e.latest.capture == nil:
		o.waitFor(e.latest.op)
	}
	return o
}
