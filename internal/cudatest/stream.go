package cudatest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hostlaunch/cuda"
)

// streamCases: what a stream is, and how streams order each other.
var streamCases = []Case{
	{ID: "ST-01", Name: "flags", Run: streamFlags},
	{ID: "ST-01", Name: "reads back", Run: streamReadsBack},
	{ID: "ST-01", Name: "ids are unique", Run: streamIDs},
	{ID: "ST-01", Name: "device reads back", Devices: 2, Run: streamDevice},
	{ID: "ST-02", Name: "range", Run: priorityRange},
	{ID: "ST-02", Name: "out of range is refused", Run: priorityRefused},
	{ID: "ST-02", Name: "Clamp", Run: priorityClamped},
	{ID: "ST-03", Name: "a blocking stream holds legacy work", Run: blockingHoldsLegacy},
	{ID: "ST-03", Name: "the legacy stream holds blocking work", Run: legacyHoldsBlocking},
	{ID: "ST-03", Name: "both ways in turn", Run: legacyInTurn},
	{ID: "ST-03", Name: "non-blocking is not ordered", Run: nonBlockingNotOrdered},
	{ID: "ST-03", Name: "non-blocking passes a gate", Run: nonBlockingPasses},
	{ID: "ST-03", Name: "legacy sync, as seen", Run: legacySyncAsSeen},
	{ID: "ST-04", Name: "Query", Run: streamQuery},
	{ID: "ST-04", Name: "Sync waits", Run: streamSync},
	{ID: "ST-04", Name: "Wait", Run: streamWait},
	{ID: "ST-04", Name: "Wait ends with its context", Run: streamWaitContext},
	{ID: "ST-05", Name: "Close does not wait", Run: closeDoesNotWait},
	{ID: "ST-05", Name: "closed", Run: streamClosed},
	{ID: "ST-05", Name: "Close beside use", Run: closeBesideUse},
	{ID: "ST-06", Name: "latest record when the wait is queued", Run: waitLatestRecord},
	{ID: "ST-06", Name: "re-recording holds nobody", Run: rerecordHoldsNobody},
	{ID: "ST-06", Name: "re-recording frees nobody", Run: rerecordFreesNobody},
	{ID: "ST-06", Name: "never recorded", Run: waitNeverRecorded},
	{ID: "ST-06", Name: "event closed behind the wait", Run: waitClosedEvent},
	{ID: "ST-06", Name: "across devices", Devices: 2, Run: waitAcrossDevices},
	{ID: "ST-08", Name: "legacy handles", Run: legacyHandles},
	{ID: "ST-08", Name: "legacy handles are one stream", Run: legacyIsOne},
	{ID: "ST-08", Name: "per-thread streams", Run: perThreadStreams},
	{ID: "ST-08", Name: "per-thread stream is ordered with legacy", Run: perThreadOrdered},
	{ID: "ST-11", Name: "marked as earlier work's", Child: true, Run: markedAsEarlier},
	{ID: "ST-11", Name: "found by Query", Child: true, Run: lostFoundByQuery},
}

// deviceLog is a log that kernels write, in the device's own order. Only streams that are ordered may share one.
type deviceLog struct {
	t     *T
	k     *cuda.Kernel
	mem   *cuda.PinnedBuffer
	words []uint64 // how many there are, and then they
}

// DeviceLog makes a log with room for n numbers. It is made before any gate, as all that has to be closed.
func (t *T) DeviceLog(n int) *deviceLog {
	t.Helper()
	l := &deviceLog{t: t, k: t.Kernel("append"), mem: t.Pinned(8 * (n + 1))}
	l.words = cuda.PinnedSlice[uint64](l.mem)
	clear(l.words)
	return l
}

// Add queues noting v.
func (l *deviceLog) Add(s *cuda.Stream, v uint64) {
	l.t.Helper()
	l.t.OK(s.Launch(l.k, one, l.mem, v))
}

// Want fails the case unless the log is want. The streams must have been waited for.
func (l *deviceLog) Want(want ...uint64) {
	l.t.Helper()
	if got := l.words[1 : 1+min(l.words[0], uint64(len(l.words)-1))]; !slices.Equal(got, want) {
		l.t.Fatalf("order %v, want %v", got, want)
	}
}

