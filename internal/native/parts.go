package native

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Part is what a thread copies at a time: Rows rows of N bytes. It may be copied once the queue's word has come to Value, counted
// cyclically. Its addresses are numbers; whoever puts it into a queue keeps the memory alive until the part is over.
type Part struct {
	Dst, Src, N            uintptr
	Rows, DstStep, SrcStep uintptr // at least one row, and how far it is from one to the next
	Left                   uintptr // the address of a Left, of the chunk that this is a part of
	Release                uintptr // the address of a word that becomes ReleaseValue when the chunk is copied
	Done                   uintptr // the address of a counter of 64 bits that Bytes is added to, or 0
	Bytes                  uintptr // N*Rows
	Value, ReleaseValue    uint32
	Flags                  uint32
	_                      [36]byte // to 128 bytes
}

// Left counts the parts of a chunk that are not copied. Over is 1 when nobody touches the chunk any more.
type Left struct{ Parts, Over atomic.Uint32 }

// Flags of a Part.
const (
	PartStream  = 1 << iota // write past the caches
	PartReports             // whoever copies the last part of the chunk returns
)

// partsToWake is how many more parts there must be for a sleeper to be woken.
//
//lint:ignore U1000 the assembly has it
const partsToWake = 3

// QueueParts is how many parts a queue has room for.
const QueueParts = 512

// Queue is parts that are taken in order, each by one thread. It is filled by one goroutine at a time. Its memory must not go as
// long as a board has it and threads look at that.
type Queue struct {
	Ticket atomic.Uint64 // the number of the part that is taken next
	_      [56]byte
	Tail   atomic.Uint64 // the number behind the last part
	ring   uintptr
	Word   uintptr // the address of the word that parts wait for
	_      [40]byte

	mu    sync.Mutex // held by takers in Go, so that none looks at a part that is being replaced
	parts *[QueueParts]Part
}

// NewQueue makes an empty queue. word is not a Go address, or is kept alive by the caller.
func NewQueue(word uintptr) *Queue {
	q := &Queue{Word: word, parts: new([QueueParts]Part)}
	q.ring = uintptr(unsafe.Pointer(q.parts))
	return q
}

// Put appends a part; false: there is no room.
func (q *Queue) Put(p *Part) bool {
	t := q.Tail.Load()
	if t-q.Ticket.Load() >= QueueParts {
		return false
	}
	q.parts[t%QueueParts] = *p
	q.Tail.Store(t + 1)
	return true
}

// Seize takes all parts that nobody has taken, and counts them off their chunks. Nothing of them is copied, and no word written.
func (q *Queue) Seize() {
	q.mu.Lock()
	defer q.mu.Unlock()
	tail := q.Tail.Load()
	for t := q.Ticket.Swap(tail); t < tail; t++ {
		q.parts[t%QueueParts].left().Drop(1)
	}
}

// Drop counts n parts as over that are not copied.
func (l *Left) Drop(n uint32) {
	if l.Parts.Add(-n) == 0 {
		l.Over.Store(1)
	}
}

func (p *Part) left() *Left { return (*Left)(pointer(p.Left)) }

// MostQueues is how many queues a board has room for.
const MostQueues = 256

// Board is the queues that threads take parts from, and where they sleep. Set changes the queues.
type Board struct {
	n        atomic.Uint32
	Bell     atomic.Uint32 // changes when sleepers are to wake
	Sleepers atomic.Uint32
	_        uint32
	active   [MostQueues]atomic.Uintptr
}

// Set says which queues there are. One goroutine at a time calls it.
func (b *Board) Set(list []*Queue) {
	for i, q := range list {
		b.active[i].Store(uintptr(unsafe.Pointer(q)))
	}
	b.n.Store(uint32(len(list)))
}

// Work is a thread's turn at a board, the argument of PartsFunc.
type Work struct {
	Board uintptr // the address of a Board
	// Looks is for how many looks a thread goes on that finds nothing to do: eight times as many as long as there are parts that
	// wait for their word. Between looks the processor pauses, for some 10 to 50 ns.
	Looks uint64
	// Home is the address of a queue, or 0: with Target parts of that taken the turn is over.
	Home   uintptr
	Target uint64
	// Park not 0: sleep first, until Bell is rung that was Seen, for a time at most.
	Park, Seen     uint32
	Seconds, Nanos int64
	// What has come of it.
	Did     uint64 // parts
	Outcome uint32
	next    uint32 // the queue looked at last
	part    Part   // the part that is being copied
}

// Outcomes of a turn.
const (
	WorkIdle     = iota // there was nothing for so many looks
	WorkReport          // a chunk that reports is copied
	WorkHome            // the parts of Home are taken
	WorkTimedOut        // nobody woke the thread
)

// RunParts does in Go what PartsFunc does natively, but it neither waits nor sleeps.
func RunParts(w *Work) {
	b := (*Board)(pointer(w.Board))
	if w.Park != 0 {
		w.Outcome = WorkTimedOut
		return
	}
	for none := uint32(0); ; {
		if q := (*Queue)(pointer(w.Home)); q != nil && q.Ticket.Load() >= w.Target {
			w.Outcome = WorkHome
			return
		}
		n := b.n.Load()
		if none++; none > n {
			w.Outcome = WorkIdle
			return
		}
		if w.next++; w.next >= n {
			w.next = 0
		}
		q := (*Queue)(pointer(b.active[w.next].Load()))
		if q == nil || !q.take(&w.part) {
			continue
		}
		none = 0
		w.Did++
		if w.part.run() {
			w.Outcome = WorkReport
			return
		}
		runtime.Gosched()
	}
}

// take takes the next part if its word says so.
func (q *Queue) take(p *Part) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.Ticket.Load()
	if t >= q.Tail.Load() {
		return false
	}
	next := &q.parts[t%QueueParts]
	if int32((*atomic.Uint32)(pointer(q.Word)).Load()-next.Value) < 0 {
		return false
	}
	*p = *next
	q.Ticket.Store(t + 1)
	return true
}

// run copies the part, and reports whether that is to be reported.
func (p *Part) run() bool {
	for i := range p.Rows {
		dst, src := pointer(p.Dst+i*p.DstStep), pointer(p.Src+i*p.SrcStep)
		copy(unsafe.Slice((*byte)(dst), p.N), unsafe.Slice((*byte)(src), p.N))
	}
	if p.Done != 0 {
		(*atomic.Int64)(pointer(p.Done)).Add(int64(p.Bytes))
	}
	l := p.left()
	if l.Parts.Add(^uint32(0)) > 0 {
		return false
	}
	(*atomic.Uint32)(pointer(p.Release)).Store(p.ReleaseValue)
	l.Over.Store(1)
	return p.Flags&PartReports != 0
}
