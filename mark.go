package cuda

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/driver"
)

// mark is one record of an Event, in an event of the library's own: what waits in the library for that record must find it when the
// Event has long been recorded anew. Records are marked while tasks are about.
type mark struct {
	ctx  *Context
	raw  driver.Event
	rec  *later      // that records it; nil: it has been recorded
	made atomic.Bool // by rec: else raw stands for a record of somebody else's
	refs atomic.Int32
}

func (c *Context) newMark(op string) (*mark, error) {
	raw, err := c.events.get(c, op)
	if err != nil {
		return nil, err
	}
	return c.markBy(raw), nil
}

// markBy is newMark with an event of the pool, which it gives back.
func (c *Context) markBy(raw driver.Event) *mark {
	m := &mark{ctx: c, raw: raw}
	m.refs.Store(1)
	return m
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

	// Guarded by recording.
	made    *record   // the latest one that the driver has made in the Event; nil: none
	waiting []*record // those that wait in the library, in their order
	number  uint64    // of the latest one
}

// record is what is known of a record of an Event, be it that the driver has made it there, or a graph makes it, or that it waits in the
// library.
type record struct {
	number uint64 // later ones have greater ones
	it     *later // that makes it, if it waits
	mark   *mark  // nil if it is not marked
	behind []*Task
	in     *capture // nil: in none
}

// set makes m, which may be nil, the latest record.
func (l *marks) set(m *mark) { l.latest.Swap(m).release() }

// make notes that the driver has made r in the Event, or with nil that the Event knows of none. The caller holds recording.
func (l *marks) make(r *record) {
	if r != nil && r.mark != nil {
		r.mark.refs.Add(1)
	}
	if l.made != nil {
		l.made.mark.release()
	}
	l.made = r
}

// next is the number of a new record. The caller holds recording.
func (l *marks) next() uint64 {
	l.number++
	return l.number
}

// before is the latest record but for those that are refused; nil: there is none. The caller holds recording.
func (l *marks) before() *record {
	if last := len(l.waiting) - 1; last >= 0 && (l.made == nil || l.made.number < l.waiting[last].number) {
		return l.waiting[last]
	}
	return l.made
}

// drop lets go of all marks.
func (l *marks) drop() {
	l.recording.Lock()
	defer l.recording.Unlock()
	l.make(nil)
	l.set(nil)
}

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
	in := s.capture()
	if s.ctx.drv.tasks.active.Load() > 0 && in == nil {
		var err error
		if m, err = s.ctx.newMark(op); err != nil {
			return err
		}
	}
	e.marks.recording.Lock()
	defer e.marks.recording.Unlock()
	r := driver.Success
	if m != nil {
		r = s.driver().EventRecord(s.ctx.raw, m.raw, s.raw)
	}
	if r == driver.Success {
		r = s.driver().EventRecord(s.ctx.raw, e.raw, s.raw)
	}
	if r != driver.Success {
		m.release()
		return s.ctx.result(op, r)
	}
	e.pending.Store(nil)
	e.marks.set(m)
	behind := s.ctx.drv.tasks.behindStream(s)
	e.marks.make(&record{number: e.marks.next(), mark: m, behind: behind, in: in})
	e.captured.Store(in)
	e.noteRecord(s, sp, behind)
	return nil
}

// waitNow has s wait for e, unless that puts it behind tasks or is behind what waits in the library: then it reports false. e is not
// recorded anew meanwhile.
func (s *Stream) waitNow(sp opSpan, e *Event, flags uint32) (r driver.Result, queued bool) {
	e.marks.recording.Lock()
	defer e.marks.recording.Unlock()
	b := &s.ctx.drv.tasks
	if flags == 0 && e.captured.Load() == nil && s.capture() == nil && (b.waiting(s) || e.recordPending() || b.anyLeft(e.isBehind())) {
		return 0, false
	}
	sp.begins(s)
	return s.driver().StreamWaitEvent(s.ctx.raw, s.raw, e.raw, flags), true
}

// recordLater is the recording of e behind what waits in the library for s.
func (s *Stream) recordLater(op string, sp opSpan, e *Event) error {
	m, err := s.ctx.newMark(op)
	if err != nil {
		sp.queued(err)
		return err
	}
	m.refs.Add(1)
	rec := &record{mark: m}
	call := func() driver.Result {
		r := s.driver().EventRecord(s.ctx.raw, m.raw, s.raw)
		e.marks.recording.Lock()
		defer e.marks.recording.Unlock()
		if r == driver.Success && (e.marks.made == nil || e.marks.made.number < rec.number) { // later ones that wait may be refused
			if r = s.driver().EventRecord(s.ctx.raw, e.raw, s.raw); r == driver.Success {
				e.marks.make(&record{number: rec.number, mark: m, behind: rec.behind})
			}
		}
		m.made.Store(r == driver.Success)
		return r
	}
	it := &later{op: op, span: sp, uses: []*resource{e.res}, call: call, done: make(chan struct{}), direct: true, then: func() {
		e.recordOver(rec)
		m.release()
	}}
	m.rec = it
	e.marks.recording.Lock()
	rec.number, rec.it, rec.behind = e.marks.next(), it, s.putLater(it, nil)
	e.marks.waiting = append(e.marks.waiting, rec)
	e.captured.Store(nil)
	e.noteRecord(s, sp, rec.behind)
	e.pending.Store(it)
	e.marks.set(m)
	e.marks.recording.Unlock()
	s.ctx.drv.tasks.pump(s.ctx.drv, it.lane)
	err = s.ctx.drv.tasks.told(it)
	sp.queued(err)
	return err
}

