package cudatest

import (
	"bytes"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

var hostNodeCases = []Case{
	{ID: "HL-15", Name: "every replay", Run: everyReplay},
	{ID: "HL-15", Name: "inside", Run: insideHostNode},
	{ID: "HL-27", Name: "per launch", Run: onDonePerLaunch},
	{ID: "HL-17", Name: "graph", Child: true, Run: graphLost},
	{ID: "GR-02", Name: "between kernels", Run: hostNodeBetween},
	{ID: "GR-03", Name: "closure", Run: hostNodeLifetime},
	{ID: "GR-03", Name: "dropped", Run: graphDropped},
	{ID: "GR-04", Name: "closed after the launch", Run: closedAfterLaunch},
	{ID: "GR-04", Name: "driver closed after the launch", Run: driverClosedAfterLaunch},
	{ID: "GR-05", Name: "no overlap", Run: noOverlap},
	{ID: "GR-05", Name: "launched from many goroutines", Run: manyLaunchers},
	{ID: "GR-08", Name: "operands", Run: operandsRetained},
	{ID: "GR-08", Name: "ordinary memory", Run: ordinaryMemory},
	{ID: "GR-10", Name: "panic", Run: panicInOneLaunch},
	{ID: "GR-05", Name: "wrong launch", Run: wrongLaunch},
}

func everyReplay(t *T) {
	const launches = 100
	runs := 0
	g := t.Capture(func(b *cuda.GraphBuilder) error { return cuda.HostLaunch(b, func() { runs++ }) })
	s, x, y := t.Stream(), t.Exec(g), t.Exec(g)
	for range launches {
		t.OK(x.Launch(s))
		t.OK(y.Launch(s))
	}
	t.Sync(s)
	if runs != 2*launches {
		t.Errorf("%d runs of %d launches", runs, 2*launches)
	}
	if st := t.Driver.Stats(); st.Waiting != 0 || st.Running != 0 || st.HostNodes != 1 {
		t.Errorf("afterwards: %+v", st)
	}
}

func insideHostNode(t *T) {
	s, other := t.Stream(), t.Stream()
	var query, launch, build error
	var x *cuda.GraphExec
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		return cuda.HostLaunch(b, func() {
			_, query = other.Query()
			launch = x.Launch(other)
			_, build = t.Driver.Device(0)
		})
	})
	x = t.Exec(g)
	t.OK(x.Launch(s))
	t.Sync(s)
	for _, err := range []error{query, launch, build} {
		t.Is(err, cuda.ErrNotPermitted)
	}
}

func onDonePerLaunch(t *T) {
	const launches = 20
	told := make(chan error, launches+1)
	runs := 0
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		return cuda.HostLaunch(b, func() {
			if runs++; runs == 3 {
				panic("third")
			}
		}, cuda.OnDone(func(err error) { told <- err }))
	})
	s, x := t.Stream(), t.Exec(g)
	for range launches {
		t.OK(x.Launch(s))
	}
	t.Sync(s)
	panics := 0
	for range launches {
		err := Receive(t, "OnDone", told)
		if p := new(cuda.PanicError); errors.As(err, &p) {
			panics++
			t.Contains(err, "hostnode.go:")
		} else {
			t.OK(err)
		}
	}
	time.Sleep(2 * time.Millisecond)
	if panics != 1 || len(told) != 0 {
		t.Errorf("%d panics, told %d times too often", panics, len(told))
	}
}

func graphLost(t *T) {
	t.OpenDriver(cuda.Logger(discard))
	told := make(chan error, 10)
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		for range 2 {
			t.Host(b, func() { t.Error("ran") }, cuda.OnDone(func(err error) { told <- err }))
		}
		return nil
	})
	x, s := t.Exec(g), t.Stream()
	t.FaultLater(s)
	t.OK(x.Launch(s))
	t.OK(x.Launch(s))
	queued := time.Now()
	for range 4 { // nobody calls the library meanwhile
		err := Receive(t, "why the function never ran", told)
		if lost := new(cuda.LostError); !errors.As(err, &lost) || !errors.Is(err, cuda.ErrDeviceLost) {
			t.Errorf("told %v", err)
		}
	}
	if d := time.Since(queued); d > faultDelay+time.Second {
		t.Errorf("told after %v", d)
	}
	if err := x.Launch(s); !errors.Is(err, cuda.ErrDeviceLost) {
		t.Errorf("another launch: %v", err)
	}
	t.OK(x.Close())
	t.OK(g.Close())
	t.Eventually("the functions are released", func() bool { return t.Driver.Stats().HostNodes == 0 })
}

func hostNodeBetween(t *T) {
	host := t.Pinned(4)
	v, at := t.Buffer(4), cuda.PinnedSlice[uint32](host)
	var seen []uint32
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		return errors.Join(
			b.Launch(t.Kernel("increment"), one, v, uint32(1)),
			cuda.CopyToHost(b, at, v),
			cuda.HostLaunch(b, func() { seen = append(seen, at[0]); at[0] += 10 }),
			cuda.CopyToDevice(b, v, at))
	})
	s, x := t.Stream(), t.Exec(g)
	t.OK(s.Memset(v, 0))
	for range 5 {
		t.OK(x.Launch(s))
	}
	t.Sync(s)
	for i, n := range seen {
		if n != uint32(1+11*i) {
			t.Fatalf("functions saw %v, want 1, 12, 23, ...", seen)
		}
	}
	if len(seen) != 5 {
		t.Errorf("%d runs of 5 launches", len(seen))
	}
}

