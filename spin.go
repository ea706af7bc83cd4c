package cuda

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
	"github.com/hostlaunch/cuda/internal/native"
)

// spinner runs functions of mode Spin where the driver lacks that (CONTRACT HL-21). A function is queued as a write of its number
// to a word of pinned memory, by which the stream tells that it has come to it, and a wait for another word. Goroutines that look
// at the first kind of words, again and again, run the function and let the stream go on.
//
// Who has found a function runs it itself: to hand it to a sleeping goroutine would take longer than everything else. Another goroutine
// has taken over the looking before it does. Not more than spinners look at a time, and only while functions are pending, and for
// linger after the last, since the next one often comes soon.
type spinner struct {
	inside atomic.Int32 // host functions that run here

	mu       sync.Mutex // guards what follows; never held across a driver call
	lanes    map[laneKey]*spinLane
	version  atomic.Uint32 // of lanes
	added    atomic.Uint32 // functions so far
	pending  int           // functions whose streams have not come to them
	awake    atomic.Bool   // pending is above 0
	spinning int           // goroutines that look
}

// spinLane are the pending functions of a stream. They have numbers, and not an order: who queues from several goroutines is not
// told in which order the driver took them.
type spinLane struct {
	cell  heldRound // whose signal the stream writes the functions' numbers to
	last  uint32    // the number seen last
	next  uint32
	funcs map[uint32]spinFunc
}

type spinFunc struct {
	ctx    *Context
	handle hostfn.Handle
	held   heldRound
}

const (
	spinners = 2                      // at most; one where there are fewer than four processors
	linger   = 200 * time.Microsecond // a program that waits for its stream and reads a result is back sooner

	looksInARow = 1000 // some 3 us; then other goroutines have a turn, which may take longer
)

// emulatesSpin reports whether a function of these options is for the spinner. Where the host may touch managed memory only while
// the device rests, it is not: the driver knows nothing of such a function (CONTRACT HL-19, HL-20).
func (c *Context) emulatesSpin(o *hostOptions) bool {
	return o != nil && o.mode == Spin && c.concurrent && c.drv.drv.EmulateSpin()
}

// spinLaunch is launchHost for the spinner.
func (c *Context) spinLaunch(op string, s *Stream, fn hostfn.Func) error {
	held, r := c.holdRound()
	if r != driver.Success {
		return c.blamed(r, c.holder()).resultf(op, r, "no pinned memory to hold the stream with")
	}
	err := c.spinHold(op, s, held, fn, fillersOfFunc)
	if err != nil {
		held.giveBack(c)
	}
	return err
}

// spinHold queues fn on s for the spinner: s is held from where it tells of fn until held is released.
func (c *Context) spinHold(op string, s *Stream, held heldRound, fn hostfn.Func, fillers int) error {
	d := c.drv
	h, err := c.addFunc(op, fn)
	if err != nil {
		return err
	}
	signal, r := d.spin.add(s.lane(), spinFunc{c, h, held})
	if r == driver.Success {
		r = held.signalAndHold(c, s.raw, signal, fillers)
	}
	if r == driver.Success {
		d.drv.WatchContext(c.raw)
		if c.lost() != driver.Success { // perhaps since before it was added
			d.spin.fail(c)
		}
		return nil
	}
	d.spin.remove(s.lane(), signal)
	err = c.blamed(r, c.holder()).resultf(op, r, "the driver refused the function; it will not run")
	if _, mine := d.funcs.Take(h); !mine {
		return nil // swept meanwhile: it has been resolved, so it counts as queued
	}
	return err
}

// spinSignal is how a stream tells of a function: it writes number to at.
type spinSignal struct {
	at     driver.DevicePtr
	number uint32
}

// add notes a function that is about to be queued.
func (sp *spinner) add(k laneKey, f spinFunc) (spinSignal, driver.Result) {
	sp.mu.Lock()
	l := sp.lanes[k]
	if l == nil {
		sp.mu.Unlock()
		cell, r := f.ctx.holdRound()
		if r != driver.Success {
			return spinSignal{}, r
		}
		sp.mu.Lock()
		if l = sp.lanes[k]; l == nil {
			l = &spinLane{cell: cell, last: cell.signal.Load(), next: cell.signal.Load(), funcs: map[uint32]spinFunc{}}
			if sp.lanes == nil {
				sp.lanes = map[laneKey]*spinLane{}
			}
			sp.lanes[k] = l
			sp.version.Add(1)
		} else {
			cell.giveBack(f.ctx)
		}
	}
	defer sp.mu.Unlock()
	l.next++
	l.funcs[l.next] = f
	sp.added.Add(1)
	sp.pending++
	sp.awake.Store(true)
	sp.wake(f.ctx.drv)
	return spinSignal{l.cell.at, l.next}, driver.Success
}

// wake has one more goroutine look, if that is wanted. mu is held.
func (sp *spinner) wake(d *Driver) {
	if !sp.wanted() {
		return
	}
	sp.spinning++
	d.reports.add()
	go func() {
		defer d.reports.done()
		sp.run(d)
	}()
}

// wanted reports whether one more goroutine should look. mu is held.
func (sp *spinner) wanted() bool {
	return sp.spinning < sp.pending && (sp.spinning == 0 || sp.spinning < spinners && runtime.GOMAXPROCS(0) >= 2*spinners)
}

// remove takes back a function that was not queued.
func (sp *spinner) remove(k laneKey, s spinSignal) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if l := sp.lanes[k]; l != nil && l.cell.holdCell != nil && l.cell.at == s.at {
		if _, there := l.funcs[s.number]; there {
			delete(l.funcs, s.number)
			sp.less(1)
		}
	}
}

