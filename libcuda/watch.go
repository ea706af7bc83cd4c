//go:build linux && (amd64 || arm64)

package libcuda

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// The failure watch (CONTRACT HL-17). When a context fails, the driver drops its host functions without a word; only a call
// in that context tells. So while host functions wait there, the service asks for the state of a stream of ours that nothing
// is ever queued on: it belongs to no capture and holds nobody up.

const watchInterval = 100 * time.Millisecond

// watched is a context. Its probe is the stream that is asked.
type watched struct {
	ctx      driver.Context
	device   driver.Device
	retained int // guarded by contexts.mu

	active atomic.Bool // the service looks at it, or it is lost

	mu     sync.Mutex // guards what follows; not held across driver calls
	idle   *sync.Cond // busy has ended
	busy   bool       // probe is in use
	closed bool
	probe  driver.Stream // used by whoever is busy, or has closed it
}

// watch has ctx looked at while host functions wait in it. It is called after every launch.
func (nv *nvidia) watch(ctx driver.Context) {
	w := nv.contexts.get(ctx)
	if !w.active.Load() && w.active.CompareAndSwap(false, true) {
		nv.look(w)
	}
}

func (nv *nvidia) look(w *watched) {
	nv.service.add(nv, &task{
		due:  time.Now().Add(watchInterval),
		look: func(time.Time) (time.Duration, bool) { return watchInterval, nv.seen(w) },
		drop: func() {},
	})
}

// seen looks at w once. It reports true if there is no more need to.
func (nv *nvidia) seen(w *watched) bool {
	pending := nv.upcalls.Load().Pending
	if pending(w.ctx) == 0 {
		// Whoever launches now either finds active false, and starts the watch again, or has launched before the second
		// count.
		w.active.Store(false)
		if pending(w.ctx) == 0 || !w.active.CompareAndSwap(false, true) {
			return true
		}
	}
	r := driver.ErrorDeinitialized
	open := w.use(func() {
		if r = nv.openProbe(w); r == driver.Success {
			r = nv.StreamQuery(w.ctx, w.probe)
		}
	})
	if open && r.Sticky() {
		nv.lose(w, r)
		return true // and active stays true: nothing is launched there any more
	}
	return !open
}

// lose tells the library that w has failed, on a goroutine of its own, which Shut waits for.
func (nv *nvidia) lose(w *watched, r driver.Result) {
	nv.service.done.Go(func() { nv.upcalls.Load().Lost(w.ctx, r) })
}

// openProbe makes w's stream, unless it has one. Contexts that were not retained here get theirs when they are looked at.
// Called within use.
func (nv *nvidia) openProbe(w *watched) (r driver.Result) {
	if w.probe == 0 {
		w.probe, r = nv.StreamCreateWithPriority(w.ctx, driver.StreamNonBlocking, 0)
	}
	return r
}

// makeReady has w be watched without making anything later.
func (nv *nvidia) makeReady(w *watched) (r driver.Result) {
	nv.relaxed(func() { w.use(func() { r = nv.openProbe(w) }) })
	return r
}

// unwatch ends the watch of w. Nothing of it is in use afterwards.
func (nv *nvidia) unwatch(w *watched) {
	w.mu.Lock()
	w.closed = true
	for w.busy {
		w.idle.Wait()
	}
	w.mu.Unlock()
	if w.probe != 0 {
		nv.relaxed(func() { nv.StreamDestroy(w.ctx, w.probe) })
	}
}

// use runs fn with w's stream to itself, and reports false if w is closed.
func (w *watched) use(fn func()) bool {
	w.mu.Lock()
	for w.busy {
		w.idle.Wait()
	}
	if w.closed {
		w.mu.Unlock()
		return false
	}
	w.busy = true
	w.mu.Unlock()
	fn()
	w.mu.Lock()
	w.busy = false
	w.mu.Unlock()
	w.idle.Broadcast()
	return true
}
