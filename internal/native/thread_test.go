//go:build linux && (amd64 || arm64)

package native_test

import (
	"runtime"
	"testing"

	"github.com/hostlaunch/cuda/internal/native"
)

// Without the C library the value means nothing, but it can be asked for. What
// it means with one is tested where there is one, in internal/ffi.
func TestThreadPointerStays(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if a, b := native.ThreadPointer(), native.ThreadPointer(); a != b {
		t.Errorf("thread pointer changed from %#x to %#x", a, b)
	}
}

func BenchmarkThreadPointer(b *testing.B) {
	for b.Loop() {
		sink = native.ThreadPointer()
	}
}
