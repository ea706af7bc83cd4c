package cuda

import (
	"context"
	"time"

	"github.com/hostlaunch/cuda/internal/native"
)

// Task adds fn to the graph as a task: at every launch it runs once, on an ordinary goroutine that may call CUDA, and what is
// behind it in the graph waits until it returns (CONTRACT TK-06). There is no Task to hand out: what each run returns, or a panic as
// a *PanicError, goes to OnDone, or else an error is logged and a panic goes to OnPanic. WithContext, Name and OnDone apply;
// StopOnError does not. The function stays alive until nothing can run it any more, like a host node's.
//
// The node is a host function that waits for the goroutine. So launches cannot be mistaken for each other, however many run at once;
// but, other than with Go, no other host function of the context runs meanwhile, no other task of a graph, and no task of Go that has
// not begun. fn must not wait for any of those, nor for the stream that the graph was launched on: unlike with Go, that hangs, and the
// watchdog tells of it.
//
// Errors: as HostLaunch's on a GraphBuilder.
//
//go:noinline
func (b *GraphBuilder) Task(fn func(ctx context.Context) error, opts ...HostOption) error {
	site := native.CallerPC()
	const op = "GraphBuilder.Task"
	if fn == nil {
		return failf(op, ErrInvalidValue, "fn is nil")
	}
	if _, err := b.building(op); err != nil {
		return err
	}
	c := b.stream.ctx
	if err := c.enter(op); err != nil {
		return err
	}
	defer c.leave()
	o, err := newHostOptions(op, opts)
	if err != nil {
		return err
	}
	if o.stop {
		return failf(op, ErrInvalidValue, "StopOnError is for tasks of a stream; a graph goes on")
	}
	c.drv.readyForTasks(c)
	name := o.name
	if name == "" {
		name = taskName(fn)
	}
	run := func() error {
		return (&Task{drv: c.drv, stream: b.stream, lane: laneKey{ctx: c}, opts: o, name: name, site: site, fn: fn}).runInGraph()
	}
	return b.hostLaunch(func() {}, site, append(opts, func(o *hostOptions) { o.run, o.name = run, name }))
}

// runInGraph runs a task of a graph on a goroutine of its own and waits for it, on the thread that the driver calls host functions on.
func (t *Task) runInGraph() (err error) {
	d := t.drv
	d.held.beginUncounted()
	defer d.held.endUncounted()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.tasks.beginInGraph(t)
		defer d.tasks.leaveGraph(t)
		d.funcs.Observe()
		t.call(&err)
	}()
	<-ended
	return err
}

// beginInGraph notes that a task of a graph runs on the calling goroutine.
func (b *tasks) beginInGraph(t *Task) {
	id := native.Goroutine()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.run(t, id)
	b.inGraphs = append(b.inGraphs, t)
}

// leaveGraph is the end of what beginInGraph began.
func (b *tasks) leaveGraph(t *Task) {
	b.leave(t)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inGraphs = withoutTask(b.inGraphs, t)
}

// run notes that t runs on goroutine id. mu is held.
func (b *tasks) run(t *Task, id uintptr) {
	t.state, t.goroutine, t.began = taskRuns, id, time.Now()
	if b.byGoroutine == nil {
		b.byGoroutine = map[uintptr]*Task{}
	}
	b.byGoroutine[id] = t
	b.running.Add(1)
}

// beginUncounted is the beginning of a hold that nobody bounds, since the driver holds a stream by itself.
func (l *heldStreams) beginUncounted() { l.n.Add(1) }

func (l *heldStreams) endUncounted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n.Add(-1) == 0 && len(l.later) > 0 {
		l.beQuiet()
	}
}
