package cuda

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
	"github.com/hostlaunch/cuda/internal/native"
)

// Driver is an opened driver: the NVIDIA driver or the software device. It holds everything made from it; there is no state
// outside of it. A program usually opens one and closes it at its end.
type Driver struct {
	drv     driver.Driver
	opts    options
	version Version

	funcs     hostfn.Table // host functions that wait to run
	natives   nativeCalls  // native functions that wait to run
	notices   tally        // NotifyEvents in progress
	reports   tally        // OnDone, OnPanic and OnLost in progress
	hooks     hookList     // the same, by name
	resources registry
	retired   retireList
	capturing capturing
	owners    owners
	endings   tally // former parameters of executables that launches may use
	copies    tally // staged copies in progress
	tasks     tasks
	held      heldStreams
	spin      spinner
	dog       watchdog
	pinned    pinnedRanges
	tracer    atomic.Pointer[Tracer] // nil: nothing is traced
	tracers   atomic.Uint32          // that there have been
	labels    labels

	greenStreams greenStreams

	calls atomic.Int64  // calls in progress, and closingBit once the shutdown has begun
	quiet chan struct{} // closed when it has begun and no call is in progress any more
	down  chan struct{} // closed when it is through

	opening sync.Mutex // held while a device is opened, across the driver's calls for that; before mu

	mu       sync.Mutex // guards what follows; never held across a driver call
	devices  []*Device
	contexts map[driver.Context]*Context
}

// NewDriver wraps a driver implementation. It is for the driver packages of this module: programs call libcuda.Open,
// softcuda.New or anycuda.Open.
func NewDriver(impl driver.Driver, opts ...Option) (*Driver, error) {
	const op = "Open"
	d := &Driver{drv: impl, quiet: make(chan struct{}), down: make(chan struct{}), contexts: map[driver.Context]*Context{}}
	for _, o := range opts {
		if o != nil {
			o(&d.opts)
		}
	}
	v, r := impl.DriverGetVersion()
	if r != driver.Success {
		return nil, NewError(op, r, "the driver does not tell its version")
	}
	n, r := impl.DeviceGetCount()
	if r != driver.Success {
		return nil, NewError(op, r, "the driver does not tell its devices")
	}
	d.held.drv = d
	d.version, d.devices = Version(v), make([]*Device, n)
	d.natives.drv, d.natives.ended = d, new(native.Ended)
	impl.Attach(driver.Upcalls{HostFunc: d.runHostFunc, Lost: d.contextLost, Pending: d.pending, Log: d.logError, Callback: d.runCallback})
	return d, nil
}

// Name is "nvidia" or "software".
func (d *Driver) Name() string {
	if d == nil {
		return ""
	}
	return d.drv.Name()
}

// Version is the CUDA version that the driver implements.
func (d *Driver) Version() Version {
	if d == nil {
		return 0
	}
	return d.version
}

// Version is a CUDA version as CUDA counts: 1000*major + 10*minor.
type Version int

// String gives the usual form, as in "13.0".
func (v Version) String() string { return fmt.Sprintf("%d.%d", int(v)/1000, int(v)%1000/10) }

// DeviceCount is how many devices there are.
func (d *Driver) DeviceCount() int {
	if d == nil {
		return 0
	}
	return len(d.devices)
}

// Device returns device i, from 0 to DeviceCount()-1, and makes its primary context on the first call for i.
// Every call for one i returns the same Device.
func (d *Driver) Device(i int) (*Device, error) {
	const op = "Driver.Device"
	if err := d.enter(op); err != nil {
		return nil, err
	}
	defer d.leave()
	if i < 0 || i >= len(d.devices) {
		return nil, failf(op, ErrInvalidDevice, "there is no device %d: this driver has %d", i, len(d.devices))
	}
	if dev := d.opened(i); dev != nil { // who has that need not wait for others: a task that they wait for may ask
		return dev, nil
	}
	d.opening.Lock()
	defer d.opening.Unlock()
	if dev := d.opened(i); dev != nil {
		return dev, nil
	}
	return d.openDevice(op, driver.Device(i))
}

