package cudatest

import (
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/hostlaunch/cuda"
)

var captureCases = []Case{
	{ID: "CP-01", Name: "nothing runs before the launch", Run: nothingBeforeLaunch},
	{ID: "CP-01", Name: "same code live and captured", Run: liveAndCaptured},
	{ID: "CP-01", Name: "where none can begin", Run: cannotBegin},
	{ID: "CP-03", Name: "unsafe calls", Run: unsafeCalls},
	{ID: "CP-03", Name: "another mode for a while", Run: modeForAWhile},
	{ID: "CP-03", Name: "mode restored after a panic", Run: modeRestored},
	{ID: "CP-04", Name: "invalidated", Run: invalidatedMustEnd},
	{ID: "CP-05", Name: "fork and join", Run: forkAndJoin},
	{ID: "CP-05", Name: "fork by events", Run: forkByEvents},
	{ID: "CP-05", Name: "not joined", Run: notJoined},
	{ID: "CP-05", Name: "merge", Run: mergeRefused},
	{ID: "CP-05", Name: "wrong join", Run: wrongJoin},
	{ID: "CP-06", Name: "legacy stream", Run: implicitCapture},
	{ID: "CP-06", Name: "the legacy stream is no fork", Run: legacyIsNoFork},
	{ID: "CP-07", Name: "status and info", Run: statusAndInfo},
	{ID: "CP-07", Name: "dependencies", Run: captureDependencies},
	{ID: "CP-08", Name: "into a graph", Run: captureToGraph},
	{ID: "CP-08", Name: "a graph closed meanwhile", Run: graphClosedMeanwhile},
	{ID: "CP-13", Name: "recapture", Run: recapture},
	{ID: "CP-09", Name: "external events", Run: externalEvents},
	{ID: "EV-04", Name: "captured event", Run: capturedEvent},
}

// Capture captures on a new stream, and closes the graph when the case ends.
func (t *T) Capture(build func(*cuda.GraphBuilder) error) *cuda.Graph {
	t.Helper()
	g, err := cuda.Capture(t.Stream(), cuda.CaptureThreadLocal, build)
	t.OK(err)
	t.Cleanup(func() { g.Close() })
	return g
}

// Exec instantiates g, and closes that when the case ends.
func (t *T) Exec(g *cuda.Graph) *cuda.GraphExec {
	t.Helper()
	x, err := g.Instantiate()
	t.OK(err)
	t.Cleanup(func() { x.Close() })
	return x
}

// Builder makes a builder, and closes it when the case ends.
func (t *T) Builder() *cuda.GraphBuilder {
	t.Helper()
	b, err := t.Device(0).NewGraphBuilder()
	t.OK(err)
	t.Cleanup(func() { b.Close() })
	return b
}

// Begin makes a builder that is building.
func (t *T) Begin(mode cuda.CaptureMode) *cuda.GraphBuilder {
	t.Helper()
	b := t.Builder()
	t.OK(b.Begin(mode))
	return b
}

// Status wants s in a capture state.
func (t *T) Status(s *cuda.Stream, want cuda.CaptureStatus) {
	t.Helper()
	if st, err := s.CaptureStatus(); st != want || err != nil {
		t.Fatalf("capture status %v, %v; want %v", st, err, want)
	}
}

// Works wants s to do its work as if nothing had happened.
func (t *T) Works(s *cuda.Stream) {
	t.Helper()
	t.Status(s, cuda.CaptureNone)
	ran := false
	t.Host(s, func() { ran = true })
	t.Sync(s)
	if !ran {
		t.Error("a host function did not run afterwards")
	}
}

// elsewhere runs fn on a goroutine, and so a thread, of its own.
func elsewhere(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		fn()
	}()
	<-done
}

