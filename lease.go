package cuda

import (
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/native"
)

// lease is slots that belong to a stream for a while, and what is to be copied through them, in order.
type lease struct {
	stream driver.Stream // that it was made for
	slots  []unsafe.Pointer
	size   uintptr
	pair   *wordPair
	start  uint32       // pair.next when the lease began
	behind driver.Event // recorded behind the latest copy's work

	used    bool    // behind has been recorded
	tasks   []*Task // that it is behind; of the call that queues
	waits   bool    // that call waits for its turn, which may be behind a task
	queues  bool    // a call queues a copy
	spoiled bool    // the driver refused a part of a copy: nobody else gets l
	loose   bool    // a copy between the device and a slot is queued, and not yet what tells of its end; of the call that queues

	rescued atomic.Bool // l stays as it is until behind is complete, whatever else is done

	told uint32 // what the device's word comes to by what is queued; of the call that queues

	chunks  []*chunk // that are not done, in order
	first   uint32   // the number of the first
	fed     int      // how many of them are wholly in the queue, or have been
	quietly int      // parts since the last that reports
}

// lease gives slots to a call that queues a copy of n bytes on s: those that s has already, if they are large enough; or new
// ones; or, if there is no memory for any, those of whatever lease has least to do, behind whose copies s then waits. It waits
// only while other calls are queueing on all there are. r says why there are none; turns, that those calls may wait for the caller, a task.
func (st *staging) lease(s *Stream, n uintptr) (l *lease, r driver.Result, turns bool) {
	if r := st.open(); r != driver.Success {
		return nil, r, false
	}
	want := st.tune.slotFor(n)
	for {
		changed := st.mem.changed()
		if l := st.take(func(l *lease) bool { return l.of(s) && l.size >= want }); l != nil {
			return l, driver.Success, false
		}
		st.making.RLock()
		l, r = st.newLease(s, want, n)
		st.making.RUnlock()
		if l != nil {
			return l, r, false
		}
		if l := st.take(func(l *lease) bool { return l.of(s) }); l != nil {
			return l, driver.Success, false
		}
		if l := st.take(func(*lease) bool { return true }); l != nil {
			return l, driver.Success, false
		}
		if st.idle() {
			st.making.Lock() // what others have taken for a moment they give back, or it is a lease's
			l, r = st.newLease(s, want, n)
			idle := st.idle()
			st.making.Unlock()
			if l != nil {
				return l, r, false
			}
			if idle { // what room there is is the blocks' of a PinnedPool
				select {
				case <-changed: // one of them has come back meanwhile
				default:
					return nil, r, false
				}
			}
			continue
		}
		if st.ctx.drv.tasks.current() != nil && st.allWait() {
			return nil, driver.ErrorOutOfMemory, true
		}
		<-changed
	}
}

// allWait reports whether the calls that queue on all there are wait for their turn: a task must not wait for them.
func (st *staging) allWait() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return !slices.ContainsFunc(st.leases, func(l *lease) bool { return !l.waits && !l.spoiled })
}

// idle reports whether no lease ends by itself: one that is rescued does only when its stream's work is done, perhaps behind what the
// caller has yet to queue.
func (st *staging) idle() bool {
	st.mu.Lock()
	list := slices.Clone(st.leases)
	st.mu.Unlock()
	return !slices.ContainsFunc(list, func(l *lease) bool { return !l.rescued.Load() || st.ctx.passed(l.behind) })
}

// passed reports whether e is complete.
func (c *Context) passed(e driver.Event) (done bool) {
	c.drv.relaxed(func() { done = c.drv.drv.EventQuery(c.raw, e) == driver.Success })
	return done
}

// of reports whether l was made for s. The per-thread default stream's handle stands for another stream on every thread.
func (l *lease) of(s *Stream) bool { return l.stream == s.raw && s.raw != driver.StreamPerThread }

