package cudatest

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// taskCases: goroutines in stream order.
var taskCases = []Case{
	{ID: "TK-01", Name: "between kernels", Run: taskBetweenKernels},
	{ID: "TK-01", Name: "later work waits", Run: taskHoldsStream},
	{ID: "TK-01", Name: "error and panic", Run: taskErrors},
	{ID: "TK-07", Name: "an error stops the stream if wanted", Run: taskStops},
	{ID: "TK-01", Name: "once each, in order", Run: tasksInOrder},
	{ID: "TK-01", Name: "beside host functions", Run: tasksAndFunctions},
	{ID: "TK-01", Name: "refused", Run: tasksRefused},
	{ID: "HL-07", Name: "task awaited inside", Run: taskAwaitedInside},
	{ID: "TK-01", Name: "every stream", Run: taskOnEveryStream},
	{ID: "TK-01", Name: "stream closed behind it", Run: taskOfClosedStream},
	{ID: "TK-02", Name: "eight at a time", Run: eightTasks},
	{ID: "TK-05", Name: "Done and Wait", Run: taskDone},
	{ID: "TK-05", Name: "context reaches the function", Run: taskContext},
	{ID: "LI-01", Name: "Close waits for tasks", Run: closeWaitsForTasks},
	{ID: "LI-01", Name: "Shutdown names a task", Run: shutdownNamesTask},
	{ID: "HL-17", Name: "lost, tasks are told", Child: true, Run: lostTasks},
	{ID: "HL-17", Name: "lost, tasks that wait in the library are told", Child: true, Run: lostWaitingTasks},
}

// Task queues a task.
func (t *T) Task(on *cuda.Stream, fn func(context.Context) error, opts ...cuda.HostOption) *cuda.Task {
	t.Helper()
	task, err := cuda.Go(on, fn, opts...)
	t.OK(err)
	return task
}

// Ends waits for a task and wants no error of it.
func (t *T) Ends(task *cuda.Task) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	t.OK(task.Wait(ctx))
}

// TaskGate holds s by a task.
func (t *T) TaskGate(s *cuda.Stream, opts ...cuda.HostOption) *Gate {
	t.Helper()
	g := t.newGate()
	t.Task(s, g.task, append([]cuda.HostOption{cuda.Name("gate")}, opts...)...)
	return g
}

func taskBetweenKernels(t *T) {
	s, k, log := t.Stream(), t.Kernel("append"), t.Pinned(8*4)
	words := cuda.PinnedSlice[uint64](log)
	clear(words)
	for range 20 {
		words[0] = 0
		t.OK(s.Launch(k, one, log, uint64(1)))
		task := t.Task(s, func(context.Context) error {
			if words[0] != 1 || words[1] != 1 {
				return errors.New("the kernel before has not run")
			}
			words[0], words[2] = 2, 2
			return nil
		})
		t.OK(s.Launch(k, one, log, uint64(3)))
		t.Sync(s)
		t.OK(task.Err())
		if words[0] != 3 || words[1] != 1 || words[2] != 2 || words[3] != 3 {
			t.Fatalf("marks %v, want 1 2 3 behind their count", words)
		}
	}
}

func taskHoldsStream(t *T) {
	s, e, b := t.Stream(), t.Event(), t.Buffer(4)
	out := cuda.PinnedSlice[uint32](t.Pinned(4))
	t.OK(s.Memset32(b, 1))
	g := t.TaskGate(s)
	t.OK(s.Memset32(b, 2))
	t.OK(cuda.CopyToHost(s, out, b))
	t.OK(s.Record(e))
	<-g.Entered
	t.Waits("work behind a task", e)
	if done, err := s.Query(); done || err != nil {
		t.Errorf("Query = %v, %v while the task runs", done, err)
	}
	g.Open()
	t.Completes("work behind the task", e)
	t.Sync(s)
	if out[0] != 2 {
		t.Errorf("copied %d, want 2", out[0])
	}
}

