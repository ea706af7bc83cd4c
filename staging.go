package cuda

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/native"
)

// staging carries copies between devices and ordinary memory through pinned memory: a copy engine moves a chunk between the device
// and a slot of pinned memory, and copying goroutines move it between the slot and the program's memory.
//
// All that the device does for a copy is queued on the copy's own stream at the call: for each chunk a copy, a write-value that
// tells the workers, and a wait-value until they have done their part. The workers look at memory and write to memory,
// and call no function of the driver. So nothing waits for work that is yet to be queued, neither on this stream nor on
// another; no host function is used, so that one of the program's that runs long holds no copy up; and no call that the driver
// holds up while a stream waits (CONTRACT TK-03) is one that the wait needs.
//
// What there is to copy stands on a board, in a queue of parts for each lease. Workers take parts, wait, and wake one another
// without the Go runtime where the driver has HostCall; see native.Work. In Go they only tend: they fill queues and count what is
// done. Who waits for a stream helps meanwhile.
//
// Slots are leased to a stream from its first copy until its last one is done. A stream that is busy or held keeps its slots,
// and others have theirs; only when there is no memory left for a lease at all do two streams share one, in turns.
type staging struct {
	ctx  *Context
	tune stagingTune
	mem  *arena
	pool *resource // of the PinnedPool that this is, held while copies are in progress; nil: the context's own ring

	opening sync.Mutex   // held while the words are taken from the driver; before mu
	making  sync.RWMutex // held while memory is taken for a lease, which is on no list yet; before mu

	mu      sync.Mutex // guards what follows; never held across a driver call
	words   unsafe.Pointer
	all     []*wordPair // whose queues stay as long as the board is looked at
	pairs   []*wordPair // that no lease has
	leases  []*lease
	board   native.Board // the leases' queues
	workers int
	want    int // how many workers there is work for
	parked  int // of the workers: they sleep natively, or are just about to look up
	pausing int // of the workers: they look again by and by
	closing bool
	failed  error         // what the context has failed with
	calm    tally         // workers and copies
	bell    chan struct{} // rung when a copy is added, for who pauses
}

// wordPair is how a lease's device and workers tell each other what is done: the device counts the chunks that it is through with
// in one word; the workers write the number of a chunk that they are through with to the word of its slot. The two are on
// cache lines of their own. The numbers go on from lease to lease and are never set back, so that a stale write or wait finds
// nothing of a later lease's: they are the slots' generations (CONTRACT CY-04).
type wordPair struct {
	device *atomic.Uint32
	host   *[mostSlots]atomic.Uint32
	next   uint32 // the number of the next chunk
	queue  *native.Queue
}

const (
	pairsPerStaging = 256 // and so leases
	wordPairSize    = 128
	mostSlots       = wordPairSize / 2 / 4
)

var _ [native.MostQueues - pairsPerStaging]struct{} // the board has room for all

// chunk is a part of a copy that is in a slot at one time.
type chunk struct {
	job     *stagedCopy
	slot    int
	off, n  uintptr // of the copy's bytes, row behind row
	given   uintptr // bytes that are in the queue, or have been
	left    native.Left
	reports bool // whoever copies the last of it tends; see reports
}

// place is a word's address, which is one for the host and for devices.
func place(w *atomic.Uint32) driver.DevicePtr { return driver.DevicePtr(uintptr(unsafe.Pointer(w))) }

// reached reports whether a counter has come to n. Counters wrap.
func reached(w *atomic.Uint32, n uint32) bool { return int32(w.Load()-n) >= 0 }

func newStaging(c *Context, tune stagingTune, limit uintptr) *staging {
	d := c.drv.drv
	st := &staging{ctx: c, tune: tune, bell: make(chan struct{}, 1)}
	st.mem = &arena{limit: limit, segment: stagingSegment, take: func(n uintptr) (p unsafe.Pointer, r driver.Result) {
		c.drv.relaxed(func() { p, r = d.MemHostAlloc(c.raw, n, driver.MemHostAllocPortable) })
		return p, r
	}}
	return st
}

