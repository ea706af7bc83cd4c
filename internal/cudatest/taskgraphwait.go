package cudatest

import (
	"context"
	"errors"
	"time"

	"github.com/hostlaunch/cuda"
)

// taskGraphWaitCases: what tasks of graphs may wait for, and what is put off for them.
var taskGraphWaitCases = []Case{
	{ID: "TK-03", Name: "a graph's task and the stream it was launched on", Run: graphTaskOwnStream},
	{ID: "TK-03", Name: "a graph's task on every stream", Run: graphTaskEveryStream},
	{ID: "TK-03", Name: "a graph's task and one that cannot begin", Run: graphTaskBeforeTask},
	{ID: "TK-03", Name: "a graph's task, what is no deadlock", Run: graphTaskNoDeadlock},
	{ID: "TK-03", Name: "tasks of two executables", Run: graphTasksOfTwo},
	{ID: "TK-03", Name: "a graph's task that waits for who waits for it", Run: graphTaskInRing},
	{ID: "TK-03", Name: "freeing before a graph's task", Run: freeBeforeGraphTask},
	{ID: "TK-06", Name: "options stay the caller's", Run: graphTaskOptions},
}

// graphTaskOwnStream: at each launch it is that launch's stream, and what is behind it, that the task cannot wait for.
func graphTaskOwnStream(t *T) {
	streams, behind, e, f := [2]*cuda.Stream{t.Stream(), t.Stream()}, t.Stream(), t.Event(), t.Event()
	ready, turn := make(chan struct{}), 0
	errs := map[string]error{}
	var free error
	x := t.captureExec(func(b *cuda.GraphBuilder) {
		t.OK(b.Task(func(ctx context.Context) error {
			<-ready
			s := streams[turn%2]
			errs["Stream.Sync"], errs["Stream.Wait"] = s.Sync(), s.Wait(ctx)
			errs["Event.Sync"], errs["Event.Wait behind it"] = e.Sync(), f.Wait(ctx)
			errs["Stream.Sync behind it"] = behind.Sync()
			free = streams[1-turn%2].Sync()
			return nil
		}, cuda.Name("inner")))
	})
	for ; turn < 4; turn++ {
		s := streams[turn%2]
		t.OK(x.Launch(s))
		t.OK(s.Record(e))
		t.OK(behind.WaitEvent(e))
		t.OK(behind.Record(f))
		ready <- struct{}{}
		t.Sync(behind)
		for name, err := range errs {
			t.Log(name, err)
			t.Is(err, cuda.ErrDeadlock)
			t.Contains(err, "inner", "taskgraphwait.go:")
		}
		t.OK(free)
	}
}

func graphTaskEveryStream(t *T) {
	dev, made := t.Device(0), t.Stream()
	borrowed, err := dev.StreamOf(made)
	t.OK(err)
	defer borrowed.Close()
	var on *cuda.Stream
	var got error
	x := t.captureExec(func(b *cuda.GraphBuilder) {
		t.OK(b.Task(func(context.Context) error { got = on.Sync(); return nil }))
	})
	for _, on = range []*cuda.Stream{made, borrowed, dev.DefaultStream(), t.Stream(cuda.Blocking())} {
		got = nil
		t.OK(x.Launch(on))
		t.Sync(on)
		t.Is(got, cuda.ErrDeadlock)
	}
	on = dev.DefaultStream() // which a blocking stream's work is before
	blocking := t.Stream(cuda.Blocking())
	start := t.TaskGate(blocking)
	t.OK(x.Launch(blocking))
	t.OK(on.Memset(t.Buffer(4), 1))
	start.Open()
	t.Sync(blocking)
	t.Is(got, cuda.ErrDeadlock)
	t.OK(dev.WithThreadStream(func(s *cuda.Stream) error { // another goroutine's is another stream
		return errors.Join(x.Launch(s), s.Sync())
	}))
}

// graphTaskBeforeTask: a task of Go that has not begun cannot while the graph's task runs.
func graphTaskBeforeTask(t *T) {
	s, other, third := t.Stream(), t.Stream(), t.Stream()
	var waiting, syncing, begun error
	ran := false
	g := t.newGate()
	before := t.Task(third, g.task) // which begins before
	<-g.Entered
	x := t.captureExec(func(b *cuda.GraphBuilder) {
		t.OK(b.Task(func(ctx context.Context) error {
			task, err := cuda.Go(other, func(context.Context) error { ran = true; return nil }, cuda.Name("late"))
			if err != nil {
				return err
			}
			waiting, syncing = task.Wait(ctx), other.Sync()
			g.Open()
			begun = errors.Join(before.Wait(ctx), third.Sync())
			return nil
		}, cuda.Name("early")))
	})
	t.OK(x.Launch(s))
	t.Sync(s)
	t.Sync(other)
	t.Is(waiting, cuda.ErrDeadlock)
	t.Is(syncing, cuda.ErrDeadlock)
	t.Contains(waiting, "late", "early", "cannot begin")
	t.OK(begun)
	if !ran {
		t.Error("the task that could not be waited for did not run")
	}
}

