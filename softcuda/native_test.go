package softcuda_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/nativetest"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestNativeInBubble: native functions keep to virtual time, and leave nothing behind.
func TestNativeInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, softcuda.Kernels{"fail": func(*softcuda.Launch) { time.Sleep(time.Hour) }})
		count, told := new(atomic.Uint64), make(chan time.Duration, 1)
		dst := make([]byte, 3)
		start := time.Now()
		r.launch("fail")
		r.ok(cuda.HostLaunchNative(r.s, cuda.NativeFunc(nativetest.Func(nativetest.Add)), cuda.NativePointer(unsafe.Pointer(count)),
			cuda.OnDone(func(error) { told <- time.Since(start) })))
		r.ok(cuda.HostCopy(r.s, cuda.HostSlice(dst), cuda.HostSlice([]byte{1, 2, 3})))
		if took := <-told; took < time.Hour || took > time.Hour+10*time.Millisecond { // and nobody calls meanwhile
			t.Errorf("told after %v", took)
		}
		r.ok(r.d.Close())
		if count.Load() != 1 || string(dst) != "\x01\x02\x03" {
			t.Errorf("%d ran; copied %v", count.Load(), dst)
		}
	})
}

// TestNativeWithoutC: in a program that calls no C, what has no twin in Go is refused, and the error says what to import.
func TestNativeWithoutC(t *testing.T) {
	r := newRig(t, nil)
	defer r.d.Close()
	err := cuda.HostLaunchNative(r.s, 0x1234, cuda.NativeData{}, cuda.OnDone(func(error) { t.Error("OnDone was called") }))
	if !errors.Is(err, cuda.ErrNotSupported) || !strings.Contains(err.Error(), "import package libcuda") {
		t.Errorf("error %v", err)
	}
	r.ok(r.s.Sync())
}
