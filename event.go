package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/native"
)

// Event is a CUDA event: a mark in a stream, recorded with Queue.Record, that other streams and the program can wait for
// (CONTRACT EV). An event that was never recorded counts as complete, except for Elapsed.
type Event struct {
	ctx      *Context
	raw      driver.Event
	res      *resource
	timing   bool
	recorded atomic.Bool
	captured atomic.Pointer[capture] // that the latest record was in; nil: in none
	pending  atomic.Pointer[later]   // its latest record, if that waited in the library
	marks    *marks                  // of its latest record
	traced   atomic.Uint64           // the spanRef of its latest record that was traced
	on       atomic.Uintptr          // the stream of the latest record
	behind   atomic.Pointer[[]*Task] // that the latest record is behind
}

// EventOption configures NewEvent.
type EventOption func(*eventOptions)

type eventOptions struct{ timing, blocking bool }

// WithTiming has the event carry the time of its completion, for Elapsed. Without it, events are cheaper.
func WithTiming() EventOption { return func(o *eventOptions) { o.timing = true } }

// BlockingSync has Event.Sync sleep rather than spin: less CPU time, later wake-up (CU_EVENT_BLOCKING_SYNC).
func BlockingSync() EventOption { return func(o *eventOptions) { o.blocking = true } }

// NewEvent makes an event. It can be recorded in streams of c, and waited for in streams of any context (CONTRACT EV-01).
func (c *Context) NewEvent(opts ...EventOption) (*Event, error) {
	const op = "NewEvent"
	if err := c.enter(op); err != nil {
		return nil, err
	}
	defer c.leave()
	var o eventOptions
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	d := c.drv.drv
	raw, r := d.EventCreate(c.raw, o.flags())
	if err := c.result(op, r); err != nil {
		return nil, err
	}
	e := &Event{ctx: c, raw: raw, timing: o.timing, marks: new(marks)}
	kept := e.marks // and not e, which the collector must see dropped
	e.res = newResource(c, "Event", 0, func() driver.Result {
		kept.drop()
		return d.EventDestroy(c.raw, raw)
	})
	dropped(e, e.res)
	return e, nil
}

func (o *eventOptions) flags() uint32 {
	f := driver.EventDefault
	if !o.timing {
		f |= driver.EventDisableTiming
	}
	if o.blocking {
		f |= driver.EventBlockingSync
	}
	return f
}

// begin is the beginning of every call on e; end must follow if it returns nil.
func (e *Event) begin(op string) error {
	if e == nil {
		return failf(op, ErrInvalidValue, "the event is nil")
	}
	if err := e.ctx.enter(op); err != nil {
		return err
	}
	if err := e.acquire(op, "the event"); err != nil {
		e.ctx.leave()
		return err
	}
	return nil
}

func (e *Event) end() {
	e.res.release()
	e.ctx.leave()
}

// acquire takes e as the argument called name of op; e.res.release must follow if it returns nil.
func (e *Event) acquire(op, name string) error {
	if e == nil {
		return failf(op, ErrInvalidValue, "%s is nil", name)
	}
	if !e.res.acquire() {
		return failf(op, ErrClosed, "%s is closed", name)
	}
	return nil
}

// Context is the context that e belongs to.
func (e *Event) Context() *Context {
	if e == nil {
		return nil
	}
	return e.ctx
}

// Query reports whether what e's latest record captured is done. It does not wait. cuEventQuery.
func (e *Event) Query() (done bool, err error) {
	const op = "Event.Query"
	if err := e.begin(op); err != nil {
		return false, err
	}
	defer e.end()
	if e.recordPending() {
		return false, nil
	}
	r := e.ctx.drv.drv.EventQuery(e.ctx.raw, e.raw)
	e.ctx.drv.observe()
	if r == driver.ErrorNotReady {
		return false, nil
	}
	return r == driver.Success, e.ctx.result(op, r)
}

// Sync waits until what e's latest record captured is done. It blocks the calling goroutine and a thread; see Wait and Done.
// cuEventSynchronize.
//
//go:noinline
func (e *Event) Sync() error {
	site := native.CallerPC()
	const op = "Event.Sync"
	if err := e.begin(op); err != nil {
		return e.waitsInside(op, err)
	}
	defer e.end()
	defer e.ctx.drv.dog.waiters.add(op, site, e.on.Load()).Store(nil)
	sp := e.syncSpan(op)
	err := e.syncNow(op)
	sp.over(err)
	return err
}

