package cuda

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/driver"
)

// CaptureMode decides which calls of the program are refused while something is captured, because they do their work at once,
// where no capture sees it: allocating and freeing, loading modules, querying and synchronising streams and events, copies
// that wait. A refused call fails with ErrCaptureUnsupported and invalidates the capture (CONTRACT CP-03).
type CaptureMode int32

// Capture modes, by the driver's numbers. CaptureThreadLocal is the one to choose unless there is a reason for another: it
// finds such calls where the graph is built, and leaves the rest of the program alone.
const (
	// CaptureGlobal refuses them in every goroutine of the program. So any goroutine that only asks whether its own stream is
	// done can spoil the capture: for programs that are known to do nothing else meanwhile. It is CUDA's default.
	CaptureGlobal CaptureMode = CaptureMode(driver.CaptureGlobal)
	// CaptureThreadLocal refuses them in the goroutine that captures.
	CaptureThreadLocal CaptureMode = CaptureMode(driver.CaptureThreadLocal)
	// CaptureRelaxed refuses none. The capture may begin and end on different goroutines. Calls that conflict with capture by
	// their nature, as a query of an event that was recorded in it, are refused all the same.
	CaptureRelaxed CaptureMode = CaptureMode(driver.CaptureRelaxed)
)

func (m CaptureMode) check(op string) error {
	if m < CaptureGlobal || m > CaptureRelaxed {
		return failf(op, ErrInvalidValue, "capture mode %d is unknown; use CaptureThreadLocal, CaptureGlobal or CaptureRelaxed", int32(m))
	}
	return nil
}

// Capture has s capture while build runs: what build queues on the GraphBuilder becomes a graph instead of being done
// (CONTRACT CP-01). Nothing of it runs until the graph is launched. Captured kernels must not use texture or surface
// references; texture and surface objects are fine.
//
// mode says which calls are refused meanwhile; CaptureThreadLocal is recommended, and CaptureMode says why. build runs on the
// calling goroutine, which is locked to its thread. When it returns an error, panics or ends its goroutine, the capture is
// ended, nothing is left of it, and s can be used as before; the error is returned and the panic goes on.
//
// s must belong to the same Driver as what is queued, and must not be the legacy default stream, which cannot capture. The
// GraphBuilder is of no use once build has returned. The program closes the Graph.
//
// Errors: ErrInvalidValue, ErrClosed, ErrCapturing if s captures already, ErrCaptureUnsupported for the legacy stream,
// ErrCaptureInvalidated if a refused call spoiled the capture, ErrCaptureUnjoined. CONTRACT CP; cuStreamBeginCapture,
// cuStreamEndCapture.
func Capture(s *Stream, mode CaptureMode, build func(*GraphBuilder) error) (*Graph, error) {
	const op = "Capture"
	if build == nil {
		return nil, failf(op, ErrInvalidValue, "build is nil")
	}
	b := &GraphBuilder{stream: s}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := b.start(op, mode, target{}); err != nil {
		return nil, err
	}
	c := b.now.Load()
	defer c.abandon(true) // also on a panic and a Goexit; nothing if it has ended
	if err := build(b); err != nil {
		return nil, err
	}
	return b.finish(op)
}

// capture is a capture of this library's own, from begin to end. It holds its streams, so that none is destroyed meanwhile.
type capture struct {
	origin *Stream
	locked bool // the goroutine that began it has been locked to its thread
	target

	mu      sync.Mutex // guards what follows; never held across a driver call
	over    bool
	streams []*Stream
	owner   *owner     // of what its nodes use
	nodes   *nodeTable // of the graph that is built
}

// capturing are the captures of a Driver that have not ended.
type capturing struct {
	n    atomic.Int32
	mu   sync.Mutex
	list map[*capture]struct{}
}

func (l *capturing) add(c *capture) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.list == nil {
		l.list = map[*capture]struct{}{}
	}
	l.list[c] = struct{}{}
	l.n.Store(int32(len(l.list)))
}

func (l *capturing) remove(c *capture) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.list, c)
	l.n.Store(int32(len(l.list)))
}

func (l *capturing) all() (list []*capture) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.list {
		list = append(list, c)
	}
	return list
}

// join has s belong to the capture, unless it does already or the capture is over.
func (c *capture) join(s *Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || slices.Contains(c.streams, s) || s.res != nil && !s.res.acquire() {
		return
	}
	c.streams = append(c.streams, s)
	s.captured.Store(c)
}

// keep retains what a node uses as long as the graph, or anything made of it, can run it.
func (c *capture) keep(resources ...*resource) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.owner.add(resources...)
	}
}

// keepMemory is keep for host memory.
func (c *capture) keepMemory(host hostRange) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.owner.addMemory(host)
	}
}

