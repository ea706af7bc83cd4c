package cuda

import (
	"context"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
	"github.com/hostlaunch/cuda/internal/native"
)

// HostLaunch queues fn as a host function on on: it runs once everything queued there before has finished, and what is
// queued afterwards waits until it returns (CONTRACT HL-01). HostLaunch itself returns at once.
//
// fn runs exactly once, on a thread of the driver and never on the caller's goroutine, with all earlier work's writes
// visible to it, and what it writes is visible after Sync. CUDA is forbidden inside: see the package documentation. fn may
// start a goroutine that uses CUDA. It stays alive, with all it captured, until it has run. A panic is recovered and
// reported to OnDone, or else to the driver's OnPanic. If the context fails first, fn never runs, and OnDone, or else the
// driver's OnLost, is told within a second. Do not call runtime.Goexit (as t.FailNow does) inside: on a thread of the NVIDIA
// driver that ends the process.
//
// On a *GraphBuilder fn becomes a host node: it runs once, and OnDone is told once, for every launch of the graph, and it stays
// alive until nothing can run it any more (CONTRACT HL-15, GR-02, GR-03).
//
// On an error nothing was queued, fn will never run, and OnDone is not called: ErrInvalidValue for a nil argument, ErrClosed,
// ErrNotPermitted inside a host function, ErrDeviceLost, ErrCapturing for a stream that captures, ErrNotBuilding, or what the
// driver refused it with (CONTRACT HL-10, HL-13, HL-14, HL-16).
//
// CONTRACT HL; cuLaunchHostFunc.
//
//go:noinline
func HostLaunch(on Queue, fn func(), opts ...HostOption) error {
	site := native.CallerPC()
	if on == nil {
		return failf("HostLaunch", ErrInvalidValue, "on is nil; pass a *Stream or a *GraphBuilder")
	}
	return on.hostLaunch(fn, site, opts)
}

// HostOption configures a host function.
type HostOption func(*hostOptions)

type hostOptions struct {
	name string
	mode HostSyncMode
	done func(error)

	native NativeFunc      // what HostLaunchNative was given, and not HostLaunch
	parent context.Context // of a task
	stop   bool            // a task that fails stops its stream
	task   *Task           // what Go was given, and not HostLaunch
	graph  *graphTask      // a task of a graph

	span opSpan

	callback func(error) // what AddCallback was given, and not HostLaunch
	ctx      *Context    // of a callback
	seq      uint64      // the callbacks' order
}

// HostSyncMode says how the driver's thread waits for a host function's turn.
type HostSyncMode uint32

// Sync modes, by the driver's numbers.
const (
	// Block: the thread sleeps. It is the default.
	Block HostSyncMode = 0
	// Spin: the thread spins, for a shorter way from the work before to the function: some 5 us, not 40 to 50, between two kernels
	// (measured on an H200). Where the driver has no such mode (it came with CUDA 13.2) the library spins in its place: at most two
	// goroutines, while such functions are pending on any stream and for 200 us afterwards, and the function runs on a thread of Go's,
	// beside those of other streams; CUDA is forbidden in it all the same. Where the host may not touch managed memory
	// while the device works, it is a hint, and the function runs as with Block (CONTRACT HL-21).
	Spin HostSyncMode = 1
)

// SyncMode sets how the driver's thread waits. An unknown mode is ErrInvalidValue (CONTRACT HL-21).
func SyncMode(m HostSyncMode) HostOption { return func(o *hostOptions) { o.mode = m } }

// Name gives the function a name for reports and traces; while a Go function runs, its goroutine has it as the profiler's label "cuda"
// (package runtime/pprof). Without it, reports use the name that the program's symbols give it, and there is no label.
func Name(name string) HostOption { return func(o *hostOptions) { o.name = name } }

// OnDone has done told, exactly once, how the function ended: nil after it ran, a *PanicError, or a *LostError if it will
// never run. done runs on a goroutine of its own, where CUDA is allowed; so "give this buffer back, also on failure" is one
// line here. OnDone replaces the driver's OnPanic and OnLost for this function. A panic of done itself is contained and
// logged. If HostLaunch returns an error, done is not called (CONTRACT HL-27).
func OnDone(done func(error)) HostOption { return func(o *hostOptions) { o.done = done } }

// hostLaunch implements Queue.
func (s *Stream) hostLaunch(fn func(), site uintptr, opts []HostOption) error {
	const op = "HostLaunch"
	if err := s.beginQueue(op); err != nil {
		return err
	}
	defer s.end()
	if fn == nil {
		return failf(op, ErrInvalidValue, "fn is nil")
	}
	if err := s.refuseCapturing(op); err != nil {
		return err
	}
	waiting := hostfn.Func{Run: fn, Site: site, Group: &s.ctx.funcs, On: uintptr(s.lane().raw)}
	if len(opts) > 0 {
		o, err := newHostOptions(op, opts)
		if err != nil {
			return err
		}
		waiting.More = o
	}
	if t := s.tracer(); t != nil {
		return s.launchTraced(t, TraceHost, op, waiting, fn)
	}
	return s.launchFunc(op, waiting)
}

// launchFunc queues a host function or callback on s, now or in its turn.
func (s *Stream) launchFunc(op string, fn hostfn.Func) error {
	if s.waitsTurn() {
		s.launchFuncLater(op, fn)
		return nil
	}
	return s.launchFuncNow(op, fn)
}

func (s *Stream) launchFuncNow(op string, fn hostfn.Func) error {
	if o, _ := fn.More.(*hostOptions); s.ctx.emulatesSpin(o) {
		return s.ctx.spinLaunch(op, s, fn)
	}
	return s.ctx.launchHost(op, s.raw, fn)
}

