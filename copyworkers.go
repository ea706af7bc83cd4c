package cuda

import (
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/native"
)

// A worker takes parts off the board. Natively it goes on looking for a while when it finds none: eight times longer when parts wait for
// their device. Then it sleeps, and goes when nobody wakes it.
const (
	looksOfWorker = 20_000 // some 0.3 to 1 ms; the device fills the largest slot in 300 µs
	looksAgain    = 80     // of a worker that has looked for so long already
	looksOfHelper = 5_000
	workerSleeps  = 250 * time.Millisecond
)

// works keeps every Work in memory of its own: natively it is an address, and a goroutine's stack moves.
var works = sync.Pool{New: func() any { return new(native.Work) }}

func newWork(looks uint64) *native.Work {
	w := works.Get().(*native.Work)
	*w = native.Work{Looks: looks}
	return w
}

// hire sees to it that there are so many workers, for a copy that has been added.
func (st *staging) hire(n int) {
	st.mu.Lock()
	st.want = max(st.want, n)
	wake := min(st.parked, st.want)
	if st.pausing > 0 {
		select {
		case st.bell <- struct{}{}:
		default:
		}
	}
	st.startWorker()
	st.mu.Unlock()
	if wake > 0 {
		native.Wake(&st.board, wake)
	}
}

// startWorker starts a worker if one more is wanted. mu is held.
func (st *staging) startWorker() {
	if st.workers >= st.want || len(st.leases) == 0 {
		return
	}
	st.workers++
	st.calm.add()
	go st.work()
}

// work copies what is due until there is nothing to do any more. One worker looks on as long as a copy is in progress.
//
// It calls nothing that could wait for the driver. In particular it frees nothing: see arena, and retireList.
func (st *staging) work() {
	defer st.calm.done()
	st.mu.Lock()
	st.startWorker() // one starts the next
	st.mu.Unlock()
	w := newWork(looksOfWorker)
	defer works.Put(w)
	idleSince, looks := time.Now(), 0
	for {
		if st.turn(w) {
			idleSince, looks, w.Looks = time.Now(), 0, looksOfWorker
			continue
		}
		switch idle := time.Since(idleSince); st.next(w) {
		case workerLooks:
			w.Looks = looksAgain
			looks++
			if st.pause(copyPatience(idle, looks)) {
				idleSince, looks, w.Looks = time.Now(), 0, looksOfWorker
			}
		case workerParks:
			if st.park(w) {
				return
			}
			idleSince, looks = time.Now(), 0
		}
	}
}

// turn takes parts off the board for a while, and reports whether there were any, or what they told.
func (st *staging) turn(w *native.Work) (some bool) {
	w.Board, w.Did = uintptr(unsafe.Pointer(&st.board)), 0
	if !st.ctx.drv.drv.HostCall(native.PartsFunc(), uintptr(unsafe.Pointer(w))) {
		if native.RunParts(w); w.Did > 0 {
			st.ctx.drv.drv.MemoryWritten() // a device that waits for it need not look for itself
		}
	}
	runtime.KeepAlive(w)
	st.tend()
	return w.Did > 0
}

// tend fills queues, and counts what is done.
func (st *staging) tend() {
	st.mu.Lock()
	defer st.mu.Unlock()
	for i := 0; i < len(st.leases); {
		l := st.leases[i]
		st.settle(l)
		if i < len(st.leases) && st.leases[i] == l { // it has not ended
			st.feed(l)
			i++
		}
	}
}

// What a worker does that has found nothing.
const (
	workerLooks = iota // again and again: pause must follow
	workerParks        // sleeps: park must follow
)

// next tells a worker that has found nothing what to do. One looks on as long as there are copies, and the others sleep: whoever finds
// something wakes them.
func (st *staging) next(w *native.Work) int {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.leases) > 0 && st.workers-st.parked == 1 {
		st.pausing++
		return workerLooks
	}
	if len(st.leases) == 0 {
		st.want = 0
	}
	st.parked++
	if w.Seen = st.board.Bell.Load(); st.closing {
		w.Seen-- // close has rung already: the worker does not sleep
	}
	return workerParks
}

// park sleeps, and then has a turn. It reports true if the worker is to go, since nobody has woken it.
func (st *staging) park(w *native.Work) (goes bool) {
	w.Looks, w.Park, w.Nanos = looksOfWorker, 1, int64(workerSleeps)
	st.turn(w)
	w.Park = 0
	st.mu.Lock()
	defer st.mu.Unlock()
	st.parked--
	if w.Outcome != native.WorkTimedOut && !st.closing || len(st.leases) > 0 && st.workers-st.parked == 1 {
		return false
	}
	st.workers--
	return true
}

// pause lets d pass, and reports true if it was cut short because something has been added.
func (st *staging) pause(d time.Duration) (added bool) {
	const short = 100 * time.Microsecond
	defer st.paused()
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

// paused is the end of the pause that next has counted.
func (st *staging) paused() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.pausing--
}

// help takes parts off the board until those of s's copies are taken, or nothing has come for a moment. The caller is about to wait
// for s.
func (st *staging) help(s *Stream) {
	w := newWork(looksOfHelper)
	defer works.Put(w)
	if !st.helps(s, w) {
		return
	}
	defer st.calm.done()
	for st.turn(w) && w.Outcome == native.WorkReport {
	}
}

// helps makes w a turn for s's sake, if there is something to do; then st stays open until calm.done.
func (st *staging) helps(s *Stream, w *native.Work) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, l := range st.leases {
		q := l.pair.queue
		if w.Target = q.Tail.Load(); l.of(s) && q.Ticket.Load() < w.Target {
			w.Home = uintptr(unsafe.Pointer(q))
			st.calm.add()
			return true
		}
	}
	return false
}

// helpCopies has the caller, who is about to wait for s, copy what is staged there.
func (s *Stream) helpCopies() {
	if s.ctx.copies.Load() == 0 || s.raw == driver.StreamPerThread {
		return
	}
	for _, st := range s.ctx.stagings.list() {
		st.help(s)
	}
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
