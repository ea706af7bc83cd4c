package cuda

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/native"
)

// Stream is a CUDA stream: a queue whose work runs in order (CONTRACT ST). It is a Queue. It may be used from any goroutine;
// work queued from several goroutines is interleaved, and each goroutine's own work keeps its order (CONTRACT HL-25).
type Stream struct {
	ctx   *Context
	raw   driver.Stream
	res   *resource     // nil for a stream that is not ours to destroy
	green *GreenContext // that it was made in, if it was
	owner any           // what a borrowed stream keeps alive
	id    uint64        // as the driver gave it when the stream was made or borrowed; 0: not asked for

	borrowed bool                           // another library's, which may use it too
	captured atomic.Pointer[capture]        // what it captures into, as far as this library knows
	foreign  atomic.Pointer[foreignCapture] // the latest capture of another library that was asked about
	altered  *atomic.Bool                   // attributes of it may have been set; nil: who cares
	traced   atomic.Pointer[traceLane]      // in the latest trace that it had a part in
	ordered  atomic.Uint32                  // with the legacy default stream, as blockingLane found: 0 unknown, 1 no, 2 yes
}

var _ Queue = (*Stream)(nil)

// StreamOption configures NewStream.
type StreamOption func(*streamOptions)

type streamOptions struct {
	flags    StreamFlags
	priority int
	clamp    bool
}

// StreamFlags are a stream's creation flags.
type StreamFlags uint32

// Creation flags, by the driver's numbers.
const (
	// StreamBlocking: the stream and the legacy default stream order each other's work (CU_STREAM_DEFAULT).
	StreamBlocking StreamFlags = StreamFlags(driver.StreamDefault)
	// StreamNonBlocking: the stream is not ordered with the legacy default stream (CU_STREAM_NON_BLOCKING).
	StreamNonBlocking StreamFlags = StreamFlags(driver.StreamNonBlocking)
)

// NonBlocking makes the stream independent of the legacy default stream. It is the default of NewStream, unlike CUDA's.
func NonBlocking() StreamOption { return WithFlags(StreamNonBlocking) }

// Blocking makes the stream and the legacy default stream order each other's work (CONTRACT ST-03).
func Blocking() StreamOption { return WithFlags(StreamBlocking) }

// WithFlags gives the creation flags by number; NewStream refuses flags that do not exist.
func WithFlags(f StreamFlags) StreamOption { return func(o *streamOptions) { o.flags = f } }

// Priority gives the stream a priority: lower numbers are higher priorities, 0 is the default, and Context.StreamPriorities
// tells the range. NewStream refuses one out of range, unless Clamp is given too. Priority is a hint to the scheduling of
// kernels and never an order (CONTRACT ST-02).
func Priority(p int) StreamOption { return func(o *streamOptions) { o.priority = p } }

// Clamp has a priority out of range moved to the nearest one in range, as the driver does.
func Clamp() StreamOption { return func(o *streamOptions) { o.clamp = true } }

// NewStream makes a stream. Without options it is non-blocking and of priority 0.
//
// Errors: ErrInvalidValue for unknown flags and for a priority out of range. CONTRACT ST-01, ST-02; cuStreamCreateWithPriority.
func (c *Context) NewStream(opts ...StreamOption) (*Stream, error) {
	const op = "NewStream"
	if err := c.enter(op); err != nil {
		return nil, err
	}
	defer c.leave()
	o := streamOptions{flags: StreamNonBlocking}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	if o.flags != StreamBlocking && o.flags != StreamNonBlocking {
		return nil, failf(op, ErrInvalidValue, "flags %#x: streams have only Blocking() and NonBlocking()", uint32(o.flags))
	}
	if err := c.checkPriority(op, &o); err != nil {
		return nil, err
	}
	raw, pooled, err := c.createStream(op, o)
	if err != nil {
		return nil, err
	}
	s := c.newStream(raw, pooled)
	s.id, _ = c.drv.drv.StreamGetID(c.raw, raw) // else ID asks again, and says why not
	return s, nil
}

func (c *Context) checkPriority(op string, o *streamOptions) error {
	if o.priority == 0 {
		return nil
	}
	least, greatest, r := c.drv.drv.CtxGetStreamPriorityRange(c.raw)
	if err := c.result(op, r); err != nil {
		return err
	}
	if in := min(max(o.priority, int(greatest)), int(least)); in != o.priority {
		if !o.clamp {
			return failf(op, ErrInvalidValue, "priority %d is out of the range %d to %d; use one in range, or add Clamp()", o.priority, greatest, least)
		}
		o.priority = in
	}
	return nil
}

// DefaultStream is the legacy default stream of c. Work on it waits for all earlier work of c's blocking streams, and their
// later work waits for it (CONTRACT ST-03). Close does nothing to it.
func (c *Context) DefaultStream() *Stream { return &Stream{ctx: c, raw: driver.StreamLegacy} }

