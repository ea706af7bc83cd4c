// Package hostfn holds the functions that wait to run in stream order, under handles that a driver can carry.
//
// A driver is handed an integer, never a Go pointer. The table turns it back into the function, once: whoever takes a handle
// first (the driver's call, a refused enqueue, the sweep after a lost context) has it, everyone later finds nothing.
package hostfn

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// Handle names a waiting function: the index of its slot below, its generation above. It fits 56 bits, so that a driver
// can put a tag beside it. Zero is no handle.
type Handle uint64

const (
	indexBits = 24 // and 32 bits of generation
	chunkSize = 1 << 10
	maxChunks = 1 << indexBits / chunkSize
)

func (h Handle) index() uint32 { return uint32(h & (1<<indexBits - 1)) }

// Func is a function that waits to run. It is small, for there may be very many: what only a few need stands behind More.
type Func struct {
	Run   func()
	More  any     // what the owner of the table keeps with it
	Site  uintptr // program counter of the enqueue
	Group *Group
	On    uintptr // the stream, as the owner of the table names it; 0: unknown
}

// Group is a set of functions that are swept together: those of one context.
type Group struct {
	added  int64 // guarded by Table.mu
	closed bool  // guarded by Table.mu
	_      [48]byte
	gone   atomic.Int64 // of those added, how many have started or were taken
	due    atomic.Int64 // runs of kept functions that are expected and have not started
	failed atomic.Pointer[error]
}

// Fail says that the functions of g that have not started must not run any more, and why. A driver may call one all the same
// until Sweep has taken it.
func (g *Group) Fail(why error) { g.failed.Store(&why) }

// Failure is what Fail was told, or nil.
func (g *Group) Failure() error {
	if why := g.failed.Load(); why != nil {
		return *why
	}
	return nil
}

// Table holds waiting functions. The zero Table is empty and ready.
//
// Functions are added by the callers' goroutines and run by a driver's thread, at the same time and as fast as the driver can.
// The two sides share as little as they can: adding takes the lock, running never does, and each side writes to cache lines
// of its own, but for the slot. (On a thread of the driver a contended mutex would cost a change of threads.)
type Table struct {
	mu     sync.Mutex // guards what follows; held for a few instructions, never across a call out of this package
	free   uint32     // index+1 of the first slot to use, 0: none
	gen    uint32
	idle   chan struct{} // what Idle handed out last, until it is closed
	added  atomic.Uint64 // functions ever added; written with mu held
	chunks atomic.Pointer[[]*chunk]

	_        [64]byte
	returned atomic.Uint32 // index+1 of the first slot of those given back and not yet in free, 0: none
	awaited  atomic.Bool   // somebody holds idle, or the table has grown: the last to end has something to do
	ended    atomic.Uint64 // functions ever ended
	_        [64]byte

	kept keptTable
}

type chunk [chunkSize]slot

// slot is a function and its state: a phase, and the generation of its handle above it. Whoever changes the phase away from
// free or waiting by a compare-and-swap has the function to himself.
type slot struct {
	fn    Func
	state atomic.Uint64
	next  uint32 // index+1 of the next slot, in the list that this one is in
}

// A slot is one cache line: it goes from the enqueuer's core to the driver's and back for each function.
var _ [64 - unsafe.Sizeof(slot{})]byte
var _ [unsafe.Sizeof(slot{}) - 64]byte

const (
	free      = iota
	waiting   // to run
	running   // or taken, and about to be free
	inspected // by Each, for a moment
	phaseBits = 2
)

func state(h Handle, phase uint64) uint64 { return uint64(h)>>indexBits<<phaseBits | phase }

// Add puts fn in the table. It returns 0 if fn's group is closed or the table is full (16 million functions).
func (t *Table) Add(fn Func) Handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	if fn.Group.closed {
		return 0
	}
	if t.free == 0 {
		t.free = t.returned.Swap(0)
	}
	if t.free == 0 && !t.grow() {
		return 0
	}
	i := t.free - 1
	s := t.slot(i)
	t.free = s.next
	if t.gen++; t.gen == keptBit>>indexBits {
		t.gen = 1
	}
	h := Handle(t.gen)<<indexBits | Handle(i)
	s.fn = fn
	s.state.Store(state(h, waiting))
	t.added.Add(1)
	fn.Group.added++
	return h
}

// Take removes the function of h and returns it; ok is false if it was taken before.
func (t *Table) Take(h Handle) (fn Func, ok bool) {
	fn, ok = t.Start(h)
	if ok {
		t.Finish(h)
	}
	return fn, ok
}

// Peek is the function of h, if nobody has taken it.
func (t *Table) Peek(h Handle) (fn Func, ok bool) {
	s := t.slot(h.index())
	if s == nil {
		return Func{}, false
	}
	now, fn, started, ok := s.inspect(h.index())
	if !ok || started || now != h {
		return Func{}, false
	}
	return fn, true
}

// Start takes the function of h to run it; Finish must follow if ok.
func (t *Table) Start(h Handle) (fn Func, ok bool) {
	s := t.slot(h.index())
	if s == nil || !s.move(h, waiting, running) {
		return Func{}, false
	}
	s.fn.Group.gone.Add(1)
	return s.fn, true
}