func taskErrors(t *T) {
	s, mine := t.Stream(), errors.New("mine")
	ends := make(chan error, 8)
	after := false
	failing := t.Task(s, func(context.Context) error { return mine }, cuda.OnDone(func(err error) { ends <- err }))
	panicking := t.Task(s, func(context.Context) error { panic("the value") }, cuda.Name("fuse"), cuda.OnDone(func(err error) { ends <- err }))
	leaving := t.Task(s, func(context.Context) error { runtime.Goexit(); return nil })
	fine := t.Task(s, func(context.Context) error { after = true; return nil })
	t.Sync(s)
	t.Ends(fine)
	if err := failing.Err(); err != mine || !after {
		t.Errorf("error %v; the task behind ran: %v", err, after)
	}
	var p *cuda.PanicError
	if err := panicking.Err(); !errors.As(err, &p) || p.Value != "the value" || p.Name != "fuse" ||
		!strings.Contains(p.Site, "task.go:") || !strings.Contains(string(p.Stack), "taskErrors") {
		t.Errorf("a panic gave %v", err)
	}
	if err := leaving.Err(); !errors.Is(err, cuda.ErrGoexit) {
		t.Errorf("runtime.Goexit gave %v", err)
	}
	first, second := Receive(t, "OnDone", ends), Receive(t, "OnDone", ends)
	if first != mine {
		first, second = second, first
	}
	if first != mine || !errors.As(second, &p) || len(ends) > 0 {
		t.Errorf("OnDone got %v and %v", first, second)
	}
	if panicking.Name() != "fuse" || !strings.Contains(failing.Name(), "taskErrors") {
		t.Errorf("names %q, %q", panicking.Name(), failing.Name())
	}
}

func taskStops(t *T) {
	s, other, e, b, mine := t.Stream(), t.Stream(), t.Event(), t.Buffer(4), errors.New("mine")
	t.OK(s.Memset(b, 1))
	t.Sync(s)
	g := t.TaskGate(s)
	ends := make(chan error, 2)
	failing := t.Task(s, func(context.Context) error { return mine }, cuda.StopOnError())
	behind := t.Task(s, func(context.Context) error { t.Error("a task behind ran"); return nil })
	t.OK(s.Memset(b, 9))
	t.OK(s.Record(e))
	t.OK(other.WaitEvent(e))
	t.Host(s, func() { t.Error("a host function behind ran") }, cuda.OnDone(func(err error) { ends <- err }))
	g.Open()
	err := Receive(t, "OnDone", ends)
	var lost *cuda.LostError
	if !errors.As(err, &lost) || !errors.Is(err, cuda.ErrTaskFailed) || !errors.Is(err, mine) {
		t.Errorf("the host function behind got %v", err)
	}
	<-behind.Done()
	if err := behind.Err(); !errors.Is(err, cuda.ErrTaskFailed) || !errors.Is(err, mine) {
		t.Errorf("the task behind got %v", err)
	}
	if failing.Err() != mine {
		t.Errorf("the task has %v", failing.Err())
	}
	t.Is(s.Memset(b, 1), cuda.ErrTaskFailed)
	_, err = cuda.Go(s, func(context.Context) error { return nil })
	t.Is(err, cuda.ErrTaskFailed)
	data := make([]byte, 4)
	t.Sync(other) // the event will not come, so nothing waits for it
	t.OK(cuda.CopyToHost(other, data, b))
	t.Sync(other)
	if data[0] != 1 {
		t.Errorf("work behind the failed task was done: %d", data[0])
	}
	t.Ends(t.Task(other, func(context.Context) error { return nil }, cuda.StopOnError()))
	t.OK(other.Memset(b, 2)) // that one did not fail
	self := t.Task(other, func(context.Context) error { return other.Sync() }, cuda.StopOnError())
	<-self.Done()
	t.Is(self.Err(), cuda.ErrDeadlock)
	t.OK(s.Close())
	fresh := t.Stream() // perhaps with the same handle
	t.Host(fresh, func() {})
	t.Sync(fresh)
	t.OK(fresh.Memset(b, 1))
}

func tasksInOrder(t *T) {
	const streams, each = 4, 50
	var all []*cuda.Stream
	for range streams {
		all = append(all, t.Stream())
	}
	var next [streams]int
	var wrong atomic.Int32
	for i := range each {
		for n, s := range all {
			t.Task(s, func(context.Context) error {
				if next[n] != i {
					wrong.Add(1)
				}
				next[n]++
				return nil
			})
		}
	}
	for _, s := range all {
		t.Sync(s)
	}
	if wrong.Load() > 0 || next != [streams]int{each, each, each, each} {
		t.Errorf("%d tasks out of order; %v ran of %d each", wrong.Load(), next, each)
	}
}

func tasksAndFunctions(t *T) {
	s, other, e := t.Stream(), t.Stream(), t.Event()
	var o Order
	t.Host(s, o.Add(1))
	t.Task(s, func(context.Context) error { time.Sleep(2 * time.Millisecond); o.Add(2)(); return nil })
	t.Host(s, o.Add(3))
	t.Task(s, func(context.Context) error { time.Sleep(2 * time.Millisecond); o.Add(4)(); return nil }, cuda.SyncMode(cuda.Spin))
	t.OK(s.Record(e))
	t.OK(other.WaitEvent(e))
	t.Task(other, func(context.Context) error { o.Add(5)(); return nil })
	t.Host(other, o.Add(6), cuda.SyncMode(cuda.Spin))
	t.Sync(other)
	o.Want(t, 1, 2, 3, 4, 5, 6)
}

