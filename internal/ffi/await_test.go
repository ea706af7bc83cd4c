//go:build linux && (amd64 || arm64)

package ffi

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/native"
)

// TestAwaitHoldsNoP: with one P, the goroutine that writes the word runs while another waits for it, and so does the garbage
// collector.
func TestAwaitHoldsNoP(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	word, second := new(atomic.Uint32), new(atomic.Uint32)
	after := &native.Await{Word: uintptr(unsafe.Pointer(second)), Value: 1, Tries: 1}
	seen := make(chan bool)
	go func() {
		ok := Await((*uint32)(unsafe.Pointer(word)), 7, 1<<34, native.AwaitFunc(), unsafe.Pointer(after))
		seen <- ok && after.Tries == 0 // it was called, and gave up
	}()
	time.Sleep(10 * time.Millisecond)
	runtime.GC()
	word.Store(7)
	select {
	case ok := <-seen:
		if !ok {
			t.Error("not seen, or the function was not called")
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits on")
	}
	if Await((*uint32)(unsafe.Pointer(word)), 8, 100, 0, nil) {
		t.Error("reached what was not")
	}
}
