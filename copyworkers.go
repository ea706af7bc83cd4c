package cuda

import (
	"time"
	"unsafe"
)

// piece is what a worker copies at a time.
type piece struct {
	l      *lease
	c      *chunk
	off, n uintptr // of the copy's bytes
	after  uint32  // the device is not that far: what its word must come to first
	early  bool    // that is so
}

// hire sees to it that somebody looks at what has been added: it starts a worker, or wakes the one that sleeps. mu is held.
func (st *staging) hire() {
	if st.workers == 0 && len(st.leases) > 0 {
		st.startWorker()
		return
	}
	select {
	case st.bell <- struct{}{}:
	default:
	}
}

func (st *staging) startWorker() {
	st.workers++
	st.calm.add()
	go st.work()
}

// work copies what is due until there is nothing to do any more. One worker stays as long as a copy is in progress; others join
// it when there is more than one can do, and leave when there has been nothing for them for a while.
//
// It calls nothing that could wait for the driver. In particular it frees nothing: see arena, and retireList.
func (st *staging) work() {
	defer st.calm.done()
	idleSince, looks := time.Now(), 0
	for {
		p, ok := st.takePiece(true)
		if ok {
			st.copyPiece(p)
			idleSince, looks = time.Now(), 0
			continue
		}
		idle := time.Since(idleSince)
		if st.leave(idle) {
			return
		}
		looks++
		if st.pause(copyPatience(idle, looks)) {
			idleSince, looks = time.Now(), 0
		}
	}
}

// pause lets d pass, and reports true if it was cut short because something has been added.
func (st *staging) pause(d time.Duration) (added bool) {
	const short = 100 * time.Microsecond
	defer st.back()
	if d < short {
		st.ctx.drv.drv.HostPause(d)
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-st.bell:
		return true
	case <-timer.C:
		return false
	}
}

// takePiece finds something that can be copied now or, if early, very soon. Leases have their turns.
func (st *staging) takePiece(early bool) (p piece, ok bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if p, ok = st.takeReady(); ok || !early {
		return p, ok
	}
	for _, l := range st.leases {
		if p, ok = st.handEarly(l); ok {
			return p, true
		}
	}
	return piece{}, false
}

// takeReady finds something that can be copied now. mu is held.
func (st *staging) takeReady() (p piece, ok bool) {
	for i := 0; i < len(st.leases); {
		l := st.leases[(st.turn+i)%len(st.leases)]
		n := len(st.leases)
		st.settle(l)
		if len(st.leases) < n { // it ended
			continue
		}
		if p, ok = st.hand(l); ok {
			st.turn = (st.turn + i + 1) % len(st.leases)
			if st.pausing == 0 && st.workers < st.tune.threads && st.due() {
				st.startWorker()
			}
			return p, true
		}
		i++
	}
	return piece{}, false
}

// hand gives out the next piece of l, if its chunk's turn has come. mu is held.
func (st *staging) hand(l *lease) (piece, bool) {
	for st.failed == nil && l.handed < len(l.chunks) {
		c := l.chunks[l.handed]
		if !l.ready(l.handed, c) {
			break
		}
		if c.void {
			c.left = 0
			l.handed++
			l.advance()
			continue
		}
		return st.give(l, c), true
	}
	return piece{}, false
}

// handEarly gives out the next piece of l if its chunk is the one that the device is at: whoever has it waits for the device
// without Go's scheduler, and begins at once. mu is held.
func (st *staging) handEarly(l *lease) (piece, bool) {
	if st.failed != nil || l.handed >= len(l.chunks) {
		return piece{}, false
	}
	i, c := l.handed, l.chunks[l.handed]
	turn := i // the chunk that the device must be through with
	if !c.job.toHost {
		turn = i - len(l.slots)
	}
	before := l.last
	if turn > 0 {
		before = l.chunks[turn-1].job
	}
	if c.void || turn < 0 || before != c.job || !reached(l.pair.device, l.first+uint32(turn)) {
		return piece{}, false
	}
	p := st.give(l, c)
	p.early, p.after = true, l.first+uint32(turn)+1
	return p, true
}

