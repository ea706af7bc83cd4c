//go:build linux && (amd64 || arm64)

package libcuda

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/nativetest"
)

// publicStream is public with a stream.
func publicStream(t *testing.T) (*fake, *cuda.Driver, *cuda.Stream) {
	t.Helper()
	f, d, dev := public(t)
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	return f, d, s
}

// TestNativeMode: a sync mode reaches a driver that has them.
func TestNativeMode(t *testing.T) {
	f := newFake(t)
	f.set(knobVersion, 13020)
	nv := f.open(driver.Upcalls{Pending: func(driver.Context) int { return 0 }})
	f.log()
	nv.LaunchNativeHostFunc(ctx, stream, doesNothing, 0x78, 1)
	if got := strings.Join(f.log(), "\n"); got != "cuLaunchHostFunc(stream=0x5a, data=0x78, mode=1) in 0xc0" {
		t.Errorf("called\n%s", got)
	}
}

// TestNativeOnDriverThread: native functions run on a thread of the driver that Go does not know, and a Go function that one
// calls is inside there.
func TestNativeOnDriverThread(t *testing.T) {
	_, d, s := publicStream(t)
	count := new(atomic.Uint64)
	inside := make(chan error, 1)
	back := purego.NewCallback(func(uintptr) { _, err := s.Query(); inside <- err })
	dst := make([]byte, 3<<20)
	src := bytes.Repeat([]byte{7}, len(dst))
	told := make(chan error, 1000)
	for range 500 {
		if err := cuda.HostLaunchNative(s, cuda.NativeFunc(nativetest.ByName("add")), cuda.NativePointer(unsafe.Pointer(count)), cuda.OnDone(func(err error) { told <- err })); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(
		cuda.HostCopy(s, cuda.HostSlice(dst), cuda.HostSlice(src)),
		cuda.HostLaunchNative(s, cuda.NativeFunc(back), cuda.NativeData{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := <-inside; !errors.Is(err, cuda.ErrNotPermitted) {
		t.Errorf("a call inside: %v", err)
	}
	for range 500 {
		if err := <-told; err != nil {
			t.Error(err)
		}
	}
	eventually(t, time.Second, "all are done", func() bool { st := d.Stats(); return st.Waiting == 0 && st.Running == 0 })
	if count.Load() != 500 || !bytes.Equal(dst, src) || len(told) != 0 {
		t.Errorf("%d ran, want 500; copied %d", count.Load(), dst[0])
	}
	if _, err := s.Query(); err != nil {
		t.Error(err)
	}
}

// TestNativeSweptRunsLate: the driver calls functions of a context that has failed after the library has told that they never
// ran, when their memory is the program's again.
func TestNativeSweptRunsLate(t *testing.T) {
	const n = 200
	f, d, s := publicStream(t)
	counts := make([]atomic.Uint64, n)
	told := make(chan error, n)
	f.set(knobHold, 1)
	for i := range counts {
		err := cuda.HostLaunchNative(s, cuda.NativeFunc(nativetest.ByName("add")), cuda.NativePointer(unsafe.Pointer(&counts[i])), cuda.OnDone(func(err error) { told <- err }))
		if err != nil {
			t.Fatal(err)
		}
	}
	f.set(knobLost, 700)
	for range n {
		select {
		case err := <-told:
			if !errors.Is(err, cuda.ErrDeviceLost) {
				t.Errorf("told %v", err)
			}
		case <-time.After(time.Second):
			t.Fatal("not told within a second")
		}
	}
	f.set(knobLost, 0) // or the fake drops them, as the driver does
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	var other [][]byte // takes the place of what has been collected, and would not do as cells
	for range 3 {
		runtime.GC()
		for size := 1 << 10; size <= 1<<18; size *= 2 {
			other = append(other, bytes.Repeat([]byte{1}, size))
		}
	}
	f.set(knobHold, 0)
	time.Sleep(100 * time.Millisecond)
	runtime.KeepAlive(other)
	for i := range counts {
		if c := counts[i].Load(); c != 0 {
			t.Fatalf("function %d ran %d times after it was told that it never would", i, c)
		}
	}
}
