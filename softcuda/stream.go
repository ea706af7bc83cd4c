package softcuda

import (
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// stream is a queue of operations.
type stream struct {
	ctx      *context
	flags    uint32
	priority int32
	id       uint64
	attrs    attributesOf

	first, last *op
	running     bool      // somebody is at the first operation
	nextCall    *stream   // in callQueue
	hostsRun    uint64    // host functions that have returned
	green       *green    // the green context that it was made in, if it was
	ended       bool      // nothing more is queued on it: it is destroyed, or was of a launch of a graph
	launcher    *stream   // of a launch of a graph: the stream that that was queued on
	attached    bool      // managed memory has been attached to it
	history     *history  // if the machine is tracked
	inner       bool      // of a conditional's body: activity.go counts the conditional instead
	inside      *actor    // that conditional, for the checker
	until       time.Time // when its last operation that is done has ended, by a Cost
	fenced      *op       // the legacy stream's operation that this stream's operations already wait for

	capture *capture     // that what is queued goes to
	deps    []dependency // of the next node captured
}

func (m *machine) newStream(c *context, flags uint32, priority int32) *stream {
	m.streamIDs++
	return &stream{ctx: c, flags: flags, priority: priority, id: m.streamIDs, attrs: defaultAttributes}
}

// stream finds a stream that can still be used. mu is held.
func (m *machine) stream(ctx driver.Context, raw driver.Stream) (*stream, driver.Result) {
	if raw > driver.StreamPerThread {
		s := m.streams[raw]
		if s == nil {
			return nil, driver.ErrorInvalidHandle
		}
		if s.green != nil && m.contexts[s.green.raw] == nil {
			return nil, driver.ErrorContextIsDestroyed
		}
		return s, s.ctx.lost
	}
	c, r := m.context(ctx)
	if r != driver.Success {
		return nil, r
	}
	if raw == driver.StreamPerThread {
		return m.threadStream(c), driver.Success
	}
	return c.legacy, driver.Success
}

// context is the handle of the context that s was made in.
func (s *stream) context() driver.Context {
	if s.green != nil {
		return s.green.raw
	}
	return s.ctx.raw
}

// shownID is the number of the stream that the program knows: s, or the one that a graph was launched on.
func (s *stream) shownID() uint64 {
	for s.launcher != nil {
		s = s.launcher
	}
	return s.id
}

// blocking reports whether s and the legacy stream order each other.
func (s *stream) blocking() bool { return s.flags&driver.StreamNonBlocking == 0 }

// orderLegacy has o, about to be queued on s, wait as the legacy stream's rules want (CONTRACT ST-03): on the legacy stream
// for everything on blocking streams, on a blocking stream for everything on the legacy stream. mu is held.
func (s *stream) orderLegacy(o *op) {
	legacy := s.ctx.legacy
	switch {
	case s == legacy:
		for b := range s.ctx.busy {
			if b != s && b.blocking() {
				o.waitFor(b.last)
			}
		}
	case s.blocking() && s.fenced != legacy.last:
		s.fenced = legacy.last
		o.waitFor(legacy.last)
	}
}

// StreamCreateWithPriority implements driver.Streams.
func (m *machine) StreamCreateWithPriority(ctx driver.Context, flags uint32, priority int32) (driver.Stream, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	c, r := m.context(ctx)
	if r != driver.Success {
		return 0, r
	}
	if flags&^driver.StreamNonBlocking != 0 {
		return 0, driver.ErrorInvalidValue
	}
	raw := driver.Stream(m.handle())
	m.streams[raw] = m.newStream(c, flags, min(max(priority, greatestPriority), leastPriority))
	m.streams[raw].green, _ = m.greenOf(ctx)
	return raw, driver.Success
}

// StreamDestroy implements driver.Streams. What is queued goes on; only the handle is gone.
func (m *machine) StreamDestroy(ctx driver.Context, raw driver.Stream) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	if raw <= driver.StreamPerThread {
		return driver.ErrorInvalidHandle
	}
	s, r := m.stream(ctx, raw)
	if r != driver.Success {
		return r
	}
	m.detach(s)
	s.ended = true
	delete(m.streams, raw)
	if c := s.capture; c != nil { // which can never be ended as it should
		m.finishCapture(c, false)
	}
	return driver.Success
}

