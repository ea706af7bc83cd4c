package cudatest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hostlaunch/cuda"
)

// taskHoldCases: what tasks may do while they hold their streams, and that none of it hangs.
var taskHoldCases = []Case{
	{ID: "TK-03", Name: "other streams", Run: taskUsesOthers},
	{ID: "TK-03", Name: "its own stream", Run: taskOwnStream},
	{ID: "TK-03", Name: "queues on its own stream", Run: taskQueuesOnOwn},
	{ID: "TK-03", Name: "two that wait for each other", Run: tasksCrossed},
	{ID: "TK-03", Name: "a ring of tasks", Run: tasksInRing},
	{ID: "TK-03", Name: "through the legacy stream", Run: taskThroughLegacy},
	{ID: "TK-03", Name: "what is no deadlock", Run: taskNoDeadlock},
	{ID: "TK-03", Name: "freeing while a stream is held", Run: freeWhileHeld},
	{ID: "TK-03", Name: "streams made beforehand", Run: streamsWhileHeld},
	{ID: "TK-03", Name: "streams made beforehand run out", Run: streamsRunOut},
	{ID: "TK-03", Name: "what cannot be had in a task", Run: refusedInTask},
	{ID: "TK-03", Name: "loading waits outside of tasks", Run: loadWaits},
}

// taskQueuesOnOwn: what returns at once a task may queue on its own stream, copies of small sources too, which the driver might wait with.
func taskQueuesOnOwn(t *T) {
	s, b, e := t.Stream(), t.Buffer(300), t.Event()
	src, dst, copied, ran := []byte(strings.Repeat("abc", 100)), make([]byte, 300), make([]byte, 300), false
	part, err := b.Slice(0, 200)
	t.OK(err)
	t.Ends(t.Task(s, func(context.Context) error {
		return errors.Join(
			cuda.CopyToDevice(s, b, src),
			s.Record(e),
			s.WaitEvent(e),
			s.Memset(part, 'x'),
			cuda.CopyRowsToDevice(s, part, src[:100], cuda.Rows{Width: 100, Height: 1, DstPitch: 200}),
			cuda.CopyToHost(s, dst, b),
			cuda.HostCopy(s, cuda.HostSlice(copied), cuda.HostSlice(dst)),
			cuda.HostLaunch(s, func() { ran = true }),
		)
	}))
	t.Sync(s)
	if want := string(src[:100]) + strings.Repeat("x", 100) + string(src[200:]); string(copied) != want || !ran {
		t.Errorf("%q, host function %v", copied, ran)
	}
}

func taskUsesOthers(t *T) {
	s, other, third, k, log := t.Stream(), t.Stream(), t.Stream(), t.Kernel("append"), t.DeviceLog(4)
	e, b := t.Event(), t.Buffer(64)
	task := t.Task(s, func(ctx context.Context) error {
		err := errors.Join(other.Launch(k, one, log.mem, uint64(1)), other.Record(e), e.Sync(), e.Wait(ctx), other.Sync(), other.Wait(ctx))
		if err != nil {
			return err
		}
		inner, err := cuda.Go(third, func(context.Context) error { return third.Launch(k, one, log.mem, uint64(2)) })
		if err != nil {
			return err
		}
		data := make([]byte, 64)
		return errors.Join(inner.Wait(ctx), third.Sync(), s.Launch(k, one, log.mem, uint64(3)), // behind itself
			other.Memset(b, 7), cuda.CopyToHost(other, data, b), other.Sync(),
			func() error {
				if done, err := s.Query(); done || err != nil {
					return fmt.Errorf("own stream: Query: %v, %v", done, err)
				}
				return nil
			}())
	})
	t.Ends(task)
	t.Sync(s)
	log.Want(1, 2, 3)
}

