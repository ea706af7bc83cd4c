package cudatest

import (
	"errors"
	"strings"
	"sync"

	"github.com/hostlaunch/cuda"
)

func closeDoesNotWait(t *T) {
	b := t.Buffer(4)
	out := cuda.PinnedSlice[uint32](t.Pinned(4))
	s := t.Stream()
	last := make(chan uint32, 1)
	g := t.Gate(s)
	t.OK(s.Memset32(b, 7))
	t.OK(cuda.CopyToHost(s, out, b))
	t.Host(s, func() { last <- out[0] })
	t.OK(s.Close()) // had it waited, the gate would never open
	g.Open()
	if n := Receive(t, "the last work of the closed stream", last); n != 7 {
		t.Errorf("it saw %d, want 7", n)
	}
}

// streamCalls are all calls on a stream that reach the driver.
func streamCalls(t *T, s, other *cuda.Stream, e *cuda.Event, b *cuda.Buffer, k *cuda.Kernel) map[string]func() error {
	small := make([]byte, b.Len())
	return map[string]func() error{
		"Stream.Query":         func() error { _, err := s.Query(); return err },
		"Stream.Sync":          func() error { return s.Sync() },
		"Stream.Wait":          func() error { return s.Wait(t.Context()) },
		"Stream.Flags":         func() error { _, err := s.Flags(); return err },
		"Stream.Priority":      func() error { _, err := s.Priority(); return err },
		"Stream.DeviceOrdinal": func() error { _, err := s.DeviceOrdinal(); return err },
		"Stream.Launch":        func() error { return s.Launch(k, one) },
		"Stream.Memset":        func() error { return s.Memset(b, 1) },
		"Stream.Memset16":      func() error { return s.Memset16(b, 1) },
		"Stream.Memset32":      func() error { return s.Memset32(b, 1) },
		"Stream.CopyBuffer":    func() error { return s.CopyBuffer(b, b) },
		"Stream.Record":        func() error { return s.Record(e) },
		"Stream.WaitEvent":     func() error { return s.WaitEvent(e) },
		"Stream.WaitStream":    func() error { return s.WaitStream(other) },
		"CopyToHost":           func() error { return cuda.CopyToHost(s, small, b) },
		"CopyToDevice":         func() error { return cuda.CopyToDevice(s, b, small) },
		"HostLaunch":           func() error { return cuda.HostLaunch(s, func() { t.Error("a refused function ran") }) },
	}
}

func streamClosed(t *T) {
	e, b, k, other := t.Event(), t.Buffer(64), t.Kernel("nothing"), t.Stream()
	s, err := t.Device(0).NewStream()
	t.OK(err)
	t.OK(s.Close())
	for op, call := range streamCalls(t, s, other, e, b, k) {
		err := call()
		t.Is(err, cuda.ErrClosed)
		if ce := new(cuda.Error); errors.As(err, &ce) && ce.Op != op {
			t.Errorf("%s of a closed stream says %q", op, err)
		}
	}
	t.Is(other.WaitStream(s), cuda.ErrClosed)
	_, err = s.ID()
	t.Is(err, cuda.ErrClosed)
	t.OK(s.Close())
	t.OK(s.Close())
	t.OK((*cuda.Stream)(nil).Close())
}

// closeBesideUse closes a stream under 16 goroutines that use it. Each call works, or finds it closed.
func closeBesideUse(t *T) {
	e := t.Event()
	for range 20 {
		b, err := t.Device(0).Alloc(64)
		t.OK(err)
		s, err := t.Device(0).NewStream()
		t.OK(err)
		var users, started sync.WaitGroup
		calls := []func() error{
			func() error { return s.Memset(b, 1) },
			func() error { return cuda.HostLaunch(s, func() {}) },
			func() error { _, err := s.Query(); return err },
			func() error { return s.Sync() },
			func() error { return s.Record(e) },
			func() error { return s.Wait(t.Context()) },
			func() error { return s.Close() },
			func() error { _, err := s.ID(); return err },
		}
		for i := range 2 * len(calls) {
			started.Add(1)
			users.Go(func() {
				for n := 0; ; n++ {
					call := calls[i%len(calls)]
					if i%len(calls) == 6 && n < 20 {
						call = calls[0] // close not at once
					}
					err := call()
					if n == 0 {
						started.Done()
					}
					if errors.Is(err, cuda.ErrClosed) || i%len(calls) == 6 && n == 20 {
						return
					}
					if err != nil {
						t.Errorf("a call beside Close: %v", err)
						return
					}
				}
			})
		}
		started.Wait()
		users.Wait()
		t.OK(s.Close())
		t.OK(b.Close()) // waits for what the closed stream still does
	}
}