// WithThreadStream calls fn with the per-thread default stream, which belongs to the calling thread: the goroutine is locked
// to its thread while fn runs. fn must use the stream only on its own goroutine, and not after it returns. The error is fn's.
func (c *Context) WithThreadStream(fn func(*Stream) error) error {
	const op = "WithThreadStream"
	if fn == nil {
		return failf(op, ErrInvalidValue, "fn is nil")
	}
	if err := c.enter(op); err != nil {
		return err
	}
	s := &Stream{ctx: c, raw: driver.StreamPerThread}
	s.res = newResource(c, "Stream", 0, func() driver.Result {
		c.drv.tasks.forget(s.lane())
		return driver.Success
	})
	c.leave() // fn may close the Driver
	defer s.res.close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return fn(s)
}

// begin is the beginning of every call that queues on s or waits for it; end must follow if it returns nil. It waits while tasks
// that were queued there before wait in the library.
func (s *Stream) begin(op string) error { return s.beginAs(op, "the stream") }

// beginAs is begin for the stream that messages call name.
func (s *Stream) beginAs(op, name string) error {
	if err := s.beginNow(op, name); err != nil {
		return err
	}
	if b := &s.ctx.drv.tasks; b.active.Load() > 0 {
		if err := b.queueTurn(op, s, context.Background()); err != nil {
			s.end()
			return err
		}
	}
	return nil
}

// beginNow is the beginning of calls that need not wait for their turn; end must follow if it returns nil.
func (s *Stream) beginNow(op, name string) error {
	if s == nil {
		return failf(op, ErrInvalidValue, "%s is nil", name)
	}
	if err := s.ctx.enter(op); err != nil {
		return err
	}
	if s.res != nil && !s.res.acquire() {
		s.ctx.leave()
		return failf(op, ErrClosed, "%s is closed", name)
	}
	return nil
}

func (s *Stream) end() {
	if s.res != nil {
		s.res.release()
	}
	s.ctx.leave()
}

// Context is the context that s belongs to. For a stream of a green context it is that which stands for the green context
// (CONTRACT ST-09); see also Contexts.
func (s *Stream) Context() *Context {
	if s == nil {
		return nil
	}
	if s.green != nil {
		return s.green.Context()
	}
	return s.ctx
}

// CUDAStream is the driver's handle of s (a CUstream), for other libraries. It is valid until s is closed.
func (s *Stream) CUDAStream() uintptr {
	if s == nil {
		return 0
	}
	return uintptr(s.raw)
}

// ID is a number unique to the stream, for the life of the program. It needs no driver, so it works in host functions too
// (CONTRACT HL-06); only on a default stream, which is another one in every context, the driver is asked. cuStreamGetId.
func (s *Stream) ID() (uint64, error) {
	const op = "Stream.ID"
	if s == nil || s.id == 0 {
		return streamValue(s, op, driver.Driver.StreamGetID)
	}
	if s.res.closed() {
		return 0, failf(op, ErrClosed, "the stream is closed")
	}
	return s.id, nil
}

// Flags are the flags that s was created with. cuStreamGetFlags.
func (s *Stream) Flags() (StreamFlags, error) {
	f, err := streamValue(s, "Stream.Flags", driver.Driver.StreamGetFlags)
	return StreamFlags(f), err
}

// Priority is the priority in force. cuStreamGetPriority.
func (s *Stream) Priority() (int, error) {
	p, err := streamValue(s, "Stream.Priority", driver.Driver.StreamGetPriority)
	return int(p), err
}

// DeviceOrdinal is the number of the device that s belongs to. cuStreamGetDevice.
func (s *Stream) DeviceOrdinal() (int, error) {
	n, err := streamValue(s, "Stream.DeviceOrdinal", driver.Driver.StreamGetDevice)
	return int(n), err
}

func (s *Stream) driver() driver.Driver { return s.ctx.drv.drv }

// streamValue is a call that asks the driver something about s.
func streamValue[T any](s *Stream, op string, get func(driver.Driver, driver.Context, driver.Stream) (T, driver.Result)) (T, error) {
	if err := s.beginNow(op, "the stream"); err != nil {
		var zero T
		return zero, err
	}
	defer s.end()
	v, r := get(s.driver(), s.ctx.raw, s.raw)
	return v, s.ctx.result(op, r)
}

// Query reports whether all work queued on s so far is done. It does not wait. On a stream that captures it is
// ErrCaptureUnsupported, and the capture is invalid (CONTRACT CP-11); on one that StopOnError has stopped, ErrTaskFailed. cuStreamQuery.
func (s *Stream) Query() (done bool, err error) {
	const op = "Stream.Query"
	if err := s.beginNow(op, "the stream"); err != nil {
		return false, err
	}
	defer s.end()
	return s.queryNow(op)
}

// queryNow is Query of s, which is in use.
func (s *Stream) queryNow(op string) (done bool, err error) {
	if err := s.ctx.drv.tasks.stoppedOn(op, s); err != nil {
		return false, err
	}
	if s.ctx.drv.tasks.waiting(s) {
		return false, nil
	}
	r := s.driver().StreamQuery(s.ctx.raw, s.raw)
	s.ctx.drv.observe()
	if r == driver.ErrorNotReady {
		return false, nil
	}
	return r == driver.Success, s.ctx.result(op, r)
}

