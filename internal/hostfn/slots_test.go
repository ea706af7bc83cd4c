package hostfn

import (
	"sync"
	"sync/atomic"
	"testing"
)

type slotted struct {
	Slot
	n     int
	taken atomic.Int32
}

func TestSlots(t *testing.T) {
	var s Slots[slotted, *slotted]
	first := s.Put(&slotted{n: 1})
	if first == 0 || first>>53 != 0 || s.Get(first).n != 1 || s.Len() != 1 {
		t.Fatalf("handle %#x", first)
	}
	if s.Take(first).n != 1 || s.Take(first) != nil || s.Get(first) != nil || s.Len() != 0 {
		t.Error("taken, and still there")
	}
	again := s.Put(&slotted{n: 2}) // in the same slot
	if again == first || s.Get(first) != nil || s.Take(first) != nil || s.Get(again).n != 2 {
		t.Error("a stale handle finds something")
	}
	for _, h := range []uint64{0, 1, 1 << 52, ^uint64(0) >> 11} {
		if s.Get(h) != nil || s.Take(h) != nil {
			t.Errorf("handle %#x finds something", h)
		}
	}
}

// Many put, look and take at once: each value is taken once, and a burst's memory goes.
func TestSlotsAtOnce(t *testing.T) {
	const workers, each = 8, 5000
	var s Slots[slotted, *slotted]
	values := make([]slotted, workers*each)
	handles := make(chan uint64, 64)
	var putters, takers sync.WaitGroup
	for w := range workers {
		putters.Go(func() {
			for i := range each {
				v := &values[w*each+i]
				v.n = w*each + i
				h := s.Put(v)
				if s.Get(h) != v {
					t.Error("not found")
				}
				handles <- h
			}
		})
	}
	for range workers {
		takers.Go(func() {
			for h := range handles {
				v := s.Take(h)
				if v == nil || s.Take(h) != nil {
					t.Error("not taken once")
					continue
				}
				v.taken.Add(1)
				s.Each(func(uint64, *slotted) bool { return false })
			}
		})
	}
	putters.Wait()
	close(handles)
	takers.Wait()
	for i := range values {
		if n := values[i].taken.Load(); n != 1 {
			t.Fatalf("value %d was taken %d times", i, n)
		}
	}
	if s.Len() != 0 || s.chunks.Load() != nil {
		t.Errorf("%d values are left", s.Len())
	}
}
