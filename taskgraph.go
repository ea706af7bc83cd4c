package cuda

import (
	"context"
	"slices"
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
// not begun. So fn must not wait for any of those: for a task, or for work that is behind one, that is ErrDeadlock at once, and so it is
// for the stream that the graph was launched on (CONTRACT TK-03); for a host function it hangs, and the watchdog tells of it. Which of
// several executables runs fn is not known if launches of them wait at the same time: then the stream of a launch may not be
// recognized once fn has run for another.
//
// From a launch until its tasks have returned, what the driver might synchronise for is put off, as while a stream is held (see Go).
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
	g := &graphTask{by: b.stream, opts: o, name: o.name, site: site, fn: fn}
	if g.name == "" {
		g.name = taskName(fn)
	}
	c.drv.tasks.ofGraphs.Store(true)
	return b.hostLaunch(func() {}, site, append(slices.Clip(opts), func(o *hostOptions) { o.graph, o.name = g, g.name }))
}

// graphTask is a task of a graph's node, which each launch runs once.
//
// Which launch a run is of, the driver does not tell. An executable's launches run one after another, so it is the first of those of
// one executable that have not run; with several executables, the first of one of them. So when a run has ended, the first of each
// is struck off: what is left has not run for certain, though it may not be all that has not.
type graphTask struct {
	by   *Stream // the builder's
	opts *hostOptions
	name string
	site uintptr
	fn   func(context.Context) error
	due  map[*execState][]*Task // runs of launches, in the order of those; guarded by tasks.mu
}

// newRun is a run of g by a launch on lane k.
func (g *graphTask) newRun(k laneKey) *Task {
	return &Task{
		drv: g.by.ctx.drv, stream: g.by, lane: k, hold: hold{lane: k}, opts: g.opts, name: g.name, site: g.site, fn: g.fn,
		graph: g, state: taskSubmitted,
	}
}

// run runs the task on a goroutine of its own and waits for it, on the thread that the driver calls host functions on.
func (g *graphTask) run() (err error) {
	b := &g.by.ctx.drv.tasks
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t := b.beginInGraph(g)
		defer b.leaveGraph(t)
		t.drv.funcs.Observe()
		t.call(&err)
	}()
	<-ended
	return err
}

// over is the end of a run of g that was expected, whether it has run or not.
func (g *graphTask) over() {
	d := g.by.ctx.drv
	d.tasks.strike(g)
	d.held.endUncounted()
}

// strikeRuns strikes off runs of x that are there still.
func (b *tasks) strikeRuns(x *execState, runs []*Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range runs {
		if i := slices.Index(t.graph.due[x], t); i >= 0 {
			t.graph.setDue(x, slices.Delete(t.graph.due[x], i, i+1))
			b.dropInGraph(t)
		}
	}
}

// strike strikes off the first run of each executable.
func (b *tasks) strike(g *graphTask) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for x, list := range g.due {
		t := list[0]
		list[0] = nil
		g.setDue(x, list[1:])
		b.dropInGraph(t)
	}
}

func (g *graphTask) setDue(x *execState, list []*Task) {
	if len(list) == 0 {
		delete(g.due, x)
	} else {
		g.due[x] = list
	}
}

// addInGraph notes a run of a graph's task. mu is held.
func (b *tasks) addInGraph(t *Task) {
	if b.inGraphs == nil {
		b.inGraphs = map[*Task]struct{}{}
	}
	b.inGraphs[t] = struct{}{}
	b.active.Add(1)
}

// dropInGraph is the end of what addInGraph noted. mu is held.
func (b *tasks) dropInGraph(t *Task) {
	t.state = taskEnded
	b.unlink(t)
	delete(b.inGraphs, t)
	b.active.Add(-1)
}

// beginInGraph notes that a task of a graph runs on the calling goroutine, and says which run it is taken for.
func (b *tasks) beginInGraph(g *graphTask) *Task {
	id := native.Goroutine()
	b.mu.Lock()
	defer b.mu.Unlock()
	t := g.next()
	if t == nil {
		t = g.newRun(laneKey{ctx: g.by.ctx})
		b.addInGraph(t)
	}
	b.run(t, id)
	return t
}

// next is the run that begins now, or one that cannot begin before that has ended; nil: it is not known. tasks.mu is held.
func (g *graphTask) next() *Task {
	if len(g.due) > 1 && g.opts.mode != Block { // who knows whether they run one at a time
		return nil
	}
	for _, list := range g.due {
		if list[0].state == taskSubmitted {
			return list[0]
		}
	}
	return nil
}

// leaveGraph is the end of what beginInGraph began.
func (b *tasks) leaveGraph(t *Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave(t)
	if t.lane.raw == 0 { // no launch's
		b.dropInGraph(t)
	}
}

// run notes that t runs on goroutine id; leave must follow. mu is held.
func (b *tasks) run(t *Task, id uintptr) {
	t.state, t.goroutine, t.began = taskRuns, id, time.Now()
	if b.byGoroutine == nil {
		b.byGoroutine = map[uintptr]*Task{}
	}
	b.byGoroutine[id] = t
	b.running.Add(1)
}