func (e *Event) syncNow(op string) error {
	w, err := e.awaitRecord(op, context.Background())
	if err != nil {
		return err
	}
	defer w.end()
	if w.over {
		return nil
	}
	r := e.ctx.drv.drv.EventSynchronize(e.ctx.raw, e.rawOf(w.m))
	e.ctx.drv.observe()
	return e.ctx.result(op, r)
}

// Wait is Sync with a limit: it returns an error that wraps ctx's when ctx ends first, and leaves nothing of the wait behind.
// No thread waits meanwhile, however many goroutines do (CONTRACT EV-03). The event must not be recorded again while it is
// waited for: which of the records the wait is then for differs between drivers.
//
//go:noinline
func (e *Event) Wait(ctx context.Context) error {
	site := native.CallerPC()
	const op = "Event.Wait"
	if ctx == nil {
		return failf(op, ErrInvalidValue, "ctx is nil")
	}
	if err := e.begin(op); err != nil {
		return e.waitsInside(op, err)
	}
	defer e.end()
	defer e.ctx.drv.dog.waiters.add(op, site, e.on.Load()).Store(nil)
	sp := e.syncSpan(op)
	err := e.waitNow(op, ctx)
	sp.over(err)
	return err
}

func (e *Event) waitNow(op string, ctx context.Context) error {
	w, err := e.awaitRecord(op, ctx)
	if err != nil {
		return err
	}
	defer w.end()
	if w.over {
		return nil
	}
	var done *completion
	if w.m != nil {
		w.m.refs.Add(1)
		done, err = e.ctx.notify(op, w.m.raw, w.m.release)
	} else {
		e.res.retain()
		done, err = e.ctx.notify(op, e.raw, e.res.release)
	}
	if err != nil {
		return err
	}
	return e.ctx.await(op, ctx, done)
}

// Done returns a channel that is closed when what e's latest record captured is done, or can no longer be because the context
// failed; ask Query which. If e cannot be waited for (closed, say) the channel is closed already. No thread waits
// (CONTRACT EV-03). The event must not be recorded again while it is waited for; see Wait.
func (e *Event) Done() <-chan struct{} {
	const op = "Event.Done"
	err := e.begin(op)
	if err == nil && e.recordPending() {
		return e.doneLater(op)
	}
	if err == nil {
		var done *completion
		if done, err = e.notify(op); err == nil {
			return done.ch
		}
	}
	ch := make(chan struct{})
	if errors.Is(err, ErrNotPermitted) { // a goroutine may ask where a host function may not
		go func() {
			<-e.Done()
			close(ch)
		}()
	} else {
		close(ch)
	}
	return ch
}

// doneLater is Done while e's latest record waits in the library. It goes on as the call that it is part of, which Driver.Close waits for.
func (e *Event) doneLater(op string) <-chan struct{} {
	ch := make(chan struct{})
	go func() {
		defer close(ch)
		for it := e.pendingRecord(); it != nil; it = e.pendingRecord() { // another one may, if that was refused
			<-it.done
		}
		if done, err := e.notify(op); err == nil {
			<-done.ch
		}
	}()
	return ch
}

// notify is the end of a call that begin let in. It holds e open until it is complete.
func (e *Event) notify(op string) (*completion, error) {
	defer e.ctx.leave()
	return e.ctx.notify(op, e.raw, e.res.release)
}

