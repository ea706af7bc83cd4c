package softcuda

import (
	"fmt"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/driver"
)

// cond is a conditional handle, and the node that it was given to.
type cond struct {
	raw      driver.ConditionalHandle
	graph    *graph
	value    uint32 // at the start of each launch
	assigned bool   // value counts
	node     *graphNode
	kind     int32
}

// condValue is the value of a handle in an executable.
type condValue struct {
	cond *cond
	now  atomic.Uint32
}

// reset gives the handle its value at the start of a launch.
func (v *condValue) reset() {
	if v.cond.assigned {
		v.now.Store(v.cond.value)
	}
}

// SetConditional sets the value of a conditional handle of the graph that the launch is a node of, as cudaGraphSetConditional
// does in a kernel: the conditional node of that handle goes by it. A handle of no conditional of that graph is a mistake in the
// program, and panics.
func (l *Launch) SetConditional(handle uint64, value uint32) {
	v := l.conds[driver.ConditionalHandle(handle)]
	if v == nil {
		panic(fmt.Sprintf("softcuda: kernel %s: %#x is the handle of no conditional of a graph that it runs in", l.Kernel, handle))
	}
	v.now.Store(value)
}

// GraphConditionalHandleCreate implements driver.Graphs.
func (m *machine) GraphConditionalHandleCreate(ctx driver.Context, raw driver.Graph, value, flags uint32) (driver.ConditionalHandle, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	if _, r := m.context(ctx); r != driver.Success {
		return 0, r
	}
	g := m.graphs[raw]
	if g == nil || flags&^driver.CondAssignDefault != 0 {
		return 0, driver.ErrorInvalidValue
	}
	c := &cond{raw: driver.ConditionalHandle(m.handle()), graph: g, value: value, assigned: flags != 0}
	if g.conds == nil {
		g.conds = map[driver.ConditionalHandle]*cond{}
	}
	m.conds[c.raw], g.conds[c.raw] = c, c
	return c.raw, driver.Success
}

// addConditional makes n a conditional node, with bodies that have no nodes yet. Its handle must be one of its graph, or of one
// that that is in, and new.
func (m *machine) addConditional(n *graphNode, p *driver.Conditional) driver.Result {
	if p == nil || !bodies(p.Kind, p.Size) {
		return driver.ErrorInvalidValue
	}
	c := m.conds[p.Handle]
	if c == nil || c.node != nil || !n.graph.under(c.graph) {
		return driver.ErrorInvalidValue
	}
	c.node, c.kind = n, p.Kind
	n.cond, n.act = c, &action{kind: opBranch}
	p.Bodies = nil
	for range p.Size {
		body := m.newGraph(n.ctx)
		n.own(body)
		p.Bodies = append(p.Bodies, body.raw)
	}
	return driver.Success
}

// bodies reports whether a conditional of a kind can have so many bodies.
func bodies(kind int32, n int) bool {
	switch kind {
	case driver.CondIf:
		return n == 1 || n == 2
	case driver.CondWhile:
		return n == 1
	case driver.CondSwitch:
		return n > 0
	}
	return false
}

// body reports whether g is one.
func (g *graph) body() bool { return g.owner != nil && g.owner.typ == driver.NodeConditional }

// branch is a run of a conditional node.
type branch struct {
	*launching // of what is in the bodies
	node       *execNode
}

// branch is the operation of a run of n.
func (l *launching) branch(n *execNode) *op {
	inside := *l
	inside.inner = true
	o := &op{kind: opBranch}
	o.more().branch = &branch{&inside, n}
	return o
}

// body is the plan that the node's value picks now; nil if it picks none.
func (b *branch) body() *plan {
	v, n := int64(b.node.cond.now.Load()), b.node
	at := v
	if n.kind != driver.CondSwitch {
		at = 1
		if v != 0 {
			at = 0
		}
	}
	if at >= int64(len(n.inner)) {
		return nil
	}
	return &b.plans[n.inner[at]]
}

// takeBranch runs the body that the conditional at the head of s picks. It has a goroutine of its own each time, so that a loop
// whose body does nothing keeps nobody from the lock.
func (m *machine) takeBranch(s *stream) {
	defer m.workers.Done()
	m.mu.Lock()
	defer m.unlock()
	if s.running { // the context was not lost meanwhile
		m.branchAt(s)
	}
}

// branchAt is takeBranch with mu held.
func (m *machine) branchAt(s *stream) {
	b := s.first.extra.branch
	if p := b.body(); p != nil {
		m.runBody(s, b, p)
		return
	}
	m.endBranch(s)
	m.settle()
}

// runBody queues a body on streams that nobody else has. When it is done, a loop asks again, and everything else is over.
func (m *machine) runBody(s *stream, b *branch, p *plan) {
	tail, end := &stream{ctx: s.ctx, flags: driver.StreamNonBlocking, inner: true, inside: s.first.notes().actor}, &op{kind: opMark}
	end.more().effect = func() {
		if s.ctx.lost != driver.Success {
			return
		}
		m.timing.leave(s, tail)
		if b.node.kind == driver.CondWhile {
			s.running = false
			m.settling = append(m.settling, s)
			return
		}
		m.endBranch(s)
	}
	m.timing.enter(s, tail)
	b.spread(p, tail, nil, end)
	m.enqueue(tail, end)
}

// endBranch takes the conditional at the head of s off. The caller settles.
func (m *machine) endBranch(s *stream) {
	s.running = false
	m.finish(s)
	m.settling = append(m.settling, s)
}