// StreamQuery implements driver.Streams.
func (m *machine) StreamQuery(ctx driver.Context, raw driver.Stream) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.stream(ctx, raw)
	if r == driver.Success {
		r = m.observable(s)
	}
	if r == driver.Success && s.busy() {
		m.sched.poll()
		return driver.ErrorNotReady
	}
	if r == driver.Success {
		m.timing.seen(s.until)
		m.observe(m.ahead(s))
	}
	return r
}

// busy reports whether s has work to finish. The legacy stream has that of all blocking streams too: seen on hardware, where
// a query of it answers "not ready", and a sync waits, while a blocking stream runs a kernel and nothing is queued on it.
func (s *stream) busy() bool {
	if s != s.ctx.legacy {
		return s.first != nil
	}
	for b := range s.ctx.busy {
		if b.blocking() {
			return true
		}
	}
	return false
}

// StreamSynchronize implements driver.Streams.
func (m *machine) StreamSynchronize(ctx driver.Context, raw driver.Stream) driver.Result {
	m.mu.Lock()
	s, r := m.stream(ctx, raw)
	if r == driver.Success {
		r = m.observable(s)
	}
	if r != driver.Success {
		m.unlock()
		return r
	}
	m.timing.seen(s.until)
	seen := m.ahead(s)
	if s == s.ctx.legacy {
		return m.observeAfter(seen, m.waitAll(s.ctx, (*stream).blocking))
	}
	return m.observeAfter(seen, m.wait(s.last))
}

// StreamWaitEvent implements driver.Streams.
func (m *machine) StreamWaitEvent(ctx driver.Context, raw driver.Stream, e driver.Event, flags uint32) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.queueable(ctx, raw)
	if r != driver.Success {
		return r
	}
	ev := m.events[e]
	switch {
	case flags&^1 != 0:
		return driver.ErrorInvalidValue
	case flags != 0 && s.capture == nil: // external, which only a capture knows
		return driver.ErrorIllegalState
	case ev == nil:
		return driver.ErrorInvalidHandle
	}
	if flags != 0 {
		m.add(s, &graphNode{typ: driver.NodeWaitEvent, act: &action{kind: opMark, event: e}})
		return driver.Success
	}
	if r, done := m.waitCaptured(s, ev); done {
		return r
	}
	if ev.latest != nil {
		m.after(s, ev.latest.clock)
	}
	if ev.latest == nil || ev.latest.done {
		return driver.Success
	}
	o := &op{kind: opMark}
	o.waitFor(ev.latest.op)
	m.enqueue(s, o)
	return driver.Success
}

// StreamGetFlags implements driver.Streams.
func (m *machine) StreamGetFlags(ctx driver.Context, raw driver.Stream) (uint32, driver.Result) {
	return streamValue(m, ctx, raw, func(s *stream) uint32 { return s.flags })
}

// StreamGetPriority implements driver.Streams.
func (m *machine) StreamGetPriority(ctx driver.Context, raw driver.Stream) (int32, driver.Result) {
	return streamValue(m, ctx, raw, func(s *stream) int32 { return s.priority })
}

// StreamGetID implements driver.Streams.
func (m *machine) StreamGetID(ctx driver.Context, raw driver.Stream) (uint64, driver.Result) {
	return streamValue(m, ctx, raw, func(s *stream) uint64 { return s.id })
}

// StreamGetCtx implements driver.Streams.
func (m *machine) StreamGetCtx(ctx driver.Context, raw driver.Stream) (driver.Context, driver.Result) {
	return streamValue(m, ctx, raw, func(s *stream) driver.Context {
		if raw <= driver.StreamPerThread {
			return ctx
		}
		return s.context()
	})
}

// StreamGetDevice implements driver.Streams.
func (m *machine) StreamGetDevice(ctx driver.Context, raw driver.Stream) (driver.Device, driver.Result) {
	return streamValue(m, ctx, raw, func(s *stream) driver.Device { return s.ctx.dev.ordinal })
}

func streamValue[T any](m *machine, ctx driver.Context, raw driver.Stream, get func(*stream) T) (T, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.stream(ctx, raw)
	if r != driver.Success {
		var zero T
		return zero, r
	}
	return get(s), driver.Success
}
