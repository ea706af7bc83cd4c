package softcuda

import (
	"slices"

	"github.com/hostlaunch/cuda/internal/driver"
)

// graphExec is a graph made ready to run. What it runs is its own: the graph may change or go.
type graphExec struct {
	ctx    *context
	graph  *graph // that it was made of
	plans  []plan // the first one is that of the graph
	shared bool   // a launch may still look at plans: they are copied before they change
	where  map[driver.GraphNode]spot
	conds  map[driver.ConditionalHandle]*condValue
	memory memories
	events bool // it has event nodes
	holds  *bundle
	last   *op   // the end of the latest launch
	ended  clock // what the end of the former launch is ordered behind, if the machine is tracked
}

// spot is a node's place in the plans.
type spot struct{ plan, at int }

// GraphInstantiateWithParams implements driver.Graphs.
func (m *machine) GraphInstantiateWithParams(ctx driver.Context, raw driver.Graph, i *driver.Instantiation) (driver.GraphExec, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	g := m.graphs[raw]
	if r := m.instantiable(ctx, g, i); r != driver.Success {
		return 0, r
	}
	x := &graphExec{ctx: g.ctx, graph: g, where: map[driver.GraphNode]spot{}, conds: map[driver.ConditionalHandle]*condValue{}}
	p := planner{graphExec: x}
	if _, ok := p.add(g, false); !ok {
		x.memory.end(m)
		i.Result, i.ErrorNode = p.fault.Result, p.fault.ErrorNode
		return 0, driver.ErrorInvalidValue
	}
	x.memory.auto = i.Flags&driver.GraphAutoFreeOnLaunch != 0
	if g.memory {
		g.live = x
	}
	x.holds = bundleOf(g)
	i.Result, i.ErrorNode = driver.InstantiateSuccess, 0
	handle := driver.GraphExec(m.handle())
	m.execs[handle] = x
	return handle, driver.Success
}

// instantiable answers for an instantiation before anything is made.
func (m *machine) instantiable(ctx driver.Context, g *graph, i *driver.Instantiation) driver.Result {
	const known = 1 | 2 | 4 | 8
	switch {
	case g == nil, i.Flags&^known != 0, g.body():
		return driver.ErrorInvalidValue
	case g.capturing():
		return driver.ErrorIllegalState
	case g.ctx.lost != driver.Success:
		return g.ctx.lost
	case g.live != nil:
		return driver.ErrorNotSupported
	case i.Flags&driver.GraphUpload == 0:
		return driver.Success
	}
	return m.uploadable(ctx, i.UploadStream)
}

// uploadable answers for an upload on a stream, for which there is nothing to do: plans need no device memory. mu is held.
func (m *machine) uploadable(ctx driver.Context, raw driver.Stream) driver.Result {
	s, r := m.queueable(ctx, raw)
	if r == driver.Success && s.capture != nil {
		return s.capture.refuse()
	}
	return r
}

// GraphUpload implements driver.Graphs.
func (m *machine) GraphUpload(ctx driver.Context, raw driver.GraphExec, onto driver.Stream) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	r := m.uploadable(ctx, onto)
	if r == driver.Success && m.execs[raw] == nil {
		return driver.ErrorInvalidValue
	}
	return r
}

// GraphExecDestroy implements driver.Graphs. A launch in flight goes on, and keeps what it uses.
func (m *machine) GraphExecDestroy(_ driver.Context, raw driver.GraphExec) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	x := m.execs[raw]
	if x == nil {
		return driver.ErrorInvalidValue
	}
	delete(m.execs, raw)
	if x.graph.live == x {
		x.graph.live = nil
	}
	x.memory.end(m)
	m.leave(x.holds)
	return driver.Success
}

// find finds the executable's node that was made of a node, which must still exist.
func (m *machine) find(raw driver.GraphExec, n driver.GraphNode) (x *graphExec, of *graphNode, at spot, r driver.Result) {
	x, of = m.execs[raw], m.nodes[n]
	if x == nil || of == nil {
		return nil, nil, at, driver.ErrorInvalidValue
	}
	at, ok := x.where[n]
	if !ok {
		return nil, nil, at, driver.ErrorInvalidValue
	}
	return x, of, at, driver.Success
}

func (x *graphExec) node(at spot) *execNode { return &x.plans[at.plan].nodes[at.at] }

// changing is node, for a change that launches in flight are not to see.
func (x *graphExec) changing(at spot) *execNode {
	if x.shared && x.last != nil && !x.last.done {
		x.plans = slices.Clone(x.plans)
		for i := range x.plans {
			x.plans[i].nodes = slices.Clone(x.plans[i].nodes)
		}
	}
	x.shared = false
	return x.node(at)
}

// GraphExecNodeSetParams implements driver.Graphs. Launches that are queued keep the parameters that they have.
func (m *machine) GraphExecNodeSetParams(ctx driver.Context, raw driver.GraphExec, n driver.GraphNode, p *driver.NodeParams) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	x, of, at, r := m.find(raw, n)
	if r != driver.Success {
		return r
	}
	if p != nil && p.Type == driver.NodeGraph && of.typ == driver.NodeGraph {
		return m.setChild(x, at, p.Child)
	}
	act, r := m.settable(ctx, of, p)
	switch {
	case r != driver.Success:
		return r
	case !act.replaces(x.node(at).act):
		return driver.ErrorInvalidValue
	}
	x.changing(at).act = act
	x.events = x.events || act.event != 0
	return driver.Success
}

// setChild has a child graph node do what the nodes of g do. g must be as the node's graph was, but for parameters.
func (m *machine) setChild(x *graphExec, at spot, raw driver.Graph) driver.Result {
	g := m.graphs[raw]
	if g == nil {
		return driver.ErrorInvalidValue
	}
	if r := g.copyable(); r != driver.Success {
		return r
	}
	u := updating{x: x, why: new(driver.ExecUpdate)}
	if !u.pair(x.node(at).inner[0], g) {
		return driver.ErrorInvalidValue
	}
	u.apply()
	if more := bundleOf(g); more != nil {
		m.supersede(x, joined(x.holds, more))
		m.leave(more)
	}
	return driver.Success
}

// supersede has x hold b from now on. Launches in flight keep what they began with.
func (m *machine) supersede(x *graphExec, b *bundle) {
	former := x.holds
	x.holds = b
	m.leave(former)
}

// switchable finds a node of an executable that can be disabled.
func (m *machine) switchable(raw driver.GraphExec, n driver.GraphNode) (*graphExec, spot, driver.Result) {
	x, of, at, r := m.find(raw, n)
	if r != driver.Success {
		return nil, at, r
	}
	switch of.typ {
	case driver.NodeKernel, driver.NodeMemcpy, driver.NodeMemset:
		return x, at, driver.Success
	}
	return nil, at, driver.ErrorInvalidValue
}

// GraphNodeSetEnabled implements driver.Graphs. A disabled node does nothing, and keeps its place.
func (m *machine) GraphNodeSetEnabled(_ driver.Context, raw driver.GraphExec, n driver.GraphNode, enabled bool) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	x, at, r := m.switchable(raw, n)
	if r == driver.Success {
		x.changing(at).off = !enabled
	}
	return r
}

// GraphNodeGetEnabled implements driver.Graphs.
func (m *machine) GraphNodeGetEnabled(_ driver.Context, raw driver.GraphExec, n driver.GraphNode) (bool, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	x, at, r := m.switchable(raw, n)
	if r != driver.Success {
		return false, r
	}
	return !x.node(at).off, driver.Success
}