func taskOwnStream(t *T) {
	s, other, e, f := t.Stream(), t.Stream(), t.Event(), t.Event()
	errs := map[string]error{}
	entered := make(chan struct{})
	ready := make(chan struct{})
	data := make([]byte, 64)
	b := t.Buffer(64)
	task := t.Task(s, func(ctx context.Context) error {
		close(entered)
		<-ready
		started := time.Now()
		errs["Stream.Sync"] = s.Sync()
		errs["Stream.Wait"] = s.Wait(ctx)
		errs["Event.Sync"] = e.Sync()
		errs["Event.Wait"] = e.Wait(ctx)
		errs["Event.Wait behind it"] = f.Wait(ctx)
		errs["Stream.Sync behind it"] = other.Sync()
		errs["CopyToHost, Direct"] = cuda.CopyToHost(s, data, b, cuda.Direct()) // of which the driver returns when it is done
		if took := time.Since(started); took > time.Second {
			t.Errorf("the errors took %v", took)
		}
		return nil
	}, cuda.Name("self"))
	<-entered
	t.OK(s.Record(e))
	t.OK(other.WaitEvent(e))
	t.OK(other.Record(f))
	close(ready)
	t.Ends(task)
	for name, err := range errs {
		t.Log(name, err)
		t.Is(err, cuda.ErrDeadlock)
		t.Contains(err, "self", "task.go:")
	}
	t.Sync(other)
	t.OK(task.Wait(t.Context()))
}

// drawn wants the error of a deadlock to have its ring as a picture: each task of it, and an arrow from it to the next.
func (t *T) drawn(err error) {
	var d *cuda.DeadlockError
	if !errors.As(err, &d) || len(d.Waits) == 0 {
		t.Errorf("no DeadlockError with waits in %v", err)
		return
	}
	dot := d.DOT()
	for i, w := range d.Waits {
		if i > 0 && !strings.Contains(dot, fmt.Sprintf("\t%q -> %q [label=%q]\n", d.Waits[i-1].Task, w.Task, d.Waits[i-1].How)) {
			t.Errorf("no arrow from %s to %s in\n%s", d.Waits[i-1].Task, w.Task, dot)
		}
	}
	if strings.Count(dot, "->") != len(d.Waits) || !strings.Contains(err.Error(), d.Waits[0].String()) {
		t.Errorf("%d waits, and %v, in\n%s", len(d.Waits), err, dot)
	}
}

// deadlocked runs tasks that wait for each other, and wants at least one to be told, and all to end.
func (t *T) deadlocked(tasks []*cuda.Task, names ...string) {
	t.Helper()
	told := 0
	for _, task := range tasks {
		Receive(t, "the end of a task", task.Done())
		if err := task.Err(); err != nil {
			told++
			t.Is(err, cuda.ErrDeadlock)
			t.drawn(err)
			t.Log(err)
			t.Contains(err, names...)
		}
	}
	if told != 1 {
		t.Errorf("%d tasks were told of the deadlock, want 1", told)
	}
}

func tasksCrossed(t *T) {
	a, b := t.Stream(), t.Stream()
	both := new(sync.WaitGroup)
	both.Add(2)
	wait := func(s *cuda.Stream) func(context.Context) error {
		return func(context.Context) error {
			both.Done()
			both.Wait()
			return s.Sync()
		}
	}
	t.deadlocked([]*cuda.Task{t.Task(a, wait(b), cuda.Name("left")), t.Task(b, wait(a), cuda.Name("right"))}, "left", "right", "task.go:")
}

// tasksInRing: each waits for the next one's stream, in its own way; what closes the ring is an event.
func tasksInRing(t *T) {
	const n = 5
	var streams [n]*cuda.Stream
	var events [n]*cuda.Event
	for i := range n {
		streams[i], events[i] = t.Stream(), t.Event()
	}
	start := make(chan struct{})
	var tasks []*cuda.Task
	for i, s := range streams {
		next := (i + 1) % n
		tasks = append(tasks, t.Task(s, func(ctx context.Context) error {
			<-start
			switch i % 3 {
			case 0:
				return streams[next].Wait(ctx)
			case 1:
				return events[next].Sync()
			}
			if err, of := tasks[next].Wait(ctx), new(cuda.Error); errors.As(err, &of) && of.Op == "Task.Wait" {
				return err
			}
			return nil // the error is the other's
		}, cuda.Name(fmt.Sprint("ring", i))))
		t.OK(s.Record(events[i]))
	}
	close(start)
	t.deadlocked(tasks, "ring0", "ring1", "ring2", "ring3", "ring4")
}

