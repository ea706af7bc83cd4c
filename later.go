package cuda

import (
	"maps"
	"slices"

	"github.com/hostlaunch/cuda/internal/driver"
)

// later is a task or a call that waits in the library for its turn in its stream: a task for room to hold the stream, a call for the
// tasks before it to be submitted. So whoever queues behind a task does not wait with it, and nothing is held in the hardware
// before its turn.
//
// Whatever puts later work behind other streams' tasks goes this way while there are tasks, even if it need not wait: so what is noted
// of a stream's order is its order, though many goroutines queue.
type later struct {
	lane   laneKey
	number uint64 // later ones of a lane have greater ones; guarded by tasks.mu
	stream *Stream
	after  []*later // of other lanes, that must be over first

	task *Task // to be submitted; nil: a call
	ends bool  // it is the task's end that is waited for, which may stop the stream

	op      string
	span    opSpan // of the call
	call    func() driver.Result
	refused func(error) // told if the driver refuses the call, or if the stream has been stopped
	then    func()      // called when it is over, whatever became of the call; may be nil
	uses    []*resource // held until the call has been made
	of      *Context    // that what it waits for belongs to; may be nil
	direct  bool        // whoever queues it has not returned, and tells of err himself; guarded by tasks.mu
	err     error       // of the call; guarded by tasks.mu

	turn   chan struct{} // closed when a caller that waits for its turn has it, be it to submit task; nil: it is no caller's turn
	called bool          // turn is closed; guarded by tasks.mu
	passed bool          // that caller is through; guarded by tasks.mu
	tasks  []*Task       // that the caller waits for in its turn; guarded by tasks.mu

	done  chan struct{} // closed when over, with tasks.mu held
	wakes []laneKey     // lanes that wait for it; guarded by tasks.mu
}

// ready reports whether it can be done now, as the first of its lane. A caller that waits for its turn is told that it has it. mu is
// held.
func (it *later) ready() bool {
	if slices.ContainsFunc(it.after, func(other *later) bool { return !other.isOver() }) {
		return false
	}
	if it.turn != nil {
		if !it.called {
			it.called = true
			close(it.turn)
		}
		if !it.passed {
			return false
		}
	}
	if t := it.task; t != nil && t.state != taskEnded {
		return !it.ends && t.granted || it.ends && it.stream.ctx.lost() != driver.Success // nothing behind it can run any more
	}
	return true
}

// append puts it at the end of its lane. mu is held.
func (b *tasks) append(l *lane, it *later) {
	if it.done == nil {
		it.done = make(chan struct{})
	}
	for other, o := range b.lanes {
		if last := len(o.items) - 1; last >= 0 && it.lane.orders(other, l.blocking && o.blocking) && other != it.lane {
			it.after = append(it.after, o.items[last])
		}
	}
	for _, before := range it.after { // those that are over wake nobody
		before.wakes = append(before.wakes, it.lane)
	}
	b.number++
	it.number = b.number
	l.items = append(l.items, it)
	b.active.Add(1)
}

// pump does what can be done of a lane, unless somebody is at it.
func (b *tasks) pump(d *Driver, k laneKey) {
	b.mu.Lock()
	l := b.lanes[k]
	if l == nil || l.pumped {
		b.mu.Unlock()
		return
	}
	l.pumped = true
	var wakes []laneKey
	for len(l.items) > 0 && l.items[0].ready() {
		it, stopped := l.items[0], l.stopped
		b.mu.Unlock()
		it.do(stopped)
		b.mu.Lock()
		if !it.ready() { // see holdBack
			continue
		}
		l.items[0] = nil
		l.items = l.items[1:]
		b.active.Add(-1)
		close(it.done)
		wakes = append(wakes, it.wakes...)
		it.forget()
	}
	l.pumped = false
	b.tidy(k, l)
	b.mu.Unlock()
	for _, k := range wakes {
		d.inBackground(func() { b.pump(d, k) })
	}
}

// holdBack has what is queued behind t wait in the library until t has ended: the stream does not wait for it. t is the first of its lane.
func (b *tasks) holdBack(t *Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.lanes[t.lane]; l != nil && len(l.items) > 0 && l.items[0].task == t {
		l.items[0].ends = true
	}
}

// forget lets go of all that was needed to do it: an event, or the items behind it, may have it for long. mu is held.
func (it *later) forget() {
	it.stream, it.after, it.task, it.tasks, it.of = nil, nil, nil, nil, nil
	it.call, it.refused, it.then, it.uses, it.wakes = nil, nil, nil, nil, nil
}

// tidy takes a lane off if there is no more to say of it, and it is not another stream's by now, with the same handle. mu is held.
func (b *tasks) tidy(k laneKey, l *lane) {
	if b.lanes[k] == l && len(l.items) == 0 && len(l.behind) == 0 && l.stopped == nil && !l.pumped {
		delete(b.lanes, k)
	}
}

