package cudatest

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/hostlaunch/cuda"
)

// hostManyCases: many host functions at once.
var hostManyCases = []Case{
	{ID: "HL-24", Name: "100,000 behind a gate", Run: manyBehindGate},
	{ID: "HL-25", Name: "64 goroutines, one stream", Run: manyGoroutines},
	{ID: "HL-25", Name: "64 goroutines, own streams", Run: manyStreams},
	{ID: "HL-08", Name: "under garbage collection", Run: underGC},
}

func manyBehindGate(t *T) {
	const n = 100_000
	s := t.Stream()
	g := t.Gate(s)
	<-g.Entered
	before := heap()
	next, wrong := 0, 0
	for i := range n {
		t.Host(s, func() {
			if i != next {
				wrong++
			}
			next++
		})
	}
	perFunction := float64(heap()-before) / n
	if st := t.Driver.Stats(); st.Waiting != n {
		t.Errorf("%d wait, want %d", st.Waiting, n)
	}
	g.Open()
	t.Sync(s)
	if next != n || wrong != 0 {
		t.Errorf("%d of %d ran, %d out of order", next, n, wrong)
	}
	left := float64(heap()-before) / n
	t.Logf("%.0f bytes of Go memory for a waiting function, closure included; %.1f left afterwards", perFunction, left)
	if perFunction > 300 {
		t.Errorf("a waiting function takes %.0f bytes, want under 300", perFunction)
	}
	if left > 20 {
		t.Errorf("%.0f bytes a function are left afterwards", left)
	}
}

// heap is the live Go memory.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first one found with a cleanup
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func manyGoroutines(t *T) {
	const goroutines, each = 64, 200
	s := t.Stream()
	var next [goroutines]int
	wrong := 0
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				if err := cuda.HostLaunch(s, func() {
					if next[g] != i {
						wrong++
					}
					next[g]++
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	t.Sync(s)
	if wrong > 0 {
		t.Errorf("%d functions ran out of their goroutine's order", wrong)
	}
	for g, n := range next {
		if n != each {
			t.Errorf("goroutine %d: %d ran of %d", g, n, each)
		}
	}
}

func manyStreams(t *T) {
	const goroutines, each = 64, 50
	var runs atomic.Int64
	var wg sync.WaitGroup
	for range goroutines {
		s := t.Stream()
		wg.Go(func() {
			for range each {
				if err := cuda.HostLaunch(s, func() { runs.Add(1) }); err != nil {
					t.Error(err)
				}
			}
			if err := s.Sync(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := runs.Load(); n != goroutines*each {
		t.Errorf("%d runs, want %d", n, goroutines*each)
	}
}

func underGC(t *T) {
	s := t.Stream()
	stop := t.collecting()
	sum := 0
	for i := range 10_000 {
		data := []int{i, 2 * i}
		t.Host(s, func() { sum += data[1] - data[0] })
	}
	t.Sync(s)
	stop()
	if want := 10_000 * 9_999 / 2; sum != want {
		t.Errorf("sum %d, want %d", sum, want)
	}
}
