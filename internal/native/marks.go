//go:build linux && (amd64 || arm64)

package native

import "sync/atomic"

// Which threads are inside a host function: marks that Go's entries set (package ffi) and CellEntry does, without entering
// Go.
//
// Every call of the library asks whether it is inside, and every entry marks its thread; if both touched the marks, each
// would pull them out of the other's cache, at a cost of a tenth of a microsecond or more. So a thread that is not among the
// known ones, where nothing is written any more, is not looked for among the marks. A thread that ends stays known, and so
// does whatever thread gets its place.

// MarkSlots is how many threads can be marked at a time, and how many can be known before every one counts as known.
const MarkSlots = 64

// threadTable is a set of threads, by their pointers; 0 is free.
type threadTable struct {
	threads [MarkSlots]atomic.Uintptr
	more    atomic.Uint32 // of the known: there were others
	_       [60]byte
}

var known, marks threadTable

// IsKnown reports whether thread has ever been inside, or may have been.
func IsKnown(thread uintptr) bool {
	for i := range known.threads {
		switch known.threads[i].Load() {
		case thread:
			return true
		case 0:
			return known.more.Load() != 0
		}
	}
	return known.more.Load() != 0
}

// MakeKnown has thread known from now on.
func MakeKnown(thread uintptr) {
	for i := range known.threads {
		if known.threads[i].CompareAndSwap(0, thread) {
			return
		}
	}
	known.more.Store(1)
}

// Mark marks thread as inside and returns the slot that it took, or MarkSlots if none is free. A thread may be marked several
// times.
func Mark(thread uintptr) (slot int) {
	for i := range marks.threads {
		if marks.threads[i].Load() == 0 && marks.threads[i].CompareAndSwap(0, thread) {
			return i
		}
	}
	return MarkSlots
}

// Unmark undoes a Mark that took a slot.
func Unmark(slot int) { marks.threads[slot].Store(0) }

// Marked reports whether thread has a slot.
func Marked(thread uintptr) bool {
	for i := range marks.threads {
		if marks.threads[i].Load() == thread {
			return true
		}
	}
	return false
}
