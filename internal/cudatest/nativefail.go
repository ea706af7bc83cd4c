package cudatest

import (
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda"
)

// nativeFailCases: compiled functions that are refused or never run, and who is told of their end.
var nativeFailCases = []Case{
	{ID: "HL-12", Name: "null address", Run: nativeNullAddress},
	{ID: "HL-12", Name: "refused", Run: nativeRefused},
	{ID: "HL-27", Name: "OnDone of native functions", Run: nativeOnDone},
	{ID: "HL-17", Name: "native, lost", Child: true, Run: nativeLost},
	{ID: "HL-17", Name: "native, lost while one runs", Child: true, Run: nativeLostWhileRunning},
	{ID: "HL-17", Name: "native, lost in a graph", Child: true, Run: nativeLostInGraph},
	{ID: "LI-01", Name: "Close waits for native functions", Run: closeWaitsForNative},
}

func nativeNullAddress(t *T) {
	s := t.Stream()
	told := cuda.OnDone(func(error) { t.Error("OnDone of a refused function") })
	err := cuda.HostLaunchNative(s, 0, cuda.NativeData{}, told)
	t.Is(err, cuda.ErrInvalidValue)
	t.Contains(err, "fn is 0")
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		t.Is(cuda.HostLaunchNative(b, 0, cuda.NativeData{}, told), cuda.ErrInvalidValue)
		return nil
	})
	if nodes, err := g.Nodes(); err != nil || len(nodes) != 0 {
		t.Errorf("%d nodes, %v: a refused function is in the graph", len(nodes), err)
	}
	if done, err := s.Query(); !done || err != nil {
		t.Errorf("Query = %v, %v: a refused function was queued", done, err)
	}
}

func nativeRefused(t *T) {
	closed, s := t.Stream(), t.Stream()
	t.OK(closed.Close())
	told := cuda.OnDone(func(error) { t.Error("OnDone of a refused function") })
	_, before := t.noted()
	launch := func(on cuda.Queue, opts ...cuda.HostOption) error {
		return cuda.HostLaunchNative(on, t.native("note"), cuda.NativeBytes([]byte{1}), append(opts, told)...)
	}
	t.Is(launch(nil), cuda.ErrInvalidValue)
	t.Is(launch((*cuda.Stream)(nil)), cuda.ErrInvalidValue)
	t.Is(launch((*cuda.GraphBuilder)(nil)), cuda.ErrInvalidValue)
	t.Is(launch(closed), cuda.ErrClosed)
	t.Is(launch(s, cuda.SyncMode(7)), cuda.ErrInvalidValue)
	var b *cuda.GraphBuilder
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(now *cuda.GraphBuilder) error {
		b = now
		t.Is(launch(s), cuda.ErrCapturing)
		return nil
	})
	t.OK(err)
	t.OK(g.Close())
	t.Is(launch(b), cuda.ErrNotBuilding)
	t.Sync(s)
	if _, times := t.noted(); times != before {
		t.Errorf("%d refused functions ran", times-before)
	}
	if st := t.Driver.Stats(); st.Waiting != 0 {
		t.Errorf("%d functions are retained", st.Waiting)
	}
}

func nativeOnDone(t *T) {
	s, b := t.Stream(), t.Buffer(64)
	count := &cuda.PinnedSlice[atomic.Uint64](t.Pinned(8))[0]
	count.Store(0)
	ends := make(chan error, 300)
	for i := range 100 {
		t.Native(s, "add", cuda.NativePointer(unsafe.Pointer(count)), cuda.OnDone(func(err error) {
			ran := count.Load() > uint64(i)
			ends <- errors.Join(err, s.Memset(b, 1)) // CUDA is allowed
			if !ran {
				ends <- errors.New("told before the function ran")
			}
		}))
		if i%2 == 0 {
			t.Sync(s) // and else nobody calls
		}
	}
	for range 100 {
		t.OK(Receive(t, "OnDone", ends))
	}
	t.Sync(s)
	time.Sleep(2 * time.Millisecond)
	if len(ends) > 0 {
		t.Errorf("told %d times too often, at first %v", len(ends), <-ends)
	}
}

