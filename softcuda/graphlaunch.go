package softcuda

import (
	"maps"

	"github.com/hostlaunch/cuda/internal/driver"
)

// launching is one launch of an executable.
type launching struct {
	m        *machine
	plans    []plan
	conds    map[driver.ConditionalHandle]*condValue
	priority int32
	inner    bool // it queues bodies of conditionals
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
	case x.events && !m.eventsExist(x):
		return driver.ErrorInvalidValue
	}
	if r := x.memory.launchable(); r != driver.Success {
		return r
	}
	start, end := &op{kind: opMark}, &op{kind: opMark}
	start.waitFor(x.last)
	m.after(s, x.ended)
	m.begins(x, start)
	m.ends(x, s, end)
	m.enqueue(s, start)
	l := &launching{m: m, plans: x.plans, conds: x.conds, priority: s.priority}
	l.spread(&x.plans[0], s, start, end)
	m.enqueue(s, end)
	x.last, x.shared = end, len(x.conds) > 0
	if m.tracked {
		x.ended = maps.Clone(m.history(s).clock)
	}
	return driver.Success
}

// eventsExist reports whether the events of x do.
func (m *machine) eventsExist(x *graphExec) bool {
	for i := range x.plans {
		for _, n := range x.plans[i].nodes {
			if n.act.event != 0 && m.events[n.act.event] == nil {
				return false
			}
		}
	}
	return true
}

// begins has start do what comes before the nodes: conditional handles get their values, and memory that the former launch has
// left is freed.
func (m *machine) begins(x *graphExec, start *op) {
	left := x.memory.launch(m)
	if len(x.conds)+len(left) == 0 {
		return
	}
	start.more().effect = func() {
		for _, c := range x.conds {
			c.reset()
		}
		for _, v := range left {
			v.unuse()
		}
	}
}

// ends has end, on s, let go of what the launch keeps.
func (m *machine) ends(x *graphExec, s *stream, end *op) {
	if holds := x.holds; holds != nil {
		holds.users++
		end.more().effect = func() { s.ctx.afterRunning(func() { m.leave(holds) }) }
	}
}

// spread queues the nodes of p, each lane on a stream of its own, of which the first ones wait for start, if it is not nil, and
// the last ones are what end waits for. Both are operations of s.
func (l *launching) spread(p *plan, s *stream, start, end *op) {
	lanes, last := make([]*stream, p.lanes), make([]*op, len(p.nodes))
	for i := range p.nodes {
		n := &p.nodes[i]
		lane := lanes[n.lane]
		if lane == nil {
			lane = &stream{ctx: n.ctx, flags: driver.StreamNonBlocking, priority: l.priority, inner: l.inner, inside: s.inside, launcher: s, until: s.until}
			lanes[n.lane] = lane
			l.order(lane, s)
		}
		o := l.first(n, lane)
		if len(n.behind) == 0 {
			o.waitFor(start)
		}
		for _, d := range n.behind {
			if before := p.nodes[d.at].lane; before != n.lane {
				o.waitFor(last[d.at])
				l.order(lane, lanes[before])
			}
		}
		l.m.enqueue(lane, o)
		last[i] = l.rest(n, lane, o)
	}
	for _, i := range p.ends {
		end.waitFor(last[i])
	}
	for _, lane := range lanes {
		l.order(s, lane)
		lane.ended = true
	}
}

// order has the end of s be ordered behind that of before, where that is tracked (see activity.go). mu is held.
func (l *launching) order(s, before *stream) {
	if l.m.tracked && !l.inner && s != before {
		l.m.after(s, l.m.history(before).clock)
	}
}

// first is the first operation of a run of n, which is to be queued on lane. mu is held.
func (l *launching) first(n *execNode, lane *stream) *op {
	switch {
	case n.off, n.typ == driver.NodeGraph:
		return &op{kind: opMark}
	case n.typ == driver.NodeBatchMemOp:
		return n.act.steps[0].again()
	case n.typ == driver.NodeConditional:
		return l.branch(n)
	}
	o := &op{kind: n.act.kind, node: uint8(n.typ), work: n.act.work, data: n.act.data}
	if n.act.touches != nil {
		x := o.note()
		x.touches, x.exact = *n.act.touches, n.act.exact
	}
	l.m.timing.loaded(o, n.act.load)
	switch n.typ {
	case driver.NodeKernel:
		l.m.named(o, n.act.call)
		if len(l.conds) > 0 || l.m.checker != nil || l.m.timing != nil {
			o.work = n.act.call.within(l.conds, o)
		}
	case driver.NodeMemFree:
		o.more().effect = n.act.mem.unuse
	case driver.NodeEventRecord, driver.NodeWaitEvent:
		l.m.nodeEvent(n, lane, o)
	}
	return o
}

// rest queues what n has behind its first operation, o, and gives the last one.
func (l *launching) rest(n *execNode, lane *stream, o *op) *op {
	switch {
	case n.off:
	case n.typ == driver.NodeBatchMemOp:
		for _, step := range n.act.steps[1:] {
			o = step.again()
			l.m.enqueue(lane, o)
		}
	case n.typ == driver.NodeGraph:
		end := &op{kind: opMark}
		l.spread(&l.plans[n.inner[0]], lane, o, end)
		l.m.enqueue(lane, end)
		return end
	}
	return o
}

// again is a new operation that does what o does.
func (o *op) again() *op {
	again := &op{kind: o.kind, node: o.node, work: o.work}
	if w := o.notes().word; w != nil {
		again.note().word = w
	}
	return again
}

// within is k run by o: in a graph with conditionals, whose handles are conds, or where somebody wants to know of o what it does.
func (k *kernelCall) within(conds map[driver.ConditionalHandle]*condValue, o *op) func() driver.Result {
	launch := *k.launch
	launch.conds, launch.op = conds, o
	return func() driver.Result { return launch.run(k.kernel) }
}

// nodeEvent has o, an operation of lane, be a record of or a wait for the event of n.
func (m *machine) nodeEvent(n *execNode, lane *stream, o *op) {
	e := m.events[n.act.event]
	switch {
	case n.typ == driver.NodeEventRecord:
		e.latest = &record{op: o}
		o.more().record = e.latest
	case e.latest != nil && e.latest.capture == nil:
		o.waitFor(e.latest.op)
		m.after(lane, e.latest.clock)
	}
}
