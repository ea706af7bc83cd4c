// Package hostfn holds the functions that wait to run in stream order, under handles that a driver can carry.
//
// A driver is handed an integer, never a Go pointer. The table turns it back into the function, once: whoever takes a handle
// first (the driver's call, a refused enqueue, the sweep after a lost context) has it, everyone later finds nothing.
package hostfn

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Handle names a waiting function: the index of its slot below, its generation above. It fits 56 bits, so that a driver
// can put a tag beside it. Zero is no handle.
type Handle uint64

const (
	indexBits = 24 // and 32 bits of generation
	chunkSize = 1 << 10
	maxChunks = 1 << indexBits / chunkSize
)

// Func is a function that waits to run. It is small, for there may be very many: what only a few need stands behind More.
type Func struct {
	Run   func()
	More  any     // what the owner of the table keeps with it
	Site  uintptr // program counter of the enqueue
	Group *Group
}

// Group is a set of functions that are swept together: those of one context.
type Group struct {
	pending int  // guarded by Table.mu
	closed  bool // guarded by Table.mu
}

// Table holds waiting functions. The zero Table is empty and ready.
type Table struct {
	mu     sync.Mutex // held for a few instructions at a time, never across a call out of this package
	chunks []*[chunkSize]slot
	free   uint32 // index+1 of the first free slot, 0: none
	live   int
	gen    uint32
	idle   chan struct{} // what Idle handed out last, until it is closed

	running  []started // few: drivers run the functions of a context one at a time
	finished atomic.Uint64
}

type slot struct {
	fn   Func
	gen  uint32 // 0: free
	next uint32 // index+1 of the next free slot
}

// started is a function that runs.
type started struct {
	h  Handle
	fn Func
}

// Add puts fn in the table. It returns 0 if fn's group is closed or the table is full (16 million functions).
func (t *Table) Add(fn Func) Handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	if fn.Group.closed || (t.free == 0 && !t.grow()) {
		return 0
	}
	i := t.free - 1
	s := t.slot(i)
	t.free = s.next
	if t.gen++; t.gen == 0 {
		t.gen = 1
	}
	s.fn, s.gen = fn, t.gen
	t.live++
	fn.Group.pending++
	return Handle(t.gen)<<indexBits | Handle(i)
}

// Take removes the function of h and returns it; ok is false if it was taken before.
func (t *Table) Take(h Handle) (fn Func, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fn, ok = t.take(h)
	t.signalIdle()
	return fn, ok
}

// Start takes the function of h to run it; Finish must follow if ok.
func (t *Table) Start(h Handle) (fn Func, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if fn, ok = t.take(h); ok {
		t.running = append(t.running, started{h, fn})
	}
	return fn, ok
}

// Finish ends what Start began. What the function wrote is visible to whoever calls Observe afterwards.
func (t *Table) Finish(h Handle) {
	t.finished.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = slices.DeleteFunc(t.running, func(r started) bool { return r.h == h })
	t.signalIdle()
}

// Observe orders the caller behind every function that has finished. A driver's Sync gives that order to the hardware, but
// not to Go's memory model (nor to the race detector), which sees nothing of the driver.
func (t *Table) Observe() { t.finished.Load() }

// Sweep closes g, so that nothing can be added to it, and removes and returns all its functions.
func (t *Table) Sweep(g *Group) []Func {
	t.mu.Lock()
	defer t.mu.Unlock()
	g.closed = true
	return t.removeAll(g)
}

// Pending is how many functions of g have yet to start.
func (t *Table) Pending(g *Group) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return g.pending
}

// Waiting returns the functions that have yet to start, up to max of them, and how many there are.
func (t *Table) Waiting(max int) (some []Func, all int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := 0; i < len(t.chunks)*chunkSize && len(some) < min(max, t.live); i++ {
		if s := t.slot(uint32(i)); s.gen != 0 {
			some = append(some, s.fn)
		}
	}
	return some, t.live
}

// Running returns the functions that have started and not finished.
func (t *Table) Running() []Func {
	t.mu.Lock()
	defer t.mu.Unlock()
	var fns []Func
	for _, r := range t.running {
		fns = append(fns, r.fn)
	}
	return fns
}

// Idle returns a channel that is closed once no function waits or runs.
func (t *Table) Idle() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.signalIdle()
	return idle
}

func (t *Table) slot(i uint32) *slot { return &t.chunks[i/chunkSize][i%chunkSize] }

// take is Take with mu held.
func (t *Table) take(h Handle) (fn Func, ok bool) {
	i, gen := uint32(h&(1<<indexBits-1)), uint32(h>>indexBits)
	if gen == 0 || int(i) >= len(t.chunks)*chunkSize {
		return Func{}, false
	}
	s := t.slot(i)
	if s.gen != gen {
		return Func{}, false
	}
	return t.remove(i, s), true
}

// grow adds a chunk of free slots.
func (t *Table) grow() bool {
	if len(t.chunks) == maxChunks {
		return false
	}
	c := new([chunkSize]slot)
	base := uint32(len(t.chunks) * chunkSize)
	for i := range c[:chunkSize-1] {
		c[i].next = base + uint32(i) + 2
	}
	t.chunks = append(t.chunks, c)
	t.free = base + 1
	return true
}

func (t *Table) remove(i uint32, s *slot) Func {
	fn := s.fn
	*s = slot{next: t.free}
	t.free = i + 1
	t.live--
	fn.Group.pending--
	if t.live == 0 {
		t.shrink()
	}
	return fn
}

func (t *Table) removeAll(g *Group) []Func {
	fns := make([]Func, 0, g.pending)
	for i := 0; g.pending > 0; i++ {
		if s := t.slot(uint32(i)); s.gen != 0 && s.fn.Group == g {
			fns = append(fns, t.remove(uint32(i), s))
		}
	}
	t.signalIdle()
	return fns
}

// shrink gives the memory of a burst back. Generations go on counting, so an old handle finds nothing in new slots.
func (t *Table) shrink() {
	if len(t.chunks) > 1 {
		t.chunks, t.free = nil, 0
	}
}

func (t *Table) signalIdle() {
	if t.idle != nil && t.live == 0 && len(t.running) == 0 {
		close(t.idle)
		t.idle = nil
	}
}
