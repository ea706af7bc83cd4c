package cuda

import (
	"sync"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/driver"
)

// mark is one record of an Event, in an event of the library's own: what waits in the library for that record must find it when the
// Event has long been recorded anew. Records are marked while tasks are about.
type mark struct {
	ctx  *Context
	raw  driver.Event
	rec  *later // that records it; nil: it has been recorded
	refs atomic.Int32
}

func (c *Context) newMark(op string) (*mark, error) {
	raw, err := c.events.get(c, op)
	if err != nil {
		return nil, err
	}
	m := &mark{ctx: c, raw: raw}
	m.refs.Store(1)
	return m, nil
}

// acquire takes a reference, unless there is none left.
func (m *mark) acquire() bool {
	for {
		n := m.refs.Load()
		if n == 0 {
			return false
		}
		if m.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release gives a reference back; m may be nil.
func (m *mark) release() {
	if m != nil && m.refs.Add(-1) == 0 {
		m.ctx.events.put(m.raw)
	}
}

// marks are what an Event knows of its latest record. The Event's resource has them too, and so they know nothing of the Event.
type marks struct {
	recording sync.Mutex // held across the driver's call, so that the latest record is the driver's latest too
	latest    atomic.Pointer[mark]
}

// set makes m, which may be nil, the latest record.
func (l *marks) set(m *mark) { l.latest.Swap(m).release() }

// get is the latest record, if it is marked; release must follow.
func (l *marks) get() *mark {
	for {
		m := l.latest.Load()
		if m == nil || m.acquire() {
			return m
		}
	}
}

// recordNow records e in s, and marks that if tasks are about.
func (s *Stream) recordNow(op string, sp opSpan, e *Event) error {
	var m *mark
	if s.ctx.drv.tasks.active.Load() > 0 && s.capture() == nil {
		var err error
		if m, err = s.ctx.newMark(op); err != nil {
			return err
		}
		e.marks.recording.Lock()
		defer e.marks.recording.Unlock()
	}
	r := s.driver().EventRecord(s.ctx.raw, e.raw, s.raw)
	if r == driver.Success && m != nil {
		r = s.driver().EventRecord(s.ctx.raw, m.raw, s.raw)
	}
	if r != driver.Success {
		m.release()
		return s.ctx.result(op, r)
	}
	e.pending.Store(nil)
	e.marks.set(m)
	e.noteRecord(s, sp)
	return nil
}

// waitNow has s wait for e. While tasks are about, e is not recorded anew meanwhile: what s is noted to be behind is what it waits for.
// That is noted first, for a task that waits for s at the same time.
func (s *Stream) waitNow(e *Event, flags uint32) driver.Result {
	if s.ctx.drv.tasks.active.Load() > 0 {
		e.marks.recording.Lock()
		defer e.marks.recording.Unlock()
	}
	s.ctx.drv.tasks.joinNow(s, e.isBehind())
	return s.driver().StreamWaitEvent(s.ctx.raw, s.raw, e.raw, flags)
}

// recordLater is the recording of e behind what waits in the library for s.
func (s *Stream) recordLater(op string, sp opSpan, e *Event) error {
	m, err := s.ctx.newMark(op)
	if err != nil {
		sp.queued(err)
		return err
	}
	m.refs.Add(1)
	before, made := e.recorded.Load(), false
	call := func() driver.Result {
		r := s.driver().EventRecord(s.ctx.raw, m.raw, s.raw)
		e.marks.recording.Lock()
		defer e.marks.recording.Unlock()
		if r == driver.Success && e.marks.latest.Load() == m {
			r = s.driver().EventRecord(s.ctx.raw, e.raw, s.raw)
		}
		made = r == driver.Success
		return r
	}
	it := &later{op: op, span: sp, uses: []*resource{e.res}, call: call, then: func() {
		if !made {
			e.unrecord(m, before)
		}
		m.release()
	}}
	it.done = make(chan struct{})
	m.rec = it
	e.captured.Store(nil)
	e.marks.recording.Lock()
	e.noteRecord(s, sp)
	e.pending.Store(it)
	e.marks.set(m)
	e.marks.recording.Unlock()
	s.addLater(it)
	sp.queued(nil)
	return nil
}

// unrecord takes back what recordLater has noted: m was not recorded, and the driver's event is as it was. before is what recorded was.
func (e *Event) unrecord(m *mark, before bool) {
	e.marks.recording.Lock()
	defer e.marks.recording.Unlock()
	if e.marks.latest.Load() == m {
		e.marks.set(nil)
		e.recorded.Store(before)
	}
}

// complete reports whether e's latest record, of which nothing waits in the library, is known to be done.
func (e *Event) complete() (done bool) {
	if !e.recorded.Load() {
		return true
	}
	d := e.ctx.drv
	d.relaxed(func() { done = d.drv.EventQuery(e.ctx.raw, e.raw) == driver.Success })
	return done
}

// waitLater is a wait for e behind what waits in the library: for s, or for the stream that e is to be recorded in.
func (s *Stream) waitLater(op string, sp opSpan, e *Event) (err error) {
	defer func() { sp.queued(err) }()
	e.marks.recording.Lock()
	m := e.marks.get()
	s.join(e) // what m is behind
	e.marks.recording.Unlock()
	if m == nil {
		if !e.complete() {
			m, err = s.ctx.markOf(op, e)
		}
		if m == nil { // there is nothing left to wait for
			sp.begins(s)
			sp.ends(s, err)
			return err
		}
	}
	it := &later{op: op, span: sp, then: m.release, call: func() driver.Result {
		return s.driver().StreamWaitEvent(s.ctx.raw, s.raw, m.raw, 0)
	}}
	if m.rec != nil {
		it.after = []*later{m.rec}
	}
	s.addLater(it)
	return nil
}

// markOf marks e's latest record afterwards, by way of a stream that waits for it. The record is of a time without tasks, so that stream
// does not wait for one. Without a stream it waits for e, and there is nothing left to mark: nil.
func (c *Context) markOf(op string, e *Event) (*mark, error) {
	d := c.drv
	by, ok := c.streams.take(0)
	if !ok {
		return nil, e.ctx.result(op, d.drv.EventSynchronize(e.ctx.raw, e.raw))
	}
	defer c.streams.giveBack(c, by, true)
	m, err := c.newMark(op)
	if err != nil {
		return nil, err
	}
	r := d.drv.StreamWaitEvent(c.raw, by, e.raw, 0)
	if r == driver.Success {
		r = d.drv.EventRecord(c.raw, m.raw, by)
	}
	if r != driver.Success {
		m.release()
		return nil, c.result(op, r)
	}
	return m, nil
}