// Waits wants e to be still incomplete after some time.
func (t *T) Waits(what string, e *cuda.Event) {
	t.Helper()
	time.Sleep(20 * time.Millisecond)
	if done, err := e.Query(); done || err != nil {
		t.Fatalf("%s: Query = %v, %v; want it to wait", what, done, err)
	}
}

// Completes wants e to become complete within some seconds, whatever is held elsewhere. It asks, for a wait that is wrongly
// held would never return.
func (t *T) Completes(what string, e *cuda.Event) {
	t.Helper()
	t.Eventually(what, func() bool {
		done, err := e.Query()
		t.OK(err)
		return done
	})
}

func streamFlags(t *T) {
	for _, c := range []struct {
		name string
		opts []cuda.StreamOption
		want cuda.StreamFlags
	}{
		{"default", nil, cuda.StreamNonBlocking},
		{"NonBlocking", []cuda.StreamOption{cuda.NonBlocking()}, cuda.StreamNonBlocking},
		{"Blocking", []cuda.StreamOption{cuda.Blocking()}, cuda.StreamBlocking},
		{"the last one wins", []cuda.StreamOption{cuda.Blocking(), nil, cuda.NonBlocking()}, cuda.StreamNonBlocking},
	} {
		if f, err := t.Stream(c.opts...).Flags(); f != c.want || err != nil {
			t.Errorf("%s: flags %v, %v; want %v", c.name, f, err, c.want)
		}
	}
	for _, f := range []cuda.StreamFlags{2, 3, 4, 1 << 31, ^cuda.StreamFlags(0)} {
		_, err := t.Device(0).NewStream(cuda.WithFlags(f))
		t.Is(err, cuda.ErrInvalidValue)
		if !strings.Contains(err.Error(), "flags") {
			t.Errorf("%q does not name the flags", err)
		}
	}
}

func streamReadsBack(t *T) {
	dev := t.Device(0)
	_, greatest, err := dev.StreamPriorities()
	t.OK(err)
	for _, flags := range []cuda.StreamFlags{cuda.StreamBlocking, cuda.StreamNonBlocking} {
		for _, p := range []int{0, greatest} {
			s := t.Stream(cuda.WithFlags(flags), cuda.Priority(p))
			f, err := s.Flags()
			t.OK(err)
			prio, err := s.Priority()
			t.OK(err)
			n, err := s.DeviceOrdinal()
			t.OK(err)
			if f != flags || prio != p || n != 0 || s.Context() != dev.Context {
				t.Errorf("read back flags %v, priority %d, device %d, context %p; want %v, %d, 0, %p", f, prio, n, s.Context(), flags, p, dev.Context)
			}
		}
	}
}

func streamIDs(t *T) {
	seen := map[uint64]bool{}
	for range 50 {
		s, err := t.Device(0).NewStream()
		t.OK(err)
		id, err := s.ID()
		t.OK(err)
		if again, err := s.ID(); again != id || err != nil {
			t.Errorf("ID = %d, then %d, %v", id, again, err)
		}
		if seen[id] {
			t.Errorf("id %d was given twice", id)
		}
		seen[id] = true
		t.OK(s.Close()) // the handle may be used again, the id may not
	}
}

func streamDevice(t *T) {
	for i := range 2 {
		s := t.StreamOn(t.Device(i))
		if n, err := s.DeviceOrdinal(); n != i || err != nil {
			t.Errorf("stream of device %d says %d, %v", i, n, err)
		}
		if s.Context() != t.Device(i).Context {
			t.Errorf("stream of device %d has another context", i)
		}
	}
}

func priorityRange(t *T) {
	least, greatest, err := t.Device(0).StreamPriorities()
	t.OK(err)
	if greatest > least || least < 0 || greatest > 0 {
		t.Fatalf("range %d to %d; want greatest <= 0 <= least, lower numbers being higher priorities", greatest, least)
	}
	for p := greatest; p <= least; p++ {
		if got, err := t.Stream(cuda.Priority(p)).Priority(); got != p || err != nil {
			t.Errorf("priority %d reads back as %d, %v", p, got, err)
		}
	}
	if got, err := t.Stream().Priority(); got != 0 || err != nil {
		t.Errorf("default priority %d, %v; want 0", got, err)
	}
}

