package hostfn

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestKept(t *testing.T) {
	var table Table
	var g Group
	runs := 0
	h := table.Keep(Func{Run: func() { runs++ }, Group: &g})
	if one := table.Add(Func{Group: &g}); one.Kept() || !h.Kept() || h>>56 != 0 {
		t.Errorf("handles %#x and %#x", one, h)
	} else {
		table.Take(one)
	}
	if _, ok := table.StartKept(h); ok {
		t.Error("a run that nobody expects")
	}
	for range 3 {
		if !table.Expect(h) {
			t.Fatal("not expected")
		}
	}
	if !table.Unexpect(h) || table.Pending(&g) != 2 || table.Len() != 2 {
		t.Errorf("pending %d, len %d; want 2, 2", table.Pending(&g), table.Len())
	}
	fn, ok := table.StartKept(h)
	if !ok || table.Pending(&g) != 1 || table.Len() != 2 {
		t.Errorf("started %v; pending %d, len %d", ok, table.Pending(&g), table.Len())
	}
	idle := table.Idle()
	wantKept(t, &table, 1, 1)
	select {
	case <-idle:
		t.Error("idle while a kept function runs")
	default:
	}
	fn.Run()
	table.FinishKept(h)
	<-idle // though a run is due
	wantKept(t, &table, 1, 0)
	if swept := table.Sweep(&g); len(swept) != 1 || table.Pending(&g) != 0 || table.Len() != 0 {
		t.Errorf("swept %d; pending %d, len %d", len(swept), table.Pending(&g), table.Len())
	}
	if _, ok := table.StartKept(h); ok || table.Expect(h) || table.Unexpect(h) {
		t.Error("a run after the sweep")
	}
	table.Drop(h)
	table.Drop(h)
	if table.KeptLen() != 0 || table.Expect(h) {
		t.Error("still there")
	}
}

// wantKept wants so many runs of kept functions.
func wantKept(t *testing.T, table *Table, due, running int) {
	t.Helper()
	table.EachKept(func(_ Func, isDue, isRunning int) bool {
		due -= isDue
		running -= isRunning
		return true
	})
	if due != 0 || running != 0 || table.KeptLen() != 1 {
		t.Errorf("%d runs fewer due than wanted, %d fewer in progress; %d functions", due, running, table.KeptLen())
	}
}

// Every run that is expected either happens or is swept, once.
func TestKeptConcurrent(t *testing.T) {
	var table Table
	var g Group
	h := table.Keep(Func{Group: &g})
	var started, expected atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				if !table.Expect(h) {
					return
				}
				expected.Add(1)
				if _, ok := table.StartKept(h); ok {
					started.Add(1)
					table.FinishKept(h)
				}
			}
		})
	}
	swept := len(table.Sweep(&g))
	all.Wait()
	if started.Load()+int64(swept) != expected.Load() || table.Len() != 0 || table.Pending(&g) != 0 {
		t.Errorf("%d started, %d swept of %d; len %d, pending %d", started.Load(), swept, expected.Load(), table.Len(), table.Pending(&g))
	}
}
