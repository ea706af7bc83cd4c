//go:build linux && (amd64 || arm64)

package ffi

import (
	"sync"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/native"
)

// excess are the entries that found no free slot among native's marks. A thread
// is marked once for each entry that it is in, nested ones included.
var excess struct {
	n        atomic.Int64 // how many
	mu       sync.Mutex   // guards byThread
	byThread map[uintptr]int
}

// Inside reports whether the calling goroutine is running inside an entry, that
// is in a function given to [Receive] or in what that function called, or in a Go
// function that a native host function calls (whose thread native.CellEntry has
// marked). A goroutine that such a function started is not inside. It costs a few
// nanoseconds on threads that were never inside.
func Inside() bool {
	// In an entry the goroutine is locked to its thread. Elsewhere it may have
	// been moved since it asked for its thread, and the thread found be another
	// goroutine's: then it asks again.
	for {
		thread := native.ThreadPointer()
		if !native.IsKnown(thread) || !marked(thread) {
			return false
		}
		if thread == native.ThreadPointer() {
			return true
		}
	}
}

// enter marks the current thread and returns what leave needs to unmark it: the
// slot that it took, or native.MarkSlots.
func enter() (slot int) {
	thread := native.ThreadPointer()
	if !native.IsKnown(thread) {
		native.MakeKnown(thread)
	}
	if slot = native.Mark(thread); slot == native.MarkSlots {
		addExcess(thread, 1)
	}
	return slot
}

// leave undoes enter, on the same thread.
func leave(slot int) {
	if slot < native.MarkSlots {
		native.Unmark(slot)
	} else {
		addExcess(native.ThreadPointer(), -1)
	}
}

// addExcess counts delta more entries on thread beside the slots.
func addExcess(thread uintptr, delta int) {
	excess.mu.Lock()
	defer excess.mu.Unlock()
	if excess.byThread == nil {
		excess.byThread = make(map[uintptr]int)
	}
	excess.byThread[thread] += delta
	if excess.byThread[thread] == 0 {
		delete(excess.byThread, thread)
	}
	excess.n.Add(int64(delta))
}

// marked reports whether thread is inside an entry.
func marked(thread uintptr) bool {
	if native.Marked(thread) {
		return true
	}
	if excess.n.Load() == 0 {
		return false
	}
	excess.mu.Lock()
	defer excess.mu.Unlock()
	return excess.byThread[thread] > 0
}
