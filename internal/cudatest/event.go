package cudatest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// eventCases: events.
var eventCases = []Case{
	{ID: "EV-01", Name: "orders streams", Run: eventOrders},
	{ID: "EV-01", Name: "WaitStream orders streams", Run: waitStreamOrders},
	{ID: "EV-01", Name: "recorded many times", Run: eventManyTimes},
	{ID: "EV-01", Name: "one event, many waiting streams", Run: eventFansOut},
	{ID: "EV-01", Name: "recorded on the default streams", Run: eventOnDefault},
	{ID: "EV-01", Name: "BlockingSync", Run: eventBlockingSync},
	{ID: "EV-01", Name: "another context's event is refused", Devices: 2, Run: eventOtherContext},
	{ID: "EV-02", Name: "three errors", Run: elapsedErrors},
	{ID: "EV-02", Name: "of a spin", Run: elapsedSpin},
	{ID: "EV-02", Name: "of nothing", Run: elapsedNothing},
	{ID: "EV-02", Name: "never negative", Run: elapsedOrdered},
	{ID: "EV-03", Name: "Done", Run: eventDone},
	{ID: "EV-03", Name: "Wait ends with its context", Run: eventWaitContext},
	{ID: "EV-03", Name: "closed while waited for", Run: eventClosedInWait},
	{ID: "EV-03", Name: "closed", Run: eventClosed},
	{ID: "EV-03", Name: "ten thousand waiting goroutines", Run: eventManyWaiters},
}

// eventOrders passes a baton along four streams. Each spins before its note, to be overtaken.
func eventOrders(t *T) {
	log := t.DeviceLog(40)
	streams := []*cuda.Stream{t.Stream(), t.Stream(), t.Stream(), t.Stream(cuda.Blocking())}
	events := []*cuda.Event{t.Event(), t.Event(cuda.WithTiming())}
	var want []uint64
	for i := range uint64(40) {
		s, e := streams[i%4], events[i%2]
		t.Spin(s, time.Duration(40-i)*10*time.Microsecond)
		log.Add(s, i)
		t.OK(s.Record(e))
		t.OK(streams[(i+1)%4].WaitEvent(e))
		want = append(want, i)
	}
	t.Sync(streams[0])
	log.Want(want...)
}

func waitStreamOrders(t *T) {
	log := t.DeviceLog(40)
	streams := []*cuda.Stream{t.Stream(), t.Stream(cuda.Blocking()), t.Device(0).DefaultStream(), t.Stream()}
	var want []uint64
	for i := range uint64(40) {
		s := streams[i%4]
		t.Spin(s, time.Duration(40-i)*10*time.Microsecond)
		log.Add(s, i)
		t.OK(streams[(i+1)%4].WaitStream(s))
		want = append(want, i)
	}
	t.OK(streams[0].WaitStream(streams[0])) // itself: nothing to wait for
	t.Sync(streams[0])
	log.Want(want...)
}

// eventManyTimes records one event again and again: each time it stands for the latest record.
func eventManyTimes(t *T) {
	s, e, b := t.Stream(), t.Event(), t.Buffer(4)
	out := cuda.PinnedSlice[uint32](t.Pinned(4))
	for i := range uint32(200) {
		t.OK(s.Memset32(b, i))
		t.OK(cuda.CopyToHost(s, out, b))
		t.OK(s.Record(e))
		t.OK(e.Sync())
		if out[0] != i {
			t.Fatalf("record %d: %d after Sync", i, out[0])
		}
	}
	for range 5000 { // and nothing is kept of the records before
		t.OK(s.Record(e))
	}
	t.OK(e.Sync())
	t.Sync(s)
}

func eventFansOut(t *T) {
	s, e := t.Stream(), t.Event()
	b := t.Buffer(4)
	out := cuda.PinnedSlice[uint32](t.Pinned(4 * 16))
	clear(out)
	var waiting []*cuda.Stream
	for range 16 {
		waiting = append(waiting, t.Stream())
	}
	t.Spin(s, 5*time.Millisecond)
	t.OK(s.Memset32(b, 9))
	t.OK(s.Record(e))
	for i, w := range waiting {
		t.OK(w.WaitEvent(e))
		t.OK(cuda.CopyToHost(w, out[i:i+1], b))
	}
	for i, w := range waiting {
		t.Sync(w)
		if out[i] != 9 {
			t.Errorf("stream %d copied %d before the event", i, out[i])
		}
	}
}

