package cudatest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// taskThreadCases: the per-thread stream, which only its own thread can queue on, beside tasks that wait in the library.
var taskThreadCases = []Case{
	{ID: "TK-07", Name: "the per-thread stream waits for a waiting task", Run: threadStreamWaits},
	{ID: "TK-07", Name: "a waiting task for the per-thread stream", Run: waitForThreadStream},
	{ID: "TK-07", Name: "a task stops one thread's per-thread stream", Run: threadStreamStopped},
	{ID: "TK-01", Name: "tasks in a row on the per-thread stream", Run: threadStreamTasks},
	{ID: "TK-03", Name: "through the per-thread stream", Run: taskThroughThreadStream},
}

// threadStreamWaits: what is queued on the per-thread stream after a wait for what is behind a waiting task comes behind that too.
func threadStreamWaits(t *T) {
	for _, by := range []string{"WaitStream", "WaitEvent", "WaitEvent by another stream"} {
		t.OpenDriver(cuda.MaxHeldStreams(1))
		a, b, c, e, f := t.Stream(), t.Stream(), t.Stream(), t.Event(), t.Event()
		g := t.TaskGate(a)
		<-g.Entered
		var o Order
		t.Task(b, func(context.Context) error {
			time.Sleep(5 * time.Millisecond)
			o.Add(1)()
			return nil
		})
		t.OK(b.Record(e))
		time.AfterFunc(5*time.Millisecond, g.Open)
		t.OK(t.Device(0).WithThreadStream(func(mine *cuda.Stream) error {
			var err error
			switch by {
			case "WaitStream":
				err = mine.WaitStream(b)
			case "WaitEvent":
				err = mine.WaitEvent(e)
			default:
				err = errors.Join(c.WaitEvent(e), c.Record(f), mine.WaitEvent(f))
			}
			return errors.Join(err, cuda.HostLaunch(mine, o.Add(2)), mine.Sync())
		}))
		o.Want(t, 1, 2)
	}
}

// waitForThreadStream: a stream behind a waiting task waits for the per-thread stream, as that was at the call.
func waitForThreadStream(t *T) {
	t.OpenDriver(cuda.MaxHeldStreams(1))
	a, b := t.Stream(), t.Stream()
	g := t.TaskGate(a)
	<-g.Entered
	var o Order
	t.Task(b, func(context.Context) error { o.Add(1)(); return nil })
	t.OK(t.Device(0).WithThreadStream(func(mine *cuda.Stream) error {
		err := cuda.HostLaunch(mine, func() {
			time.Sleep(5 * time.Millisecond)
			o.Add(0)()
		})
		return errors.Join(err, b.WaitStream(mine), cuda.HostLaunch(b, o.Add(2)), mine.Sync())
	}))
	o.Want(t, 0)
	g.Open()
	t.Sync(b)
	o.Want(t, 0, 1, 2)
}

// taskThroughThreadStream: a task may not wait, on its thread's stream, for what cannot be queued before it has ended.
func taskThroughThreadStream(t *T) {
	t.OpenDriver(cuda.MaxHeldStreams(1))
	dev, a, b, e, own, next := t.Device(0), t.Stream(), t.Stream(), t.Event(), t.Event(), t.Event()
	start := make(chan struct{})
	var errs []error
	holder := t.Task(a, func(context.Context) error {
		<-start
		return dev.WithThreadStream(func(mine *cuda.Stream) error {
			errs = append(errs, mine.WaitStream(b), mine.WaitEvent(e), mine.WaitEvent(own), mine.WaitEvent(next))
			return nil
		})
	}, cuda.Name("holder"), cuda.StopOnError())
	t.OK(a.Record(own)) // which waits in the library until the task has ended
	t.Task(a, func(context.Context) error { return nil }, cuda.Name("next"))
	t.OK(a.Record(next))
	t.Task(b, func(context.Context) error { return nil }, cuda.Name("waits"))
	t.OK(b.Record(e))
	close(start)
	t.Ends(holder)
	t.Sync(b)
	for _, err := range errs {
		t.Is(err, cuda.ErrDeadlock)
	}
}

// threadStreamStopped: the per-thread streams of others go on, and so does the next of the same thread.
func threadStreamStopped(t *T) {
	dev, mine := t.Device(0), errors.New("mine")
	t.OK(dev.WithThreadStream(func(s *cuda.Stream) error {
		task, err := cuda.Go(s, func(context.Context) error { return mine }, cuda.StopOnError())
		if err != nil {
			return err
		}
		if err := task.Wait(t.Context()); err != mine {
			t.Errorf("the task has %v", err)
		}
		t.Eventually("the stream is stopped", func() bool { _, err := s.Query(); return errors.Is(err, cuda.ErrTaskFailed) })
		return nil
	}))
	runs := func() error {
		return dev.WithThreadStream(func(s *cuda.Stream) error {
			ran := false
			told := make(chan error, 1)
			err := cuda.HostLaunch(s, func() { ran = true }, cuda.OnDone(func(err error) { told <- err }))
			err = errors.Join(err, s.Sync(), Receive(t, "OnDone", told))
			if !ran {
				t.Error("a function of another per-thread stream did not run")
			}
			return err
		})
	}
	t.OK(runs())
	other := make(chan error)
	go func() { other <- runs() }()
	t.OK(<-other)
}

// threadStreamTasks: each is submitted by the thread whose stream it is, also if the one before ends meanwhile.
func threadStreamTasks(t *T) {
	const rounds, each = 40, 200
	var early atomic.Int32
	for range rounds {
		t.OK(t.Device(0).WithThreadStream(func(s *cuda.Stream) error {
			var done atomic.Int32
			for i := range int32(each) {
				t.Task(s, func(context.Context) error { done.Add(1); return nil })
				if i%4 < 3 {
					continue
				}
				t.Host(s, func() {
					if done.Load() <= i {
						early.Add(1)
					}
				})
			}
			return s.Sync()
		}))
	}
	if n := early.Load(); n > 0 {
		t.Errorf("%d functions ran before the tasks that they are behind", n)
	}
}