// opened is device i if it has been opened.
func (d *Driver) opened(i int) *Device {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.devices[i]
}

// closingBit stands above any number of calls.
const closingBit = 1 << 62

// enter is the beginning of every call that reaches the driver: it refuses what cannot be had now, and has an ordinary
// goroutine free what was dropped. If it returns nil, leave must follow: the shutdown waits for the calls in progress.
func (d *Driver) enter(op string) error {
	if d == nil {
		return failf(op, ErrInvalidValue, "the driver is nil")
	}
	if d.inHostFunction() {
		return failf(op, ErrNotPermitted, "called inside a host function, where CUDA is forbidden; call it afterwards (OnDone), or from a goroutine that the function starts")
	}
	if d.calls.Add(1)&closingBit != 0 && d.tasks.current() == nil { // a task counts as a call, so there is time for its own
		d.leave()
		return failf(op, ErrClosed, "the Driver is closed")
	}
	if d.natives.ended.Any() {
		d.natives.collect(someEnded)
	}
	d.drainSoon()
	return nil
}

// leave is the end of a call that enter let in.
func (d *Driver) leave() {
	if d.calls.Add(-1) == closingBit {
		d.becameQuiet()
	}
}

// becameQuiet may be called again: calls that enter refuses count for a moment.
func (d *Driver) becameQuiet() {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.quiet:
	default:
		close(d.quiet)
	}
}

// Close waits until all queued work is done, frees everything made from d, and lets go of the devices. Afterwards nothing of
// the library runs any more, no goroutine and no host function, and every call returns ErrClosed (CONTRACT LI-01, LI-03).
// Inside a host function Close is accepted and carried out later, on an ordinary goroutine. Inside a task, inside an OnDone, CopyDone,
// OnPanic or OnLost, and in a log handler that the library calls, it returns ErrDeadlock, since it would wait for that. Work that never
// ends makes Close wait forever: see Shutdown.
func (d *Driver) Close() error {
	if d == nil {
		return nil
	}
	if d.inHostFunction() {
		d.startShutdown()
		return nil
	}
	return d.shutdown("Driver.Close", context.Background())
}

// Shutdown is Close with a limit: when ctx ends first, it returns an error that wraps ctx's and says what is stuck. The
// shutdown goes on in the background and can be waited for again.
func (d *Driver) Shutdown(ctx context.Context) error {
	const op = "Driver.Shutdown"
	if d == nil {
		return nil
	}
	if ctx == nil {
		return failf(op, ErrInvalidValue, "ctx is nil")
	}
	if d.inHostFunction() {
		return failf(op, ErrNotPermitted, "called inside a host function, which it would wait for; call Close, or call it from a goroutine")
	}
	return d.shutdown(op, ctx)
}

func (d *Driver) shutdown(op string, ctx context.Context) error {
	if inReport() {
		return failf(op, ErrDeadlock, "called inside an OnDone, CopyDone, OnPanic, OnLost or log handler, which it would wait for; call it from another goroutine")
	}
	if t := d.tasks.current(); t != nil {
		return failf(op, ErrDeadlock, "called in a task (%s), which it would wait for; call it from another goroutine", t.describe())
	}
	d.startShutdown()
	select {
	case <-d.down:
		return nil
	default:
	}
	select {
	case <-d.down:
		return nil
	case <-ctx.Done():
		return endedError(op, ctx, d.stuck())
	}
}

func (d *Driver) startShutdown() {
	if before := d.calls.Or(closingBit); before&closingBit == 0 {
		if before == 0 {
			d.becameQuiet()
		}
		go d.finish()
	}
}

// finish carries the shutdown out.
func (d *Driver) finish() {
	<-d.quiet
	d.relaxed(d.finishQuiet)
	close(d.down)
}

// tellLeaks tells a driver that wants to know which memory the program has not closed.
func (d *Driver) tellLeaks() {
	to, ok := d.drv.(driver.Checker)
	if !ok {
		return
	}
	var open []driver.DevicePtr
	for _, r := range d.resources.all() {
		if r.memory != 0 && !r.closed() {
			open = append(open, r.memory)
		}
	}
	to.LeftOpen(open)
}

