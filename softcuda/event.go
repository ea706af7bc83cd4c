package softcuda

import (
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// event is a mark that can be recorded again and again.
type event struct {
	ctx    *context
	timing bool
	latest *record // nil: never recorded
}

// record is one recording of an event.
type record struct {
	op     *op // nil once done
	done   bool
	at     time.Time
	result driver.Result
	clock  clock // what it is ordered behind, if the machine is tracked

	capture *capture     // that it was made in: it marks a place of the graph and is never done
	deps    []dependency // that place
}

func (r *record) complete(result driver.Result, at time.Time) {
	r.op, r.done, r.at, r.result = nil, true, at, result
}

// EventCreate implements driver.Events.
func (m *machine) EventCreate(ctx driver.Context, flags uint32) (driver.Event, driver.Result) {
	const interprocess = 4
	m.mu.Lock()
	defer m.unlock()
	c, r := m.context(ctx)
	switch {
	case r != driver.Success:
		return 0, r
	case flags > 7, flags&interprocess != 0 && flags&driver.EventDisableTiming == 0:
		return 0, driver.ErrorInvalidValue
	}
	raw := driver.Event(m.handle())
	m.events[raw] = &event{ctx: c, timing: flags&driver.EventDisableTiming == 0}
	return raw, driver.Success
}

// event finds an event that can still be used. mu is held.
func (m *machine) event(raw driver.Event) (*event, driver.Result) {
	e := m.events[raw]
	if e == nil {
		return nil, driver.ErrorInvalidHandle
	}
	return e, e.ctx.lost
}

// EventDestroy implements driver.Events.
func (m *machine) EventDestroy(_ driver.Context, raw driver.Event) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	_, r := m.event(raw)
	if r == driver.Success {
		delete(m.events, raw)
	}
	return r
}

// EventRecord implements driver.Events.
func (m *machine) EventRecord(ctx driver.Context, raw driver.Event, onto driver.Stream) driver.Result {
	return m.EventRecordWithFlags(ctx, raw, onto, 0)
}

// EventRecordWithFlags implements driver.Captures.
func (m *machine) EventRecordWithFlags(ctx driver.Context, raw driver.Event, onto driver.Stream, flags uint32) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.queueable(ctx, onto)
	if r != driver.Success {
		return r
	}
	e, r := m.event(raw)
	if r != driver.Success {
		return r
	}
	if e.ctx != s.ctx {
		return driver.ErrorInvalidHandle
	}
	switch {
	case flags&^driver.EventRecordExternal != 0:
		return driver.ErrorInvalidValue
	case flags != 0 && s.capture == nil: // external, which only a capture knows
		return driver.ErrorIllegalState
	case flags != 0:
		m.add(s, &graphNode{typ: driver.NodeEventRecord, act: &action{kind: opMark, event: raw}})
		return driver.Success
	case s.capture != nil:
		e.latest = &record{capture: s.capture, deps: s.deps}
		return driver.Success
	}
	o := &op{kind: opMark}
	e.latest = &record{op: o}
	o.more().record = e.latest
	m.enqueue(s, o)
	return driver.Success
}

// complete answers for a call that asks whether e is complete: an event that was recorded in a capture is at no time, and the
// question spoils the capture. mu is held.
func (m *machine) complete(e *event) driver.Result {
	if e.latest == nil || e.latest.capture == nil {
		return m.forbidden()
	}
	e.latest.capture.invalid = true
	return e.latest.capture.question()
}

// EventQuery implements driver.Events.
func (m *machine) EventQuery(_ driver.Context, raw driver.Event) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	e, r := m.event(raw)
	if r == driver.Success {
		r = m.complete(e)
	}
	if r == driver.Success && e.latest != nil && !e.latest.done {
		m.sched.poll()
		return driver.ErrorNotReady
	}
	if r == driver.Success && e.latest != nil {
		m.timing.seen(e.latest.at)
		m.observe(e.latest.clock)
	}
	return r
}

// EventSynchronize implements driver.Events.
func (m *machine) EventSynchronize(_ driver.Context, raw driver.Event) driver.Result {
	m.mu.Lock()
	e, r := m.event(raw)
	if r == driver.Success {
		r = m.complete(e)
	}
	if r != driver.Success || e.latest == nil {
		m.unlock()
		return r
	}
	m.timing.seen(e.latest.at)
	seen := e.latest.clock
	return m.observeAfter(seen, m.wait(e.latest.op))
}

// EventElapsedTime implements driver.Events.
func (m *machine) EventElapsedTime(_ driver.Context, start, end driver.Event) (float32, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	a, r := m.event(start)
	if r != driver.Success {
		return 0, r
	}
	b, r := m.event(end)
	if r != driver.Success {
		return 0, r
	}
	switch {
	case !a.timing, !b.timing, a.latest == nil, b.latest == nil, a.ctx != b.ctx:
		return 0, driver.ErrorInvalidHandle
	case a.latest.capture != nil, b.latest.capture != nil:
		return 0, driver.ErrorCapturedEvent
	case !a.latest.done, !b.latest.done:
		return 0, driver.ErrorNotReady
	}
	return float32(b.latest.at.Sub(a.latest.at).Seconds() * 1e3), driver.Success
}

// NotifyEvent implements driver.Events.
func (m *machine) NotifyEvent(_ driver.Context, raw driver.Event, fn func(driver.Result)) (stop func(), r driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	e, r := m.event(raw)
	if r != driver.Success {
		return nil, r
	}
	if e.latest == nil || e.latest.done || e.latest.capture != nil {
		r := driver.Success
		if e.latest != nil && e.latest.capture != nil {
			r = e.latest.capture.question()
		}
		if e.latest != nil && r == driver.Success {
			m.timing.seen(e.latest.at)
			m.observe(e.latest.clock)
		}
		m.calls = append(m.calls, func() { fn(r) })
		return func() {}, driver.Success
	}
	o, seen := e.latest.op, e.latest.clock
	w := o.whenDone(func(r driver.Result) { fn(m.observeAfter(seen, r)) })
	return func() { m.stopWaiting(o, w) }, driver.Success
}

// stopWaiting tells w that o is not done, unless w has been told already.
func (m *machine) stopWaiting(o *op, w *waiter) {
	m.mu.Lock()
	defer m.unlock()
	if o.done {
		return
	}
	list := o.extra.waiters
	last := len(list) - 1
	if w.at > last || list[w.at] != w {
		return // stopped before
	}
	list[w.at], list[last].at = list[last], w.at
	list[last] = nil
	o.extra.waiters = list[:last]
	m.calls = append(m.calls, func() { w.tell(driver.ErrorNotReady) })
}