// waitLatestRecord: the event was recorded on a held stream, and then on a free one. A wait now waits for the latter only.
func waitLatestRecord(t *T) {
	held, free, s, e, mine, b := t.Stream(), t.Stream(), t.Stream(), t.Event(), t.Event(), t.Buffer(64)
	g := t.Gate(held)
	t.OK(held.Record(e))
	t.OK(free.Record(e))
	t.OK(s.WaitEvent(e))
	t.OK(s.Memset(b, 1))
	t.OK(s.Record(mine))
	t.Completes("work that waits for the event's latest record", mine)
	g.Open()
}

// rerecordHoldsNobody: the wait was for a record that is complete; that the event is then recorded on a held stream is no matter.
func rerecordHoldsNobody(t *T) {
	held, s, e, mine, b := t.Stream(), t.Stream(), t.Event(), t.Event(), t.Buffer(64)
	t.OK(held.Record(e))
	t.Sync(held)
	t.OK(s.WaitEvent(e))
	g := t.Gate(held)
	t.OK(held.Record(e))
	t.OK(s.Memset(b, 1))
	t.OK(s.Record(mine))
	t.Completes("work that waited for the record before", mine)
	t.Waits("the event recorded again", e)
	g.Open()
}

// rerecordFreesNobody: the wait was for a held record; that the event is then recorded on a free stream does not end it.
func rerecordFreesNobody(t *T) {
	held, free, s, e, mine, b := t.Stream(), t.Stream(), t.Stream(), t.Event(), t.Event(), t.Buffer(64)
	g := t.Gate(held)
	t.OK(held.Record(e))
	t.OK(s.WaitEvent(e))
	t.OK(s.Memset(b, 1))
	t.OK(s.Record(mine))
	t.OK(free.Record(e))
	t.Completes("the event recorded again", e)
	t.Waits("work that waits for the record before", mine)
	g.Open()
	t.Completes("that work, once the gate is open", mine)
}

func waitNeverRecorded(t *T) {
	s, e := t.Stream(), t.Event()
	t.OK(s.WaitEvent(e))
	t.Sync(s)
	if done, err := e.Query(); !done || err != nil {
		t.Errorf("Query of an event never recorded = %v, %v; want true", done, err)
	}
	t.OK(e.Sync())
}

func waitClosedEvent(t *T) {
	held, s, mine := t.Stream(), t.Stream(), t.Event()
	e, err := t.Device(0).NewEvent()
	t.OK(err)
	g := t.Gate(held)
	t.OK(held.Record(e))
	t.OK(s.WaitEvent(e))
	t.OK(e.Close())
	t.OK(s.Record(mine))
	t.Waits("work that waits for a record of a closed event", mine)
	g.Open()
	t.Completes("that work, once the gate is open", mine)
}

func waitAcrossDevices(t *T) {
	first, second := t.Device(0), t.Device(1)
	a, b := t.StreamOn(first), t.StreamOn(second)
	e := t.Event()
	mine, err := second.NewEvent()
	t.OK(err)
	defer mine.Close()
	g := t.Gate(a)
	t.OK(a.Record(e))
	t.OK(b.WaitEvent(e))
	t.OK(b.Record(mine))
	t.Waits("work of device 1 that waits for an event of device 0", mine)
	g.Open()
	t.Completes("that work, once the gate is open", mine)

	var o Order
	for i := range 50 {
		from, to := a, b
		if i%2 == 1 {
			from, to = b, a
		}
		t.Host(from, o.Add(i))
		t.OK(to.WaitStream(from))
	}
	t.Sync(a)
	t.Sync(b)
	for i, n := range o.Log() {
		if i != n {
			t.Fatalf("order %v", o.Log())
		}
	}
}

