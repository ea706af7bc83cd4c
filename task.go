package cuda

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
	"github.com/hostlaunch/cuda/internal/native"
)

// Task is a goroutine that takes part in a stream's order; see Go.
type Task struct {
	drv    *Driver
	stream *Stream
	lane   laneKey
	opts   *hostOptions
	name   string
	site   uintptr
	fn     func(context.Context) error // nil once the task has ended

	hold   hold // of its stream
	traced spanRef

	turn     chan struct{} // closed when there is room for its hold, if only Go's thread can submit it; nil: any can
	place    *later        // in the library, in that case
	entering sync.Mutex    // held while it is submitted: its function does not begin before
	held     heldRound     // what holds the stream, once submitted

	done chan struct{}
	err  error // valid once done is closed

	// What follows is guarded by tasks.mu.
	state     taskState
	granted   bool      // there is room for its hold
	direct    bool      // Go has not returned: it tells of a refusal
	refused   error     // why the driver did not take it, for Go
	after     []*Task   // tasks that come before it in stream order; those that have not ended, once it has without having run
	item      *later    // its place in the library; nil: it is a graph's, or has ended
	wait      *taskWait // what its goroutine waits for now
	goroutine uintptr
	began     time.Time

	graph   *graphTask  // that it is a run of, by a launch; nil: it is Go's
	started atomic.Bool // its stream has come to it
}

type taskState uint8

const (
	taskWaits     taskState = iota // in the library, for its stream to be held
	taskSubmitted                  // to the driver
	taskRuns
	taskEnded
)