// open takes the words from the driver, once.
func (st *staging) open() driver.Result {
	st.opening.Lock()
	defer st.opening.Unlock()
	st.mu.Lock()
	done := st.words != nil
	st.mu.Unlock()
	if done {
		return driver.Success
	}
	p, r := st.mem.take(pairsPerStaging * wordPairSize)
	if r != driver.Success {
		return r
	}
	clear(unsafe.Slice((*byte)(p), pairsPerStaging*wordPairSize))
	st.mu.Lock()
	defer st.mu.Unlock()
	st.words = p
	for i := range pairsPerStaging {
		at := unsafe.Add(p, i*wordPairSize)
		st.all = append(st.all, &wordPair{device: (*atomic.Uint32)(at), host: (*[mostSlots]atomic.Uint32)(unsafe.Add(at, wordPairSize/2))})
	}
	st.pairs = slices.Clone(st.all)
	return r
}

// close gives the memory back. Nothing is in progress any more.
func (st *staging) close() driver.Result {
	st.mu.Lock()
	st.closing = true
	st.mu.Unlock()
	native.Wake(&st.board, math.MaxInt32)
	<-st.calm.idle()
	st.ctx.stagings.remove(st)
	st.mu.Lock()
	words := st.words
	st.words, st.all, st.pairs = nil, nil, nil
	st.mu.Unlock()
	free := func(p unsafe.Pointer) driver.Result { return st.ctx.drv.drv.MemFreeHost(st.ctx.raw, p) }
	r := st.mem.drop(free)
	if words != nil {
		if rw := free(words); r == driver.Success {
			r = rw
		}
	}
	return r
}

// add puts a chunk behind those of l, for the workers, and gives it its number. hire must have been called, or must follow.
func (st *staging) add(l *lease, c *chunk) (g uint32) {
	g = l.pair.next
	l.pair.next++
	st.mu.Lock()
	c.job.open++
	l.chunks = append(l.chunks, c)
	st.feed(l)
	st.settle(l)
	st.mu.Unlock()
	return g
}

// reused tells a driver that looks after the program that some of the memory comes to somebody else, behind all that was done there.
func (st *staging) reused(p unsafe.Pointer, n uintptr) {
	if to, ok := st.ctx.drv.drv.(driver.Checker); ok {
		to.Reused(driver.DevicePtr(uintptr(p)), n)
	}
}

// queued ends the call that queues on l. If the driver refused a part of the copy, l is of no use any more.
func (st *staging) queued(l *lease, refused bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	l.queues = false
	l.spoiled = l.spoiled || refused
	st.settle(l)
	st.mem.wake()
}

// settle takes off what is done of l, and ends l with its last chunk. mu is held.
func (st *staging) settle(l *lease) {
	for len(l.chunks) > 0 && st.done(l, l.chunks[0]) {
		c := l.chunks[0]
		if !c.job.toHost && reached(l.pair.device, l.first+1) {
			c.job.done.Add(int64(c.n))
		}
		l.chunks[0] = nil
		l.chunks = l.chunks[1:]
		l.first++
		l.fed = max(l.fed-1, 0)
		st.end(c.job)
	}
	if len(l.chunks) > 0 || l.queues || l.rescued.Load() {
		return
	}
	if i := slices.Index(st.leases, l); i >= 0 {
		st.leases = slices.Delete(st.leases, i, i+1)
		st.post()
		st.release(l)
	}
}

// done reports whether the slot of l's first chunk is free again. mu is held.
func (st *staging) done(l *lease, c *chunk) bool {
	if c.left.Over.Load() == 0 {
		return false
	}
	never := l.spoiled && int32(l.told-l.first) <= 0 // the device's part has been refused
	return never || st.failed != nil || c.job.toHost || reached(l.pair.device, l.first+1)
}

// post puts the leases' queues on the board. mu is held.
func (st *staging) post() {
	list := make([]*native.Queue, 0, pairsPerStaging)
	for _, l := range st.leases {
		list = append(list, l.pair.queue)
	}
	st.board.Set(list)
}

// fail ends all copies: the context has failed. Workers finish what they are at.
func (st *staging) fail(why error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.failed == nil {
		st.failed = why
	}
	st.mem.wake() // who waits for a block
	for _, l := range slices.Clone(st.leases) {
		st.abandon(l)
		st.settle(l)
	}
}