// give takes a piece off c, whose turn it is. mu is held.
func (st *staging) give(l *lease, c *chunk) piece {
	p := piece{l: l, c: c, off: c.off + c.given, n: min(st.tune.pieceOf(c.n), c.n-c.given)}
	c.out++
	if c.given += p.n; c.given == c.n {
		l.handed++
	}
	return p
}

// ready reports whether l's i'th chunk can be copied: to the host, the device has filled its slot; to the device, the slot is
// free, since the chunk that had it is done.
func (l *lease) ready(i int, c *chunk) bool {
	if c.job.toHost {
		return reached(l.pair.device, l.first+uint32(i)+1)
	}
	return i < len(l.slots)
}

// due reports whether there is more to copy right now. mu is held.
func (st *staging) due() bool {
	for _, l := range st.leases {
		if l.handed < len(l.chunks) && l.ready(l.handed, l.chunks[l.handed]) {
			return true
		}
	}
	return false
}

// pieceOf is the size of a worker's piece of a chunk: so that all have some of a large one, and a small one goes to few.
func (t *stagingTune) pieceOf(n uintptr) uintptr {
	least := min(128<<10, t.part)
	return max(roundUp(min(n/uintptr(max(t.threads, 1)), t.part), arenaUnit), least)
}

// copyPiece copies p between its slot and the program's memory. While it waits for the device it does what else there is to
// do: the device may not come to p before that.
func (st *staging) copyPiece(p piece) {
	done, looks, start := uintptr(0), 0, time.Now()
	for done < p.n {
		n, ok := st.copySpan(p, done)
		if ok {
			done, p.early = done+n, false
			continue
		}
		if st.hasFailed() {
			break
		}
		if other, ok := st.takePiece(false); ok {
			st.copyPiece(other)
			continue
		}
		st.ctx.drv.drv.HostPause(copyPatience(time.Since(start), looks))
		looks++
	}
	st.copied(p, done)
}

// copySpan copies the range of p that begins at done, as far as it is one on both sides.
func (st *staging) copySpan(p piece, done uintptr) (n uintptr, ok bool) {
	d, job, off := st.ctx.drv.drv, p.c.job, p.off+done
	at, n := job.host.at(off)
	n = min(n, p.n-done)
	dst, src := at, unsafe.Add(p.c.slot, off-p.c.off)
	if !job.toHost {
		dst, src = src, dst
	}
	if p.early {
		return n, d.HostMemcpyAfter((*uint32)(unsafe.Pointer(p.l.pair.device)), p.after, dst, src, n)
	}
	d.HostMemcpy(dst, src, n)
	return n, true
}

func (st *staging) hasFailed() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.failed != nil
}

// copied notes that n bytes of p have been copied, all but if the context has failed, and tells the device if a chunk is done.
func (st *staging) copied(p piece, n uintptr) {
	st.mu.Lock()
	defer st.mu.Unlock()
	p.c.out--
	p.c.left -= n
	if p.c.job.toHost {
		p.c.job.done.Add(int64(n))
	}
	if st.failed == nil {
		p.l.advance()
	}
	st.settle(p.l)
}

// advance tells the device which chunks the workers are through with. Pieces may be done in any order; what is told is in
// order. mu is held.
func (l *lease) advance() {
	for {
		i := int(l.copied - l.first)
		if i >= len(l.chunks) || l.chunks[i].left > 0 {
			return
		}
		l.copied++
		l.pair.host.Store(l.copied)
	}
}

// leave reports whether a worker is to go that has been idle for so long: with the last copy, or when another worker looks on.
// Otherwise it is about to pause, and back must follow.
func (st *staging) leave(idle time.Duration) bool {
	const patient = 2 * time.Millisecond
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.leases) == 0 || idle > patient && st.workers > 1 {
		st.workers--
		return true
	}
	st.pausing++
	return false
}

func (st *staging) back() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.pausing--
}

// copyPatience is how long a worker pauses that has been idle for so long and has looked so often. In the beginning it goes on
// looking, but not for ever if time stands still, as it may under synctest; then it looks every few microseconds, and at last
// pauses for a sixteenth of the time so far, as when the stream has other work before the copy.
func copyPatience(idle time.Duration, looks int) time.Duration {
	const spin, spins, least, most = 20 * time.Microsecond, 100, 5 * time.Microsecond, time.Millisecond
	if idle < spin && looks < spins {
		return 0
	}
	return min(max(idle/16, least), most)
}