// Finish ends what Start began. What the function wrote is visible to whoever calls Observe afterwards.
func (t *Table) Finish(h Handle) {
	i := h.index()
	s := t.slot(i)
	s.move(h, running, inspected) // waits for whoever inspects it
	s.fn = Func{}
	s.state.Store(free)
	t.giveBack(i, s)
	if n := t.ended.Add(1); t.awaited.Load() && n == t.added.Load() {
		t.settle()
	}
}

// giveBack puts a slot on the list that Add takes whole.
func (t *Table) giveBack(i uint32, s *slot) {
	for {
		first := t.returned.Load()
		s.next = first
		if t.returned.CompareAndSwap(first, i+1) {
			return
		}
	}
}

// move changes the phase of s, if it is still h's and in phase from; while somebody inspects it, it waits.
func (s *slot) move(h Handle, from, to uint64) bool {
	for {
		switch was := s.state.Load(); was {
		case state(h, from):
			if s.state.CompareAndSwap(was, state(h, to)) {
				return true
			}
		case state(h, inspected):
		default:
			return false
		}
	}
}

// Observe orders the caller behind every function that has finished. A driver's Sync gives that order to the hardware, but
// not to Go's memory model (nor to the race detector), which sees nothing of the driver.
func (t *Table) Observe() {
	t.ended.Load()
	t.kept.ended.Load()
}

// Shut closes g: nothing can be added to it any more. What is in it stays.
func (t *Table) Shut(g *Group) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g.closed = true
}

// Sweep closes g, so that nothing can be added to it, and removes and returns all its functions that have not started.
func (t *Table) Sweep(g *Group) []Func {
	t.Shut(g)
	var fns []Func
	t.Each(func(h Handle, fn Func, started bool) bool {
		if fn.Group == g && !started {
			if fn, ok := t.Take(h); ok {
				fns = append(fns, fn)
			}
		}
		return true
	})
	return append(fns, t.sweepKept(g)...)
}

// Pending is how many functions of g have yet to start; a kept one counts for each run that is due.
func (t *Table) Pending(g *Group) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int(g.added - g.gone.Load() + g.due.Load())
}

// Len is how many functions wait or run.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int(t.added.Load()-t.ended.Load()) + int(t.kept.open.Load())
}

// Each calls visit for each function in the table, until it returns false. Functions may come and go meanwhile.
func (t *Table) Each(visit func(h Handle, fn Func, started bool) bool) {
	chunks := t.chunks.Load()
	if chunks == nil {
		return
	}
	for c, chunk := range *chunks {
		for i := range chunk {
			h, fn, started, ok := chunk[i].inspect(uint32(c*chunkSize + i))
			if ok && !visit(h, fn, started) {
				return
			}
		}
	}
}

// inspect reads a slot that somebody else may be about to take: who wants it waits meanwhile.
func (s *slot) inspect(i uint32) (h Handle, fn Func, started, ok bool) {
	for {
		was := s.state.Load()
		h = Handle(was>>phaseBits<<indexBits | uint64(i))
		switch phase := was & (1<<phaseBits - 1); {
		case phase == free:
			return 0, Func{}, false, false
		case phase != inspected && s.state.CompareAndSwap(was, state(h, inspected)):
			fn = s.fn
			s.state.Store(was)
			return h, fn, phase == running, true
		}
	}
}

// Idle returns a channel that is closed once no function waits or runs, and no kept one runs. It does not wait for runs of kept
// ones that are only due.
func (t *Table) Idle() <-chan struct{} {
	t.mu.Lock()
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.awaited.Store(true)
	t.mu.Unlock()
	t.settle()
	return idle
}

// settle does what is to be done when the table is empty: tell who awaits that, and give the memory of a burst back.
// Generations go on counting, so an old handle finds nothing in new slots.
func (t *Table) settle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.added.Load() != t.ended.Load() || t.kept.running.Load() != 0 {
		return
	}
	t.awaited.Store(false)
	if t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
	if chunks := t.chunks.Load(); chunks != nil && len(*chunks) > 1 {
		t.chunks.Store(nil)
		t.free = 0
		t.returned.Store(0)
	}
}

// slot is the slot of an index, or nil if there is none (any more).
func (t *Table) slot(i uint32) *slot {
	chunks := t.chunks.Load()
	if chunks == nil || int(i/chunkSize) >= len(*chunks) {
		return nil
	}
	return &(*chunks)[i/chunkSize][i%chunkSize]
}

// grow adds a chunk of free slots. mu is held.
func (t *Table) grow() bool {
	var chunks []*chunk
	if old := t.chunks.Load(); old != nil {
		chunks = *old
	}
	if len(chunks) == maxChunks {
		return false
	}
	c := new(chunk)
	base := uint32(len(chunks) * chunkSize)
	for i := range c[:chunkSize-1] {
		c[i].next = base + uint32(i) + 2
	}
	chunks = append(chunks[:len(chunks):len(chunks)], c)
	t.chunks.Store(&chunks)
	t.free = base + 1
	if len(chunks) > 1 {
		t.awaited.Store(true)
	}
	return true
}