// capturedTracked captures a function with a value that says when it is collected.
func (t *T) capturedTracked(launched *atomic.Int32) (*cuda.Graph, *atomic.Bool) {
	data, collected := collectable()
	g, err := cuda.Capture(t.Stream(), cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		return cuda.HostLaunch(b, func() { data[0]++; launched.Add(1) })
	})
	t.OK(err)
	return g, collected
}

func hostNodeLifetime(t *T) {
	var runs atomic.Int32
	s := t.Stream()
	g, collected := t.capturedTracked(&runs)
	x := t.Exec(g)
	t.OK(g.Close())
	for range 3 {
		runtime.GC()
		t.OK(x.Launch(s))
		t.Sync(s)
	}
	t.Spin(s, 20*time.Millisecond)
	t.OK(x.Launch(s))
	t.OK(x.Close()) // with a launch in flight
	runtime.GC()
	if collected.Load() {
		t.Error("the function went while a launch was in flight")
	}
	t.Sync(s)
	if n := runs.Load(); n != 4 {
		t.Errorf("%d runs of 4 launches", n)
	}
	t.Gone(collected)
	t.noOwners()
}

func graphDropped(t *T) {
	var runs atomic.Int32
	s := t.Stream()
	collected := func() *atomic.Bool {
		g, collected := t.capturedTracked(&runs)
		x, err := g.Instantiate()
		t.OK(err)
		t.OK(x.Launch(s))
		return collected
	}()
	t.Eventually("graph and executable are gone", func() bool {
		runtime.GC()
		s.Query()
		st := t.Driver.Stats()
		return collected.Load() && st.Graphs == 0 && st.GraphExecs == 0 && st.HostNodes == 0
	})
	if n := runs.Load(); n != 1 {
		t.Errorf("%d runs of one launch", n)
	}
}

func closedAfterLaunch(t *T) {
	s, out := t.Stream(), t.Pinned(1<<16).Bytes()
	buf, ran := t.Buffer(1<<16), 0
	for range 50 {
		g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
			return errors.Join(b.Memset(buf, 3), cuda.CopyToHost(b, out, buf), cuda.HostLaunch(b, func() { ran++ }))
		})
		t.OK(err)
		x, err := g.Instantiate()
		t.OK(err)
		t.OK(x.Launch(s))
		t.OK(g.Close())
		t.OK(x.Close())
		t.Is(x.Launch(s), cuda.ErrClosed)
	}
	t.Sync(s)
	if ran != 50 || out[1<<16-1] != 3 {
		t.Errorf("%d runs of 50 launches, copied %d", ran, out[1<<16-1])
	}
}

func driverClosedAfterLaunch(t *T) {
	d, err := t.cfg.Open()
	t.OK(err)
	dev, err := d.Device(0)
	t.OK(err)
	s, err := dev.NewStream()
	t.OK(err)
	buf, err := dev.Alloc(1 << 20)
	t.OK(err)
	ran := 0
	var told atomic.Int32
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		return errors.Join(b.Memset(buf, 3), cuda.HostLaunch(b, func() { time.Sleep(time.Millisecond); ran++ }, cuda.OnDone(func(error) { told.Add(1) })))
	})
	t.OK(err)
	x, err := g.Instantiate()
	t.OK(err)
	for range 5 {
		t.OK(x.Launch(s))
	}
	t.OK(buf.Close())
	t.OK(d.Close()) // of graph and executable too
	if ran != 5 || told.Load() != 5 || d.Stats() != (cuda.Stats{}) {
		t.Errorf("%d runs and %d told of 5 launches; left: %+v", ran, told.Load(), d.Stats())
	}
	t.Is(x.Launch(s), cuda.ErrClosed)
}

func noOverlap(t *T) {
	busy, overlaps, runs := 0, 0, 0 // host functions of a context run one at a time
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		return errors.Join(
			cuda.HostLaunch(b, func() {
				if busy++; busy > 1 {
					overlaps++
				}
			}),
			b.Launch(t.Kernel("spin"), one, uint64(2*time.Millisecond)),
			cuda.HostLaunch(b, func() { busy--; runs++ }))
	})
	x, a, b := t.Exec(g), t.Stream(), t.Stream()
	for range 5 {
		t.OK(x.Launch(a))
		t.OK(x.Launch(b))
	}
	t.Sync(a)
	t.Sync(b)
	if overlaps != 0 || runs != 10 {
		t.Errorf("%d runs of 10, %d overlapped", runs, overlaps)
	}
}

