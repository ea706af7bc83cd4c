package hostfn

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestTakenOnce(t *testing.T) {
	var table Table
	var g Group
	h := table.Add(Func{Run: func() {}, Group: &g})
	if h == 0 || h>>56 != 0 {
		t.Fatalf("handle %#x", h)
	}
	var taken atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, ok := table.Take(h); ok {
				taken.Add(1)
			}
		})
	}
	wg.Wait()
	if taken.Load() != 1 {
		t.Errorf("taken %d times", taken.Load())
	}
}

// TestPeek: what still waits can be looked at, and is taken afterwards all the same.
func TestPeek(t *testing.T) {
	var table Table
	var g Group
	h := table.Add(Func{Site: 7, Group: &g})
	if fn, ok := table.Peek(h); !ok || fn.Site != 7 {
		t.Errorf("waiting: %v, %v", fn, ok)
	}
	if _, ok := table.Start(h); !ok {
		t.Error("cannot be taken any more")
	}
	if _, ok := table.Peek(h); ok {
		t.Error("one that runs was shown")
	}
	table.Finish(h)
	table.Add(Func{Group: &g}) // in the same slot
	for _, h := range []Handle{h, 0, 1 << 20} {
		if _, ok := table.Peek(h); ok {
			t.Errorf("handle %#x found something", h)
		}
	}
}

func TestStaleHandles(t *testing.T) {
	var table Table
	var g Group
	old := table.Add(Func{Group: &g})
	table.Take(old)
	fresh := table.Add(Func{Group: &g}) // in the same slot
	if old == fresh {
		t.Fatal("the handle was used again")
	}
	for _, h := range []Handle{old, 0, 1, 1 << 55, ^Handle(0)} {
		if _, ok := table.Take(h); ok {
			t.Errorf("handle %#x found something", h)
		}
	}
	if _, ok := table.Take(fresh); !ok {
		t.Error("the fresh handle found nothing")
	}
}

// A burst's memory is given back, and handles from before it stay stale.
func TestShrinks(t *testing.T) {
	var table Table
	var g Group
	first := table.Add(Func{Group: &g})
	handles := make([]Handle, 100_000)
	for i := range handles {
		handles[i] = table.Add(Func{Site: uintptr(i), Group: &g})
	}
	for i, h := range handles {
		if fn, ok := table.Take(h); !ok || fn.Site != uintptr(i) {
			t.Fatalf("handle %d gave %v, %v", i, fn.Site, ok)
		}
	}
	table.Take(first)
	if chunks := table.chunks.Load(); chunks != nil {
		t.Errorf("%d chunks are left", len(*chunks))
	}
	table.Add(Func{Group: &g})
	if _, ok := table.Take(first); ok {
		t.Error("a handle from before found something")
	}
}

func TestSweep(t *testing.T) {
	var table Table
	var mine, other Group
	for range 3000 {
		table.Add(Func{Group: &mine})
		table.Add(Func{Group: &other})
	}
	if fns := table.Sweep(&mine); len(fns) != 3000 {
		t.Errorf("swept %d", len(fns))
	}
	if table.Pending(&mine) != 0 || table.Pending(&other) != 3000 {
		t.Errorf("pending %d and %d", table.Pending(&mine), table.Pending(&other))
	}
	if h := table.Add(Func{Group: &mine}); h != 0 {
		t.Error("added to a group that was swept")
	}
}

func TestIdle(t *testing.T) {
	var table Table
	var g Group
	h := table.Add(Func{Group: &g})
	idle := table.Idle()
	table.Start(h)
	select {
	case <-idle:
		t.Error("idle while a function runs")
	default:
	}
	seen := 0
	table.Each(func(_ Handle, _ Func, started bool) bool {
		if started {
			seen++
		}
		return true
	})
	if seen != 1 || table.Len() != 1 {
		t.Errorf("%d run of %d", seen, table.Len())
	}
	table.Finish(h)
	<-idle
	<-table.Idle() // and at once when nothing is there
}

// Adding, running, taking, sweeping and looking, all at once: every function goes exactly one way.
func TestAllAtOnce(t *testing.T) {
	var table Table
	const n, groups = 20_000, 4
	var gs [groups]Group
	var ends [groups * n]atomic.Int32
	handles := make(chan Handle, 100)
	var adders, enders sync.WaitGroup
	for g := range groups {
		adders.Go(func() {
			for i := range n {
				h := table.Add(Func{Site: uintptr(g*n + i), Group: &gs[g]})
				if h == 0 { // swept
					ends[g*n+i].Add(1)
					continue
				}
				handles <- h
				if i%7 == 0 { // as a refused enqueue does
					if fn, ok := table.Take(h); ok {
						ends[fn.Site].Add(1)
					}
				}
			}
		})
	}
	for range 2 {
		enders.Go(func() {
			for h := range handles {
				if fn, ok := table.Start(h); ok {
					ends[fn.Site].Add(1)
					table.Finish(h)
				}
			}
		})
	}
	stop := make(chan struct{})
	var looker sync.WaitGroup
	looker.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				table.Each(func(_ Handle, fn Func, _ bool) bool { return fn.Group != nil })
				runtime.Gosched()
			}
		}
	})
	for handle := 0; handle < 1000; handle++ {
		runtime.Gosched()
	}
	for _, fn := range table.Sweep(&gs[0]) {
		ends[fn.Site].Add(1)
	}
	adders.Wait()
	close(handles)
	enders.Wait()
	close(stop)
	looker.Wait()
	<-table.Idle()
	for i := range ends {
		if e := ends[i].Load(); e != 1 {
			t.Fatalf("function %d of group %d went %d ways", i%n, i/n, e)
		}
	}
}

func TestCallOutcomes(t *testing.T) {
	var got Outcome
	note := func(o Outcome) { got = o }
	Call(func() {}, note)
	if got.Panic != nil || got.Goexit {
		t.Errorf("after a return: %+v", got)
	}
	Call(func() { panic("x") }, note)
	if got.Panic != "x" || len(got.Stack) == 0 {
		t.Errorf("after a panic: %+v", got)
	}
	got = Outcome{}
	Call(func() { panic(nil) }, note)
	if _, ok := got.Panic.(*runtime.PanicNilError); !ok {
		t.Errorf("after panic(nil): %+v", got)
	}
	got = Outcome{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Call(runtime.Goexit, note)
	}()
	<-done
	if !got.Goexit {
		t.Errorf("after Goexit: %+v", got)
	}
}

func BenchmarkTable(b *testing.B) {
	var table Table
	var g Group
	fn := func() {}
	b.ReportAllocs()
	for b.Loop() {
		h := table.Add(Func{Run: fn, Group: &g})
		table.Start(h)
		table.Finish(h)
	}
}