// finishQuiet is finish once no call is in progress. It runs in Relaxed capture mode; but synchronising a context spoils the
// captures of others there in any mode.
func (d *Driver) finishQuiet() {
	defer func() {
		d.dog.stop()
		<-d.reports.idle() // of a context that failed on the way, and the watchdog's
	}()
	for _, c := range d.capturing.all() {
		c.abandon(false)
	}
	for _, c := range d.allContexts() {
		c.result("Driver.Close", d.drv.CtxSynchronize(c.raw))
	}
	<-d.funcs.Idle()
	<-d.copies.idle()
	d.stopTrace()
	d.natives.shut()
	<-d.reports.idle()
	d.retired.drain(false)
	d.tellLeaks()
	for _, r := range d.resources.all() {
		r.close()
	}
	<-d.endings.idle()
	d.owners.finish()
	d.retired.drain(false) // what graphs held
	<-d.resources.left.idle()
	<-d.notices.idle() // a Wait that its context ended has its event there still
	for _, c := range d.allContexts() {
		c.drain()
	}
	for _, c := range d.allContexts() { // now, for green ones are parts of others
		c.release()
		if c.own {
			d.forget(c)
		}
	}
	d.natives.discard()
	d.drv.Shut()
}

// stuck describes what finish waits for.
func (d *Driver) stuck() string {
	const most = 4
	var parts []string
	for _, t := range d.tasks.unfinished() {
		if len(parts) < most {
			parts = append(parts, t.describe())
		}
	}
	add := func(what string, fn hostfn.Func, state string) bool {
		if len(parts) < most {
			parts = append(parts, fmt.Sprintf(what, funcName(fn), siteName(fn.Site), state))
		}
		return len(parts) < most
	}
	const plain, node = "host function %s, enqueued at %s, which %s", "host function %s of a graph, added at %s, which %s"
	d.funcs.EachKept(func(fn hostfn.Func, _, running int) bool { return running == 0 || add(node, fn, "runs") })
	d.funcs.Each(func(_ hostfn.Handle, fn hostfn.Func, started bool) bool {
		if started {
			return add(plain, fn, "runs")
		}
		return add(plain, fn, "waits")
	})
	d.funcs.EachKept(func(fn hostfn.Func, due, _ int) bool {
		return due == 0 || add(node, fn, fmt.Sprintf("waits for %d runs", due))
	})
	if len(parts) < most {
		parts = append(parts, d.natives.describe(most-len(parts))...)
	}
	if n := d.funcs.Len() - len(parts); n > 0 && len(parts) == most {
		parts = append(parts, fmt.Sprintf("%d more host functions", n))
	}
	if len(parts) == 0 {
		parts = d.hooks.describe(most)
	}
	if n := d.copies.count(); n > 0 && len(parts) == 0 {
		parts = append(parts, fmt.Sprintf("%d copies to or from ordinary memory", n))
	}
	if len(parts) == 0 {
		return "queued work of the device, or a call in progress"
	}
	return strings.Join(parts, ", ")
}

func (d *Driver) allContexts() []*Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]*Context, 0, len(d.contexts))
	for _, c := range d.contexts {
		list = append(list, c)
	}
	return list
}

func (d *Driver) context(raw driver.Context) *Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.contexts[raw]
}

// contextLost is the driver's word that a context has failed.
func (d *Driver) contextLost(raw driver.Context, r driver.Result) {
	if c := d.context(raw); c != nil {
		c.fail(r)
	}
}

// pending tells the driver how many host functions, callbacks and tasks of a context wait, and staged copies are in progress.
func (d *Driver) pending(raw driver.Context) int {
	if c := d.context(raw); c != nil {
		return d.funcs.Pending(&c.funcs) + d.funcs.Pending(&c.callbacks) + int(c.copies.Load()) + d.tasks.pending(c)
	}
	return 0
}