// Go queues fn on on as a task: an ordinary goroutine that begins once everything queued on on before has finished, and what is
// queued afterwards waits until it returns (CONTRACT TK-01). Go itself returns at once. Tasks of different streams run at the same
// time (CONTRACT TK-02), which host functions do not.
//
// fn may call CUDA, queue work on any stream, its own included, and wait for other streams. Waiting for its own stream, or for work
// behind a task that waits for this one, is ErrDeadlock at once (CONTRACT TK-03). That is known of fn's own goroutine, by every
// call of this library that waits, but PinnedPool.Get; of goroutines that fn starts, and of its waiting on channels, it is not.
//
// The context that fn gets is that of WithContext, or else context.Background(); it ends when fn has returned. What fn returns, or
// a panic as a *PanicError, is in Task.Err, and goes to OnDone; the stream goes on, unless StopOnError is given. fn runs exactly once,
// or never if the device fails first, which Task.Err tells as a *LostError. Driver.Close waits for tasks, which may use CUDA to
// their end. OnDone, Name and SyncMode apply. With Spin a polling thread starts fn (see SyncMode), and fn runs on that thread's
// goroutine.
//
// While fn runs, the stream is held by a wait-value. Held streams block hardware queues that other streams may share, so not more
// than MaxHeldStreams of a device are held at a time: further tasks wait in the library, in the order of their Go calls. What is
// queued behind such a task waits there too, in its order, and its caller does not; should the driver refuse it then, that is
// logged, or told to OnDone. Only what cannot be made later waits for its turn: copies between the device and ordinary or pinned
// memory and of rows, HostCopy and HostLaunchNative, launches of graphs, captures, attributes, Attach and ReleaseAfter, what is queued
// on the per-thread stream, which only its own thread can do, and of course Sync and Wait (CONTRACT TK-07). And the driver's calls that
// synchronise implicitly wait as long as any stream is held. So in that time memory that is closed is freed later, and modules are
// unloaded later; LoadModule, NewContext, NewGreenContext and, if the streams made beforehand are used up (TaskStreams), NewStream wait
// until no stream is held, and are ErrDeadlock in a task. What other libraries do is not covered: a stream that they hold counts against
// the hardware's queues too (CUDA_DEVICE_MAX_CONNECTIONS), and work that they queue on on while its task waits in the library is not
// behind it.
// A kernel that the driver loads only at its first launch may be such a call: have it loaded by launching it once before, or with
// CUDA_MODULE_LOADING=EAGER.
//
// On an error nothing was queued, fn will never run, and OnDone is not called: ErrInvalidValue for a nil argument, ErrClosed,
// ErrNotPermitted inside a host function, ErrDeviceLost, ErrCapturing (see GraphBuilder.Task), ErrTaskFailed for a stream that
// StopOnError has stopped, ErrNotSupported for a device without memory operations. CONTRACT TK.
//
//go:noinline
func Go(on *Stream, fn func(ctx context.Context) error, opts ...HostOption) (*Task, error) {
	site := native.CallerPC()
	const op = "Go"
	if err := on.beginTask(op); err != nil {
		return nil, err
	}
	t, err := on.newTask(op, fn, site, opts)
	if err != nil {
		on.end()
		return nil, err
	}
	sp := t.opts.span
	err = t.queue(op)
	sp.queued(err)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// queue is the rest of Go.
func (t *Task) queue(op string) error {
	granted, err := t.drv.tasks.add(op, t)
	if err != nil {
		t.stream.end()
		return err
	}
	return t.added(op, granted)
}

// added is queue once t has its place.
func (t *Task) added(op string, granted bool) error {
	if c := t.stream.ctx; !granted {
		t.drv.drv.WatchContext(c.raw)
		if r := c.lost(); r != driver.Success { // perhaps since before it was added
			t.lose(c.lostError(op, r))
		}
	}
	if t.turn != nil { // only this thread can submit it
		if err := t.submitHere(op, granted); err != nil {
			return err
		}
	}
	t.drv.tasks.pump(t.drv, t.lane)
	if err := t.drv.tasks.taken(t); err != nil {
		t.withdraw()
		return err
	}
	return nil
}

// beginTask is the beginning of Go. Tasks wait for their turn by themselves, but on the per-thread stream, where only this thread can
// queue.
func (s *Stream) beginTask(op string) error {
	if s != nil && s.raw == driver.StreamPerThread {
		return s.beginAs(op, "on")
	}
	return s.beginNow(op, "on")
}

// newTask checks the arguments of Go.
func (s *Stream) newTask(op string, fn func(context.Context) error, site uintptr, opts []HostOption) (*Task, error) {
	if fn == nil {
		return nil, failf(op, ErrInvalidValue, "fn is nil")
	}
	if err := s.refuseCapturing(op); err != nil {
		return nil, err
	}
	o, err := newHostOptions(op, opts)
	if err != nil {
		return nil, err
	}
	d := s.ctx.drv
	t := &Task{drv: d, stream: s, lane: s.lane(), opts: o, name: o.name, site: site, fn: fn, done: make(chan struct{}), direct: true}
	if t.name == "" {
		t.name = taskName(fn)
	}
	o.task = t
	if tracer := s.tracer(); tracer != nil {
		o.span = tracer.hostSpan(s, TraceTask, op, t.name, o, fn, site)
		t.traced = o.span.ref()
	}
	t.hold = hold{lane: t.lane, granted: func() {
		d.tasks.grant(t)
		d.inBackground(func() { d.tasks.pump(d, t.lane) })
	}}
	if s.raw == driver.StreamPerThread {
		t.turn = make(chan struct{})
		t.hold.granted = func() {
			d.tasks.grant(t)
			close(t.turn)
		}
	}
	d.readyForTasks(s.ctx)
	return t, nil
}

// taskName is what the program calls fn.
func taskName(fn func(context.Context) error) string {
	if f := runtime.FuncForPC(reflect.ValueOf(fn).Pointer()); f != nil {
		return f.Name()
	}
	return "(unknown)"
}

// WithContext gives a task the context that its function's is derived from (CONTRACT TK-05). That it has ended does not keep the task
// from its turn, nor what is behind it from waiting: the function runs all the same, and finds its context ended. It is for Go and
// GraphBuilder.Task.
func WithContext(ctx context.Context) HostOption { return func(o *hostOptions) { o.parent = ctx } }

// StopOnError has a task that fails stop its stream: nothing that was queued behind it there runs, and every later call on the stream that
// queues fails with ErrTaskFailed and the task's error. Tasks, host functions and callbacks behind it are told, as of a LostError; events
// recorded behind it stay as they were, and are not complete until their records have been refused. For that, what is queued on the
// stream waits in the library until the task has ended. The stream stays stopped; close it and make another. For Go.
func StopOnError() HostOption { return func(o *hostOptions) { o.stop = true } }

// Done returns a channel that is closed when the task's function has returned, or can never run (CONTRACT TK-05).
func (t *Task) Done() <-chan struct{} { return t.done }

// Err is what the task ended with: nil before its end and after success; else what its function returned, a *PanicError, or a
// *LostError that says why it never ran.
func (t *Task) Err() error {
	select {
	case <-t.done:
		return t.err
	default:
		return nil
	}
}

// Wait waits until the task has ended and returns its error. If ctx ends first, it returns an error that wraps ctx's; the task
// goes on. In a task that t waits for, it is ErrDeadlock; inside a host function it is that and ErrNotPermitted (CONTRACT HL-07).
func (t *Task) Wait(ctx context.Context) error {
	const op = "Task.Wait"
	if t == nil {
		return failf(op, ErrInvalidValue, "the task is nil")
	}
	if ctx == nil {
		return failf(op, ErrInvalidValue, "ctx is nil")
	}
	if t.drv.inHostFunction() {
		return t.stream.ctx.waitsInside(op, t.describe(), uintptr(t.lane.raw))
	}
	end, err := t.drv.tasks.mayWait(&taskWait{op: op, tasks: []*Task{t}})
	if err != nil {
		return err
	}
	defer end()
	select {
	case <-t.done:
		return t.err
	default:
	}
	sp := t.syncSpan(op)
	select {
	case <-t.done:
		sp.over(nil)
		return t.err
	case <-ctx.Done():
		err := endedError(op, ctx, t.describe())
		sp.over(err)
		return err
	}
}

// Name is the task's name: as Name gave it, or as the program calls its function.
func (t *Task) Name() string { return t.name }

func (t *Task) describe() string {
	return fmt.Sprintf("task %s, queued at %s", t.name, siteName(t.site))
}

// waiting is t as the table of host functions knows it, until it begins.
func (t *Task) waiting() hostfn.Func {
	return hostfn.Func{Run: t.start, More: t.opts, Site: t.site, Group: &t.stream.ctx.funcs, On: uintptr(t.lane.raw)}
}

// neverRan is t's end if why kept it from running.
func (t *Task) neverRan(why error) *LostError { return neverRan(t.waiting(), why) }

// submit gives t to the driver: what tells that its stream has come to it, and what holds the stream until it has ended.
func (t *Task) submit(op string) error {
	c := t.stream.ctx
	held, r := c.holdRound()
	if r != driver.Success {
		return c.blamed(r, c.holder()).resultf(op, r, "no pinned memory to hold the stream with")
	}
	t.held = held
	t.drv.tasks.submitted(t)
	if c.emulatesSpin(t.opts) {
		return c.spinHold(op, t.stream, held, t.waiting(), fillersOfTask)
	}
	t.entering.Lock()
	defer t.entering.Unlock()
	h, err := c.launchHandle(op, t.stream.raw, t.waiting())
	if err != nil {
		return err
	}
	if r := held.hold(c, t.stream.raw); r != driver.Success {
		err := c.resultf(op, r, "the driver refused to hold the stream; the task will not run")
		if _, mine := t.drv.funcs.Take(h); mine {
			return err
		}
		t.drv.tasks.holdBack(t) // its stream has come to it
	}
	return nil
}

// takeTurn submits the task, whose turn it is, unless its stream has been stopped.
func (t *Task) takeTurn(stopped error) {
	b := &t.drv.tasks
	if !b.takes(t) {
		return
	}
	if stopped != nil {
		t.end(t.neverRan(stoppedError("Go", stopped)))
		return
	}
	if err := t.submit("Go"); err != nil && !b.refuse(t, err) {
		t.end(t.neverRan(err))
	}
}

// takes reports whether t is to be submitted: it has not been ended meanwhile.
func (b *tasks) takes(t *Task) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return t.state == taskWaits
}