func legacyHandles(t *T) {
	dev := t.Device(0)
	legacy := dev.DefaultStream()
	id, err := legacy.ID()
	t.OK(err)
	for _, handle := range []uintptr{0, 1} {
		s, err := dev.BorrowStream(handle)
		t.OK(err)
		if got, err := s.ID(); got != id || err != nil {
			t.Errorf("handle %d has id %d, %v; the legacy stream has %d", handle, got, err, id)
		}
		if n, err := s.DeviceOrdinal(); n != 0 || err != nil {
			t.Errorf("handle %d: device %d, %v", handle, n, err)
		}
		if f, err := s.Flags(); f != cuda.StreamBlocking || err != nil {
			t.Errorf("handle %d: flags %d, %v", handle, f, err)
		}
		if p, err := s.Priority(); p != 0 || err != nil {
			t.Errorf("handle %d: priority %d, %v", handle, p, err)
		}
		if s.Context() != dev.Context {
			t.Errorf("handle %d is of another context", handle)
		}
		t.OK(s.Close())
		t.Is(s.Sync(), cuda.ErrClosed)
	}
	t.OK(legacy.Close()) // does nothing
	t.Sync(legacy)
	if got, err := t.Stream().ID(); got == id || err != nil {
		t.Errorf("a stream has the legacy stream's id %d, %v", got, err)
	}
}

func legacyIsOne(t *T) {
	dev, e := t.Device(0), t.Event()
	zero, err := dev.BorrowStream(0)
	t.OK(err)
	defer zero.Close()
	g := t.Gate(dev.DefaultStream())
	t.OK(zero.Record(e))
	t.Waits("work of handle 0 behind the default stream's", e)
	g.Open()
	t.Completes("that work, once the gate is open", e)
}

// perThreadStreams has two goroutines inside WithThreadStream at the same time, so on two threads.
func perThreadStreams(t *T) {
	dev := t.Device(0)
	legacy, err := dev.DefaultStream().ID()
	t.OK(err)
	var inside sync.WaitGroup
	inside.Add(2)
	ids, errs := make(chan uint64, 2), make(chan error, 2)
	for range 2 {
		go func() {
			errs <- dev.WithThreadStream(func(s *cuda.Stream) error {
				inside.Done()
				inside.Wait()
				id, err := s.ID()
				ids <- id
				nested := dev.WithThreadStream(func(same *cuda.Stream) error {
					if again, err := same.ID(); again != id || err != nil {
						t.Errorf("on one thread ids %d and %d, %v", id, again, err)
					}
					return nil
				})
				if n, err := s.DeviceOrdinal(); n != 0 || err != nil {
					t.Errorf("device %d, %v", n, err)
				}
				_, flagsErr := s.Flags()
				_, priorityErr := s.Priority()
				return errors.Join(err, nested, flagsErr, priorityErr, s.Sync())
			})
		}()
	}
	a, b := Receive(t, "an id", ids), Receive(t, "an id", ids)
	t.OK(Receive(t, "WithThreadStream", errs))
	t.OK(Receive(t, "WithThreadStream", errs))
	if a == b || a == legacy || b == legacy {
		t.Errorf("two threads' streams have ids %d and %d, the legacy stream %d; want three", a, b, legacy)
	}
}

func perThreadOrdered(t *T) {
	dev, e := t.Device(0), t.Event()
	g := t.Gate(dev.DefaultStream())
	t.OK(dev.WithThreadStream(func(s *cuda.Stream) error {
		t.OK(s.Record(e))
		t.Waits("per-thread work behind legacy work", e)
		g.Open()
		return s.Sync()
	}))
	t.Completes("the per-thread work", e)
}

func markedAsEarlier(t *T) {
	t.OpenDriver()
	s, other, e, b, k := t.Stream(), t.Stream(), t.Event(), t.Buffer(64), t.Kernel("nothing")
	t.Fault(s)
	t.Is(s.Sync(), cuda.ErrIllegalAddress, cuda.ErrDeviceLost)
	for op, call := range streamCalls(t, other, s, e, b, k) {
		err := call()
		t.Is(err, cuda.ErrIllegalAddress, cuda.ErrDeviceLost)
		if ce := new(cuda.Error); !errors.As(err, &ce) || ce.Op != op || ce.Code != cuda.ErrIllegalAddress || !strings.Contains(err.Error(), "earlier") {
			t.Errorf("%s: %q is not marked as earlier work's", op, err)
		}
	}
}

// lostFoundByQuery: with nobody waiting, asking is enough to learn of it.
func lostFoundByQuery(t *T) {
	t.OpenDriver()
	s, e := t.Stream(), t.Event()
	t.Fault(s)
	err := s.Record(e) // which may already be told
	t.Eventually("Query tells of the fault", func() bool {
		if err == nil {
			_, err = s.Query()
		}
		return err != nil
	})
	t.Is(err, cuda.ErrIllegalAddress, cuda.ErrDeviceLost)
	t.Contains(err, "earlier")
	_, err = e.Query()
	t.Is(err, cuda.ErrIllegalAddress, cuda.ErrDeviceLost)
}
