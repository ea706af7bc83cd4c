package softcuda

import (
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// timing is a machine's side of a Cost: it says when operations begin and end. The machine's mu guards it. All methods do nothing on a nil
// timing, which is that of a machine without a Cost.
//
// The times are those of the model, which the clock follows: an operation begins when what it waits for has ended by the model, and not
// when a goroutine has come to do it, which may be somewhat later.
type timing struct {
	m      *machine
	cost   Cost
	latest time.Time // end of an operation that is done
}

// when says when an operation takes place.
type when struct {
	from time.Time     // not before
	ends time.Time     // known when it has begun
	took time.Duration // by code of the program's, beside that
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// comes notes that o is queued. mu is held.
func (t *timing) comes(o *op) {
	if t != nil {
		o.note().when = &when{from: t.m.now()}
	}
}

// loaded notes what o moves. mu is held.
func (t *timing) loaded(o *op, l load) {
	if t != nil && l != (load{}) {
		o.note().load = l
	}
}

// begins notes that o, the first of its stream, begins, and gives what does it: do, at the end of the time that it takes. mu is held,
// but not when that is called.
func (t *timing) begins(o *op, do func() driver.Result) func() driver.Result {
	if t == nil || o == nil || o.notes().when == nil {
		return do
	}
	w, x := o.note().when, o.notes()
	w.from = later(w.from, o.owner.until)
	switch {
	case o.kind == opHost || o.kind == opCallback:
		w.ends = later(w.from, o.owner.ctx.hostUntil).Add(max(t.cost.HostFunction, 0))
	case x.launch != nil:
		return func() driver.Result {
			w.ends = w.from.Add(t.cost.running(x.launch))
			return t.take(w, false, do)
		}
	case x.load != (load{}):
		w.ends = o.owner.ctx.dev.engines.reserve(x.load.way, w.from, t.cost.moving(x.load))
		return func() driver.Result {
			t.await(w.ends)
			return do()
		}
	default: // a write-value
		w.ends = w.from
		return do
	}
	return func() driver.Result { return t.take(w, true, do) }
}

// call is begins for a callback.
func (t *timing) call(o *op, call func(uint64)) func(uint64) {
	if t == nil {
		return call
	}
	do := t.begins(o, func() driver.Result { call(o.data); return driver.Success })
	return func(uint64) { do() }
}

// take waits for the end of w and then calls do, whose own time comes on top. host: it is the program's.
func (t *timing) take(w *when, host bool, do func() driver.Result) driver.Result {
	t.await(w.ends)
	if host {
		t.seen(w.ends)
	}
	start := time.Now()
	r := do()
	w.took += time.Since(start)
	return r
}

// await waits until a time. With a Seed nobody waits.
func (t *timing) await(at time.Time) {
	if t.m.sched == nil {
		time.Sleep(time.Until(at))
	}
}

// seen notes that the program knows that it is not before a time: with a Seed the device's clock stands there then.
func (t *timing) seen(at time.Time) {
	if t != nil && t.m.sched != nil {
		t.m.sched.costs.reach(at)
	}
}

// ended gives the time at which o has ended, with r, and has what is behind it begin no sooner; the zero time if it is not known, as of
// what its context has failed with, which may be in progress. mu is held.
func (t *timing) ended(o *op, r driver.Result) (at time.Time) {
	w := o.notes().when
	if t == nil || w == nil || r != driver.Success {
		return at
	}
	end := later(later(w.from, o.owner.until), w.ends).Add(w.took)
	switch o.kind {
	case opHold: // somebody has met it, it is not known when
		end = later(end, later(t.m.now(), t.latest))
	case opHost, opCallback:
		o.owner.ctx.hostUntil = end
	}
	o.owner.until, t.latest = end, later(t.latest, end)
	if len(o.extra.waiters) > 0 {
		t.seen(end)
	}
	for _, a := range o.extra.after {
		if next := a.notes().when; next != nil {
			next.from = later(next.from, end)
		}
	}
	return end
}

// delayed notes that something keeps o, which has begun, for so much longer. mu is held.
func (o *op) delayed(by time.Duration) {
	if w := o.notes().when; w != nil && by > 0 {
		w.from, w.ends = w.from.Add(by), w.ends.Add(by)
	}
}

// enter has a body of the conditional at the head of s, which is queued on tail, begin no sooner than that. mu is held.
func (t *timing) enter(s, tail *stream) {
	if t != nil {
		tail.until = later(s.until, s.first.note().when.from)
	}
}

// leave has the conditional at the head of s go on no sooner than its body, which was queued on tail, has ended. mu is held.
func (t *timing) leave(s, tail *stream) {
	if t != nil {
		w := s.first.note().when
		w.from = later(w.from, tail.until)
	}
}