func tasksRefused(t *T) {
	s := t.Stream()
	nothing := func(context.Context) error { t.Error("a refused task ran"); return nil }
	for name, err := range map[string]error{
		"nil stream": second(cuda.Go(nil, nothing)),
		"nil fn":     second(cuda.Go(s, nil)),
		"mode":       second(cuda.Go(s, nothing, cuda.SyncMode(7))),
		"HostLaunch": cuda.HostLaunch(s, func() {}, cuda.StopOnError()),
		"context":    cuda.HostLaunch(s, func() {}, cuda.WithContext(t.Context())),
		"callback":   cuda.AddCallback(s, func(error) {}, cuda.StopOnError()),
	} {
		t.Log(name)
		t.Is(err, cuda.ErrInvalidValue)
	}
	gone := t.Stream()
	t.OK(gone.Close())
	t.Is(second(cuda.Go(gone, nothing)), cuda.ErrClosed)
	capturing := t.Stream()
	g, err := cuda.Capture(capturing, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		t.Is(second(cuda.Go(capturing, nothing)), cuda.ErrCapturing)
		return nil
	})
	t.OK(err)
	t.OK(g.Close())
	var inside error
	t.Host(s, func() { inside = second(cuda.Go(s, nothing)) })
	t.Sync(s)
	t.Is(inside, cuda.ErrNotPermitted)
	var none *cuda.Task
	t.Is(none.Wait(t.Context()), cuda.ErrInvalidValue)
}

// taskAwaitedInside: a host function that waits for a task that is queued behind it.
func taskAwaitedInside(t *T) {
	s, behind := t.Stream(), make(chan *cuda.Task, 1)
	var inside error
	t.Host(s, func() { inside = (<-behind).Wait(t.Context()) })
	task, err := cuda.Go(s, func(context.Context) error { return nil })
	t.OK(err)
	behind <- task
	t.Sync(s)
	t.Is(inside, cuda.ErrNotPermitted)
	t.Is(inside, cuda.ErrDeadlock)
}

func second[V any](_ V, err error) error { return err }

func taskOnEveryStream(t *T) {
	dev, made := t.Device(0), t.Stream()
	borrowed, err := dev.StreamOf(made)
	t.OK(err)
	defer borrowed.Close()
	for i, s := range []*cuda.Stream{made, borrowed, dev.DefaultStream(), t.Stream(cuda.Blocking())} {
		ran := false
		t.Task(s, func(context.Context) error { ran = true; return nil })
		t.Sync(s)
		if !ran {
			t.Errorf("stream %d: the task did not run", i)
		}
	}
	t.OK(dev.WithThreadStream(func(s *cuda.Stream) error {
		ran := false
		t.Task(s, func(context.Context) error { ran = true; return nil })
		err := s.Sync()
		if !ran {
			t.Error("per-thread stream: the task did not run")
		}
		return err
	}))
}

func taskOfClosedStream(t *T) {
	s, err := t.Device(0).NewStream()
	t.OK(err)
	g := t.TaskGate(s)
	ran := make(chan struct{})
	task := t.Task(s, func(context.Context) error { close(ran); return nil })
	t.OK(s.Close())
	g.Open()
	Receive(t, "the task of a closed stream", ran)
	t.Ends(task)
}

func eightTasks(t *T) {
	var streams []*cuda.Stream
	for range 8 {
		streams = append(streams, t.Stream())
	}
	best := time.Hour
	for range 3 {
		start := time.Now()
		for _, s := range streams {
			t.Task(s, func(context.Context) error { time.Sleep(20 * time.Millisecond); return nil })
		}
		for _, s := range streams {
			t.Sync(s)
		}
		best = min(best, time.Since(start))
	}
	t.Logf("eight tasks of 20 ms took %v", best)
	if best >= 30*time.Millisecond {
		t.Error("want less than 30 ms")
	}
}

func taskDone(t *T) {
	s := t.Stream()
	g := t.TaskGate(s)
	task := t.Task(s, func(context.Context) error { return errors.New("mine") })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := task.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, cuda.ErrContextEnded) {
		t.Errorf("Wait = %v", err)
	}
	select {
	case <-task.Done():
		t.Error("Done before the task ran")
	default:
	}
	t.OK(task.Err())
	g.Open()
	Receive(t, "Done", task.Done())
	if err := task.Wait(t.Context()); err == nil || err.Error() != "mine" || task.Err() != err {
		t.Errorf("Wait = %v, Err = %v", err, task.Err())
	}
	var none context.Context
	t.Is(task.Wait(none), cuda.ErrInvalidValue)
}