func manyLaunchers(t *T) {
	const launchers, launches = 8, 20
	runs := 0
	x := t.Exec(t.Capture(func(b *cuda.GraphBuilder) error { return cuda.HostLaunch(b, func() { runs++ }) }))
	errs := make(chan error, launchers)
	for range launchers {
		s := t.Stream()
		go func() {
			var err error
			for range launches {
				err = errors.Join(err, x.Launch(s))
			}
			errs <- errors.Join(err, s.Sync())
		}()
	}
	for range launchers {
		t.OK(Receive(t, "a launcher", errs))
	}
	if runs != launchers*launches {
		t.Errorf("%d runs of %d launches", runs, launchers*launches)
	}
}

func operandsRetained(t *T) {
	s, out := t.Stream(), t.Pinned(4)
	before := t.Driver.Stats()
	buf, err := t.Device(0).Alloc(4)
	t.OK(err)
	pinned, err := t.Device(0).AllocPinned(4)
	t.OK(err)
	e, err := t.Device(0).NewEvent()
	t.OK(err)
	from := cuda.PinnedSlice[uint32](pinned)
	from[0] = 41
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		return errors.Join(
			cuda.CopyToDevice(b, buf, from),
			b.Launch(t.Kernel("increment"), one, buf, uint32(1)),
			cuda.CopyToHost(b, cuda.PinnedSlice[uint32](out), buf),
			b.RecordExternal(e))
	})
	t.OK(err)
	x, err := g.Instantiate()
	t.OK(err)
	t.OK(buf.Close())
	t.OK(pinned.Close())
	t.OK(e.Close())
	t.OK(g.Close())
	t.Is(s.Memset(buf, 1), cuda.ErrClosed)
	if st := t.Driver.Stats(); st.Buffers != before.Buffers+1 || st.PinnedBuffers != before.PinnedBuffers+1 || st.Events != before.Events+1 {
		t.Errorf("closed while an executable uses them: %+v, before the case: %+v", st, before)
	}
	for range 3 {
		runtime.GC()
		t.OK(x.Launch(s))
		t.Sync(s)
		if got := cuda.PinnedSlice[uint32](out)[0]; got != 42 {
			t.Fatalf("the graph gives %d, want 42", got)
		}
	}
	t.OK(x.Close())
	t.Eventually("the operands are freed", func() bool { return t.Driver.Stats() == before })
}

// ordinaryMemory: nobody but the graph holds the slice that is copied. A driver may refuse to capture such a copy.
func ordinaryMemory(t *T) {
	s, buf, out := t.Stream(), t.Buffer(1<<16), t.Pinned(1<<16).Bytes()
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		return errors.Join(
			cuda.CopyToDevice(b, buf, bytes.Repeat([]byte{7}, 1<<16)),
			cuda.CopyToHost(b, out, buf))
	})
	if err != nil {
		t.Is(err, cuda.ErrCaptureUnsupported)
		t.Logf("the driver does not capture copies of ordinary memory: %v", err)
		t.Works(s)
		return
	}
	t.Cleanup(func() { g.Close() })
	x := t.Exec(g)
	for range 3 {
		clear(out)
		for range 3 {
			runtime.GC()
			_ = bytes.Repeat([]byte{9}, 1<<16) // takes the place of what has been collected
		}
		t.OK(x.Launch(s))
		t.Sync(s)
		if out[0] != 7 || out[1<<16-1] != 7 {
			t.Fatalf("copied %d and %d, want 7", out[0], out[1<<16-1])
		}
	}
}

func panicInOneLaunch(t *T) {
	runs, after, told := 0, 0, make(chan error, 3)
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		return errors.Join(
			cuda.HostLaunch(b, func() {
				if runs++; runs == 2 {
					panic("second")
				}
			}, cuda.OnDone(func(err error) { told <- err })),
			cuda.HostLaunch(b, func() { after++ }))
	})
	s, x := t.Stream(), t.Exec(g)
	for range 3 {
		t.OK(x.Launch(s))
	}
	t.Sync(s)
	failed := 0
	for range 3 {
		if Receive(t, "OnDone", told) != nil {
			failed++
		}
	}
	if runs != 3 || after != 3 || failed != 1 {
		t.Errorf("%d runs, %d of the node behind, %d failures; want 3, 3, 1", runs, after, failed)
	}
}

func wrongLaunch(t *T) {
	g := t.Capture(func(b *cuda.GraphBuilder) error { return cuda.HostLaunch(b, func() { t.Error("ran") }) })
	x, s := t.Exec(g), t.Stream()
	t.Is((*cuda.GraphExec)(nil).Launch(s), cuda.ErrInvalidValue)
	t.Is(x.Launch(nil), cuda.ErrInvalidValue)
	captured, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(*cuda.GraphBuilder) error {
		t.Is(x.Launch(s), cuda.ErrCapturing)
		return nil
	})
	t.OK(err)
	t.OK(captured.Close())
	t.OK(g.Close())
	_, err = g.Instantiate()
	t.Is(err, cuda.ErrClosed)
	_, err = g.Nodes()
	t.Is(err, cuda.ErrClosed)
	t.OK(x.Close())
	t.Is(x.Launch(s), cuda.ErrClosed)
	t.Works(s)
}