func taskThroughLegacy(t *T) {
	dev := t.Device(0)
	blocking, legacy, b := t.Stream(cuda.Blocking()), dev.DefaultStream(), t.Buffer(8)
	another, free := t.Stream(cuda.Blocking()), t.Stream()
	entered, ready := make(chan struct{}), make(chan struct{})
	errs := map[string]error{}
	task := t.Task(blocking, func(context.Context) error {
		errs["none"] = errors.Join(another.Sync(), free.Sync())
		close(entered)
		<-ready
		errs["legacy"] = legacy.Sync()
		errs["behind legacy"] = another.Sync()
		_, errs["ReadAt"] = b.ReadAt(make([]byte, 8), 0)
		errs["none"] = errors.Join(errs["none"], free.Sync())
		return nil
	})
	<-entered
	t.OK(legacy.Memset(b, 1))
	t.OK(another.Memset(b, 2))
	close(ready)
	t.Ends(task)
	t.OK(errs["none"])
	for _, name := range []string{"legacy", "behind legacy", "ReadAt"} {
		t.Log(name)
		t.Is(errs[name], cuda.ErrDeadlock)
	}
}

func taskNoDeadlock(t *T) {
	a, b, e := t.Stream(), t.Stream(), t.Event()
	t.OK(a.Record(e)) // before the task
	ga := make(chan struct{})
	first := t.Task(b, func(context.Context) error { <-ga; return nil })
	waits := t.Task(a, func(ctx context.Context) error {
		return errors.Join(e.Sync(), b.WaitEvent(e), first.Wait(ctx), b.Sync())
	})
	time.Sleep(2 * time.Millisecond)
	outside := make(chan error, 2)
	go func() { outside <- a.Sync() }() // who is no task may wait for anything
	go func() { outside <- waits.Wait(context.Background()) }()
	close(ga)
	t.OK(Receive(t, "Sync", outside))
	t.OK(Receive(t, "Wait", outside))
	t.OK(a.Record(e)) // behind all
	t.Ends(t.Task(b, func(context.Context) error { return e.Sync() }))
}

func freeWhileHeld(t *T) {
	s, dev, d := t.Stream(), t.Device(0), t.Driver
	buf, err := dev.Alloc(1 << 20)
	t.OK(err)
	pinned, err := dev.AllocPinned(1 << 20)
	t.OK(err)
	registered, err := cuda.Pin(dev.Context, make([]byte, 1<<16))
	t.OK(err)
	pool, err := dev.NewPinnedPool(1 << 16)
	t.OK(err)
	mod, err := dev.LoadModule(t.cfg.PTX)
	t.OK(err)
	other, err := dev.NewStream()
	t.OK(err)
	e, err := dev.NewEvent()
	t.OK(err)
	t.OK(cuda.CopyToDevice(other, buf, make([]byte, 1<<20), cuda.Staging(pool)))
	t.Sync(other)
	before := d.Stats()
	g := t.TaskGate(s)
	<-g.Entered
	started := time.Now()
	t.OK(errors.Join(buf.Close(), pinned.Close(), registered.Close(), pool.Close(), mod.Close(), other.Close(), e.Close()))
	if took := time.Since(started); took > time.Second {
		t.Errorf("closing took %v", took)
	}
	t.Is(other.Sync(), cuda.ErrClosed)
	if pinned.Bytes() != nil {
		t.Error("the memory of a closed PinnedBuffer can be had")
	}
	if now := d.Stats(); now.Buffers != before.Buffers || now.PinnedBuffers != before.PinnedBuffers || now.PinnedPools != before.PinnedPools ||
		now.Modules != before.Modules {
		t.Errorf("freed while a stream is held: %+v, before %+v", now, before)
	}
	g.Open()
	t.Sync(s)
	t.Eventually("what was closed is freed", func() bool {
		now := d.Stats()
		return now.Buffers == before.Buffers-1 && now.PinnedBuffers == before.PinnedBuffers-2 && now.PinnedPools == before.PinnedPools-1 &&
			now.Modules == before.Modules-1 && now.Streams == before.Streams-1
	})
	inside := t.Task(s, func(context.Context) error {
		b, errB := dev.Alloc(64)
		p, errP := dev.NewPinnedPool(64)
		return errors.Join(errB, errP, b.Close(), p.Close())
	})
	t.Ends(inside)
}