func taskContext(t *T) {
	s := t.Stream()
	ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), t, "value"))
	var inner context.Context
	task := t.Task(s, func(ctx context.Context) error {
		inner = ctx
		<-ctx.Done()
		return context.Cause(ctx)
	}, cuda.WithContext(ctx))
	mine := errors.New("mine")
	time.Sleep(2 * time.Millisecond)
	cancel(mine)
	<-task.Done()
	if task.Err() != mine || inner.Value(t) != "value" {
		t.Errorf("the task got %v and %v", task.Err(), inner.Value(t))
	}
	var plain context.Context
	t.Ends(t.Task(s, func(ctx context.Context) error { plain = ctx; return ctx.Err() }))
	if plain.Err() == nil {
		t.Error("the function's context goes on after it")
	}
}

func closeWaitsForTasks(t *T) {
	d := t.OpenDriver()
	s, other := t.Stream(), t.Stream()
	k := t.Kernel("nothing")
	entered := make(chan struct{})
	var ended atomic.Int32
	use := func(context.Context) error {
		defer ended.Add(1)
		return errors.Join(other.Launch(k, one), other.Sync())
	}
	first := t.Task(s, func(ctx context.Context) error {
		close(entered)
		time.Sleep(20 * time.Millisecond)
		return use(ctx)
	})
	second := t.Task(s, use)
	<-entered
	t.OK(d.Close())
	if ended.Load() != 2 {
		t.Error("Close did not wait for the tasks")
	}
	t.OK(first.Err())
	t.OK(second.Err())
}

func shutdownNamesTask(t *T) {
	d := t.OpenDriver()
	s := t.Stream()
	g := t.newGate()
	var inside, closing error
	t.Task(s, func(ctx context.Context) error {
		closing, inside = d.Close(), d.Shutdown(ctx)
		return g.task(ctx)
	}, cuda.Name("slow"))
	<-g.Entered
	t.Stuck(d, "slow", "task.go:")
	g.Open()
	t.OK(d.Close())
	t.Is(inside, cuda.ErrDeadlock)
	t.Is(closing, cuda.ErrDeadlock)
}

func lostTasks(t *T) {
	lost(t)
	s, other := t.Stream(), t.Stream()
	t.FaultLater(s)
	fault := time.Now().Add(faultDelay)
	g := t.newGate()
	running := t.Task(other, g.task)
	never := func(context.Context) error { t.Error("a task of a lost device ran"); return nil }
	tasks := []*cuda.Task{t.Task(s, never), t.Task(other, never), t.Task(s, never, cuda.SyncMode(cuda.Spin))}
	for range 12 { // some of which wait in the library
		tasks = append(tasks, t.Task(t.Stream(), g.task))
	}
	for i, task := range append(tasks[:3:3], tasks[len(tasks)-1]) { // the last waits in the library
		Receive(t, "the end of a task", task.Done())
		var l *cuda.LostError
		if err := task.Err(); !errors.As(err, &l) || !errors.Is(err, cuda.ErrDeviceLost) || !strings.Contains(l.Site, "task.go:") {
			t.Errorf("task %d ended with %v", i, err)
		}
	}
	if took := time.Since(fault); took > time.Second {
		t.Errorf("the tasks were told after %v, want within a second", took)
	}
	g.Open()
	t.Ends(running)
	for _, task := range tasks {
		Receive(t, "the end of every task", task.Done())
	}
	t.OK(t.Driver.Close())
}

// lostWaitingTasks: nobody calls, and the streams that are held stay so; what waits for room is told all the same.
func lostWaitingTasks(t *T) {
	t.OpenDriver(cuda.MaxHeldStreams(1), cuda.OnLost(func(*cuda.LostError) {}))
	s, held, other := t.Stream(), t.Stream(), t.Stream()
	g := t.newGate()
	running := t.Task(held, g.task)
	<-g.Entered
	waits := t.Task(other, func(context.Context) error { t.Error("a task of a lost device ran"); return nil })
	ends := make(chan error, 1)
	t.Host(other, func() { t.Error("a function of a lost device ran") }, cuda.OnDone(func(err error) { ends <- err }))
	fault := time.Now().Add(faultDelay)
	t.FaultLater(s)
	Receive(t, "the end of the task", waits.Done())
	t.Is(errors.Unwrap(waits.Err()), cuda.ErrDeviceLost)
	if err := Receive(t, "OnDone", ends); !errors.Is(err, cuda.ErrDeviceLost) {
		t.Errorf("OnDone got %v", err)
	}
	if took := time.Since(fault); took > time.Second {
		t.Errorf("told after %v, want within a second", took)
	}
	g.Open()
	t.Ends(running)
	t.OK(t.Driver.Close())
}