func nativeLost(t *T) {
	told := lost(t)
	s, other := t.Stream(), t.Stream()
	data := t.Pinned(8)
	count := &cuda.PinnedSlice[atomic.Uint64](data)[0]
	count.Store(0)
	g := t.Gate(other)
	<-g.Entered
	var gone atomic.Int32
	ends := make(chan error, 100)
	fault := time.Now().Add(faultDelay)
	t.FaultLater(s)
	for i := range 50 {
		for _, on := range []*cuda.Stream{s, other} {
			local := new([64]uint64)
			runtime.AddCleanup(local, func(int) { gone.Add(1) }, 0)
			if i%2 == 0 {
				t.Native(on, "add", cuda.NativePointer(unsafe.Pointer(count)), cuda.Name("counter"))
				t.Native(on, "add", cuda.NativePointer(unsafe.Pointer(local)), cuda.OnDone(func(err error) { ends <- err }))
			} else {
				t.Native(on, "add", cuda.NativeAddr(uintptr(unsafe.Pointer(count))))
				t.Native(on, "add", cuda.NativePointer(unsafe.Pointer(local)), cuda.OnDone(func(err error) { ends <- err }))
			}
		}
	}
	for range 100 { // and meanwhile nobody calls the library
		e := Receive(t, "OnLost", told)
		t.Is(unwrap(e), cuda.ErrIllegalAddress, cuda.ErrDeviceLost)
		if e.Name != "counter" && !strings.HasPrefix(e.Name, "native function 0x") || !strings.Contains(e.Site, "native.go:") {
			t.Errorf("name %q, site %q", e.Name, e.Site)
		}
		err := Receive(t, "OnDone", ends)
		if l := new(cuda.LostError); !errors.As(err, &l) {
			t.Errorf("OnDone got %v", err)
		}
	}
	if took := time.Since(fault); took > time.Second {
		t.Errorf("resolved %v after the fault, want within a second", took)
	}
	g.Open()
	t.Eventually("the data is let go of", func() bool { runtime.GC(); return gone.Load() == 100 })
	time.Sleep(50 * time.Millisecond)
	if n := count.Load(); n != 0 || len(told) != 0 || len(ends) != 0 {
		t.Errorf("%d ran, %d told twice", n, len(told)+len(ends))
	}
	t.Is(cuda.HostLaunchNative(other, t.native("note"), cuda.NativeData{}), cuda.ErrDeviceLost)
	t.OK(t.Driver.Close())
}

// nativeLostWhileRunning: the function that runs when the context fails keeps its data, and is told that it ran.
func nativeLostWhileRunning(t *T) {
	told := lost(t)
	s, other := t.Stream(), t.Stream()
	gate := &cuda.PinnedSlice[[2]atomic.Uint32](t.Pinned(8))[0] // nativetest.Gate
	gate[0].Store(0)
	gate[1].Store(0)
	ends := make(chan error, 2)
	t.Native(other, "hold", cuda.NativePointer(unsafe.Pointer(gate)), cuda.OnDone(func(err error) { ends <- err }))
	t.Eventually("the function runs", func() bool { return gate[1].Load() == 1 })
	if st := t.Driver.Stats(); st.Running != 1 || st.Waiting != 0 {
		t.Errorf("%d run and %d wait, want 1 and 0", st.Running, st.Waiting)
	}
	t.Native(other, "note", cuda.NativeData{})
	t.Fault(s)
	Receive(t, "OnLost", told)
	time.Sleep(20 * time.Millisecond)
	if len(ends) > 0 {
		t.Errorf("OnDone of the running function: %v", <-ends)
	}
	gate[0].Store(1)
	if err := Receive(t, "OnDone of the function that ran", ends); err != nil {
		t.Errorf("the function that ran to its end is told %v", err)
	}
	t.OK(t.Driver.Close())
	if len(told) > 0 || len(ends) > 0 {
		t.Error("something was told twice")
	}
}

func nativeLostInGraph(t *T) {
	t.OpenDriver(cuda.Logger(discard))
	told := make(chan error, 10)
	var gone *atomic.Bool
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		var data *[8]uint64
		data, gone = collectable()
		t.Native(b, "add", cuda.NativePointer(unsafe.Pointer(data)), cuda.OnDone(func(err error) { told <- err }))
		return nil
	})
	x, s := t.Exec(g), t.Stream()
	t.FaultLater(s)
	t.OK(x.Launch(s))
	t.OK(x.Launch(s))
	for range 2 {
		err := Receive(t, "why the function never ran", told)
		if l := new(cuda.LostError); !errors.As(err, &l) || !errors.Is(err, cuda.ErrDeviceLost) {
			t.Errorf("told %v", err)
		}
	}
	t.OK(x.Close())
	t.OK(g.Close())
	t.Eventually("the function and its data are let go of", func() bool {
		runtime.GC()
		return t.Driver.Stats().HostNodes == 0 && gone.Load()
	})
	t.OK(t.Driver.Close())
	if len(told) > 0 {
		t.Error("told too often")
	}
}

func closeWaitsForNative(t *T) {
	for range 5 {
		d, err := t.cfg.Open()
		t.OK(err)
		dev, err := d.Device(0)
		t.OK(err)
		s, err := dev.NewStream()
		t.OK(err)
		count := new(atomic.Uint64)
		var told atomic.Int64
		t.OK(cuda.HostLaunch(s, func() { time.Sleep(time.Millisecond) }))
		for range 200 {
			t.OK(cuda.HostLaunchNative(s, t.native("add"), cuda.NativePointer(unsafe.Pointer(count)), cuda.OnDone(func(err error) {
				if err == nil {
					told.Add(1)
				}
			})))
		}
		t.OK(d.Close())
		if count.Load() != 200 || told.Load() != 200 || d.Stats() != (cuda.Stats{}) {
			t.Fatalf("%d ran and %d were told of 200; left: %+v", count.Load(), told.Load(), d.Stats())
		}
	}
}
