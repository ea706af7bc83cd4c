package cudatest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// taskHoldCases: what tasks may do while they hold their streams, and that none of it hangs.
var taskHoldCases = []Case{
	{ID: "TK-03", Name: "other streams", Run: taskUsesOthers},
	{ID: "TK-03", Name: "its own stream", Run: taskOwnStream},
	{ID: "TK-03", Name: "two that wait for each other", Run: tasksCrossed},
	{ID: "TK-03", Name: "a ring of tasks", Run: tasksInRing},
	{ID: "TK-03", Name: "through the legacy stream", Run: taskThroughLegacy},
	{ID: "TK-03", Name: "what is no deadlock", Run: taskNoDeadlock},
	{ID: "TK-03", Name: "freeing while a stream is held", Run: freeWhileHeld},
	{ID: "TK-03", Name: "streams made beforehand", Run: streamsWhileHeld},
	{ID: "TK-03", Name: "streams made beforehand run out", Run: streamsRunOut},
	{ID: "TK-03", Name: "what cannot be had in a task", Run: refusedInTask},
	{ID: "TK-03", Name: "loading waits outside of tasks", Run: loadWaits},
	{ID: "TK-04", Name: "64 streams", Run: sixtyFourTasks},
	{ID: "TK-04", Name: "64 streams, ten tasks each", Run: manyTasks},
	{ID: "TK-04", Name: "no more than the limit, in order", Run: heldLimit},
	{ID: "TK-07", Name: "later work of a waiting task waits", Run: waitingTaskOrders},
	{ID: "TK-07", Name: "every kind of work behind a waiting task", Run: everythingBehindWaiting},
	{ID: "TK-07", Name: "events behind a waiting task", Run: eventsBehindWaiting},
	{ID: "TK-07", Name: "the legacy stream and a waiting task", Run: legacyAndWaiting},
	{ID: "TK-07", Name: "calls that wait for their turn", Run: callsThatWait},
	{ID: "TK-07", Name: "closed behind a waiting task", Run: closedBehindWaiting},
	{ID: "TK-04", Name: "other streams go on", Run: waitingTaskAlone},
	{ID: "TK-04", Name: "tasks that wait for a waiting one", Run: waitForWaiting},
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
		if !strings.Contains(err.Error(), "self") || !strings.Contains(err.Error(), "task.go:") {
			t.Errorf("%v does not name the task", err)
		}
	}
	t.Sync(other)
	t.OK(task.Wait(t.Context()))
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
			t.Log(err)
			for _, name := range names {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%v does not name %s", err, name)
				}
			}
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
	mod, err := dev.LoadModule(t.cfg.PTX)
	t.OK(err)
	other, err := dev.NewStream()
	t.OK(err)
	e, err := dev.NewEvent()
	t.OK(err)
	before := d.Stats()
	g := t.TaskGate(s)
	<-g.Entered
	started := time.Now()
	t.OK(errors.Join(buf.Close(), pinned.Close(), mod.Close(), other.Close(), e.Close()))
	if took := time.Since(started); took > time.Second {
		t.Errorf("closing took %v", took)
	}
	t.Is(other.Sync(), cuda.ErrClosed)
	if pinned.Bytes() != nil {
		t.Error("the memory of a closed PinnedBuffer can be had")
	}
	if now := d.Stats(); now.Buffers != before.Buffers || now.PinnedBuffers != before.PinnedBuffers || now.Modules != before.Modules {
		t.Errorf("freed while a stream is held: %+v, before %+v", now, before)
	}
	g.Open()
	t.Sync(s)
	t.Eventually("what was closed is freed", func() bool {
		now := d.Stats()
		return now.Buffers == before.Buffers-1 && now.PinnedBuffers == before.PinnedBuffers-1 && now.Modules == before.Modules-1 && now.Streams == before.Streams-1
	})
	inside := t.Task(s, func(context.Context) error {
		b, err := dev.Alloc(64)
		if err != nil {
			return err
		}
		return b.Close()
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
	if !strings.Contains(task.Err().Error(), "TaskStreams") {
		t.Errorf("%v does not say how to have more", task.Err())
	}
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

func sixtyFourTasks(t *T) {
	dev, k := t.Device(0), t.Kernel("nothing")
	var tasks []*cuda.Task
	var streams []*cuda.Stream
	for range 64 {
		streams = append(streams, t.Stream())
	}
	for _, s := range streams {
		tasks = append(tasks, t.Task(s, func(ctx context.Context) error {
			own, err := dev.NewStream()
			if err != nil {
				return err
			}
			defer own.Close()
			return errors.Join(own.Launch(k, one), own.Wait(ctx))
		}))
	}
	for _, task := range tasks {
		t.Ends(task)
	}
}

func manyTasks(t *T) {
	k := t.Kernel("nothing")
	var streams, others []*cuda.Stream
	for range 64 {
		streams, others = append(streams, t.Stream()), append(others, t.Stream())
	}
	var ran atomic.Int32
	start, before := time.Now(), threads()
	for range 10 {
		for i, s := range streams {
			t.Task(s, func(context.Context) error {
				ran.Add(1)
				return errors.Join(others[i].Launch(k, one), others[i].Sync())
			})
		}
	}
	most := threads()
	for _, s := range streams {
		t.Sync(s)
	}
	t.Logf("640 tasks took %v and added %d OS threads", time.Since(start), most-before)
	if ran.Load() != 640 {
		t.Errorf("%d of 640 ran", ran.Load())
	}
}

func heldLimit(t *T) {
	t.OpenDriver(cuda.MaxHeldStreams(3))
	var tasks []*cuda.Task
	var running, most atomic.Int32
	var order Order
	for i := range 20 {
		tasks = append(tasks, t.Task(t.Stream(), func(context.Context) error {
			n := running.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			order.Add(i)()
			time.Sleep(2 * time.Millisecond)
			running.Add(-1)
			return nil
		}))
	}
	for _, task := range tasks {
		t.Ends(task)
	}
	if n := most.Load(); n != 3 {
		t.Errorf("%d tasks ran at a time, want 3", n)
	}
	for at, i := range order.Log() {
		if at > i+3 || i > at+3 {
			t.Errorf("task %d came as number %d", i, at)
		}
	}
}

func waitingTaskOrders(t *T) {
	t.OpenDriver(cuda.MaxHeldStreams(1))
	a, b, e := t.Stream(), t.Stream(), t.Event()
	g := t.TaskGate(a)
	<-g.Entered
	var o Order
	task := t.Task(b, func(context.Context) error { o.Add(1)(); return nil })
	t.Task(b, func(context.Context) error { o.Add(2)(); return nil })
	if done, err := b.Query(); done || err != nil {
		t.Errorf("Query = %v, %v with a task that waits", done, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if err := b.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait = %v", err)
	}
	t.Host(b, o.Add(3))
	t.OK(b.Record(e))
	time.Sleep(5 * time.Millisecond)
	o.Want(t)
	if done, err := e.Query(); done || err != nil {
		t.Errorf("Query of an event behind it = %v, %v", done, err)
	}
	g.Open()
	t.Ends(task)
	t.OK(e.Sync())
	o.Want(t, 1, 2, 3)
	t.Sync(b)
}

// everythingBehindWaiting queues all that can be queued behind a task that waits in the library, while another stream's task waits for
// the program.
func everythingBehindWaiting(t *T) {
	t.OpenDriver(cuda.MaxHeldStreams(1))
	a, s, other := t.Stream(), t.Stream(), t.Stream()
	k, store, log, e := t.Kernel("append"), t.Kernel("store"), t.DeviceLog(40), t.Event()
	b, c, f := t.Buffer(16), t.Buffer(16), t.Flag()
	t.Freed(f, 1<<40)
	g := t.TaskGate(a)
	<-g.Entered
	add := func(n uint64) { t.OK(s.Launch(k, one, log.mem, n)) }
	note := func(n uint64) func() { return func() { log.words[0]++; log.words[log.words[0]] = n } }
	statuses, ends := make(chan error, 1), make(chan error, 1)
	t.Task(s, func(context.Context) error { note(1)(); return nil })
	add(2)
	t.Host(s, note(3), cuda.OnDone(func(err error) { ends <- err }))
	t.OK(cuda.AddCallback(s, func(err error) { note(4)(); statuses <- err }))
	t.Host(s, note(5), spinMode)
	t.OK(s.Memset(b, 1))
	t.OK(s.Memset16(c, 2))
	t.OK(s.Memset32(c, 3))
	t.OK(s.Launch(store, one, b, uint32(7)))
	t.OK(s.CopyBuffer(c, b))
	t.OK(s.WriteValue32(f.Word(0), 5))
	t.OK(s.Batch(cuda.Write32(f.Word(4), 6)))
	t.OK(s.WaitValue32(f.Word(0), cuda.ValueEQ, 5))
	t.Task(s, func(context.Context) error { note(6)(); return nil }, spinMode)
	t.OK(s.Record(e))
	t.OK(other.WaitEvent(e))
	t.Host(other, note(7))
	t.OK(s.WaitStream(other))
	add(8)
	t.OK(other.WaitStream(s))
	t.Host(other, note(9))
	own := t.Stream()
	t.OK(own.Memset(b, 9)) // another stream goes on
	t.Sync(own)
	time.Sleep(5 * time.Millisecond)
	if n := log.words[0]; n != 0 || f.wide.Load() != 0 {
		t.Errorf("%d marks and word %#x before the task's turn", n, f.wide.Load())
	}
	g.Open()
	t.Sync(other)
	log.Want(1, 2, 3, 4, 5, 6, 7, 8, 9)
	got := make([]uint32, 4)
	t.OK(cuda.CopyToHost(s, got, c))
	t.Sync(s)
	if got[0] != 7 || got[1] != 0x01010101 || f.wide.Load() != 6<<32|5 {
		t.Errorf("copied %x, word %#x", got, f.wide.Load())
	}
	t.OK(Receive(t, "OnDone", ends))
	t.OK(Receive(t, "the callback's status", statuses))
}

func eventsBehindWaiting(t *T) {
	t.OpenDriver(cuda.MaxHeldStreams(1))
	a, b, c := t.Stream(), t.Stream(), t.Stream()
	e, timed, since := t.Event(), t.Event(cuda.WithTiming()), t.Event(cuda.WithTiming())
	t.OK(since.Context().DefaultStream().Record(since))
	t.OK(since.Sync())
	g := t.TaskGate(a)
	<-g.Entered
	var o Order
	t.Task(b, func(context.Context) error { o.Add(1)(); return nil })
	t.OK(b.Record(e))
	t.OK(b.Record(timed))
	_, err := timed.Elapsed(since)
	t.Is(err, cuda.ErrNotReady)
	done := e.Done()
	waits := make(chan error, 2)
	go func() { waits <- e.Sync() }()
	go func() { waits <- e.Wait(context.Background()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if err := e.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait = %v", err)
	}
	t.OK(c.WaitEvent(e))
	t.Host(c, o.Add(2))
	again := make(chan error, 1)
	go func() { again <- c.Record(e) }() // which must not be what c waits for
	time.Sleep(5 * time.Millisecond)
	select {
	case <-done:
		t.Error("Done before the event's stream came to it")
	case err := <-waits:
		t.Errorf("a wait ended with %v", err)
	default:
	}
	o.Want(t)
	g.Open()
	Receive(t, "Done", done)
	t.OK(Receive(t, "Sync", waits))
	t.OK(Receive(t, "Wait", waits))
	t.OK(Receive(t, "Record", again))
	t.Sync(c)
	t.OK(timed.Sync())
	if _, err := timed.Elapsed(since); err != nil {
		t.Error(err)
	}
	o.Want(t, 1, 2)
}

func legacyAndWaiting(t *T) {
	t.OpenDriver(cuda.MaxHeldStreams(1))
	a, blocking, another, legacy := t.Stream(), t.Stream(cuda.Blocking()), t.Stream(cuda.Blocking()), t.Device(0).DefaultStream()
	g := t.TaskGate(a)
	<-g.Entered
	var o Order
	t.Task(blocking, func(context.Context) error { o.Add(1)(); return nil })
	t.Host(another, o.Add(0)) // not ordered with blocking
	t.Sync(another)
	t.Host(legacy, o.Add(2))
	t.Host(another, o.Add(3))
	t.Task(another, func(context.Context) error { o.Add(4)(); return nil })
	if done, err := legacy.Query(); done || err != nil {
		t.Errorf("Query = %v, %v", done, err)
	}
	time.Sleep(5 * time.Millisecond)
	o.Want(t, 0)
	g.Open()
	t.Sync(legacy)
	t.Sync(another)
	o.Want(t, 0, 1, 2, 3, 4)
}

func callsThatWait(t *T) {
	t.OpenDriver(cuda.MaxHeldStreams(1))
	a, s, b := t.Stream(), t.Stream(), t.Buffer(8)
	data := make([]byte, 8)
	x := t.exec(func(g *cuda.GraphBuilder) { t.OK(g.Memset(b, 3)) })
	g := t.TaskGate(a)
	<-g.Entered
	t.Task(s, func(context.Context) error { return nil })
	t.OK(s.Memset(b, 2))
	queued := make(chan error, 1)
	go func() { queued <- errors.Join(x.Launch(s), cuda.CopyToHost(s, data, b), s.Sync()) }()
	time.Sleep(5 * time.Millisecond)
	if len(queued) > 0 {
		t.Errorf("the calls did not wait: %v", <-queued)
	}
	g.Open()
	t.OK(Receive(t, "the calls", queued))
	if data[0] != 3 {
		t.Errorf("copied %d, want 3", data[0])
	}
}

// closedBehindWaiting closes what is used behind a task that waits in the library, and the Driver.
func closedBehindWaiting(t *T) {
	d := t.OpenDriver(cuda.MaxHeldStreams(1))
	a, dev, k := t.Stream(), t.Device(0), t.Kernel("append")
	s, err := dev.NewStream()
	t.OK(err)
	e, err := dev.NewEvent()
	t.OK(err)
	b, err := dev.Alloc(16)
	t.OK(err)
	log := t.DeviceLog(4)
	entered, free := make(chan struct{}), make(chan struct{})
	t.Task(a, func(context.Context) error { close(entered); <-free; return nil })
	<-entered
	ran := 0
	t.Task(s, func(context.Context) error { ran++; return nil })
	t.OK(s.Memset(b, 1))
	t.OK(s.Launch(k, one, log.mem, uint64(1)))
	t.OK(s.Record(e))
	t.Host(s, func() { ran++ })
	t.OK(errors.Join(b.Close(), e.Close(), s.Close()))
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	time.Sleep(5 * time.Millisecond)
	if len(closed) > 0 || ran != 0 {
		t.Errorf("%d closed, %d ran", len(closed), ran)
	}
	close(free)
	t.OK(Receive(t, "Close", closed))
	if ran != 2 {
		t.Errorf("%d of 2 ran", ran)
	}
}

func waitingTaskAlone(t *T) {
	t.OpenDriver(cuda.MaxHeldStreams(1))
	a, b, c, k := t.Stream(), t.Stream(), t.Stream(), t.Kernel("nothing")
	g := t.TaskGate(a)
	<-g.Entered
	waits := t.Task(b, func(context.Context) error { return nil })
	for range 10 {
		t.OK(errors.Join(c.Launch(k, one), c.Sync()))
	}
	ran := false
	t.Host(c, func() { ran = true })
	t.Sync(c)
	t.OK(waits.Err())
	if !ran {
		t.Error("the function of another stream did not run")
	}
	t.OK(b.Close()) // with the task still waiting
	g.Open()
	t.Ends(waits)
}

// waitForWaiting: what all held streams' tasks wait for cannot begin, since they hold their streams.
func waitForWaiting(t *T) {
	t.OpenDriver(cuda.MaxHeldStreams(2))
	a, b, c, k := t.Stream(), t.Stream(), t.Stream(), t.Kernel("nothing")
	start := make(chan struct{})
	var tasks []*cuda.Task
	for i, s := range []*cuda.Stream{a, b} {
		tasks = append(tasks, t.Task(s, func(ctx context.Context) error {
			<-start
			if i == 0 {
				return c.Sync()
			}
			return errors.Join(c.Launch(k, one), c.Wait(ctx)) // of which the former waits its turn in the library
		}, cuda.Name(fmt.Sprint("holder", i))))
	}
	last := t.Task(c, func(context.Context) error { return nil }, cuda.Name("last"))
	close(start)
	t.deadlocked(tasks, "last", "holder")
	t.Ends(last)
	t.Sync(c)
}