// do does what it stands for. stopped is why it must not.
func (it *later) do(stopped error) {
	if it.ends || it.turn != nil {
		return
	}
	if it.task != nil {
		it.task.takeTurn(stopped)
		return
	}
	c := it.stream.ctx
	c.ending.Add(1) // it may be done before the driver's call has returned
	defer c.ending.Add(-1)
	defer it.release()
	var err error
	if lost := c.lost(); lost != driver.Success {
		err = c.lostError(it.op, lost)
	} else if stopped != nil {
		err = stoppedError(it.op, stopped)
	} else {
		it.span.begins(it.stream)
		r := it.call()
		by := c
		if r.Sticky() {
			by = c.blamed(r, it.others()...)
		}
		err = by.resultf(it.op, r, "the driver refused what waited behind a task")
	}
	if err != nil && !c.drv.tasks.tell(it, err) && it.refused == nil && stopped == nil && c.lost() == driver.Success {
		c.drv.logError("cuda: the driver refused a call that waited behind a task", "op", it.op, "err", err)
	}
	it.span.ends(it.stream, err)
	if err != nil && it.refused != nil {
		it.refused(err)
	}
}

// others are the contexts of what the call uses.
func (it *later) others() (list []*Context) {
	if it.of != nil {
		list = append(list, it.of)
	}
	for _, r := range it.uses {
		list = append(list, r.ctx)
	}
	return list
}

// tell notes the error of it, if whoever queued it is there to tell.
func (b *tasks) tell(it *later, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	it.err = err
	return it.direct
}

// told is what tell noted, once: nobody is there afterwards.
func (b *tasks) told(it *later) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	it.direct = false
	return it.err
}

func (it *later) release() {
	if it.then != nil {
		it.then()
	}
	for _, r := range it.uses {
		r.release()
	}
	it.stream.end()
}

// waitsTurn reports whether what is queued on s now has to wait in the library.
func (s *Stream) waitsTurn() bool {
	return s.raw != driver.StreamPerThread && s.ctx.drv.tasks.waiting(s)
}

// later queues a call, with its span, behind what waits in the library for s. The caller holds s and uses. The error is the driver's, if
// the call has been made by then.
func (s *Stream) later(op string, sp opSpan, call func() driver.Result, uses ...*resource) error {
	it := &later{op: op, span: sp, call: call, uses: uses, direct: true}
	s.addLater(it, nil)
	err := s.ctx.drv.tasks.told(it)
	sp.queued(err)
	return err
}

// addLater is later for an item. What comes behind it is behind the tasks of join too.
func (s *Stream) addLater(it *later, join []*Task) {
	s.putLater(it, join)
	s.ctx.drv.tasks.pump(s.ctx.drv, it.lane) // it may be its turn by now
}

// putLater is addLater that does nothing yet; the lane's pump must follow. It returns what the item is behind.
func (s *Stream) putLater(it *later, join []*Task) (behind []*Task) {
	it.lane, it.stream = s.lane(), s
	for _, r := range it.uses {
		r.retain()
	}
	s.extend()
	b, blocking := &s.ctx.drv.tasks, s.blockingLane()
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.at(it.lane, blocking)
	b.link(it.lane, l)
	l.join(join)
	b.append(l, it)
	return slices.Collect(maps.Keys(l.behind))
}

// ordersLater reports whether what orders s with other streams has to be queued in its turn: tasks are about.
func (s *Stream) ordersLater() bool {
	return s.ctx.drv.tasks.active.Load() > 0 && s.raw != driver.StreamPerThread
}

// extend has a call on s go on beyond the one that the caller is in; end must follow once more.
func (s *Stream) extend() {
	s.ctx.drv.calls.Add(1)
	if s.ctx.own {
		s.ctx.uses.Add(1)
	}
	if g := s.ctx.green; g != nil {
		g.retain()
	}
	if s.res != nil {
		s.res.retain()
	}
}

// beginQueue is begin for a call that can be made later: it does not wait for its turn. waitsTurn tells whether it has to.
func (s *Stream) beginQueue(op string) error { return s.beginQueueAs(op, "the stream") }

// beginQueueAs is beginQueue for the stream that messages call name.
func (s *Stream) beginQueueAs(op, name string) error {
	if s != nil && s.raw == driver.StreamPerThread { // what is queued there cannot be queued by another thread
		return s.beginAs(op, name)
	}
	if err := s.beginNow(op, name); err != nil {
		return err
	}
	if b := &s.ctx.drv.tasks; b.active.Load() > 0 {
		if err := b.enter(op, s); err != nil {
			s.end()
			return err
		}
	}
	return nil
}

// recordPending reports whether e's latest record waits in the library.
func (e *Event) recordPending() bool { return e.pendingRecord() != nil }

// pendingRecord is e's latest record if that waits in the library.
func (e *Event) pendingRecord() *later {
	if e == nil {
		return nil
	}
	if it := e.pending.Load(); it != nil && !it.isOver() {
		return it
	}
	return nil
}

func (it *later) isOver() bool {
	select {
	case <-it.done:
		return true
	default:
		return false
	}
}
