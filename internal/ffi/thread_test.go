//go:build linux && (amd64 || arm64)

package ffi

import (
	"sync"
	"testing"

	"github.com/hostlaunch/cuda/internal/native"
)

// native.ThreadPointer says which thread it is, which native's own tests cannot
// check: they run without the C library.
func TestThreadPointer(t *testing.T) {
	const threads, each = 8, 3
	var mu sync.Mutex
	var all sync.WaitGroup // holds the threads together, so that all live at once
	all.Add(threads)
	calls := make(map[uintptr]int)
	tag := receive(t, func(uint64) {
		mu.Lock()
		thread := native.ThreadPointer()
		calls[thread]++
		last := calls[thread] == each
		mu.Unlock()
		if last {
			all.Done()
			all.Wait()
		}
	}, nil)
	call(t, "call_threads", HostEntry(), tag, each, threads)
	if len(calls) != threads || calls[0] != 0 {
		t.Errorf("%d threads, want %d: %v", len(calls), threads, calls)
	}
}
