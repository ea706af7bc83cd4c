package cudatest

import (
	"context"
	"time"

	"github.com/hostlaunch/cuda"
)

// accessCases: when the host may touch managed memory. What the software device is asked about here, hardware must bear: the
// memory is touched wherever the rules allow it.
var accessCases = []Case{
	{ID: "HL-19", Name: "memory of its own stream", Run: accessOwnStream},
	{ID: "HL-19", Name: "global memory, others ordered behind", Run: accessOthersBehind},
	{ID: "HL-19", Name: "global memory, another stream active", Run: accessOthersActive},
	{ID: "HL-19", Name: "joined streams are seen", Run: accessJoined},
	{ID: "HL-19", Name: "joined when long done", Run: accessJoinedDone},
	{ID: "HL-19", Name: "idle across functions", Run: accessStaysIdle},
	{ID: "HL-19", Name: "a signal stands in for Sync", Run: accessSignal},
	{ID: "HL-19", Name: "what else shows completion", Run: accessObserved},
	{ID: "HL-19", Name: "legacy and blocking streams", Run: accessLegacy},
	{ID: "HL-20", Name: "work behind a function", Run: accessWorkBehind},
	{ID: "HL-20", Name: "work of another stream", Run: accessWorkElsewhere},
	{ID: "HL-20", Name: "work before and behind", Run: accessWorkAround},
}

// touch adds 1 to the first word of m.
func touch(m *cuda.ManagedBuffer) { cuda.ManagedSlice[uint32](m)[0]++ }

// Touches queues a function that touches m, which it must be allowed to.
func (t *T) Touches(s *cuda.Stream, what string, m *cuda.ManagedBuffer) {
	t.Helper()
	t.Host(s, func() {
		if err := m.HostAccess(); err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		touch(m)
	})
}

// Increments queues a kernel that adds 1 to the first word of m.
func (t *T) Increments(s *cuda.Stream, m *cuda.ManagedBuffer) {
	t.Helper()
	t.OK(s.Launch(t.Kernel("increment"), one, m, uint32(1)))
}

// Zero makes managed memory whose first word is 0.
func (t *T) Zero() *cuda.ManagedBuffer {
	t.Helper()
	m := t.Managed(cuda.AttachGlobal)
	clear(m.Bytes())
	return m
}

// WantWord waits for nothing: it looks at the first word of m.
func (t *T) WantWord(m *cuda.ManagedBuffer, want uint32) {
	t.Helper()
	if got := cuda.ManagedSlice[uint32](m)[0]; got != want {
		t.Errorf("the word is %d, want %d", got, want)
	}
}

// accessOwnStream: between two kernels of its stream, also beside a busy stream.
func accessOwnStream(t *T) {
	t.Checked()
	s, other, m := t.Stream(), t.Stream(), t.Zero()
	t.OK(s.Attach(m, cuda.AttachSingle))
	t.Spin(other, 20*time.Millisecond)
	t.Increments(s, m)
	t.Touches(s, "inside, own stream", m)
	t.Increments(s, m)
	t.Sync(s)
	t.WantWord(m, 3)
	t.Sync(other)
}

// accessOthersBehind: work has been added to another stream, ordered behind the function by an event.
func accessOthersBehind(t *T) {
	t.Checked()
	s, other, m, e := t.Stream(), t.Stream(), t.Zero(), t.Event()
	gate := t.Gate(s)
	t.Touches(s, "inside, another stream's work is behind", m)
	t.OK(s.Record(e))
	t.OK(other.WaitEvent(e))
	t.Increments(other, m)
	t.Free("all device work is behind functions", m)
	gate.Open()
	t.Sync(other)
	t.WantWord(m, 2)
}

// accessOthersActive: the work of another stream is ordered with nothing, so the function may not touch global memory.
func accessOthersActive(t *T) {
	t.Checked()
	s, other, m := t.Stream(), t.Stream(), t.Zero()
	t.Spin(other, time.Millisecond)
	inside := make(chan error, 1)
	t.Host(s, func() { inside <- m.HostAccess() })
	t.Sync(s)
	if err := <-inside; t.cfg.OpenChecked != nil {
		t.Is(err, cuda.ErrHostAccess)
	}
	t.Taken("another stream is active", m)
	t.Sync(other)
	t.Free("all waited for", m)
}

// accessJoined: starting a function is like synchronising an event before it, so work of streams joined before is seen.
func accessJoined(t *T) {
	t.Checked()
	s, other, m, e := t.Stream(), t.Stream(), t.Zero(), t.Event()
	t.Spin(other, time.Millisecond)
	t.Increments(other, m)
	t.OK(other.Record(e))
	t.OK(s.WaitEvent(e))
	t.Touches(s, "inside, the other stream is joined", m)
	t.Sync(s)
	t.Free("afterwards", m)
	t.WantWord(m, 2)
}

// accessJoinedDone: the same behind another function, when the work joined is done before it is joined.
func accessJoinedDone(t *T) {
	t.Checked()
	s, other, m, e := t.Stream(), t.Stream(), t.Zero(), t.Event()
	gate := t.Gate(t.Stream()) // it holds other streams' functions, so that those of s are called in one go
	t.Increments(other, m)
	t.OK(other.Record(e))
	time.Sleep(5 * time.Millisecond)
	t.Host(s, func() {})
	t.OK(s.WaitEvent(e))
	t.Touches(s, "inside, the other stream is joined", m)
	t.Taken("nothing has shown that the other stream is done", m)
	gate.Open()
	t.Sync(s)
	t.WantWord(m, 2)
}

