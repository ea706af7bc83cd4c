package softcuda

import (
	"cmp"
	"maps"
	"slices"

	"github.com/hostlaunch/cuda/internal/driver"
)

// op is one operation of a stream. It is ready when it is the first of its stream and nothing of other streams that it
// waits for is left. There may be very many, so what few operations need stands behind extra.
type op struct {
	next  *op // in its stream
	owner *stream
	work  func() driver.Result // what a device operation or a native host function does, without mu
	data  uint64               // what a host function was launched with
	kind  opKind
	node  uint8 // of device work: the driver.NodeType that it is captured as
	done  bool
	waits int32 // operations of other streams that must be done first
	extra *opExtra
}

type opExtra struct {
	after   []*op     // operations of other streams that wait for this one
	record  *record   // the event record that this operation completes
	waiters []*waiter // told when it is done
	effect  func()    // done, with mu held, when it is
	stamp   *stamp    // its time, when it is
	branch  *branch   // of a conditional node
	notes   *notes    // for a schedule, faults or a checker
}

// notes are what only a device needs of an operation that has a schedule, faults, a checker, a Cost or tracked activity.
type notes struct {
	clock   clock   // of a host function: what it is ordered behind
	kernel  string  // of a kernel: its name
	step    *Step   // on a device with a Seed
	launch  *Launch // of a kernel
	load    load    // of a transfer, if there is a Cost
	when    *when   // if there is a Cost
	touches []touch // what it does with memory, kernels aside
	exact   bool    // of a host function: it touches nothing else
	word    word    // of a memory operation
	actor   *actor  // it, for the checker
}

var noNotes notes // of operations without

// notes are those of o, to be read.
func (o *op) notes() *notes {
	if o.extra == nil || o.extra.notes == nil {
		return &noNotes
	}
	return o.extra.notes
}

// note gives the notes of o, to be written to.
func (o *op) note() *notes {
	x := o.more()
	if x.notes == nil {
		x.notes = new(notes)
	}
	return x.notes
}

// waiter is told when an operation is done.
type waiter struct {
	tell func(driver.Result)
	at   int // in waiters
}

type opKind uint8

const (
	opMark     opKind = iota // does nothing but be done: event records, waits
	opWork                   // device work: kernels, copies, memsets
	opHost                   // a host function
	opCallback               // a callback with status
	opHold                   // waits until its work, asked now and then, succeeds: a wait-value
	opBranch                 // a conditional node: the body that its value picks, or none
)

func (o *op) more() *opExtra {
	if o.extra == nil {
		o.extra = new(opExtra)
	}
	return o.extra
}

// whenDone has fn called, without mu, when o is done. mu is held.
func (o *op) whenDone(fn func(driver.Result)) *waiter {
	x := o.more()
	w := &waiter{fn, len(x.waiters)}
	x.waiters = append(x.waiters, w)
	return w
}

// waitFor has o wait for before, unless that is done. mu is held.
func (o *op) waitFor(before *op) {
	if before == nil || before.done {
		return
	}
	before.more().after = append(before.more().after, o)
	o.waits++
}

// enqueue puts o at the end of s, or into the graph that s captures. mu is held.
func (m *machine) enqueue(s *stream, o *op) {
	if s.capture != nil {
		m.add(s, newNode(o))
		return
	}
	o.owner = s
	if m.sched != nil {
		m.sched.number(s, o)
	}
	s.orderLegacy(o)
	m.track(s, o)
	m.timing.comes(o)
	if s.last == nil {
		s.first = o
		s.ctx.busy[s] = struct{}{}
	} else {
		s.last.next = o
	}
	s.last = o
	if s.first == o {
		m.settling = append(m.settling, s)
		m.settle()
	}
}

// settle starts whatever is ready in the settling streams. Operations that do nothing are done on the spot, which may make
// others ready: hence the list, instead of recursion. mu is held.
func (m *machine) settle() {
	for len(m.settling) > 0 {
		s := m.settling[len(m.settling)-1]
		m.settling = m.settling[:len(m.settling)-1]
		m.start(s)
	}
}

// start starts the first operation of s if it is ready and nobody is at it.
func (m *machine) start(s *stream) {
	if m.sched != nil {
		m.sched.offer(s)
		return
	}
	for !s.running && s.first != nil && s.first.waits == 0 {
		kind := s.first.kind
		if s.ctx.lost != driver.Success { // a node's, of a graph launched in another context: it is dropped
			kind = opMark
		}
		switch kind {
		case opMark:
			m.finish(s)
		case opWork:
			s.running = true
			m.workers.Add(1)
			go m.work(s)
		case opHost, opCallback:
			s.running = true
			m.queueCall(s)
		case opHold:
			if s.first.work() == driver.Success {
				m.finish(s)
				continue
			}
			s.running = true
			m.hold(s)
		case opBranch:
			s.running = true
			m.workers.Add(1)
			go m.takeBranch(s)
		}
	}
}

// finish takes the first operation of s off as done. The caller settles.
func (m *machine) finish(s *stream) {
	o := s.first
	if s.first = o.next; s.first == nil {
		s.last = nil
		delete(s.ctx.busy, s)
	}
	o.next = nil
	if o.kind == opHost || o.kind == opCallback {
		s.hostsRun++
		m.checker.ran(s, s.hostsRun)
	}
	m.conclude(o, s.ctx.lost)
}