// end ends the capture in the driver, once; first is false if it has ended before, and else letGo must follow. own: the caller may be the goroutine that
// began it, which is then unlocked from its thread.
func (c *capture) end(own bool) (raw driver.Graph, r driver.Result, first bool) {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return 0, driver.Success, false
	}
	c.over = true
	streams := c.streams
	c.streams = nil
	c.mu.Unlock()
	s := c.origin
	raw, r = s.driver().StreamEndCapture(s.ctx.raw, s.raw)
	if r != driver.Success {
		c.endRefused()
	}
	if own && c.locked && r != driver.ErrorStreamCaptureWrongThread {
		runtime.UnlockOSThread()
	}
	for _, s := range streams {
		s.captured.CompareAndSwap(c, nil)
		if s.res != nil {
			s.res.release()
		}
	}
	s.ctx.drv.capturing.remove(c)
	s.ctx.drv.drainSoon()
	return raw, r, true
}

// endRefused ends the capture once more if the driver did not, so that the stream can be used: else what is queued there would be captured
// for ever. What was captured is of no use, since an error has been told.
func (c *capture) endRefused() {
	s := c.origin
	if status, r := s.driver().StreamIsCapturing(s.ctx.raw, s.raw); r != driver.Success || status == driver.CaptureNone {
		return
	}
	if raw, r := s.driver().StreamEndCapture(s.ctx.raw, s.raw); r == driver.Success && c.into == nil {
		s.driver().GraphDestroy(s.ctx.raw, raw)
	}
}

// letGo lets go of the graph that c captured into, if it did, once that has what it is to have.
func (c *capture) letGo() {
	if c.into != nil {
		c.into.captured(false)
		c.into.res.release()
	}
}

// abandon ends the capture and leaves nothing of it. On another thread than the one it began on, in a mode that minds, the
// driver says so, and the capture is gone as wanted (CONTRACT CP-10). It does nothing if the capture has ended.
func (c *capture) abandon(own bool) {
	raw, r, first := c.end(own)
	if !first {
		return
	}
	defer c.letGo()
	s := c.origin
	if c.into != nil { // the graph has the nodes
		if err := c.settle("GraphBuilder.Close", r == driver.Success && !c.again); err != nil {
			s.ctx.drv.logError("cuda: a recapture was given up", "err", err)
		}
		return
	}
	if r == driver.Success {
		s.driver().GraphDestroy(s.ctx.raw, raw)
	}
	c.owner.release()
}

// capture is the capture that s belongs to, as far as this library knows, or nil.
func (s *Stream) capture() *capture { return s.captured.Load() }

// isCapturing reports whether s captures. Of a stream of this library it is known; a borrowed one may be capturing for its
// owner, so the driver is asked, which takes a fraction of a microsecond.
func (s *Stream) isCapturing() bool {
	if s.capture() != nil || !s.borrowed {
		return s.capture() != nil
	}
	status, r := s.driver().StreamIsCapturing(s.ctx.raw, s.raw)
	return r == driver.Success && status != driver.CaptureNone
}

// refuseCapturing keeps one-time work off a stream that captures.
func (s *Stream) refuseCapturing(op string) error {
	if !s.isCapturing() {
		return nil
	}
	return failf(op, ErrCapturing, "the stream is capturing a graph; use the GraphBuilder, or another stream")
}

// WithCaptureMode runs fn with the calling goroutine locked to its thread and that thread in a capture mode, and gives the
// thread its former mode back, also when fn panics. In CaptureRelaxed the goroutine's calls spoil nobody's capture, except
// for those that conflict with capture by their nature, such as synchronising a context. The error is fn's.
//
// CONTRACT CP-03; cuThreadExchangeStreamCaptureMode.
func (d *Driver) WithCaptureMode(mode CaptureMode, fn func() error) error {
	const op = "Driver.WithCaptureMode"
	if fn == nil {
		return failf(op, ErrInvalidValue, "fn is nil")
	}
	if err := mode.check(op); err != nil {
		return err
	}
	if err := d.enter(op); err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	former, r := d.drv.ThreadExchangeStreamCaptureMode(driver.CaptureMode(mode))
	d.leave() // fn may close the Driver
	if r != driver.Success {
		return NewError(op, r, "the driver does not change the thread's capture mode")
	}
	defer d.drv.ThreadExchangeStreamCaptureMode(former)
	return fn()
}

// relaxed runs fn, which calls the driver for the library's own sake, so that it spoils nobody's capture (CONTRACT CP-12).
func (d *Driver) relaxed(fn func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if former, r := d.drv.ThreadExchangeStreamCaptureMode(driver.CaptureRelaxed); r == driver.Success {
		defer d.drv.ThreadExchangeStreamCaptureMode(former)
	}
	fn()
}