// refuse notes why the driver did not take t, if Go is there to tell.
func (b *tasks) refuse(t *Task, why error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.direct {
		t.refused = why
	}
	return t.direct
}

// taken is the end of Go: what the driver refused t with, if it has.
func (b *tasks) taken(t *Task) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.direct = false
	return t.refused
}

// submitHere waits until it is t's turn and there is room for its hold, and submits t. Where that would be for ever it takes t back.
func (t *Task) submitHere(op string, granted bool) error {
	b, it := &t.drv.tasks, t.place
	b.pump(t.drv, t.lane) // it may be its turn by now
	for {
		end, err := b.mayWait(&taskWait{op: op, items: it.after, room: t})
		if err == nil {
			defer end()
			break
		}
		if t.drv.held.leave(&t.hold) || granted {
			if b.end(t, nil); granted {
				t.drv.held.end(&t.hold)
			}
			b.pass(t.drv, it)
			t.stream.end()
			return err
		}
		if granted = t.awaits(t.turn); !granted { // it has got room meanwhile, or has ended
			break
		}
	}
	if t.awaits(it.turn) && (granted || t.awaits(t.turn)) {
		t.takeTurn(nil)
	}
	b.pass(t.drv, it)
	return nil
}

// awaits waits for ch to be closed. It reports false if t has ended before: its context was lost, and it has been told, so it counts as
// queued.
func (t *Task) awaits(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	case <-t.done:
		return false
	}
}

