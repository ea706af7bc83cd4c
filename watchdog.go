package cuda

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/hostfn"
)

// Watchdog has the driver log a warning about every host function, callback and task that has run for longer than limit: its name,
// where it was queued, how long it has run, and who waits for its stream (CONTRACT HL-07). Without it the limit is ten seconds; a
// limit below 0 has none. Functions that run while a limit's quarter passes are looked at once in it; while none waits or runs,
// nothing is.
func Watchdog(limit time.Duration) Option { return func(o *options) { o.watchdog = limit } }

const usualWatchdog = 10 * time.Second

// watchdog looks for functions that have run for long, from time to time while there are any.
type watchdog struct {
	armed   atomic.Bool
	_       [64]byte // who queues reads armed, and who waits writes waiters
	waiters waiters

	mu      sync.Mutex // guards what follows
	timer   *time.Timer
	stopped bool
	seen    map[hostfn.Handle]time.Time // host functions that run, since when at least; the zero time: reported
	told    map[*Task]bool
}

// watch has the watchdog look. It is called whenever a function is queued.
func (d *Driver) watch() {
	if w := &d.dog; !w.armed.Load() && w.armed.CompareAndSwap(false, true) {
		w.arm(d)
	}
}

func (d *Driver) watchLimit() time.Duration {
	if d.opts.watchdog == 0 {
		return usualWatchdog
	}
	return d.opts.watchdog
}

func (w *watchdog) arm(d *Driver) {
	const looks = 4 // in the time of the limit
	limit := d.watchLimit()
	w.mu.Lock()
	defer w.mu.Unlock()
	if limit > 0 && !w.stopped {
		w.timer = time.AfterFunc(limit/looks, func() { w.fire(d, limit) })
	}
}

// stop ends the looking for good, at shutdown.
func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.timer != nil {
		w.timer.Stop()
	}
}

// fire looks once, and arms the watchdog again while there is something to look at.
func (w *watchdog) fire(d *Driver, limit time.Duration) {
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return
	}
	d.reports.add()
	w.mu.Unlock()
	defer d.reports.done()
	callHook(func() { w.look(d, limit) })
	if d.funcs.Len() > 0 || len(d.tasks.all()) > 0 {
		w.arm(d)
		return
	}
	w.armed.Store(false)
	if d.funcs.Len() > 0 { // queued by somebody who found it armed
		d.watch()
	}
}

// look reports who has run for too long.
func (w *watchdog) look(d *Driver, limit time.Duration) {
	now := time.Now()
	seen := map[hostfn.Handle]time.Time{}
	d.funcs.Each(func(h hostfn.Handle, fn hostfn.Func, started bool) bool {
		if !started {
			return true
		}
		since, known := w.seen[h]
		if !known {
			since = now
		}
		if !since.IsZero() && now.Sub(since) >= limit {
			d.warnLong("host function", funcName(fn), fn.Site, fn.On, now.Sub(since))
			since = time.Time{}
		}
		seen[h] = since
		return true
	})
	told := map[*Task]bool{}
	for t, began := range d.tasks.runningSince() {
		if told[t] = w.told[t]; !told[t] && now.Sub(began) >= limit {
			d.warnLong("task", t.name, t.site, uintptr(t.lane.raw), now.Sub(began))
			told[t] = true
		}
	}
	w.seen, w.told = seen, told
}

// runningSince are the tasks that run, and since when.
func (b *tasks) runningSince() map[*Task]time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := map[*Task]time.Time{}
	for _, t := range b.everybody() {
		if t.state == taskRuns {
			list[t] = t.began
		}
	}
	return list
}

// warnLong says that a function has run for long. It contains a panic of the program's handler.
func (d *Driver) warnLong(kind, name string, site, stream uintptr, age time.Duration) {
	defer func() { recover() }()
	d.opts.log().Warn("cuda: "+kind+" has run for long", "func", name, "site", siteName(site), "stream", fmt.Sprintf("%#x", stream),
		"for at least", age.Round(time.Millisecond), "waiting for its stream", d.dog.waiters.describe(stream))
}

// waiters are the calls that wait for streams and events now: as many as there are places for.
type waiters [64]atomic.Pointer[waiter]

// waiter is a call that waits.
type waiter struct {
	op     string
	site   uintptr
	stream uintptr // that it waits for, or that the event was recorded in
	since  time.Time
}

// add notes a call that begins to wait; the place is for remove.
func (w *waiters) add(op string, site, stream uintptr) (place *atomic.Pointer[waiter]) {
	r := &waiter{op, site, stream, time.Now()}
	first := uintptr(unsafe.Pointer(r)) / unsafe.Sizeof(*r)
	for i := range uintptr(len(w)) {
		if p := &w[(first+i)%uintptr(len(w))]; p.Load() == nil && p.CompareAndSwap(nil, r) {
			return p
		}
	}
	return new(atomic.Pointer[waiter])
}

// forTurn stands for a stream that is not held, but for tasks that wait in the library.
const forTurn = ^uintptr(0)

// describe says who waits for a stream, and who waits in the library, which the holder of any stream may be the reason for.
func (w *waiters) describe(stream uintptr) string {
	var parts []string
	for i := range w {
		if r := w[i].Load(); r != nil && (r.stream == stream || r.stream == forTurn) {
			at := ""
			if r.site != 0 {
				at = " at " + siteName(r.site)
			}
			parts = append(parts, fmt.Sprintf("the goroutine in %s%s, for %v", r.op, at, time.Since(r.since).Round(time.Millisecond)))
		}
	}
	if parts == nil {
		return "nobody that this library knows of"
	}
	return strings.Join(parts, "; ")
}
