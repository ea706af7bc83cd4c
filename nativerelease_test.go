package cuda

import (
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/native"
)

// telling is a driver that is told of native functions, and does something then.
type telling struct {
	queueing
	told atomic.Pointer[func()]
}

func (*telling) LeftOpen([]driver.DevicePtr)                     {}
func (*telling) CopyQueued(driver.Context, driver.Stream) func() { return func() {} }
func (*telling) Reused(driver.DevicePtr, uintptr)                {}
func (l *telling) NativeTold(uintptr) {
	if told := l.told.Swap(nil); told != nil {
		(*told)()
	}
}

func tellingStream(t *testing.T) (*telling, *Driver, *Stream) {
	impl := &telling{}
	dev := deviceOf(t, impl)
	t.Cleanup(impl.run) // before the Driver is closed
	return impl, dev.drv, dev.DefaultStream()
}

// TestNativeNodeReleasedOnce: a host node of which the last run is being told of while it is dropped, or while another goroutine collects, is
// let go of once.
func TestNativeNodeReleasedOnce(t *testing.T) {
	for _, runs := range []int{1, 2} {
		impl, d, s := tellingStream(t)
		var count atomic.Uint64
		l := nativeLaunch{"HostLaunchNative", addFunc, NativePointer(unsafe.Pointer(&count)), 0}
		call, err := d.natives.prepare(s.ctx, &l, &hostOptions{native: l.fn, done: func(error) {}})
		if err != nil {
			t.Fatal(err)
		}
		h := d.natives.keep(call)
		for range runs {
			if !d.funcs.Expect(h) {
				t.Fatal("not expected")
			}
		}
		run := func() { native.Call(native.CellEntry(), call.cell.Address()) }
		over := make(chan struct{})
		told := func() { // the first run is collected, and not yet resolved
			defer close(over)
			if runs == 2 {
				run()
			}
			d.funcs.Drop(h) // the graph goes
			d.observe()     // another goroutine collects
		}
		impl.told.Store(&told)
		run()
		d.observe() // if nobody has by itself
		<-over
		for deadline := time.Now().Add(5 * time.Second); d.natives.inUse() > 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		if used := d.natives.inUse(); used != 0 {
			t.Errorf("%d runs: %d calls are in use", runs, used)
		}
		d.natives.mu.Lock()
		seen := map[*nativeCall]bool{}
		for n := d.natives.free; n != nil; n = n.next {
			if seen[n] {
				t.Errorf("%d runs: the free list has call %d twice", runs, n.number)
				break
			}
			seen[n] = true
		}
		if t.Failed() {
			d.natives.free, d.natives.used = nil, 0
		}
		d.natives.mu.Unlock()
	}
}

// TestNativeSweptBurst: a function of a burst that the sweep of a lost context resolves while the driver refuses it, with all the others, counts
// as queued.
func TestNativeSweptBurst(t *testing.T) {
	impl := &queueing{}
	d, s := laterStream(t, impl, OnLost(func(*LostError) {}))
	var count atomic.Uint64
	for range nativeChunkSize {
		if err := HostLaunchNative(s, addFunc, NativePointer(unsafe.Pointer(&count))); err != nil {
			t.Fatal(err)
		}
	}
	impl.result = driver.ErrorIllegalAddress
	impl.during = func() {
		impl.up.Lost(7, driver.ErrorIllegalAddress)
		<-d.reports.idle() // the sweep is through
	}
	if err := HostLaunchNative(s, addFunc, NativePointer(unsafe.Pointer(&count))); err != nil {
		t.Errorf("HostLaunchNative = %v", err)
	}
}