func nothingBeforeLaunch(t *T) {
	s, b, host := t.Stream(), t.Buffer(64), t.Pinned(64).Bytes()
	clear(host)
	t.OK(s.Memset(b, 1))
	t.Sync(s)
	ran := false
	g := t.Capture(func(q *cuda.GraphBuilder) error {
		return errors.Join(
			q.Memset(b, 7),
			cuda.CopyToHost(q, host, b),
			cuda.HostLaunch(q, func() { ran = host[0] == 7 && host[63] == 7 }))
	})
	x := t.Exec(g)
	now := make([]byte, 64)
	t.OK(cuda.CopyToHost(s, now, b))
	t.Sync(s)
	time.Sleep(2 * time.Millisecond)
	if ran || now[0] != 1 || host[0] != 0 {
		t.Fatalf("before the launch: function ran: %v, buffer %d, host %d", ran, now[0], host[0])
	}
	t.OK(x.Launch(s))
	t.Sync(s)
	if !ran {
		t.Errorf("the launch did not do its work in order: host memory %d", host[0])
	}
}

func liveAndCaptured(t *T) {
	a, b, log := t.Buffer(64), t.Buffer(64), t.Buffer(64)
	in := cuda.PinnedSlice[uint32](t.Pinned(64))
	copy(in, slices.Repeat([]uint32{5}, 16))
	work := func(q cuda.Queue, out []byte) error {
		return errors.Join(
			cuda.CopyToDevice(q, a, in),
			q.Launch(t.Kernel("increment"), cuda.Grid1D(16, 16), a, uint32(16)),
			q.CopyBuffer(b, a), q.Memset16(log, 3), q.Memset32(log, 4),
			cuda.CopyToHost(q, out, b))
	}
	s, live, captured := t.Stream(), t.Pinned(64).Bytes(), t.Pinned(64).Bytes()
	t.OK(work(s, live))
	t.Sync(s)
	x := t.Exec(t.Capture(func(q *cuda.GraphBuilder) error { return work(q, captured) }))
	t.OK(x.Launch(s))
	t.Sync(s)
	if !slices.Equal(live, captured) || live[0] != 6 {
		t.Errorf("live %v, captured %v", live, captured)
	}
}

func cannotBegin(t *T) {
	nothing := func(*cuda.GraphBuilder) error { return nil }
	_, err := cuda.Capture(t.Device(0).DefaultStream(), cuda.CaptureThreadLocal, nothing)
	t.Is(err, cuda.ErrCaptureUnsupported)
	_, err = cuda.Capture(t.Stream(), 3, nothing)
	t.Is(err, cuda.ErrInvalidValue)
	s := t.Stream()
	borrowed, err := t.Device(0).BorrowStream(s.CUDAStream()) // not while it captures: see BorrowStream
	t.OK(err)
	defer borrowed.Close()
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		_, err := cuda.Capture(s, cuda.CaptureThreadLocal, nothing)
		t.Is(err, cuda.ErrCapturing)
		_, err = cuda.Capture(borrowed, cuda.CaptureThreadLocal, nothing) // only the driver knows
		t.Is(err, cuda.ErrCapturing)
		return nil
	})
	t.OK(err)
	t.OK(g.Close())
	b := t.Begin(cuda.CaptureThreadLocal)
	t.Is(b.Begin(cuda.CaptureThreadLocal), cuda.ErrCapturing)
	g, err = b.End()
	t.OK(err)
	t.OK(g.Close())
	t.Works(s)
}

// unsafeCall is a call that does its work at once, where no capture sees it.
type unsafeCall struct {
	name string
	call func() error
}

func unsafeCallsOf(t *T) []unsafeCall {
	s, e := t.Stream(), t.Event()
	t.OK(s.Record(e))
	t.Sync(s)
	return []unsafeCall{
		{"Alloc", func() error {
			b, err := t.Device(0).Alloc(64)
			if err == nil {
				t.Cleanup(func() { b.Close() })
			}
			return err
		}},
		{"Stream.Query", func() error { _, err := s.Query(); return err }},
		{"Stream.Sync", s.Sync},
		{"Event.Query", func() error { _, err := e.Query(); return err }},
		{"Event.Sync", e.Sync},
	}
}