func priorityRefused(t *T) {
	least, greatest, err := t.Device(0).StreamPriorities()
	t.OK(err)
	for _, p := range []int{least + 1, greatest - 1, 1 << 40, -1 << 40} {
		_, err := t.Device(0).NewStream(cuda.Priority(p))
		t.Is(err, cuda.ErrInvalidValue)
		if !strings.Contains(err.Error(), "priority") || !strings.Contains(err.Error(), "Clamp") {
			t.Errorf("%q does not name the priority and the way out", err)
		}
	}
}

func priorityClamped(t *T) {
	least, greatest, err := t.Device(0).StreamPriorities()
	t.OK(err)
	for p, want := range map[int]int{least + 1: least, greatest - 1: greatest, 1 << 40: least, -1 << 40: greatest, greatest: greatest} {
		if got, err := t.Stream(cuda.Priority(p), cuda.Clamp()).Priority(); got != want || err != nil {
			t.Errorf("priority %d clamped reads back as %d, %v; want %d", p, got, err, want)
		}
	}
}

func blockingHoldsLegacy(t *T) {
	s, legacy, e, b := t.Stream(cuda.Blocking()), t.Device(0).DefaultStream(), t.Event(), t.Buffer(64)
	g := t.Gate(s)
	t.OK(legacy.Memset(b, 1))
	t.OK(legacy.Record(e))
	t.Waits("legacy work behind a blocking stream's", e)
	g.Open()
	t.Completes("the legacy work", e)
}

func legacyHoldsBlocking(t *T) {
	s, legacy, e, b := t.Stream(cuda.Blocking()), t.Device(0).DefaultStream(), t.Event(), t.Buffer(64)
	g := t.Gate(legacy)
	t.OK(s.Memset(b, 1))
	t.OK(s.Record(e))
	t.Waits("a blocking stream's work behind legacy work", e)
	g.Open()
	t.Completes("the blocking stream's work", e)
}

// legacyInTurn goes back and forth between blocking streams and the legacy stream. The spin before each note is there to
// be overtaken.
func legacyInTurn(t *T) {
	legacy, log := t.Device(0).DefaultStream(), t.DeviceLog(64)
	blocking := []*cuda.Stream{t.Stream(cuda.Blocking()), t.Stream(cuda.Blocking())}
	var want []uint64
	for i := range uint64(32) {
		s := legacy
		if i%2 == 0 {
			s = blocking[i/2%2]
		}
		t.Spin(s, time.Duration(32-i)*20*time.Microsecond)
		log.Add(s, i)
		want = append(want, i)
	}
	t.Sync(legacy)
	log.Want(want...)
}

// nonBlockingNotOrdered spins on one stream and sees work of the other done meanwhile. A host that is held up for longer than
// the spin cannot see it, so it gets several tries.
func nonBlockingNotOrdered(t *T) {
	legacy, s, b := t.Device(0).DefaultStream(), t.Stream(), t.Buffer(64)
	overtakes := func(busy, other *cuda.Stream) bool {
		for range 5 {
			t.Spin(busy, 50*time.Millisecond)
			t.OK(other.Memset(b, 1))
			t.Sync(other)
			done, err := busy.Query()
			t.OK(err)
			t.Sync(busy)
			if !done {
				return true
			}
		}
		return false
	}
	if !overtakes(legacy, s) {
		t.Error("the non-blocking stream's work waited for the legacy stream's")
	}
	if !overtakes(s, legacy) {
		t.Error("the legacy stream's work waited for the non-blocking stream's")
	}
}

func nonBlockingPasses(t *T) {
	legacy, s, e, b := t.Device(0).DefaultStream(), t.Stream(), t.Event(), t.Buffer(64)
	for _, way := range []struct {
		what        string
		held, other *cuda.Stream
	}{{"non-blocking work beside the held legacy stream", legacy, s}, {"legacy work beside a held non-blocking stream", s, legacy}} {
		g := t.Gate(way.held)
		<-g.Entered
		t.OK(way.other.Memset(b, 1))
		t.OK(way.other.Record(e))
		t.Completes(way.what, e)
		g.Open()
		t.Sync(way.held)
	}
}