func graphTaskNoDeadlock(t *T) {
	s, other, k, e := t.Stream(), t.Stream(), t.Kernel("nothing"), t.Event()
	inner := make(chan error, 1)
	x := t.captureExec(func(b *cuda.GraphBuilder) {
		t.OK(b.Launch(k, one))
		t.OK(b.Task(func(ctx context.Context) error {
			inner <- errors.Join(e.Sync(), other.WaitEvent(e), other.Launch(k, one), other.Wait(ctx))
			return nil
		}))
	})
	t.OK(s.Record(e)) // before the launch
	outside := make(chan error, 1)
	for range 20 {
		t.OK(x.Launch(s))
		go func() { outside <- s.Sync() }()
		t.OK(Receive(t, "the task", inner))
		t.OK(Receive(t, "Sync", outside))
	}
}

// graphTasksOfTwo: while the first executable's task runs, the other's cannot; and when it has run, its stream may be waited for.
func graphTasksOfTwo(t *T) {
	a, b := t.Stream(), t.Stream()
	entered, ready := make(chan struct{}, 2), make(chan struct{})
	turn := 0
	var first, second error
	g := t.Capture(func(b2 *cuda.GraphBuilder) error {
		return b2.Task(func(context.Context) error {
			entered <- struct{}{}
			<-ready
			if turn++; turn == 1 {
				first = errors.Join(a.Sync(), nil)
				if err := b.Sync(); !errors.Is(err, cuda.ErrDeadlock) {
					t.Errorf("the stream of a launch whose task cannot begin: %v", err)
				}
			} else {
				second = a.Sync()
			}
			return nil
		})
	})
	x, y := t.Exec(g), t.Exec(g)
	for range 5 {
		turn = 0
		t.OK(x.Launch(a))
		<-entered
		t.OK(y.Launch(b))
		ready <- struct{}{}
		<-entered
		ready <- struct{}{}
		t.Sync(a)
		t.Sync(b)
		t.Is(first, cuda.ErrDeadlock)
		t.OK(second)
	}
}

// graphTaskInRing: the ring closes in a task of Go.
func graphTaskInRing(t *T) {
	s, other := t.Stream(), t.Stream()
	started := make(chan struct{})
	waits := t.Task(other, func(ctx context.Context) error {
		<-started
		return s.Wait(ctx)
	}, cuda.Name("outer"))
	told := make(chan error, 1)
	x := t.captureExec(func(b *cuda.GraphBuilder) {
		t.OK(b.Task(func(ctx context.Context) error {
			close(started)
			time.Sleep(5 * time.Millisecond)
			return waits.Wait(ctx)
		}, cuda.Name("inner"), cuda.OnDone(func(err error) { told <- err })))
	})
	t.OK(x.Launch(s))
	err := Receive(t, "the graph's task", told)
	Receive(t, "the task", waits.Done())
	if err == nil {
		err = waits.Err()
	}
	t.Is(err, cuda.ErrDeadlock)
	t.Contains(err, "inner", "outer")
	t.Sync(s)
}

// freeBeforeGraphTask: what would make the driver wait is put off from the launch on.
func freeBeforeGraphTask(t *T) {
	s, dev := t.Stream(), t.Device(0)
	buf, err := dev.Alloc(1 << 20)
	t.OK(err)
	x := t.captureExec(func(b *cuda.GraphBuilder) {
		t.OK(b.Task(func(context.Context) error { return nil }))
	})
	g := t.Gate(s) // a host function: no stream is held
	t.OK(x.Launch(s))
	before := t.Driver.Stats().Buffers
	started := time.Now()
	t.OK(buf.Close())
	if took := time.Since(started); took > time.Second || t.Driver.Stats().Buffers != before {
		t.Errorf("Close took %v; %d buffers, %d before", took, t.Driver.Stats().Buffers, before)
	}
	g.Open()
	t.Sync(s)
	t.Eventually("the buffer is freed", func() bool { return t.Driver.Stats().Buffers == before-1 })
}

func graphTaskOptions(t *T) {
	opts := make([]cuda.HostOption, 1, 2)
	opts[0] = cuda.Name("mine")
	s := t.Stream()
	x := t.captureExec(func(b *cuda.GraphBuilder) {
		t.OK(b.Task(func(context.Context) error { return nil }, opts...))
	})
	t.OK(x.Launch(s))
	t.Sync(s)
	if opts[:2][1] != nil {
		t.Error("the caller's options were written to")
	}
}