func unsafeCalls(t *T) {
	here := func(fn func()) { fn() }
	for _, c := range []struct {
		name    string
		mode    cuda.CaptureMode
		where   func(func())
		refused bool
	}{
		{"global, same goroutine", cuda.CaptureGlobal, here, true},
		{"global, another goroutine", cuda.CaptureGlobal, elsewhere, true},
		{"thread local, same goroutine", cuda.CaptureThreadLocal, here, true},
		{"thread local, another goroutine", cuda.CaptureThreadLocal, elsewhere, false},
		{"relaxed, same goroutine", cuda.CaptureRelaxed, here, false},
		{"relaxed, another goroutine", cuda.CaptureRelaxed, elsewhere, false},
	} {
		for _, call := range unsafeCallsOf(t) {
			b := t.Begin(c.mode)
			var err error
			c.where(func() { err = call.call() })
			g, end := b.End()
			switch {
			case c.refused && (!errors.Is(err, cuda.ErrCaptureUnsupported) || !errors.Is(end, cuda.ErrCaptureInvalidated) || g != nil):
				t.Errorf("%s: %s: %v, End: %v; want it refused and the capture invalid", c.name, call.name, err, end)
			case !c.refused && (err != nil || end != nil):
				t.Errorf("%s: %s: %v, End: %v", c.name, call.name, err, end)
			}
			t.OK(g.Close())
		}
	}
}

func modeForAWhile(t *T) {
	for _, call := range unsafeCallsOf(t) {
		for _, c := range []struct {
			name          string
			capture, push cuda.CaptureMode
			where         func(func())
		}{
			{"relaxed in the goroutine that captures", cuda.CaptureThreadLocal, cuda.CaptureRelaxed, func(fn func()) { fn() }},
			{"relaxed elsewhere", cuda.CaptureGlobal, cuda.CaptureRelaxed, elsewhere},
			{"thread local elsewhere", cuda.CaptureGlobal, cuda.CaptureThreadLocal, elsewhere},
		} {
			b := t.Begin(c.capture)
			var err error
			c.where(func() { err = t.Driver.WithCaptureMode(c.push, call.call) })
			g, end := b.End()
			if err != nil || end != nil {
				t.Errorf("%s: %s: %v, End: %v", c.name, call.name, err, end)
			}
			t.OK(g.Close())
		}
	}
}

func modeRestored(t *T) {
	e := t.Event()
	t.Is(t.Driver.WithCaptureMode(7, func() error { return nil }), cuda.ErrInvalidValue)
	t.Is(t.Driver.WithCaptureMode(cuda.CaptureRelaxed, nil), cuda.ErrInvalidValue)
	want := errors.New("mine")
	if err := t.Driver.WithCaptureMode(cuda.CaptureRelaxed, func() error { return want }); err != want {
		t.Errorf("error %v, want the function's own", err)
	}
	b := t.Begin(cuda.CaptureThreadLocal)
	func() {
		defer func() {
			if recover() != "out" {
				t.Error("the panic was swallowed")
			}
		}()
		t.Driver.WithCaptureMode(cuda.CaptureRelaxed, func() error {
			_, err := e.Query()
			t.OK(err)
			panic("out")
		})
	}()
	_, err := e.Query() // in the former mode again
	t.Is(err, cuda.ErrCaptureUnsupported)
	_, err = b.End()
	t.Is(err, cuda.ErrCaptureInvalidated)
}

func invalidatedMustEnd(t *T) {
	s, e := t.Stream(), t.Event()
	_, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		t.Host(b, func() { t.Error("the function of a spoilt capture ran") })
		_, err := e.Query()
		t.Is(err, cuda.ErrCaptureUnsupported)
		t.Status(s, cuda.CaptureInvalidated)
		if err := cuda.HostLaunch(b, func() {}); !errors.Is(err, cuda.ErrCaptureInvalidated) {
			t.Errorf("HostLaunch on an invalid capture: %v", err)
		}
		return nil
	})
	t.Is(err, cuda.ErrCaptureInvalidated)
	t.Works(s)
	if n := t.Driver.Stats().HostNodes; n != 0 {
		t.Errorf("%d host nodes are left of a graph that never was", n)
	}
}