func streamsWhileHeld(t *T) {
	s, dev, k := t.Stream(), t.Device(0), t.Kernel("nothing")
	use := func(ctx context.Context) error {
		seen := map[uint64]bool{}
		for range 50 { // more than were made beforehand: they come back
			own, err := dev.NewStream()
			if err != nil {
				return err
			}
			id, err := own.ID()
			seen[id] = true
			if err := errors.Join(err, own.Launch(k, one), own.Sync(), own.Close()); err != nil {
				return err
			}
		}
		if len(seen) > 40 {
			return fmt.Errorf("%d streams were made", len(seen))
		}
		return nil
	}
	t.Ends(t.Task(s, use))
	g := t.TaskGate(s)
	<-g.Entered
	t.OK(use(t.Context()))
	altered, err := dev.NewStream()
	t.OK(err)
	t.OK(altered.SetPriority(-1))
	t.OK(altered.Close())
	for range 3 {
		own, err := dev.NewStream()
		t.OK(err)
		if p, err := own.Priority(); p != 0 || err != nil {
			t.Errorf("a stream of priority %d, %v, was given out", p, err)
		}
		t.OK(own.Close())
	}
	g.Open()
}

func streamsRunOut(t *T) {
	t.OpenDriver(cuda.TaskStreams(4), cuda.MaxHeldStreams(2))
	s, dev := t.Stream(), t.Device(0)
	task := t.Task(s, func(context.Context) error {
		for i := range 4 {
			own, err := dev.NewStream()
			if err != nil {
				return fmt.Errorf("stream %d: %w", i, err)
			}
			defer own.Close()
		}
		_, err := dev.NewStream()
		return err
	})
	<-task.Done()
	t.Is(task.Err(), cuda.ErrDeadlock)
	t.Contains(task.Err(), "TaskStreams")          // which is how to have more
	t.Ends(t.Task(s, func(context.Context) error { // those are back
		own, err := dev.NewStream()
		return errors.Join(err, own.Close())
	}))
	g := t.TaskGate(s)
	<-g.Entered
	var outside []*cuda.Stream
	for range 2 { // two are kept for tasks
		own, err := dev.NewStream()
		t.OK(err)
		outside = append(outside, own)
	}
	made := make(chan error, 1)
	go func() {
		own, err := dev.NewStream()
		made <- errors.Join(err, own.Close())
	}()
	time.Sleep(5 * time.Millisecond)
	if len(made) > 0 {
		t.Error("a stream was made while one is held")
	}
	g.Open()
	t.OK(Receive(t, "NewStream", made))
	for _, own := range outside {
		t.OK(own.Close())
	}
}

func refusedInTask(t *T) {
	s, dev := t.Stream(), t.Device(0)
	own, err := dev.NewContext()
	t.OK(err)
	errs := map[string]error{}
	t.Ends(t.Task(s, func(ctx context.Context) error {
		errs["LoadModule"] = second(dev.LoadModule(t.cfg.PTX))
		errs["NewStream"] = second(dev.NewStream(cuda.Blocking()))
		errs["Device.NewContext"] = second(dev.NewContext())
		errs["Context.Close"] = own.Close()
		errs["Driver.Shutdown"] = t.Driver.Shutdown(ctx)
		return nil
	}, cuda.Name("asker")))
	for name, err := range errs {
		t.Is(err, cuda.ErrDeadlock)
		var e *cuda.Error
		if !errors.As(err, &e) || e.Op != name || !strings.Contains(err.Error(), "asker") {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.OK(own.Close())
}

func loadWaits(t *T) {
	s := t.Stream()
	g := t.TaskGate(s)
	<-g.Entered
	loaded := make(chan error, 1)
	go func() {
		m, err := t.Device(0).LoadModule(t.cfg.PTX)
		loaded <- errors.Join(err, m.Close())
	}()
	time.Sleep(10 * time.Millisecond)
	if len(loaded) > 0 {
		t.Error("a module was loaded while a stream is held")
	}
	g.Open()
	t.OK(Receive(t, "LoadModule", loaded))
}
