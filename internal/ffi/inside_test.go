//go:build linux && (amd64 || arm64)

package ffi

import (
	"sync"
	"testing"

	"github.com/hostlaunch/cuda/internal/native"
)

// checkNobodyInside checks that no mark has been left.
func checkNobodyInside(t *testing.T) {
	t.Helper()
	if n := excess.n.Load(); n != 0 || len(excess.byThread) != 0 {
		t.Errorf("%d entries on %d threads are marked beside the slots", n, len(excess.byThread))
	}
	slot := native.Mark(1)
	if slot != 0 {
		t.Errorf("%d slots are taken", slot)
	}
	native.Unmark(slot)
}

func TestInside(t *testing.T) {
	tag := receive(t, func(uint64) {
		if !Inside() {
			t.Error("not inside in a host function")
		}
		if onAnotherGoroutine(Inside) {
			t.Error("inside in a goroutine that a host function started")
		}
	}, func(uint64, int32) {
		if !Inside() {
			t.Error("not inside in a status function")
		}
	})
	check := func() {
		if Inside() {
			t.Error("inside outside")
		}
	}
	check()
	call(t, "call_threads", HostEntry(), tag, 10, 4)
	check()
	call(t, "call_here", HostEntry(), tag, 10)
	check()
	call(t, "call_status", StatusEntry(), 0, 0, tag)
	check()
}

func onAnotherGoroutine(f func() bool) bool {
	result := make(chan bool)
	go func() { result <- f() }()
	return <-result
}

func TestInsideOutlastsNestedEntry(t *testing.T) {
	var tag uintptr
	tag = receive(t, func(depth uint64) {
		if depth < 3 {
			call(t, "call_here", HostEntry(), tag|uintptr(depth+1), 2)
		}
		if !Inside() {
			t.Errorf("not inside at depth %d after a nested entry", depth)
		}
	}, nil)
	call(t, "call_threads", HostEntry(), tag, 2, 2)
	call(t, "call_here", HostEntry(), tag, 2)
	checkNobodyInside(t)
}

// More threads are inside at once than there are slots, while others ask.
func TestInsideOnMoreThreadsThanSlots(t *testing.T) {
	const threads = 2*native.MarkSlots + 3
	var arrived sync.WaitGroup
	arrived.Add(threads)
	release := make(chan struct{})
	tag := receive(t, func(uint64) {
		arrived.Done()
		<-release
		if !Inside() {
			t.Error("not inside in a host function")
		}
	}, nil)
	var done sync.WaitGroup
	done.Go(func() { call(t, "call_threads", HostEntry(), tag, 1, threads) })
	arrived.Wait()
	for range 1000 {
		if Inside() || onAnotherGoroutine(Inside) {
			t.Error("inside on an ordinary goroutine")
		}
	}
	close(release)
	done.Wait()
	checkNobodyInside(t)
}