// Elapsed is the time on the device between the completion of since and that of e, to about half a microsecond. Both need
// WithTiming. cuEventElapsedTime.
//
// Errors (CONTRACT EV-02): ErrTimingDisabled and ErrNotRecorded (each is an ErrInvalidHandle too, which is the driver's code),
// and ErrNotReady if one of them is not complete.
func (e *Event) Elapsed(since *Event) (time.Duration, error) {
	const op = "Event.Elapsed"
	if err := e.begin(op); err != nil {
		return 0, err
	}
	defer e.end()
	if err := since.acquire(op, "since"); err != nil {
		return 0, err
	}
	defer since.res.release()
	for _, ev := range []*Event{since, e} {
		if err := ev.timed(op, ev == e); err != nil {
			return 0, err
		}
	}
	if e.ctx.drv != since.ctx.drv {
		return 0, failf(op, ErrInvalidValue, "since belongs to %s and the event to %s; use one Driver for both", since.ctx.describe(), e.ctx.describeBeside(since.ctx))
	}
	if since.recordPending() || e.recordPending() {
		return 0, e.ctx.resultf(op, driver.ErrorNotReady, "an event is not complete yet; wait for it first")
	}
	ms, r := e.ctx.drv.drv.EventElapsedTime(e.ctx.raw, since.raw, e.raw)
	if r == driver.ErrorNotReady {
		return 0, e.ctx.resultf(op, r, "an event is not complete yet; wait for it first")
	}
	return time.Duration(float64(ms) * float64(time.Millisecond)), e.ctx.result(op, r)
}

// timed says why e has no time.
func (e *Event) timed(op string, receiver bool) error {
	name := "since"
	if receiver {
		name = "the event"
	}
	if !e.timing {
		return &Error{Op: op, Code: ErrTimingDisabled, also: ErrInvalidHandle, Reason: name + " was made without WithTiming()"}
	}
	if !e.recorded.Load() {
		return &Error{Op: op, Code: ErrNotRecorded, also: ErrInvalidHandle, Reason: name + " was never recorded"}
	}
	return nil
}

// Close destroys e. Work that waits for it is not affected.
func (e *Event) Close() error {
	if e == nil {
		return nil
	}
	return closeHandle(e.res)
}

// Record queues the recording of e, which must belong to s's context. cuEventRecord.
func (s *Stream) Record(e *Event) error { return s.record("Stream.Record", e, driver.EventDefault) }

func (s *Stream) record(op string, e *Event, flags uint32) error {
	if err := s.beginQueue(op); err != nil {
		return err
	}
	defer s.end()
	if err := e.acquire(op, "the event"); err != nil {
		return err
	}
	defer e.res.release()
	if e.ctx != s.ctx {
		return failf(op, ErrInvalidHandle, "the event belongs to %s and the stream to %s; record an event in the context that made it", e.ctx.describe(), s.ctx.describeBeside(e.ctx))
	}
	sp := s.span(TraceRecord, op, "", 0)
	c := s.capture()
	if flags == 0 && c == nil && s.ordersLater() {
		return s.recordLater(op, sp, e)
	}
	if flags == 0 {
		sp.begins(s)
		err := s.recordNow(op, sp, e)
		sp.ends(s, err)
		return err
	}
	if r := s.driver().EventRecordWithFlags(s.ctx.raw, e.raw, s.raw, flags); r != driver.Success {
		return s.ctx.result(op, r)
	}
	e.recordedByGraph()
	e.noteRecord(s, sp, s.ctx.drv.tasks.behindStream(s))
	c.keep(e.res)
	return nil
}

// noteRecord notes that e has been recorded in s, or will be in its turn, with its span and what that is behind.
func (e *Event) noteRecord(s *Stream, sp opSpan, behind []*Task) {
	e.recorded.Store(true)
	if s.tracer() != nil {
		e.traced.Store(uint64(sp.ref()))
	}
	e.on.Store(uintptr(s.lane().raw))
	e.setBehind(behind)
}

// WaitEvent has later work of s wait for what e's latest record captured; recording e again later changes nothing. If e was
// recorded in a capture, s belongs to that capture from now on. e may belong to another device (CONTRACT ST-06). cuStreamWaitEvent.
func (s *Stream) WaitEvent(e *Event) error { return s.waitEvent("Stream.WaitEvent", e, 0) }

func (s *Stream) waitEvent(op string, e *Event, flags uint32) error {
	if err := s.beginQueue(op); err != nil {
		return err
	}
	defer s.end()
	if err := e.acquire(op, "the event"); err != nil {
		return err
	}
	defer e.res.release()
	if e.ctx.drv != s.ctx.drv {
		return failf(op, ErrInvalidValue, "the event belongs to %s and the stream to %s; use one Driver for both", e.ctx.describe(), s.ctx.describeBeside(e.ctx))
	}
	sp := s.waitSpan(op, e)
	r, queued := s.waitNow(sp, e, flags)
	if !queued {
		return s.waitLater(op, sp, e)
	}
	err := s.ctx.blamed(r, e.ctx).result(op, r)
	sp.ends(s, err)
	if err != nil {
		return err
	}
	switch c := e.captured.Load(); {
	case flags != 0:
		s.capture().keep(e.res)
	case c != nil: // which s belongs to now
		c.join(s)
	}
	return nil
}

