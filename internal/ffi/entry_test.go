//go:build linux && (amd64 || arm64)

package ffi

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda/internal/native"
)

// counting returns the data of a host function that counts its calls.
func counting(t testing.TB) (data uintptr, calls *atomic.Int64) {
	calls = new(atomic.Int64)
	return receive(t, func(uint64) { calls.Add(1) }, nil), calls
}

func TestEntryFromOneThread(t *testing.T) {
	data, calls := counting(t)
	call(t, "call_threads", HostEntry(), data, 10_000, 1)
	if n := calls.Load(); n != 10_000 {
		t.Errorf("%d calls", n)
	}
}

func TestEntryFromManyThreads(t *testing.T) {
	data, calls := counting(t)
	call(t, "call_threads", HostEntry(), data, 500, 2*native.MarkSlots)
	if n := calls.Load(); n != 500*2*native.MarkSlots {
		t.Errorf("%d calls", n)
	}
	checkNobodyInside(t)
}

func TestEntryOnCallingThread(t *testing.T) {
	var sum, depth int
	var tag uintptr
	tag = receive(t, func(data uint64) {
		sum++
		if depth = max(depth, int(data)); data < 20 {
			call(t, "call_here", HostEntry(), tag|uintptr(data+1), 1)
		}
	}, nil)
	call(t, "call_here", HostEntry(), tag|1, 5)
	if sum != 100 || depth != 20 {
		t.Errorf("%d calls nested to %d, want 100 and 20", sum, depth)
	}
}

func TestEntryUnderGC(t *testing.T) {
	stop := inBackground(runtime.GC)
	defer stop()
	var kept sync.Map
	tag := receive(t, func(data uint64) { kept.Store(data%64, make([]byte, 1000)) }, nil)
	for i := range 20 {
		call(t, "call_threads", HostEntry(), tag|uintptr(i), 100, 4)
		call(t, "call_here", HostEntry(), tag|uintptr(i), 100)
	}
}

func TestEntryWithOneP(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	stop := inBackground(func() {})
	defer stop()
	data, calls := counting(t)
	call(t, "call_threads", HostEntry(), data, 20, 8)
	if n := calls.Load(); n != 160 {
		t.Errorf("%d calls", n)
	}
}

// inBackground runs f in a loop on another goroutine until stop is called.
func inBackground(f func()) (stop func()) {
	var end atomic.Bool
	var done sync.WaitGroup
	done.Go(func() {
		for !end.Load() {
			f()
		}
	})
	return func() { end.Store(true); done.Wait() }
}

func TestEntryGrowsStack(t *testing.T) {
	var sum atomic.Int64
	tag := receive(t, func(uint64) { sum.Add(int64(recurse(10_000))) }, nil)
	call(t, "call_threads", HostEntry(), tag, 2, 2)
	call(t, "call_here", HostEntry(), tag, 2)
	if n := sum.Load(); n != 60_000 {
		t.Errorf("sum = %d", n)
	}
}

// recurse returns n, by way of n stack frames of half a kilobyte.
func recurse(n int) int {
	var frame [64]int
	if n == 0 {
		return 0
	}
	frame[n%64] = recurse(n - 1)
	return frame[n%64] + 1
}

func TestEntryMayBlock(t *testing.T) {
	gate := make(chan struct{})
	tag := receive(t, func(uint64) { <-gate }, nil)
	time.AfterFunc(10*time.Millisecond, func() { close(gate) })
	call(t, "call_threads", HostEntry(), tag, 10, 4)
}

func TestEntrySurvivesRecoveredPanic(t *testing.T) {
	var recovered atomic.Int64
	tag := receive(t, func(data uint64) {
		defer func() {
			if recover() != nil {
				recovered.Add(1)
			}
		}()
		panic(data)
	}, nil)
	call(t, "call_threads", HostEntry(), tag, 100, 2)
	call(t, "call_here", HostEntry(), tag, 100)
	if n := recovered.Load(); n != 300 {
		t.Errorf("%d panics recovered, want 300", n)
	}
	checkNobodyInside(t)
}

// On the calling thread a panic unwinds through C to the caller of Do. Its
// doing so is no promise, but the mark must not stay.
func TestPanicThroughDoLeavesEntry(t *testing.T) {
	tag := receive(t, func(data uint64) { panic("through") }, nil)
	func() {
		defer func() {
			if r := recover(); r != "through" {
				t.Errorf("recovered %v", r)
			}
		}()
		call(t, "call_here", HostEntry(), tag, 1)
	}()
	checkNobodyInside(t)
}

func TestEntryPreservesRegisters(t *testing.T) {
	tag := receive(t, func(data uint64) { recurse(100); runtime.Gosched() }, nil)
	for range 10 {
		if call(t, "preserves", HostEntry(), tag) != 1 {
			t.Fatal("callee-saved registers changed")
		}
	}
}

func TestStatusEntry(t *testing.T) {
	type delivery struct {
		data   uint64
		status int32
	}
	var got delivery
	tag := receive(t, nil, func(data uint64, r int32) { got = delivery{data, r} })
	for _, want := range []delivery{{0, 0}, {5, 700}, {1<<56 - 1, -1}, {77, 1<<31 - 1}} {
		r := call(t, "call_status", StatusEntry(), 1<<64-1, uintptr(uint32(want.status)), tag|uintptr(want.data))
		if r != 0 || got != want {
			t.Errorf("got %v (%d), want %v", got, r, want)
		}
	}
}