// Sync waits until all work queued on s so far is done. It blocks the calling goroutine and a thread; see Wait for a limit.
// A device error of earlier work is returned, once the device has it (CONTRACT ST-04, ST-11). On a stream that captures it is
// ErrCaptureUnsupported, and the capture is invalid (CONTRACT CP-11). cuStreamSynchronize.
//
//go:noinline
func (s *Stream) Sync() error {
	site := native.CallerPC()
	const op = "Stream.Sync"
	if err := s.beginNow(op, "the stream"); err != nil {
		return s.waitsInside(op, err)
	}
	defer s.end()
	defer s.ctx.drv.dog.waiters.add(op, site, uintptr(s.lane().raw)).Store(nil)
	if s.ctx.drv.tasks.current() != nil && s.refuseCapturing(op) == nil {
		sp := s.syncSpan(op)
		err := s.syncInTask(op)
		sp.over(err)
		return err
	}
	if b := &s.ctx.drv.tasks; b.active.Load() > 0 {
		if err := b.queueTurn(op, s, context.Background()); err != nil {
			return err
		}
	}
	sp := s.syncSpan(op)
	s.helpCopies()
	r := s.driver().StreamSynchronize(s.ctx.raw, s.raw)
	s.ctx.drv.observe()
	err := s.ctx.result(op, r)
	sp.over(err)
	return err
}

// syncInTask waits for an event, and not for s: what others queue on s after the task has been found to be free to wait is not waited
// for. Where nothing is queued there is nothing to wait for; the event of a blocking stream would still be behind the legacy stream's work.
func (s *Stream) syncInTask(op string) error {
	if done, err := s.queryNow(op); done && err == nil {
		return nil
	}
	raw, waited, err := s.recordInTurn(op, context.Background())
	if err != nil {
		return err
	}
	defer waited()
	defer s.ctx.events.put(raw)
	s.helpCopies()
	r := s.driver().EventSynchronize(s.ctx.raw, raw)
	s.ctx.drv.observe()
	return s.ctx.result(op, r)
}

// recordInTurn is behind for a call that waits for the event, when it is its turn. In a task it first makes sure that it may wait. waited
// must be called after the wait.
func (s *Stream) recordInTurn(op string, ctx context.Context) (raw driver.Event, waited func(), err error) {
	b := &s.ctx.drv.tasks
	if b.active.Load() == 0 {
		raw, err = s.behind(op)
		return raw, noWait, err
	}
	if b.current() == nil {
		if err := b.queueTurn(op, s, ctx); err != nil {
			return 0, nil, err
		}
		raw, err = s.behind(op)
		return raw, noWait, err
	}
	t, err := s.takeTurn(op, ctx, turnFor{waits: true})
	if err != nil {
		return 0, nil, err
	}
	raw, err = s.behind(op)
	t.pass()
	if err != nil {
		t.end()
		return 0, nil, err
	}
	return raw, t.end, nil
}

// Wait waits until all work queued on s so far is done or ctx ends, whichever is first; if ctx ends, it returns an error that
// wraps ctx's, and the stream's work goes on. No thread waits meanwhile (CONTRACT ST-04). On a stream that captures it is
// ErrCapturing, and the capture stays valid.
//
//go:noinline
func (s *Stream) Wait(ctx context.Context) error {
	site := native.CallerPC()
	const op = "Stream.Wait"
	if ctx == nil {
		return failf(op, ErrInvalidValue, "ctx is nil")
	}
	if err := s.beginNow(op, "the stream"); err != nil {
		return s.waitsInside(op, err)
	}
	defer s.end()
	if err := s.refuseCapturing(op); err != nil {
		return err
	}
	defer s.ctx.drv.dog.waiters.add(op, site, uintptr(s.lane().raw)).Store(nil)
	raw, waited, err := s.recordInTurn(op, ctx)
	if err != nil {
		return err
	}
	defer waited()
	sp := s.syncSpan(op)
	err = s.awaitEvent(op, ctx, raw)
	sp.over(err)
	return err
}

// awaitEvent waits for an event of the library's own, which goes back to the context's.
func (s *Stream) awaitEvent(op string, ctx context.Context, raw driver.Event) error {
	done, err := s.ctx.notify(op, raw, func() { s.ctx.events.put(raw) })
	if err != nil {
		return err
	}
	return s.ctx.await(op, ctx, done)
}

// Close destroys s. It returns at once: queued work completes first, and none of it is lost (CONTRACT ST-05, HL-23). Every
// later use of s is ErrClosed, but for Close. In the middle of a capture the stream is destroyed when that
// ends. On a default or borrowed stream, which is not ours, it ends only this Stream.
func (s *Stream) Close() error {
	if s == nil || s.res == nil {
		return nil
	}
	return closeHandle(s.res)
}