// WaitStream has later work of s wait for everything queued on other so far. other may belong to another device.
func (s *Stream) WaitStream(other *Stream) error { return s.waitStream("Stream.WaitStream", other) }

func (s *Stream) waitStream(op string, other *Stream) error {
	if err := s.beginQueue(op); err != nil {
		return err
	}
	defer s.end()
	begin := other.beginQueueAs
	if s.raw == driver.StreamPerThread { // only this thread can queue the wait, so it waits until other's work is queued
		begin = other.beginAs
	}
	if err := begin(op, "other"); err != nil {
		return err
	}
	defer other.end()
	if other.ctx.drv != s.ctx.drv {
		return failf(op, ErrInvalidValue, "other belongs to %s and the stream to %s; use one Driver for both", other.ctx.describe(), s.ctx.describeBeside(other.ctx))
	}
	sp := s.waitStreamSpan(op, other)
	if s.ctx.drv.tasks.active.Load() > 0 && s.capture() == nil && other.capture() == nil {
		return s.waitStreamLater(op, sp, other)
	}
	raw, err := other.behind(op)
	if err != nil {
		sp.queued(err)
		return err
	}
	m := other.ctx.markBy(raw)
	list := s.ctx.drv.tasks.behindStream(other)
	if len(list) > 0 && s.capture() == nil && other.capture() == nil { // tasks are about by now
		return s.waitMark(op, sp, m, list)
	}
	defer m.release() // the wait holds what the record captured, not the event
	sp.begins(s)
	r := s.driver().StreamWaitEvent(s.ctx.raw, s.raw, raw, 0)
	err = s.ctx.blamed(r, other.ctx).result(op, r)
	sp.ends(s, err)
	if err != nil {
		return err
	}
	if c := other.capture(); c != nil { // which s belongs to now
		c.join(s)
	}
	return nil
}

// waitStreamLater is waitStream while tasks are about.
func (s *Stream) waitStreamLater(op string, sp opSpan, other *Stream) error {
	m, err := other.ctx.newMark(op)
	if err != nil {
		sp.queued(err)
		return err
	}
	behind, err := other.recordMark(op, m)
	if err != nil {
		m.release()
		sp.queued(err)
		return err
	}
	return s.waitMark(op, sp, m, behind)
}

// recordMark records m in s, in its turn, and returns what it is behind.
func (s *Stream) recordMark(op string, m *mark) (behind []*Task, err error) {
	record := func() driver.Result {
		r := s.driver().EventRecord(s.ctx.raw, m.raw, s.raw)
		m.made.Store(r == driver.Success)
		return r
	}
	if s.raw == driver.StreamPerThread { // which has nothing waiting, and is another stream to whoever records later
		err := s.ctx.result(op, record())
		return s.ctx.drv.tasks.behindStream(s), err
	}
	m.refs.Add(1)
	m.rec = &later{op: op, call: record, then: m.release, direct: true, done: make(chan struct{})}
	behind = s.putLater(m.rec, nil)
	s.ctx.drv.tasks.pump(s.ctx.drv, m.rec.lane)
	return behind, s.ctx.drv.tasks.told(m.rec)
}

// describe names c for messages.
func (c *Context) describe() string {
	if c.own {
		return fmt.Sprintf("context %#x of device %d of the %s driver", uintptr(c.raw), c.ordinal, c.drv.Name())
	}
	return fmt.Sprintf("device %d of the %s driver", c.ordinal, c.drv.Name())
}

// describeBeside names c in a message that has named first before: two drivers may be of one kind.
func (c *Context) describeBeside(first *Context) string {
	if c.drv != first.drv && c.drv.Name() == first.drv.Name() {
		return fmt.Sprintf("device %d of another %s driver", c.ordinal, c.drv.Name())
	}
	return c.describe()
}