// conclude marks o as done with r and tells whoever waits for it.
func (m *machine) conclude(o *op, r driver.Result) {
	o.done = true
	m.checker.ended(o)
	x := o.extra
	if x == nil {
		return
	}
	at := m.timing.ended(o, r)
	if x.record != nil {
		if at.IsZero() {
			at = m.now()
		}
		x.record.complete(r, at)
	}
	if x.stamp != nil && r == driver.Success {
		x.stamp.store()
	}
	if x.effect != nil {
		x.effect()
	}
	for _, a := range x.after {
		if a.waits--; a.waits == 0 && a.owner.first == a {
			m.settling = append(m.settling, a.owner)
		}
	}
	for _, w := range x.waiters {
		m.calls = append(m.calls, func() { w.tell(r) })
	}
	o.extra = nil
}

// work runs the device operations of s, one after another, until the next one is of another kind or not ready. An operation
// that ends its goroutine (a kernel's Go function that calls t.FailNow) counts as failed.
func (m *machine) work(s *stream) {
	defer m.workers.Done()
	returned := false
	defer func() {
		if !returned {
			m.mu.Lock()
			m.ran(s.ctx)
			m.fail(s.ctx, driver.ErrorLaunchFailed)
			m.unlock()
		}
	}()
	m.mu.Lock()
	for s.running && m.step(s) { // not if the context was lost before this goroutine came to run
	}
	m.unlock()
	returned = true
}

// step does the device operation at the head of s and reports whether the next one is to follow at once. mu is held, but not
// during the operation.
func (m *machine) step(s *stream) bool {
	do := m.faults.operation(s.first, m.timing.begins(s.first, s.first.work))
	m.checker.begins(s.first)
	s.ctx.executing++
	m.unlock()
	r := do()
	m.mu.Lock()
	m.ran(s.ctx)
	if !s.running { // the context was lost meanwhile
		return false
	}
	if r != driver.Success {
		m.fail(s.ctx, r)
		return false
	}
	m.finish(s)
	m.releaseHeld()
	next := s.first
	s.running = next != nil && next.kind == opWork && next.waits == 0
	more := s.running
	if !more {
		m.settling = append(m.settling, s)
	}
	m.settle()
	return more
}

// ran notes that work or a host function of c has come back. mu is held.
func (m *machine) ran(c *context) {
	if c.executing--; c.executing > 0 {
		return
	}
	for _, do := range c.late {
		do()
	}
	c.late = nil
}

// afterRunning does something once nothing that was queued on c before runs any more. That is at once, unless c is lost: then
// operations count as done while work or a host function may yet have to come back. mu is held.
func (c *context) afterRunning(do func()) {
	if c.lost == driver.Success || c.executing == 0 {
		do()
		return
	}
	c.late = append(c.late, do)
}

// fail loses context c: everything queued there is dropped. Host functions are dropped without a word, as the driver does
// (facts/h200.md); the library is told, and resolves them. Callbacks do run, with the error. mu is held.
func (m *machine) fail(c *context, r driver.Result) {
	if c.lost != driver.Success {
		return
	}
	c.lost = r
	c.dead.Store(true)
	for _, s := range m.busyStreams(c) {
		s.running = false
		for o := s.first; o != nil; o = o.next {
			m.conclude(o, r)
			if o.kind == opCallback {
				c.host.failed = append(c.host.failed, o.data)
			}
		}
		s.first, s.last = nil, nil
	}
	clear(c.busy)
	c.host.clear()
	if m.sched != nil {
		m.sched.drop(c)
	}
	m.serveCalls(c)
	m.settle()
	for raw, same := range m.contexts { // its green ones too
		if same != c {
			continue
		}
		m.workers.Add(1)
		go func() {
			defer m.workers.Done()
			m.up.Lost(raw, r)
		}()
	}
}

// busyStreams are the streams of c that have work; on a device with a Seed in the same order each time. mu is held.
func (m *machine) busyStreams(c *context) []*stream {
	list := slices.Collect(maps.Keys(c.busy))
	if m.sched != nil {
		slices.SortFunc(list, func(a, b *stream) int { return cmp.Compare(a.id, b.id) })
	}
	return list
}

// wait unlocks mu and waits until o is done. mu is held; o may be nil.
func (m *machine) wait(o *op) driver.Result {
	if o == nil || o.done {
		m.unlock()
		return driver.Success
	}
	done := make(chan driver.Result, 1)
	o.whenDone(func(r driver.Result) { m.sched.arrived(); done <- r })
	m.sched.expect(1)
	m.checker.deadlock()
	m.unlock()
	return <-done
}

// waitAll unlocks mu and waits until everything queued so far in those streams of c that which picks is done. mu is held.
func (m *machine) waitAll(c *context, which func(*stream) bool) driver.Result {
	n := 0
	done := make(chan driver.Result, len(c.busy))
	for s := range c.busy {
		if which(s) {
			n++
			s.last.whenDone(func(r driver.Result) { m.sched.arrived(); done <- r })
		}
	}
	m.sched.expect(n)
	m.checker.deadlock()
	m.unlock()
	result := driver.Success
	for range n {
		if r := <-done; r != driver.Success {
			result = r
		}
	}
	return result
}

func everyStream(*stream) bool { return true }
