//go:build linux && (amd64 || arm64)

package ffi

import (
	"sync"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/native"
)

// insideSlots is how many threads can be inside an entry before marking one
// takes a lock.
const insideSlots = 32

// known are the threads that have ever been inside an entry. Every call of the
// library asks whether it is inside, and every entry marks its thread; if both
// touched the marks, each would pull them out of the other's cache, at a cost
// of a tenth of a microsecond or more. So a thread that is not known here, where
// nothing is written any more, is not looked for there. A thread that ends
// stays known, and so does whatever thread gets its place.
var known struct {
	threads [insideSlots]atomic.Uintptr // thread pointers; 0 is free
	more    atomic.Bool                 // there were others: every thread counts as known
	_       [64]byte
}

// inside says which threads are inside an entry. A thread is in it once for
// each entry that it is in, nested ones included.
var inside struct {
	slots [insideSlots]atomic.Uintptr // thread pointers; 0 is free

	// Entries that found no free slot.
	excess   atomic.Int64 // how many
	mu       sync.Mutex   // guards byThread
	byThread map[uintptr]int
}

// Inside reports whether the calling goroutine is running inside an entry, that
// is in a function given to [Receive] or in what that function called. A
// goroutine that such a function started is not inside. It costs a few
// nanoseconds on threads that were never inside.
func Inside() bool {
	// In an entry the goroutine is locked to its thread. Elsewhere it may have
	// been moved since it asked for its thread, and the thread found be another
	// goroutine's: then it asks again.
	for {
		thread := native.ThreadPointer()
		if !isKnown(thread) || !marked(thread) {
			return false
		}
		if thread == native.ThreadPointer() {
			return true
		}
	}
}

func isKnown(thread uintptr) bool {
	for i := range known.threads {
		switch known.threads[i].Load() {
		case thread:
			return true
		case 0:
			return known.more.Load()
		}
	}
	return known.more.Load()
}

// makeKnown has thread known from now on.
func makeKnown(thread uintptr) {
	for i := range known.threads {
		if known.threads[i].CompareAndSwap(0, thread) {
			return
		}
	}
	known.more.Store(true)
}

// enter marks the current thread and returns what leave needs to unmark it: the
// slot that it took, or insideSlots.
func enter() (slot int) {
	thread := native.ThreadPointer()
	if !isKnown(thread) {
		makeKnown(thread)
	}
	for i := range inside.slots {
		if inside.slots[i].Load() == 0 && inside.slots[i].CompareAndSwap(0, thread) {
			return i
		}
	}
	addExcess(thread, 1)
	return insideSlots
}

// leave undoes enter, on the same thread.
func leave(slot int) {
	if slot < insideSlots {
		inside.slots[slot].Store(0)
	} else {
		addExcess(native.ThreadPointer(), -1)
	}
}

// addExcess counts delta more entries on thread beside the slots.
func addExcess(thread uintptr, delta int) {
	inside.mu.Lock()
	defer inside.mu.Unlock()
	if inside.byThread == nil {
		inside.byThread = make(map[uintptr]int)
	}
	inside.byThread[thread] += delta
	if inside.byThread[thread] == 0 {
		delete(inside.byThread, thread)
	}
	inside.excess.Add(int64(delta))
}

// marked reports whether thread is inside an entry.
func marked(thread uintptr) bool {
	for i := range inside.slots {
		if inside.slots[i].Load() == thread {
			return true
		}
	}
	if inside.excess.Load() == 0 {
		return false
	}
	inside.mu.Lock()
	defer inside.mu.Unlock()
	return inside.byThread[thread] > 0
}
