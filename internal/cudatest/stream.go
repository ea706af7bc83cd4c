package cudatest

import (
	"context"
	"errors"
	"slices"
	"strings"
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
		t.Contains(err, "flags")
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
		t.Contains(err, "priority", "Clamp") // the latter is the way out
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