// accessStaysIdle: functions one behind the other, with other streams' functions and events between, and no device work.
func accessStaysIdle(t *T) {
	t.Checked()
	s, m, e := t.Stream(), t.Zero(), t.Event()
	t.Increments(s, m)
	for range 3 {
		t.Touches(s, "inside", m)
		t.OK(s.Record(e))
		t.OK(s.WaitEvent(e))
	}
	t.OK(e.Sync())
	t.Free("after functions alone", m)
	t.WantWord(m, 4)
}

// accessSignal: the last function's signal is all the program waits for.
func accessSignal(t *T) {
	t.Checked()
	s, m := t.Stream(), t.Zero()
	done := make(chan struct{})
	t.Increments(s, m)
	t.Touches(s, "inside", m)
	t.Host(s, func() { close(done) })
	Receive(t, "the function's signal", done)
	t.Free("signalled", m)
	touch(m)
	t.WantWord(m, 3)
}

// accessObserved: work is over for the program when it has seen so, and only what it has seen.
func accessObserved(t *T) {
	t.Checked()
	for _, how := range []struct {
		name string
		see  func(*cuda.Stream, *cuda.Event) error
	}{
		{"Stream.Sync", func(s *cuda.Stream, _ *cuda.Event) error { return s.Sync() }},
		{"Stream.Wait", func(s *cuda.Stream, _ *cuda.Event) error { return s.Wait(context.Background()) }},
		{"Event.Sync", func(_ *cuda.Stream, e *cuda.Event) error { return e.Sync() }},
		{"Event.Wait", func(_ *cuda.Stream, e *cuda.Event) error { return e.Wait(context.Background()) }},
		{"Event.Done", func(_ *cuda.Stream, e *cuda.Event) error { <-e.Done(); return nil }},
		{"Stream.Query", func(s *cuda.Stream, _ *cuda.Event) error { return until(s.Query) }},
		{"Event.Query", func(_ *cuda.Stream, e *cuda.Event) error { return until(e.Query) }},
	} {
		s, m, e := t.Stream(), t.Zero(), t.Event()
		t.Increments(s, m)
		t.OK(s.Record(e))
		time.Sleep(2 * time.Millisecond) // long done, and yet unseen
		t.Taken(how.name+": nobody has looked", m)
		t.OK(how.see(s, e))
		t.Free(how.name, m)
		t.WantWord(m, 1)
		t.Increments(s, m)
		t.OK(e.Sync())
		t.Taken(how.name+": work behind the event", m)
		t.Sync(s)
	}
}

// until asks until it is so.
func until(query func() (bool, error)) error {
	for {
		if done, err := query(); done || err != nil {
			return err
		}
		time.Sleep(10 * time.Microsecond)
	}
}

// accessLegacy: the legacy stream's order counts as order.
func accessLegacy(t *T) {
	t.Checked()
	legacy, blocking, free, m := t.Device(0).DefaultStream(), t.Stream(cuda.Blocking()), t.Stream(), t.Zero()
	t.Increments(blocking, m)
	t.Sync(legacy)
	t.Free("the legacy stream waits for blocking ones", m)
	t.Increments(legacy, m)
	t.Touches(blocking, "inside, behind the legacy stream", m)
	t.Sync(blocking)
	t.Free("behind the legacy stream", m)
	t.Increments(free, m)
	t.Sync(legacy)
	t.Taken("a non-blocking stream", m)
	t.Sync(free)
	t.WantWord(m, 4)
}

// accessWorkBehind: device work queued behind a function that has yet to run makes its stream active afterwards.
func accessWorkBehind(t *T) {
	t.Checked()
	s, m := t.Stream(), t.Zero()
	gate := t.Gate(s)
	t.Increments(s, m)
	t.Free("the work is behind the gate", m)
	Receive(t, "the gate is reached", gate.Entered)
	t.Free("the gate's function runs", m)
	touch(m)
	gate.Open()
	if t.cfg.OpenChecked != nil {
		t.Eventually("the stream is active when the function has returned", func() bool { return m.HostAccess() != nil })
	}
	t.Sync(s)
	t.WantWord(m, 2)
}

// accessWorkElsewhere: the same for work of another stream, and of a third behind that.
func accessWorkElsewhere(t *T) {
	t.Checked()
	s, second, third, m := t.Stream(), t.Stream(), t.Stream(), t.Zero()
	gate := t.Gate(s)
	t.OK(second.WaitStream(s))
	t.OK(third.WaitStream(second))
	t.Increments(third, m)
	t.Free("all work is behind the gate", m)
	touch(m)
	gate.Open()
	t.Sync(third)
	t.Free("waited for", m)
	t.WantWord(m, 2)
}

// accessWorkAround: work before the function counts, and what is behind another function still does not.
func accessWorkAround(t *T) {
	t.Checked()
	s, held, m := t.Stream(), t.Stream(), t.Zero()
	gate := t.Gate(held)
	t.Increments(held, m)
	t.Increments(s, m)
	t.Taken("work before any function", m)
	t.Sync(s)
	t.Free("waited for; the rest is behind the gate", m)
	touch(m)
	gate.Open()
	t.Sync(held)
	t.WantWord(m, 3)
}