// launchFuncLater has fn queued in its turn. If the driver refuses it then, it is one that never ran; but a callback runs if the context has
// failed (CONTRACT CB-02).
func (s *Stream) launchFuncLater(op string, fn hostfn.Func) {
	never := func(why error) {
		if o, _ := fn.More.(*hostOptions); o != nil && o.callback != nil && s.ctx.lost() != driver.Success {
			s.ctx.addLate(fn)
			return
		}
		s.ctx.drv.resolve(fn, neverRan(fn, why))
	}
	s.addLater(&later{op: op, refused: never, call: func() driver.Result {
		if err := s.launchFuncNow(op, fn); err != nil {
			never(err)
		}
		return driver.Success
	}}, nil)
}

func newHostOptions(op string, opts []HostOption) (*hostOptions, error) {
	o := new(hostOptions)
	for _, opt := range opts {
		if opt != nil {
			opt(o)
		}
	}
	if o.mode > Spin {
		return nil, failf(op, ErrInvalidValue, "sync mode %d is unknown; use Block or Spin", o.mode)
	}
	if forTask := op == "Go" || op == "GraphBuilder.Task" || o.graph != nil; !forTask && (o.parent != nil || o.stop) {
		return nil, failf(op, ErrInvalidValue, "WithContext and StopOnError are for tasks; use Go")
	}
	return o, nil
}

// addFunc puts a function that is about to be queued in the table.
func (c *Context) addFunc(op string, fn hostfn.Func) (hostfn.Handle, error) {
	h := c.drv.funcs.Add(fn)
	if h == 0 {
		if r := c.lost(); r != driver.Success {
			return 0, c.lostError(op, r)
		}
		return 0, failf(op, ErrOutOfMemory, "16 million host functions are waiting; wait for some")
	}
	c.drv.watch()
	return h, nil
}

// launchHost puts the function in the table and hands the driver its handle.
func (c *Context) launchHost(op string, s driver.Stream, fn hostfn.Func) error {
	_, err := c.launchHandle(op, s, fn)
	return err
}

// launchHandle is launchHost, and returns the handle.
func (c *Context) launchHandle(op string, s driver.Stream, fn hostfn.Func) (hostfn.Handle, error) {
	h, err := c.addFunc(op, fn)
	if err != nil {
		return 0, err
	}
	r := c.launch(s, h, fn)
	if r == driver.Success {
		return h, nil
	}
	if _, mine := c.drv.funcs.Take(h); !mine {
		return h, nil // swept meanwhile: it has been resolved, so it counts as queued
	}
	return 0, c.resultf(op, r, "the driver refused the host function; it will not run")
}

// launch hands the driver a function's handle, in the way its options want.
func (c *Context) launch(s driver.Stream, h hostfn.Handle, fn hostfn.Func) driver.Result {
	switch o, _ := fn.More.(*hostOptions); {
	case o == nil:
	case o.callback != nil:
		return c.drv.drv.StreamAddCallback(c.raw, s, uint64(h), 0)
	case o.mode != Block:
		return c.drv.drv.LaunchHostFuncMode(c.raw, s, uint64(h), uint32(o.mode))
	}
	return c.drv.drv.LaunchHostFunc(c.raw, s, uint64(h))
}

func panicked(fn hostfn.Func, out hostfn.Outcome) *PanicError {
	return &PanicError{Name: funcName(fn), Site: siteName(fn.Site), Value: out.Panic, Stack: out.Stack, kind: kindOf(fn)}
}

// runHostFunc is what the driver calls, on its own thread.
func (d *Driver) runHostFunc(data uint64) {
	if isOwner(data) { // not a host function, but the end of a user object
		d.owners.gone(data)
		return
	}
	h := hostfn.Handle(data)
	if h.Kept() {
		d.runHostNode(h)
		return
	}
	fn, ok := d.funcs.Start(h)
	if !ok {
		return
	}
	var failure error
	defer func() { // also when the function leaves by Goexit
		d.resolve(fn, failure)
		d.funcs.Finish(h)
	}()
	d.callHostFunc(fn, &failure, d.goexit)
}

// runHostNode is runHostFunc for a function of a graph's host node, once for every launch.
func (d *Driver) runHostNode(h hostfn.Handle) {
	fn, ok := d.funcs.StartKept(h)
	if !ok {
		return
	}
	if t := d.tracer.Load(); t != nil {
		fn = t.node(h, fn)
	}
	var failure error
	defer func() {
		d.resolve(fn, failure)
		d.funcs.FinishKept(h)
	}()
	d.callHostFunc(fn, &failure, d.goexit)
}

// callHostFunc runs fn, tells goexit if it leaves by runtime.Goexit, and notes in failure how it ended if it did not return, or that it never ran: a driver may still call a
// function of a context that has failed (CONTRACT HL-17).
func (d *Driver) callHostFunc(fn hostfn.Func, failure *error, goexit func(*PanicError)) {
	if why := fn.Group.Failure(); why != nil {
		*failure = neverRan(fn, why)
		return
	}
	if why := d.tasks.stoppedAt(fn); why != nil {
		*failure = neverRan(fn, why)
		return
	}
	returned, sp := false, d.spanOf(fn)
	sp.runs()
	defer func() {
		sp.ran()
		if e, panicked := (*failure).(*PanicError); !returned && panicked && e.Value != ErrGoexit {
			goexit(e) // a panic on the way out of a Goexit: recovering it does not stop the Goexit
		}
	}()
	run := fn.Run
	if o, _ := fn.More.(*hostOptions); o != nil && o.graph != nil {
		run = func() { *failure = o.graph.run() }
	}
	hostfn.Call(d.shown("cuda host function", fn, run), func(out hostfn.Outcome) {
		e := panicked(fn, out)
		if out.Goexit {
			goexit(e)
		}
		*failure = e
	})
	returned = true
}
