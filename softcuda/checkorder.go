package softcuda

import (
	"unsafe"
)

// reached is how much of s is before p by streams and events.
func (p *standing) reached(s *stream) tick {
	if s == p.s {
		return p.before
	}
	return p.clock[s]
}

// follows reports whether p is behind a by streams and events.
func (p *standing) follows(a *actor) bool { return within(a.tick, p.reached(a.s)) }

// knows reports whether the program had seen that a was complete when p was queued, or took place.
func (p *standing) knows(a *actor) bool { return a.seen != 0 && a.seen <= p.epoch }

// before reports whether something orders a before b.
func (k *checker) before(a, b *actor) bool {
	switch {
	case a.standing == b.standing:
		return true
	case a.s == nil:
		return b.s == nil || b.number > a.number
	case b.s == nil:
		return b.knows(a)
	}
	return b.behind(a) || k.flagged(a, b)
}

// behind is before by streams, events and what the program had seen.
func (p *standing) behind(a *actor) bool { return p.knows(a) || p.follows(a) }

// ordered reports whether something orders b, which comes now, and a, which has been before.
func (k *checker) ordered(a, b *actor) bool {
	switch {
	case a.s == nil && b.s != nil:
		return k.excused(a, b)
	case b.s == nil && a.s != nil:
		return k.excused(b, a)
	}
	return k.before(b, a)
}

// excused reports whether what the program did at p and the operation o are ordered, or that is not for the checker to say: o is a
// function of the program's, or cannot have begun.
func (k *checker) excused(p, o *actor) bool {
	if o.number > p.number || p.knows(o) || (o.kind == opHost || o.kind == opCallback) && !o.native {
		return true
	}
	for s, gate := range p.gates {
		have := o.reached(s)
		if gate.host > 0 && have.host >= gate.host || gate.work > 0 && have.work >= gate.work {
			return true
		}
	}
	return false
}

// flags are the streams' writes to a word, and their waits for it.
type flags struct{ waits, writes []*actor }

// flag notes one.
func (k *checker) flag(w word, wait bool, by *actor) {
	f := k.flags[w.at()]
	if f == nil {
		f = &flags{}
		k.flags[w.at()] = f
	}
	if wait {
		f.waits = append(f.waits, by)
	} else {
		f.writes = append(f.writes, by)
	}
	if k.flagCount++; k.flagCount > k.mostFlags {
		k.sweepFlags()
	}
}

// flagged reports whether b is behind a wait for a word that was written behind a.
func (k *checker) flagged(a, b *actor) bool {
	for _, f := range k.flags {
		if len(f.writes) > 0 && behindOne(b, f.waits) && oneBehind(f.writes, a) {
			return true
		}
	}
	return false
}

func behindOne(b *actor, list []*actor) bool {
	for _, w := range list {
		if w.standing == b.standing || b.behind(w) {
			return true
		}
	}
	return false
}

func oneBehind(list []*actor, a *actor) bool {
	for _, v := range list {
		if v.standing == a.standing || v.behind(a) {
			return true
		}
	}
	return false
}

// sweepFlags forgets what orders nothing that matters any more: words with which everybody is through.
func (k *checker) sweepFlags() {
	const few = 256
	through := k.through()
	k.flagCount = 0
	for at, f := range k.flags {
		if allOf(f.waits, through) && allOf(f.writes, through) {
			delete(k.flags, at)
			continue
		}
		k.flagCount += len(f.waits) + len(f.writes)
	}
	k.mostFlags = 2*k.flagCount + few
}

func allOf(list []*actor, ok func(*actor) bool) bool {
	for _, a := range list {
		if !ok(a) {
			return false
		}
	}
	return true
}

// through gives what reports whether all that is not done, and all that is still to come, is behind an actor.
func (k *checker) through() func(*actor) bool {
	oldest := k.oldest()
	return func(a *actor) bool {
		switch {
		case a.s == nil:
			return oldest == nil || oldest.number > a.number
		case oldest == nil:
			return a.seen != 0
		}
		return oldest.knows(a)
	}
}

// address is where data lies.
func address(data []byte) (from, to uintptr) {
	from = uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	return from, from + uintptr(len(data))
}
