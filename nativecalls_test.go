package cuda

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/native"
	"github.com/hostlaunch/cuda/internal/nativetest"
)

// queueing is a driver that calls native functions when the test wants it to.
type queueing struct {
	refusing
	queue []func()
}

func (l *queueing) LaunchNativeHostFunc(_ driver.Context, _ driver.Stream, fn, data uintptr, _ uint32) driver.Result {
	if l.during != nil {
		l.during()
	}
	if l.result == driver.Success {
		l.queue = append(l.queue, func() { native.Call(fn, data) })
	}
	return l.result
}

func (l *queueing) run() {
	for _, call := range l.queue {
		call()
	}
	l.queue = l.queue[:0]
}

func laterStream(t testing.TB, impl *queueing, opts ...Option) (*Driver, *Stream) {
	t.Helper()
	dev := deviceOf(t, impl, opts...)
	t.Cleanup(impl.run) // before the Driver is closed
	return dev.drv, dev.DefaultStream()
}

func (t *nativeCalls) inUse() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.used
}

var addFunc = NativeFunc(nativetest.Func(nativetest.Add))

// HL-16: what the driver refuses is let go of, never runs, and the error says so; its cell serves others.
func TestNativeRefusedByDriver(t *testing.T) {
	impl := &queueing{refusing: refusing{result: driver.ErrorInvalidHandle}}
	d, s := laterStream(t, impl)
	var gone atomic.Int32
	const n = 3 * nativeChunkSize
	for range n {
		data := new([64]uint64)
		runtime.AddCleanup(data, func(int) { gone.Add(1) }, 0)
		err := HostLaunchNative(s, addFunc, NativePointer(unsafe.Pointer(data)), OnDone(func(error) { t.Error("OnDone was called") }))
		if !errors.Is(err, ErrInvalidHandle) || !strings.Contains(err.Error(), "will not run") {
			t.Fatalf("error %v", err)
		}
	}
	if st := d.Stats(); st.Waiting != 0 || len(d.natives.chunks) != 1 || d.natives.used != 0 || d.natives.runs.Load() != 0 {
		t.Errorf("%d wait; %d chunks, %d calls in use", st.Waiting, len(d.natives.chunks), d.natives.used)
	}
	for deadline := time.Now().Add(5 * time.Second); gone.Load() < n; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d were let go of", gone.Load(), n)
		}
	}
	impl.result = driver.ErrorNotSupported
	if err := HostLaunchNative(s, addFunc, NativeData{}); !errors.Is(err, ErrNotSupported) || !strings.Contains(err.Error(), "import package libcuda") {
		t.Errorf("error %v", err)
	}
	impl.result = driver.Success
}

// A function that the sweep of a lost context resolved while the driver was refusing it counts as queued: told once.
func TestNativeRefusedWhileSwept(t *testing.T) {
	impl := &queueing{refusing: refusing{result: driver.ErrorIllegalAddress}}
	d, s := laterStream(t, impl)
	told := make(chan error, 2)
	impl.during = func() {
		impl.up.Lost(7, driver.ErrorIllegalAddress)
		<-d.reports.idle() // the sweep is through
	}
	if err := HostLaunchNative(s, addFunc, NativeData{}, OnDone(func(err error) { told <- err })); err != nil {
		t.Errorf("HostLaunchNative = %v", err)
	}
	var lost *LostError
	if err := <-told; !errors.As(err, &lost) || !errors.Is(err, ErrDeviceLost) || !strings.Contains(lost.Site, "nativecalls_test.go:") {
		t.Errorf("told %v", err)
	}
	if len(told) > 0 {
		t.Error("told twice")
	}
}

// The memory of a burst goes when all of it has run, but for cells that a driver might still call.
func TestNativeBurst(t *testing.T) {
	const n = 10 * nativeChunkSize
	impl := &queueing{}
	d, s := laterStream(t, impl, OnLost(func(*LostError) {}))
	count := new(atomic.Uint64)
	launch := func() {
		t.Helper()
		for range n {
			if err := HostLaunchNative(s, addFunc, NativePointer(unsafe.Pointer(count))); err != nil {
				t.Fatal(err)
			}
		}
		if st := d.Stats(); st.Waiting != n || st.Running != 0 {
			t.Errorf("%d wait and %d run, want %d and 0", st.Waiting, st.Running, n)
		}
	}
	for round := range 3 {
		launch()
		if got := len(d.natives.chunks); got != n/nativeChunkSize {
			t.Errorf("%d chunks for %d functions", got, n)
		}
		impl.run()
		if st := d.Stats(); st.Waiting != 0 || st.Running != 0 {
			t.Errorf("%d wait and %d run before they are collected", st.Waiting, st.Running)
		}
		for deadline := time.Now().Add(5 * time.Second); d.natives.inUse() > 0 && time.Now().Before(deadline); {
			d.observe() // the timer may be at it too
		}
		if c := count.Load(); c != uint64(n*(round+1)) || len(d.natives.chunks) != 1 || d.natives.used != 0 {
			t.Errorf("%d ran; %d chunks are left with %d calls in use", c, len(d.natives.chunks), d.natives.used)
		}
	}
	launch()
	impl.up.Lost(7, driver.ErrorIllegalAddress)
	<-d.reports.idle()
	abandoned := 0
	for _, k := range d.natives.chunks {
		abandoned += k.abandoned
	}
	if abandoned != nativeChunkSize || d.natives.used != 0 { // of the one that is left; the others are out of reach
		t.Errorf("%d of the cells that the driver may still call are abandoned, %d in use", abandoned, d.natives.used)
	}
	before := count.Load()
	impl.run() // and it does
	if count.Load() != before {
		t.Errorf("%d functions ran after they were swept", count.Load()-before)
	}
}