// take takes that lease for queueing which has least to do, of those that fit and that no other call is queueing on.
func (st *staging) take(fits func(*lease) bool) (best *lease) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, l := range st.leases {
		if !l.queues && !l.spoiled && fits(l) && (best == nil || len(l.chunks) < len(best.chunks)) {
			best = l
		}
	}
	if best != nil {
		best.queues = true
		best.follow()
	}
	return best
}

// follow moves start behind the chunks, so that a lease may last for ever though the chunks' numbers wrap. Slots remain what they are,
// and the chunk that had a slot before one that is not done is at start or behind it. mu is held, and no call queues.
func (l *lease) follow() {
	if n, passed := uint32(len(l.slots)), l.first-l.start; passed > 1<<30 {
		l.start += (passed/n - 1) * n
	}
}

// newLease makes a lease of slots of size want, or smaller ones if there is not so much to be had.
func (st *staging) newLease(s *Stream, want, n uintptr) (*lease, driver.Result) {
	st.mu.Lock()
	alone := len(st.leases) == 0
	var pair *wordPair
	if last := len(st.pairs) - 1; last >= 0 {
		pair, st.pairs = st.pairs[last], st.pairs[:last]
	}
	st.mu.Unlock()
	if pair == nil {
		return nil, driver.ErrorOutOfMemory
	}
	pair.begin()
	l := &lease{stream: s.raw, pair: pair, start: pair.next, first: pair.next, told: pair.next, queues: true}
	var r driver.Result
	if l.behind, r = st.ctx.events.take(st.ctx); r == driver.Success { // first: slots that are given back look like room to callers
		r = st.fill(l, want, n, leaseCap(st.mem.limit, st.mem.room(), alone))
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if r != driver.Success {
		st.release(l)
		return nil, r
	}
	st.leases = append(st.leases, l)
	st.post()
	return l, r
}

// begin makes the words say that all chunks so far are done, as they are: a slot's word may be as old as its last chunk.
func (p *wordPair) begin() {
	p.device.Store(p.next)
	for i := range p.host {
		p.host[i].Store(p.next)
	}
	if p.queue == nil {
		p.queue = native.NewQueue(uintptr(unsafe.Pointer(p.device)))
	}
}

// fill gets slots for l: as many as a copy of n bytes has use for, of want bytes, if most allows it. Of few small chunks each has a slot of
// its own, so that the device need not wait for the workers at all.
func (st *staging) fill(l *lease, want, n, most uintptr) (r driver.Result) {
	least := min(64<<10, st.mem.limit)
	for size := want; ; size = max(roundUp(size/2, arenaUnit), min(least, want)) {
		const more = 4 // a copy begins or ends with smaller chunks
		slots := min(max(st.tune.slots, 1), int(n/size)+more, mostSlots)
		if n > want { // large copies do with one slot less rather than with smaller ones
			slots = int(min(uintptr(slots), max(most/size, 3)))
		}
		last := size <= least
		for len(l.slots) < slots && (uintptr(len(l.slots)+1)*size <= most || last && len(l.slots) == 0) {
			var p unsafe.Pointer
			if p, r = st.mem.get(size); p == nil {
				break
			}
			l.slots = append(l.slots, p)
		}
		if l.size = size; len(l.slots) >= min(slots, 3) || last {
			break
		}
		for _, p := range l.slots {
			st.mem.put(p, size)
		}
		l.slots = nil
	}
	for _, p := range l.slots {
		st.reused(p, l.size)
	}
	if len(l.slots) > 0 {
		return driver.Success
	}
	if r == driver.Success {
		r = driver.ErrorOutOfMemory
	}
	return r
}

// release returns what l consists of. mu is held, and l is on no list.
func (st *staging) release(l *lease) {
	if l.behind != 0 {
		st.ctx.events.put(l.behind)
	}
	if l.loose { // work that nobody can wait for may still use the slots, so nobody else may; nor does anybody get the words
		st.mem.wake()
		return
	}
	st.pairs = append(st.pairs, l.pair)
	for _, p := range l.slots {
		st.mem.put(p, l.size)
	}
}