// lose ends a task that will never run, and that still waits in the library.
func (t *Task) lose(why error) {
	if t.drv.held.leave(&t.hold) {
		t.end(t.neverRan(why))
	}
}

// withdraw takes back a task that Go refuses.
func (t *Task) withdraw() {
	t.drv.tasks.end(t, nil)
	t.drv.tasks.pump(t.drv, t.lane)
	t.held.giveBack(t.stream.ctx)
	t.drv.held.end(&t.hold)
	t.stream.end()
}

// start begins the task. It is called when its stream has come to it, where nothing may take long.
func (t *Task) start() {
	t.started.Store(true)
	go t.run()
}

// run is the task's goroutine.
func (t *Task) run() {
	var err error
	defer func() { t.end(err) }() // also when fn ends its goroutine
	t.drv.funcs.Observe()
	t.entering.Lock()
	err = t.drv.tasks.begin(t)
	t.entering.Unlock()
	if err != nil {
		return
	}
	t.call(&err)
}

// warm reads what beginning and ending t takes; see spinner.warm.
func (t *Task) warm() {
	t.entering.Lock()
	defer t.entering.Unlock()
	t.drv.tasks.warm(t)
}

// call calls the task's function, and says in err what it ended with, also when it ends its goroutine.
func (t *Task) call(err *error) {
	parent := t.opts.parent
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	ctx, hidden := t.show(ctx)
	defer hidden()
	t.opts.span.runs()
	defer t.opts.span.ran()
	hostfn.Call(func() { *err = callTask(ctx, t.fn) }, func(out hostfn.Outcome) {
		p := &PanicError{Name: t.name, Site: siteName(t.site), Value: out.Panic, Stack: out.Stack, kind: "task"}
		if out.Goexit {
			containedGoexit(p)
		}
		*err = p
	})
}

// end is the end of a task that has run, or that never will. It is called once, and not on a thread of the driver.
func (t *Task) end(err error) {
	d, c := t.drv, t.stream.ctx
	c.ending.Add(1)
	defer c.ending.Add(-1)
	t.err, t.fn = err, nil
	t.opts.span.fails(err)
	t.opts.span = opSpan{} // a program may keep the Task, and is not to keep the trace with it

	// What stops its stream does so before anything goes on there; else the stream need not wait for the book-keeping.
	if !t.opts.stop {
		t.over()
	}
	d.tasks.end(t, err)
	if t.opts.stop {
		t.over()
	}
	if t.opts.done != nil {
		d.report("OnDone", t.waiting(), func() { t.opts.done(err) })
	}
	if c.lost() == driver.Success { // else the stream may never have come to it
		t.held.giveBack(c)
	}
	if t.granted {
		d.held.end(&t.hold)
	}
	d.tasks.pump(d, t.lane) // what waited for its end
	t.stream.end()
}

// over lets those go on who wait for t, and its stream.
func (t *Task) over() {
	close(t.done) // before the stream goes on: who has waited for that knows how t ended
	t.held.letGo(t.drv)
}

// callTask calls a task's function. Every one is called from here, so that the place it returns to tells.
//
//go:noinline
func callTask(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }

// inCallTask is the address that a task's function returns to.
var inCallTask = func() (pc uintptr) {
	callTask(context.Background(), func(context.Context) error {
		pc = native.CallerPC()
		return nil
	})
	return pc
}()