// A shutdown that waits for a native function names it.
func TestNativeStuck(t *testing.T) {
	impl := &queueing{}
	d, s := laterStream(t, impl)
	count := new(atomic.Uint64)
	for _, opts := range [][]HostOption{nil, {Name("the counter")}} {
		if err := HostLaunchNative(s, addFunc, NativePointer(unsafe.Pointer(count)), opts...); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := d.Shutdown(ctx)
	if !errors.Is(err, ErrContextEnded) || !strings.Contains(err.Error(), "native function 0x") || !strings.Contains(err.Error(), "the counter, enqueued at nativecalls_test.go:") {
		t.Errorf("Shutdown: %v", err)
	}
	impl.run()
	if err := d.Close(); err != nil || count.Load() != 2 {
		t.Errorf("Close: %v; %d ran", err, count.Load())
	}
	if len(d.natives.chunks) > 0 {
		t.Errorf("%d chunks are left", len(d.natives.chunks))
	}
}

// What the way of a native function costs: nothing is allocated but what must be pinned.
func TestNativeAllocations(t *testing.T) {
	impl := &queueing{}
	_, s := laterStream(t, impl)
	data, small, large := new([8]uint64), make([]byte, 64), make([]byte, 1000)
	for _, c := range []struct {
		what string
		data NativeData
		most float64
	}{
		{"an address", NativeAddr(uintptr(unsafe.Pointer(data))), 1},
		{"few bytes", NativeBytes(small), 1},
		{"many bytes", NativeBytes(large), 4},
		{"a pointer", NativePointer(unsafe.Pointer(data)), 3},
	} {
		launch := func() {
			if err := HostLaunchNative(s, addFunc, c.data); err != nil {
				t.Fatal(err)
			}
			impl.run()
			s.ctx.drv.observe()
		}
		launch()
		if got := testing.AllocsPerRun(200, launch); got > c.most { // one is the test driver's own
			t.Errorf("%s: %v allocations, want at most %v", c.what, got, c.most)
		}
	}
	runtime.KeepAlive(data)
}

func BenchmarkNativeLaunch(b *testing.B) {
	impl := &queueing{}
	_, s := laterStream(b, impl)
	data, large, other := new([8]uint64), make([]byte, 1000), make([]byte, 1000)
	for name, launch := range map[string]func() error{
		"address": func() error { return HostLaunchNative(s, addFunc, NativeAddr(uintptr(unsafe.Pointer(data)))) },
		"bytes64": func() error { return HostLaunchNative(s, addFunc, NativeBytes(large[:64])) },
		"bytes":   func() error { return HostLaunchNative(s, addFunc, NativeBytes(large)) },
		"pointer": func() error { return HostLaunchNative(s, addFunc, NativePointer(unsafe.Pointer(data))) },
		"copy":    func() error { return HostCopy(s, HostSlice(large), HostSlice(other)) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := launch(); err != nil {
					b.Fatal(err)
				}
				impl.run()
				s.ctx.drv.observe()
			}
		})
	}
	runtime.KeepAlive(data)
}

// A host node that is dropped while it runs, as when its context fails, keeps its data until the run has ended.
func TestNativeNodeDroppedWhileRunning(t *testing.T) {
	impl := &queueing{}
	d, s := laterStream(t, impl)
	var gone atomic.Bool
	gate := &new([64]nativetest.Gate)[3]
	runtime.AddCleanup(gate, func(int) { gone.Store(true) }, 0)
	l := nativeLaunch{"HostLaunchNative", NativeFunc(nativetest.Func(nativetest.Hold)), NativePointer(unsafe.Pointer(gate)), 0}
	call, err := d.natives.prepare(s.ctx, &l, &hostOptions{native: l.fn})
	if err != nil {
		t.Fatal(err)
	}
	h := d.natives.keep(call)
	l, open := nativeLaunch{}, &gate.Open
	entered := &gate.Entered
	if !d.funcs.Expect(h) {
		t.Fatal("the function cannot be expected")
	}
	ended := make(chan bool)
	address := call.cell.Address()
	go func() {
		native.Call(native.CellEntry(), address)
		close(ended)
	}()
	for entered.Load() == 0 {
		runtime.Gosched()
	}
	if st := d.Stats(); st.Running != 1 || st.Waiting != 0 || st.HostNodes != 1 {
		t.Errorf("%+v, want one that runs", st)
	}
	d.funcs.Drop(h)
	d.observe()
	if d.natives.inUse() != 1 {
		t.Error("the node is gone though it runs")
	}
	open.Store(1)
	open, entered, gate = nil, nil, nil
	<-ended
	for deadline := time.Now().Add(5 * time.Second); d.natives.inUse() > 0 || !gone.Load(); d.observe() {
		if runtime.GC(); time.Now().After(deadline) {
			t.Fatalf("%d in use, data let go of: %v", d.natives.inUse(), gone.Load())
		}
	}
	if st := d.Stats(); st.Running != 0 || st.Waiting != 0 || st.HostNodes != 0 {
		t.Errorf("afterwards: %+v", st)
	}
}