// recordOver is the end of what recordLater has queued. If it was refused, the event is as it was before: another record may wait.
func (e *Event) recordOver(rec *record) {
	e.marks.recording.Lock()
	defer e.marks.recording.Unlock()
	e.marks.waiting = slices.DeleteFunc(e.marks.waiting, func(other *record) bool { return other == rec })
	if rec.mark.made.Load() || e.marks.latest.Load() != rec.mark {
		return
	}
	was := e.marks.before()
	e.recorded.Store(was != nil)
	if was == nil {
		was = &record{}
	}
	if was.mark != nil {
		was.mark.refs.Add(1)
	}
	e.pending.Store(was.it)
	e.marks.set(was.mark)
	e.setBehind(was.behind)
	e.captured.Store(was.in)
}

// recordedByGraph notes that a graph records e.
func (e *Event) recordedByGraph() {
	e.marks.recording.Lock()
	defer e.marks.recording.Unlock()
	if e.marks.made == nil {
		e.marks.make(&record{})
	}
	e.recorded.Store(true)
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

// waitLater is a wait for e in its turn: behind what waits in the library for s, or for the stream that e is to be recorded in.
func (s *Stream) waitLater(op string, sp opSpan, e *Event) error {
	e.marks.recording.Lock()
	m, err := e.marked(op, s.ctx)
	behind := e.isBehind()
	e.marks.recording.Unlock()
	if m == nil { // there is nothing left to wait for
		sp.begins(s)
		sp.ends(s, err)
		return err
	}
	return s.waitMark(op, sp, m, behind)
}

// marked is the mark of e's latest record, made by way of c if there is none yet. It is nil if nothing is left to wait for. The caller
// holds e.marks.recording.
func (e *Event) marked(op string, c *Context) (m *mark, err error) {
	if m = e.marks.get(); m == nil && e.captured.Load() == nil && !e.complete() {
		m, err = c.markOf(op, e)
	}
	return m, err
}

// waitMark has s wait for m, whose reference it takes, in its turn. The record is behind the tasks of behind.
func (s *Stream) waitMark(op string, sp opSpan, m *mark, behind []*Task) error {
	var after []*later
	if m.rec != nil {
		after = []*later{m.rec}
	}
	call := func() driver.Result {
		if !m.isMade() {
			return driver.Success
		}
		return s.driver().StreamWaitEvent(s.ctx.raw, s.raw, m.raw, 0)
	}
	if s.raw == driver.StreamPerThread { // what is queued there cannot be queued by another thread
		return s.waitMarkInTurn(op, sp, m, after, behind, call)
	}
	it := &later{op: op, span: sp, after: after, then: m.release, call: call, of: m.ctx, direct: true}
	s.addLater(it, behind)
	err := s.ctx.drv.tasks.told(it)
	sp.queued(err)
	return err
}

// waitMarkInTurn is waitMark that waits for its turn.
func (s *Stream) waitMarkInTurn(op string, sp opSpan, m *mark, after []*later, behind []*Task, call func() driver.Result) error {
	defer m.release()
	t, err := s.takeTurn(op, context.Background(), turnFor{
		place: func(it *later) { it.after = after }, note: func(l *lane, _ *later) { l.join(behind) },
	})
	if err != nil {
		sp.queued(err)
		return err
	}
	defer t.end()
	sp.begins(s)
	r := call()
	err = s.ctx.blamed(r, m.ctx).result(op, r)
	sp.ends(s, err)
	return err
}

// recordWait is a wait for an event's latest record.
type recordWait struct {
	m      *mark  // of the record; nil: the event itself is waited for
	over   bool   // there is nothing to wait for
	it     *later // that makes the record; nil: it is made
	waited func() // to be called after the wait
}

func (w *recordWait) end() {
	w.m.release()
	w.waited()
}

// awaitRecord waits while e's latest record waits in the library: then it is that record that is to be waited for, and not one that
// others make meanwhile. In a task that is always so, and it first makes sure that the caller may wait for e. end must follow if it returns
// nil.
func (e *Event) awaitRecord(op string, ctx context.Context) (*recordWait, error) {
	inTask := e.ctx.drv.tasks.current() != nil
	for {
		w, err := e.mayAwait(op, inTask)
		if err != nil || w.it == nil {
			return w, err
		}
		select {
		case <-w.it.done:
		case <-ctx.Done():
			w.end()
			return nil, endedError(op, ctx, "")
		}
		if w.m == nil || w.m.isMade() {
			return w, nil
		}
		w.end() // it was refused: the event is as it was
	}
}

// mayAwait is the first part of awaitRecord.
func (e *Event) mayAwait(op string, inTask bool) (w *recordWait, err error) {
	e.marks.recording.Lock()
	defer e.marks.recording.Unlock()
	w = &recordWait{it: e.pendingRecord(), waited: noWait}
	if !inTask {
		if w.it != nil {
			w.m = e.marks.get()
		}
		return w, nil
	}
	if w.m, err = e.marked(op, e.ctx); err != nil {
		return nil, err
	}
	if w.m == nil {
		w.over = e.captured.Load() == nil
		return w, nil
	}
	wait := &taskWait{op: op, what: "an event", tasks: e.isBehind()}
	if w.it != nil {
		wait.items = []*later{w.it}
	}
	if w.waited, err = e.ctx.drv.tasks.mayWait(wait); err != nil {
		w.m.release()
		return nil, err
	}
	return w, nil
}

// isMade reports whether m has been recorded. What should have done it is over.
func (m *mark) isMade() bool { return m.rec == nil || m.made.Load() }

// rawOf is the driver's event to wait for: m's, or e's own if m is nil.
func (e *Event) rawOf(m *mark) driver.Event {
	if m == nil {
		return e.raw
	}
	return m.raw
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
		return nil, c.blamed(r, e.ctx).result(op, r)
	}
	return m, nil
}