// legacySyncAsSeen only writes down what a driver does where CUDA's documents leave it open: whether a query or a sync of one
// stream looks at the other's work, when nothing was queued on the first one since.
func legacySyncAsSeen(t *T) {
	const spin = 50 * time.Millisecond
	legacy, blocking, other := t.Device(0).DefaultStream(), t.Stream(cuda.Blocking()), t.Stream()
	t.Spin(legacy, time.Microsecond) // and so the kernel is loaded
	t.Sync(legacy)
	for _, c := range []struct {
		busy, asked         *cuda.Stream
		busyName, askedName string
	}{
		{blocking, legacy, "a blocking stream", "the legacy stream"},
		{legacy, blocking, "the legacy stream", "a blocking stream"},
		{other, legacy, "a non-blocking stream", "the legacy stream"},
		{legacy, other, "the legacy stream", "a non-blocking stream"},
	} {
		start := time.Now()
		t.Spin(c.busy, spin)
		done, err := c.asked.Query()
		t.OK(err)
		asked := time.Since(start)
		t.Sync(c.asked)
		synced := time.Since(start)
		t.Sync(c.busy)
		t.Logf("%v of work on %s: Query of %s says done=%v after %v, its Sync returns after %v; the work was done after %v",
			spin, c.busyName, c.askedName, done, asked.Round(time.Microsecond), synced.Round(time.Microsecond), time.Since(start).Round(time.Microsecond))
	}
}

func streamQuery(t *T) {
	s := t.Stream()
	want := func(when string, want bool) {
		t.Helper()
		if done, err := s.Query(); done != want || err != nil {
			t.Errorf("Query %s = %v, %v; want %v", when, done, err, want)
		}
	}
	want("of a new stream", true)
	g := t.Gate(s)
	want("of a held stream", false)
	g.Open()
	t.Sync(s)
	want("after Sync", true)
}

func streamSync(t *T) {
	s, b := t.Stream(), t.Buffer(4)
	out := cuda.PinnedSlice[uint32](t.Pinned(4))
	for i := range uint32(20) {
		t.Spin(s, 2*time.Millisecond)
		t.OK(s.Memset32(b, i))
		t.OK(cuda.CopyToHost(s, out, b))
		t.Sync(s)
		if out[0] != i {
			t.Fatalf("round %d: %d after Sync", i, out[0])
		}
	}
}

func streamWait(t *T) {
	s, b := t.Stream(), t.Buffer(4)
	out := cuda.PinnedSlice[uint32](t.Pinned(4))
	t.OK(s.Wait(t.Context())) // idle
	for i := range uint32(20) {
		t.Spin(s, 2*time.Millisecond)
		t.OK(s.Memset32(b, i))
		t.OK(cuda.CopyToHost(s, out, b))
		t.OK(s.Wait(t.Context()))
		if out[0] != i {
			t.Fatalf("round %d: %d after Wait", i, out[0])
		}
	}
	g := t.Gate(s)
	errs := make(chan error, 100)
	for range cap(errs) {
		go func() { errs <- s.Wait(t.Context()) }()
	}
	time.Sleep(10 * time.Millisecond)
	if len(errs) > 0 {
		t.Errorf("Wait of a held stream returned %v", <-errs)
	}
	g.Open()
	for range cap(errs) {
		t.OK(Receive(t, "a Wait", errs))
	}
}

func streamWaitContext(t *T) {
	s := t.Stream()
	ran := false
	g := t.Gate(s)
	t.Host(s, func() { ran = true })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	t.Is(s.Wait(ctx), cuda.ErrContextEnded, context.DeadlineExceeded)
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if err := s.Wait(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "Stream.Wait") {
		t.Errorf("Wait = %v, want the context's error", err)
	}
	g.Open()
	t.OK(s.Wait(t.Context()))
	if !ran {
		t.Error("the stream's work did not go on")
	}
}

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
	if !strings.Contains(err.Error(), "earlier") {
		t.Errorf("%q is not marked as earlier work's", err)
	}
	_, err = e.Query()
	t.Is(err, cuda.ErrIllegalAddress, cuda.ErrDeviceLost)
}