func eventOnDefault(t *T) {
	dev, e, s := t.Device(0), t.Event(), t.Stream()
	t.OK(dev.DefaultStream().Record(e))
	t.OK(dev.DefaultStream().WaitEvent(e))
	t.OK(e.Sync())
	t.OK(dev.WithThreadStream(func(mine *cuda.Stream) error {
		return errors.Join(mine.Record(e), s.WaitEvent(e), s.Sync(), mine.WaitStream(s), s.WaitStream(mine))
	}))
	t.Sync(s)
}

func eventBlockingSync(t *T) {
	s, e, after := t.Stream(), t.Event(cuda.BlockingSync()), t.Event(nil, cuda.BlockingSync(), cuda.WithTiming())
	t.OK(e.Sync()) // never recorded
	t.Spin(s, 5*time.Millisecond)
	t.OK(s.Record(e))
	t.OK(s.Record(after))
	t.OK(after.Sync())
	if done, err := e.Query(); !done || err != nil {
		t.Errorf("Query = %v, %v after a later event is complete", done, err)
	}
}

func eventOtherContext(t *T) {
	s, e := t.Stream(), t.Event()
	other, err := t.Device(1).NewEvent(cuda.WithTiming())
	t.OK(err)
	defer other.Close()
	err = s.Record(other)
	t.Is(err, cuda.ErrInvalidHandle)
	t.Contains(err, "event belongs to device 1")
	_, err = other.Elapsed(other)
	t.Is(err, cuda.ErrNotRecorded) // the refused record does not count
	t.Is(t.StreamOn(t.Device(1)).Record(e), cuda.ErrInvalidHandle)
}

func elapsedErrors(t *T) {
	s, timed, plain, fresh := t.Stream(), t.Event(cuda.WithTiming()), t.Event(), t.Event(cuda.WithTiming())
	t.OK(s.Record(timed))
	t.OK(s.Record(plain))
	t.Sync(s)
	held := t.Event(cuda.WithTiming())
	g := t.Gate(s)
	t.OK(s.Record(held))
	codes := []error{cuda.ErrTimingDisabled, cuda.ErrNotRecorded, cuda.ErrNotReady}
	for _, c := range []struct {
		what     string
		e, since *cuda.Event
		want     error
	}{
		{"no timing", plain, timed, cuda.ErrTimingDisabled},
		{"since no timing", timed, plain, cuda.ErrTimingDisabled},
		{"never recorded", fresh, timed, cuda.ErrNotRecorded},
		{"since never recorded", timed, fresh, cuda.ErrNotRecorded},
		{"not complete", held, timed, cuda.ErrNotReady},
		{"since not complete", timed, held, cuda.ErrNotReady},
	} {
		_, err := c.e.Elapsed(c.since)
		t.Is(err, c.want)
		for _, code := range codes {
			if code != c.want && errors.Is(err, code) {
				t.Errorf("%s: %v is %v too", c.what, err, code)
			}
		}
		if c.want != cuda.ErrNotReady && !errors.Is(err, cuda.ErrInvalidHandle) {
			t.Errorf("%s: %v has not the driver's own code too", c.what, err)
		}
		if named := strings.Contains(err.Error(), "since"); c.want != cuda.ErrNotReady && named != (c.e == timed) {
			t.Errorf("%s: %q names the wrong event", c.what, err)
		}
	}
	g.Open()
	t.Sync(s)
	if _, err := held.Elapsed(timed); err != nil {
		t.Errorf("once complete: %v", err)
	}
}

func elapsedSpin(t *T) {
	s, a, b := t.Stream(), t.Event(cuda.WithTiming()), t.Event(cuda.WithTiming())
	t.OK(s.Record(a))
	t.Spin(s, 5*time.Millisecond)
	t.OK(s.Record(b))
	t.Sync(s)
	d, err := b.Elapsed(a)
	t.OK(err)
	// The kernel spins by the device's clock, which on hardware goes in steps; the events are good to half a microsecond.
	if d < 4900*time.Microsecond || d > time.Second {
		t.Errorf("a kernel of 5ms took %v", d)
	}
}

func elapsedNothing(t *T) {
	s, a, b := t.Stream(), t.Event(cuda.WithTiming()), t.Event(cuda.WithTiming())
	t.OK(s.Record(a))
	t.OK(s.Record(b))
	t.Sync(s)
	if d, err := b.Elapsed(a); d < 0 || d > time.Second || err != nil {
		t.Errorf("nothing took %v, %v", d, err)
	}
	if d, err := a.Elapsed(a); d != 0 || err != nil {
		t.Errorf("an event is %v, %v after itself", d, err)
	}
}

