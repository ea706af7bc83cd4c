package hostfn

import (
	"sync"
	"sync/atomic"
)

// Slots keeps values under handles until they are taken. A handle is an index and, above it, a generation, so that one that
// was taken finds nothing, also when its slot has been used again. Getting takes no lock, and a value has room for its handle,
// so putting allocates nothing of its own. The zero Slots is empty and ready.
type Slots[V any, P Slotted[V]] struct {
	mu     sync.Mutex
	free   []uint32
	used   uint32 // slots ever used
	gen    uint64
	chunks atomic.Pointer[[]*slotChunk[V]]
	n      atomic.Int64
}

// Slotted is a pointer to a V that has a Slot.
type Slotted[V any] interface {
	*V
	slot() *Slot
}

// Slot is what a value has in it to be kept by Slots: its handle.
type Slot struct{ handle uint64 }

func (s *Slot) slot() *Slot { return s }

type slotChunk[V any] [slotChunkSize]atomic.Pointer[V]

const (
	slotChunkSize = 1 << 10
	slotIndexBits = 24
	slotGenMask   = 1<<29 - 1 // handles fit 53 bits
)

// Put keeps v, and returns its handle, which is never 0. It returns 0 if there are 16 million values.
func (s *Slots[V, P]) Put(v P) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var i uint32
	switch n := len(s.free); {
	case n > 0:
		i = s.free[n-1]
		s.free = s.free[:n-1]
	case s.used == 1<<slotIndexBits:
		return 0
	default:
		i = s.used
		if s.used++; s.place(i) == nil {
			s.grow()
		}
	}
	if s.gen = (s.gen + 1) & slotGenMask; s.gen == 0 {
		s.gen = 1
	}
	h := s.gen<<slotIndexBits | uint64(i)
	v.slot().handle = h
	s.place(i).Store(v)
	s.n.Add(1)
	return h
}

// place is the place of an index, or nil if there is none.
func (s *Slots[V, P]) place(i uint32) *atomic.Pointer[V] {
	chunks := s.chunks.Load()
	if at := int(i / slotChunkSize); chunks != nil && at < len(*chunks) {
		return &(*chunks)[at][i%slotChunkSize]
	}
	return nil
}

// grow adds a chunk of places. mu is held.
func (s *Slots[V, P]) grow() {
	var chunks []*slotChunk[V]
	if old := s.chunks.Load(); old != nil {
		chunks = *old
	}
	chunks = append(chunks[:len(chunks):len(chunks)], new(slotChunk[V]))
	s.chunks.Store(&chunks)
}

// Get is the value of h, or nil if it has been taken.
func (s *Slots[V, P]) Get(h uint64) P {
	if p := s.place(uint32(h & (1<<slotIndexBits - 1))); p != nil {
		if v := P(p.Load()); v != nil && v.slot().handle == h {
			return v
		}
	}
	return nil
}

// Take is Get, and has h find nothing from now on. Of several who take one handle, one has the value.
func (s *Slots[V, P]) Take(h uint64) P {
	i := uint32(h & (1<<slotIndexBits - 1))
	p := s.place(i)
	if p == nil {
		return nil
	}
	v := P(p.Load())
	if v == nil || v.slot().handle != h || !p.CompareAndSwap(v, nil) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, i)
	if s.n.Add(-1) == 0 { // give the memory of a burst back
		s.free, s.used = nil, 0
		s.chunks.Store(nil)
	}
	return v
}

// Len is how many values there are.
func (s *Slots[V, P]) Len() int { return int(s.n.Load()) }

// Each calls visit for each value, until it returns false. Values may come and go meanwhile.
func (s *Slots[V, P]) Each(visit func(h uint64, v P) bool) {
	p := s.chunks.Load()
	if p == nil {
		return
	}
	for _, c := range *p {
		for i := range c {
			if v := P(c[i].Load()); v != nil && !visit(v.slot().handle, v) {
				return
			}
		}
	}
}
