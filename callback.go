package cuda

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
	"github.com/hostlaunch/cuda/internal/native"
)

// AddCallback queues fn on s as a callback with status, the driver's older form of a host function: it runs once everything
// queued on s before has finished, and what is queued afterwards waits until it returns. AddCallback itself returns at once.
//
// What distinguishes it from HostLaunch is that fn also runs when the context has failed: it gets nil, or that error, which is
// an ErrDeviceLost. fn runs exactly once (CONTRACT CB-01, CB-02), unless StopOnError stops s before: then it never runs, and OnDone
// says so. Otherwise it is like a host function: it runs on a thread of the driver, CUDA is forbidden inside, and a panic is
// recovered and reported. Name and OnDone apply; OnDone gets nil after fn has run, whatever fn got. If the driver does not run the
// callbacks of a failed context within a second, the library does, in the order they were added, on ordinary goroutines. A
// callback cannot be captured (CONTRACT CB-03).
//
// On an error nothing was queued and fn will never run: ErrInvalidValue for a nil argument and for SyncMode, which callbacks
// do not have; ErrClosed; ErrNotPermitted inside a host function; ErrDeviceLost if the failure is known already.
//
// CONTRACT CB; cuStreamAddCallback.
//
//go:noinline
func AddCallback(s *Stream, fn func(err error), opts ...HostOption) error {
	site := native.CallerPC()
	const op = "AddCallback"
	if err := s.beginQueue(op); err != nil {
		return err
	}
	defer s.end()
	if fn == nil {
		return failf(op, ErrInvalidValue, "fn is nil")
	}
	o, err := newHostOptions(op, opts)
	if err != nil {
		return err
	}
	if o.mode != Block {
		return failf(op, ErrInvalidValue, "callbacks have no sync mode; use HostLaunch")
	}
	o.callback, o.ctx, o.seq = fn, s.ctx, s.ctx.callbackSeq.Add(1)
	waiting := hostfn.Func{More: o, Site: site, Group: &s.ctx.callbacks, On: uintptr(s.lane().raw)}
	if t := s.tracer(); t != nil && !s.isCapturing() {
		return s.launchTraced(t, TraceCallback, op, waiting, fn)
	}
	return s.launchFunc(op, waiting)
}

// runCallback is what the driver calls, on its own thread.
func (d *Driver) runCallback(data uint64, r driver.Result) {
	h := hostfn.Handle(data)
	fn, ok := d.funcs.Start(h)
	if !ok {
		return
	}
	defer d.funcs.Finish(h)
	d.callBack(fn, r, d.goexit)
}

// callBack runs a callback with the status r. goexit is told if it leaves by runtime.Goexit.
func (d *Driver) callBack(fn hostfn.Func, r driver.Result, goexit func(*PanicError)) {
	o := fn.More.(*hostOptions)
	status := o.ctx.result("AddCallback", r)
	if lost := o.ctx.lost(); status == nil && lost != driver.Success {
		status = o.ctx.lostError("AddCallback", lost) // the driver may not say so (seen on an H200, beside a function that runs)
	}
	var failure error
	defer func() { d.resolve(fn, failure) }()
	o.span.runs()
	defer o.span.ran()
	hostfn.Call(d.shown("cuda callback", fn, func() { o.callback(status) }), func(out hostfn.Outcome) {
		e := panicked(fn, out)
		if out.Goexit {
			goexit(e)
		}
		failure = e
	})
}

// callbackGrace is how long a driver has to run the callbacks of a context that has failed.
const callbackGrace = time.Second

// failCallbacks sees to it that the callbacks of c, which has failed, run: by the driver, or else here.
func (c *Context) failCallbacks() {
	const step = 5 * time.Millisecond
	d := c.drv
	d.funcs.Shut(&c.callbacks)
	for waited := time.Duration(0); waited < callbackGrace && d.funcs.Pending(&c.callbacks) > 0; waited += step {
		time.Sleep(step)
	}
	left := d.funcs.Sweep(&c.callbacks)
	slices.SortFunc(left, func(a, b hostfn.Func) int {
		return cmp.Compare(a.More.(*hostOptions).seq, b.More.(*hostOptions).seq)
	})
	c.runCallbacks(left)
	c.runLate()
}

// runCallbacks runs callbacks of c, which has failed, one after another.
func (c *Context) runCallbacks(list []hostfn.Func) {
	d := c.drv
	for _, fn := range list {
		returned := make(chan struct{})
		d.report("AddCallback", fn, func() {
			defer close(returned)
			d.callBack(fn, c.lost(), containedGoexit)
		})
		<-returned
	}
}

// lateCallbacks are callbacks that waited in the library, behind a task, when their context failed.
type lateCallbacks struct {
	mu   sync.Mutex
	list []hostfn.Func
	rest bool // nobody runs them, or is going to
}

// addLate has fn run behind all that were queued before: those that the driver has had, and the late ones.
func (c *Context) addLate(fn hostfn.Func) {
	l := &c.late
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, fn)
	if l.rest {
		l.rest = false
		c.drv.inBackground(c.runLate)
	}
}

// runLate runs the late callbacks until there are none.
func (c *Context) runLate() {
	for l := &c.late; ; {
		l.mu.Lock()
		list := l.list
		l.list, l.rest = nil, len(list) == 0
		l.mu.Unlock()
		if len(list) == 0 {
			return
		}
		c.runCallbacks(list)
	}
}
