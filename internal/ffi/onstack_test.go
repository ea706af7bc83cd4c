//go:build linux && (amd64 || arm64)

package ffi

import (
	"testing"

	"github.com/hostlaunch/cuda/internal/native"
)

// throughHere calls fn, from one place.
//
//go:noinline
func throughHere(fn func()) { fn() }

// TestOnStackUnderC: C code may use the frame pointer register for data, so that the chain of frames of a callback leads
// nowhere. What is asked about may stand above the C frames, below them, or not be there at all.
func TestOnStackUnderC(t *testing.T) {
	var pc uintptr
	throughHere(func() { pc = native.CallerPC() })
	asked := 0
	tag := receive(t, func(below uint64) {
		asked++
		if got := native.OnStack(pc); got != (below == 1) {
			t.Errorf("OnStack = %v; below the C frames: %d", got, below)
		}
		throughHere(func() {
			if !native.OnStack(pc) {
				t.Error("not on the stack above the C frames")
			}
		})
	}, nil)
	call(t, "call_without_frames", HostEntry(), tag, 2)
	throughHere(func() { call(t, "call_without_frames", HostEntry(), tag|1, 2) })
	call(t, "call_thread_without_frames", HostEntry(), tag, 2)
	if asked != 6 {
		t.Errorf("asked %d times, want 6", asked)
	}
}