func elapsedOrdered(t *T) {
	s, other, b := t.Stream(), t.Stream(), t.Buffer(1<<16)
	var events []*cuda.Event
	for i := range 100 {
		e := t.Event(cuda.WithTiming())
		if i%3 == 0 {
			t.OK(s.Memset(b, byte(i)))
		}
		if i%5 == 0 { // through another stream: still in order
			t.OK(other.WaitStream(s))
			s, other = other, s
		}
		t.OK(s.Record(e))
		events = append(events, e)
	}
	t.Sync(s)
	for i := range events[1:] {
		if d, err := events[i+1].Elapsed(events[i]); d < 0 || err != nil {
			t.Errorf("event %d is %v, %v after event %d", i+1, d, err, i)
		}
	}
	if d, err := events[99].Elapsed(events[0]); d <= 0 || err != nil {
		t.Errorf("a hundred events took %v, %v", d, err)
	}
}

func eventDone(t *T) {
	s, e := t.Stream(), t.Event()
	Receive(t, "Done of an event never recorded", e.Done())
	g := t.Gate(s)
	ran := false
	t.Host(s, func() { ran = true })
	t.OK(s.Record(e))
	done, second := e.Done(), e.Done()
	select {
	case <-done:
		t.Error("Done before the work was")
	case <-time.After(20 * time.Millisecond):
	}
	g.Open()
	Receive(t, "Done", done)
	if q, err := e.Query(); !q || err != nil || !ran {
		t.Errorf("after Done, Query = %v, %v; the function has run: %v", q, err, ran)
	}
	Receive(t, "the other Done", second)
	Receive(t, "Done of a complete event", e.Done())
	t.OK(e.Wait(t.Context()))
}

func eventWaitContext(t *T) {
	s, e := t.Stream(), t.Event()
	t.OK(e.Wait(t.Context())) // never recorded
	g := t.Gate(s)
	t.OK(s.Record(e))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := e.Wait(ctx)
	t.Is(err, cuda.ErrContextEnded, context.DeadlineExceeded)
	t.Contains(err, "Event.Wait")
	g.Open()
	t.OK(e.Wait(t.Context()))
}

// eventClosedInWait: Close ends the event for new calls; who waits already is told all the same.
func eventClosedInWait(t *T) {
	s := t.Stream()
	e, err := t.Device(0).NewEvent()
	t.OK(err)
	g := t.Gate(s)
	t.OK(s.Record(e))
	done, waited := e.Done(), make(chan error, 1)
	go func() { waited <- e.Wait(t.Context()) }()
	time.Sleep(10 * time.Millisecond)
	t.OK(e.Close())
	select {
	case <-done:
		t.Error("Close ended the wait")
	case <-time.After(10 * time.Millisecond):
	}
	g.Open()
	Receive(t, "Done", done)
	t.OK(Receive(t, "Wait", waited))
}

func eventClosed(t *T) {
	s, since := t.Stream(), t.Event(cuda.WithTiming())
	e, err := t.Device(0).NewEvent(cuda.WithTiming())
	t.OK(err)
	t.OK(s.Record(e))
	t.OK(s.Record(since))
	t.OK(e.Close())
	t.OK(e.Close())
	t.OK((*cuda.Event)(nil).Close())
	for _, call := range []func() error{
		func() error { _, err := e.Query(); return err },
		func() error { return e.Sync() },
		func() error { return e.Wait(t.Context()) },
		func() error { _, err := e.Elapsed(since); return err },
		func() error { _, err := since.Elapsed(e); return err },
		func() error { return s.Record(e) },
		func() error { return s.WaitEvent(e) },
	} {
		t.Is(call(), cuda.ErrClosed)
	}
	Receive(t, "Done of a closed event", e.Done())
}

func eventManyWaiters(t *T) {
	const n = 10_000
	s, e := t.Stream(), t.Event()
	g := t.Gate(s)
	<-g.Entered
	t.OK(s.Record(e))
	before := threads()
	var woken atomic.Int32
	for range n {
		go func() {
			<-e.Done()
			woken.Add(1)
		}()
	}
	time.Sleep(50 * time.Millisecond)
	if more := threads() - before; more > 50 {
		t.Errorf("%d waiting goroutines took %d OS threads", n, more)
	}
	if w := woken.Load(); w > 0 {
		t.Errorf("%d woke before the event", w)
	}
	g.Open()
	t.Eventually("all are awake", func() bool { return woken.Load() == n })
}