// less counts functions that are not pending any more. mu is held.
func (sp *spinner) less(n int) {
	sp.pending -= n
	sp.awake.Store(sp.pending > 0)
}

// fail drops the functions of c, which has failed: its streams will not come to them.
func (sp *spinner) fail(c *Context) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	for k, l := range sp.lanes {
		if k.ctx == c {
			sp.less(len(l.funcs))
			clear(l.funcs) // for who looks at l still
			delete(sp.lanes, k)
			sp.version.Add(1)
		}
	}
}

// run looks and runs what it finds, until there is nothing to look for or enough others look.
func (sp *spinner) run(d *Driver) {
	for {
		f, ok := sp.next(d)
		if !ok {
			return
		}
		d.runSpun(f)
		sp.mu.Lock()
		more := sp.spinning == 0 || sp.wanted() // for the next function often comes soon
		if more {
			sp.spinning++
		}
		sp.mu.Unlock()
		if !more {
			return
		}
	}
}

// next looks until a stream has come to a function. ok is false when none is pending any more.
func (sp *spinner) next(d *Driver) (f spinFunc, ok bool) {
	var lanes []*spinLane
	version, added := sp.version.Load()-1, sp.added.Load()-1
	var idleSince time.Time
	for {
		for n := 0; n < looksInARow; n += 1 + len(lanes) {
			if v := sp.version.Load(); v != version {
				version, lanes = v, sp.allLanes(lanes[:0])
			}
			if a := sp.added.Load(); a != added {
				added = a
				sp.warm(d, lanes)
			}
			for _, l := range lanes {
				if l.cell.signal.Load() != atomic.LoadUint32(&l.last) {
					if f, ok := sp.take(d, l); ok {
						return f, true
					}
				}
			}
		}
		switch {
		case sp.awake.Load():
			idleSince = time.Time{}
		case idleSince.IsZero():
			idleSince = time.Now()
		case time.Since(idleSince) > linger && sp.rest():
			return spinFunc{}, false
		}
		runtime.Gosched()
	}
}

func (sp *spinner) allLanes(list []*spinLane) []*spinLane {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	for _, l := range sp.lanes {
		list = append(list, l)
	}
	return list
}

// warm reads what a few next functions will be run by, while there is time. Another core has just written it, and has it in its cache:
// to fetch it from there when a stream has come to a function takes as long as all the rest.
func (sp *spinner) warm(d *Driver, lanes []*spinLane) {
	const few = 4
	sp.mu.Lock()
	defer sp.mu.Unlock()
	for _, l := range lanes[:min(len(lanes), few)] {
		f, ok := l.funcs[l.last+1]
		if !ok {
			continue
		}
		if fn, ok := d.funcs.Peek(f.handle); ok {
			if t := fn.More.(*hostOptions).task; t != nil {
				t.warm()
			}
		}
	}
}

// take takes the function that the stream of l has come to, unless somebody else has. Somebody goes on looking.
func (sp *spinner) take(d *Driver, l *spinLane) (f spinFunc, ok bool) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	number := l.cell.signal.Load()
	f, ok = l.funcs[number]
	if !ok || number == l.last {
		return f, false
	}
	delete(l.funcs, number)
	atomic.StoreUint32(&l.last, number)
	sp.less(1)
	if sp.spinning--; sp.spinning == 0 { // waking somebody takes long, and one is enough for now
		sp.wake(d)
	}
	return f, true
}

// rest ends a goroutine's looking if nothing is pending. The last one gives the lanes' memory back.
func (sp *spinner) rest() bool {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if sp.pending > 0 {
		return false
	}
	if sp.spinning--; sp.spinning == 0 {
		for k, l := range sp.lanes {
			l.cell.giveBack(k.ctx)
			delete(sp.lanes, k)
		}
		sp.version.Add(1)
	}
	return true
}

// runSpun runs a function whose stream has come to it, on the calling goroutine.
func (d *Driver) runSpun(f spinFunc) {
	fn, ok := d.funcs.Start(f.handle)
	if !ok {
		return
	}
	if o := fn.More.(*hostOptions); o.task != nil && fn.Group.Failure() == nil {
		d.funcs.Finish(f.handle)
		o.task.run()
		return
	}
	var failure error
	defer func() { // also when the function leaves by Goexit
		d.resolve(fn, failure)
		d.funcs.Finish(f.handle)
		f.held.letGo(d)
		if f.ctx.lost() == driver.Success {
			f.held.giveBack(f.ctx)
		}
	}()
	d.spin.inside.Add(1)
	defer d.spin.inside.Add(-1)
	callSpun(func() { d.callHostFunc(fn, &failure, containedGoexit) })
}

// containedGoexit notes that a function has left by runtime.Goexit, on a goroutine of the library's own.
func containedGoexit(e *PanicError) { e.Value = ErrGoexit }

// callSpun calls a host function here. Every one is called from here, so that the place it returns to tells.
//
//go:noinline
func callSpun(fn func()) { fn() }

// inCallSpun is the address that such a function returns to.
var inCallSpun = func() (pc uintptr) {
	callSpun(func() { pc = native.CallerPC() })
	return pc
}()

// inHostFunction reports whether the calling goroutine is inside a host function: one that the driver runs, or one that the library
// runs in its place.
func (d *Driver) inHostFunction() bool {
	return d.drv.InHostFunction() || d.spin.inside.Load() > 0 && native.OnStack(inCallSpun)
}
