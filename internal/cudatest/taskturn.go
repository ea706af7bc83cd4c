package cudatest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// taskTurnCases: many tasks at once, and what happens behind one that waits for its turn in the library, since as many streams are held
// as may be.
var taskTurnCases = []Case{
	{ID: "TK-04", Name: "64 streams", Run: sixtyFourTasks},
	{ID: "TK-04", Name: "64 streams, ten tasks each", Run: manyTasks},
	{ID: "TK-04", Name: "no more than the limit, in order", Run: heldLimit},
	{ID: "TK-07", Name: "later work of a waiting task waits", Run: waitingTaskOrders},
	{ID: "TK-07", Name: "every kind of work behind a waiting task", Run: everythingBehindWaiting},
	{ID: "TK-07", Name: "events behind a waiting task", Run: eventsBehindWaiting},
	{ID: "TK-07", Name: "events behind a task that stops its stream stay as they were", Run: eventsOfStopped},
	{ID: "TK-07", Name: "a record is refused over one that waits", Run: refusedOverWaiting},
	{ID: "TK-07", Name: "an event recorded anew while somebody waits for a record that waits", Run: syncRecordedAnew},
	{ID: "TK-07", Name: "work queued while a task stops its stream is not done", Run: queuedWhileStopped},
	{ID: "TK-07", Name: "the legacy stream and a waiting task", Run: legacyAndWaiting},
	{ID: "TK-07", Name: "calls that wait for their turn", Run: callsThatWait},
	{ID: "TK-07", Name: "closed behind a waiting task", Run: closedBehindWaiting},
	{ID: "TK-04", Name: "other streams go on", Run: waitingTaskAlone},
	{ID: "TK-04", Name: "tasks that wait for a waiting one", Run: waitForWaiting},
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
	x := t.captureExec(func(g *cuda.GraphBuilder) { t.OK(g.Memset(b, 3)) })
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
	g := t.TaskGate(a)
	<-g.Entered
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
	g.Open()
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

// eventsOfStopped: a record that is not made changes nothing of its event, also for who waits for that in the library.
func eventsOfStopped(t *T) {
	other, stops, third := t.Stream(), t.Stream(), t.Stream()
	e, fresh, behind := t.Event(cuda.WithTiming()), t.Event(cuda.WithTiming()), t.Event()
	g, entered := t.TaskGate(other), t.newGate()
	t.OK(other.Record(e))
	mine := errors.New("mine")
	failing := t.Task(stops, func(ctx context.Context) error { return errors.Join(entered.task(ctx), mine) }, cuda.StopOnError())
	t.OK(stops.Record(e))
	t.OK(errors.Join(stops.Record(fresh), stops.Record(fresh)))
	entered.Open()
	<-failing.Done()
	t.Eventually("the stream is stopped", func() bool { return errors.Is(stops.Record(fresh), cuda.ErrTaskFailed) })
	t.OK(fresh.Sync()) // until the records have been refused
	_, err := fresh.Elapsed(fresh)
	t.Is(err, cuda.ErrNotRecorded)
	if done, err := e.Query(); done || err != nil {
		t.Errorf("Query = %v, %v of the former record", done, err)
	}
	turn := t.TaskGate(third, cuda.StopOnError()) // so that the wait waits for its turn
	t.OK(third.WaitEvent(e))
	t.OK(third.Record(behind))
	turn.Open()
	t.Waits("work behind the former record", behind)
	g.Open()
	t.Completes("work behind the former record", behind)
}

// refusedOverWaiting: an event whose latest record is refused is as it was: its former record, which waits on another stream, counts.
func refusedOverWaiting(t *T) {
	a, stops, third := t.Stream(), t.Stream(), t.Stream()
	e, mine := t.Event(cuda.WithTiming()), errors.New("mine")
	g, entered := t.TaskGate(a, cuda.StopOnError()), t.newGate()
	var done atomic.Bool
	t.Host(a, func() { time.Sleep(20 * time.Millisecond); done.Store(true) })
	t.OK(a.Record(e))
	t.Task(stops, func(ctx context.Context) error { return errors.Join(entered.task(ctx), mine) }, cuda.StopOnError())
	told := make(chan error, 1)
	t.OK(stops.Record(e))
	t.Host(stops, func() {}, cuda.OnDone(func(err error) { told <- err }))
	entered.Open()
	t.Is(Receive(t, "OnDone", told), cuda.ErrTaskFailed) // and so the record before it has been refused too
	if done, err := e.Query(); done || err != nil {
		t.Errorf("Query = %v, %v, while the record that counts waits", done, err)
	}
	_, err := e.Elapsed(e)
	t.Is(err, cuda.ErrNotReady)
	t.OK(third.WaitEvent(e))
	early := make(chan bool, 1)
	t.Host(third, func() { early <- !done.Load() })
	g.Open()
	if Receive(t, "the function", early) {
		t.Error("what waits for the event ran before what that is behind")
	}
	t.OK(e.Sync())
	_, err = e.Elapsed(e)
	t.OK(err)
}

// syncRecordedAnew: who waits for a record waits for it also if it is made when the event has long been recorded anew.
func syncRecordedAnew(t *T) {
	for name, wait := range map[string]func(e *cuda.Event) error{
		"Sync": (*cuda.Event).Sync,
		"Wait": func(e *cuda.Event) error { return e.Wait(t.Context()) },
		"Done": func(e *cuda.Event) error { <-e.Done(); return nil },
	} {
		a, b, e := t.Stream(), t.Stream(), t.Event()
		first, second := t.TaskGate(a, cuda.StopOnError()), t.TaskGate(b, cuda.StopOnError())
		var done atomic.Bool
		t.Host(a, func() { time.Sleep(20 * time.Millisecond); done.Store(true) })
		t.OK(a.Record(e))
		over := make(chan error, 1)
		go func() {
			err := wait(e)
			if !done.Load() {
				t.Errorf("%s returned, and neither record was complete", name)
			}
			over <- err
		}()
		time.Sleep(5 * time.Millisecond) // so that it waits, as a rule
		t.OK(b.Record(e))
		first.Open()
		t.Sync(a)
		second.Open()
		t.OK(Receive(t, name, over))
	}
}

// queuedWhileStopped: whoever queues behind a task while that fails and stops its stream is refused, or has queued what is never done.
func queuedWhileStopped(t *T) {
	const rounds, callers, each = 100, 4, 12
	b, e, other := t.Buffer(4), t.Event(cuda.WithTiming()), t.Stream()
	t.OK(other.Memset(b, 1))
	t.Sync(other)
	var ran, accepted, told atomic.Int32
	for range rounds {
		s, err := t.Device(0).NewStream()
		t.OK(err)
		t.Task(s, func(context.Context) error { return errors.New("mine") }, cuda.StopOnError())
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range each {
					refused := errors.Join(s.Memset(b, 9), s.Record(e))
					if cuda.HostLaunch(s, func() { ran.Add(1) }, cuda.OnDone(func(error) { told.Add(1) })) == nil {
						accepted.Add(1)
					}
					if refused != nil && !errors.Is(refused, cuda.ErrTaskFailed) {
						t.Error(refused)
					}
				}
			})
		}
		all.Wait()
		t.OK(s.Close())
	}
	t.Eventually("whoever queued a function is told", func() bool { return told.Load() == accepted.Load() })
	t.OK(e.Sync())
	if _, err := e.Elapsed(e); !errors.Is(err, cuda.ErrNotRecorded) {
		t.Errorf("Elapsed = %v of an event of stopped streams", err)
	}
	if got := t.Bytes(other, b); ran.Load() != 0 || got[0] != 1 {
		t.Errorf("%d functions ran, and the memory has %d", ran.Load(), got[0])
	}
}
