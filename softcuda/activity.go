package softcuda

import (
	"maps"
	"slices"

	"github.com/hostlaunch/cuda/internal/driver"
)

// Which streams are active, as managed memory counts it on devices without concurrent managed access (CONTRACT HL-19, HL-20).
//
// It is a logical notion, the program's and not the hardware's: a kernel counts as running from its launch until the host has
// seen its completion, by waiting or asking, or by a host function that was ordered behind it. So the answer does not depend
// on how fast a kernel is, and a program that forgets to wait is told so every time. Device work that is ordered behind a
// host function makes its stream active only when that has returned.
//
// Order is kept in vector clocks: of each operation it is known up to which device operation and which host function of every
// stream it is ordered behind.

// tick counts operations of a stream.
type tick struct{ work, host uint64 }

// clock says what has gone before, by stream.
type clock map[*stream]tick

// join adds what is in b, and reports whether that was more.
func (c clock) join(b clock) (more bool) {
	for s, t := range b {
		have := c[s]
		if !within(t, have) {
			more = true
			c[s] = tick{max(have.work, t.work), max(have.host, t.host)}
		}
	}
	return more
}

// within reports whether a is no more than t.
func within(a, t tick) bool { return a.work <= t.work && a.host <= t.host }

// history is what is known of a stream on a device whose activity is tracked.
type history struct {
	clock clock // what the end of the stream is ordered behind
	most  int   // how large clock may become before what has settled is looked for
	seen  uint64
	fresh bool   // a host function queued now would be ordered behind something that the one before it is not
	held  []hold // device work that the host has not seen, by what holds it

	snapshot             clock    // clock, but for the stream itself, for the checker; nil if that has changed
	work, hosts, natives []*actor // what the program has not seen, for the checker
}

// few is how many streams are not worth looking for those that have settled.
const few = 16

// join has the end of the stream be ordered behind c.
func (h *history) join(c clock) {
	if h.clock.join(c) {
		h.fresh, h.snapshot = true, nil
	}
	if len(h.clock) > max(h.most, few) {
		h.clock.forget()
		h.most = 2 * len(h.clock)
	}
}

// forget forgets what nothing can depend on any more.
func (c clock) forget() {
	maps.DeleteFunc(c, func(s *stream, t tick) bool { return s.settled(t) })
}

// hold says that device operations, from the one with number first on, are ordered behind these host functions.
type hold struct {
	first uint64
	hosts clock
}

// track counts o, which is about to be queued on s. mu is held.
func (m *machine) track(s *stream, o *op) {
	if s.inner {
		m.checker.comesInside(s.inside, o)
	}
	if !m.tracked || s.inner {
		return
	}
	h := m.history(s)
	m.joinLegacy(s)
	now := h.clock[s]
	switch o.kind {
	case opWork, opHold, opBranch:
		if held := len(h.held); held == 0 || !sameHosts(h.held[held-1].hosts, h.clock) {
			h.held = append(h.held, hold{now.work + 1, maps.Clone(h.clock)})
		}
		now.work++
		h.fresh = true
		m.unseen[s] = struct{}{}
	case opHost, opCallback:
		if h.fresh {
			o.note().clock = maps.Clone(h.clock)
			h.fresh = false
		}
		now.host++
	}
	m.checker.comes(s, o, now)
	h.clock[s] = now
	if o.extra != nil && o.extra.record != nil {
		o.extra.record.clock = maps.Clone(h.clock)
	}
}

// joinLegacy adds what the legacy stream's rules order s behind, done or not. mu is held.
func (m *machine) joinLegacy(s *stream) {
	legacy := s.ctx.legacy
	switch {
	case s == legacy:
		for _, b := range s.ctx.remembered() {
			if b.blocking() {
				s.history.join(b.history.clock)
			}
		}
	case s.blocking():
		s.history.join(m.history(legacy).clock)
	}
}

// history is that of s, made if need be. mu is held.
func (m *machine) history(s *stream) *history {
	if s.history == nil {
		s.history = &history{clock: clock{}}
		s.ctx.know(s)
	}
	return s.history
}

// after has the end of s be ordered behind c. mu is held.
func (m *machine) after(s *stream, c clock) {
	if m.tracked {
		m.history(s).join(c)
	}
}

// sameHosts reports whether two clocks are behind the same host functions.
func sameHosts(a, b clock) bool {
	for s, t := range b {
		if a[s].host != t.host {
			return false
		}
	}
	return true
}

// ahead is what the end of s is ordered behind, for observe. mu is held.
func (m *machine) ahead(s *stream) clock {
	if !m.tracked {
		return nil
	}
	h := m.history(s)
	if s == s.ctx.legacy {
		m.joinLegacy(s)
	}
	h.clock.forget()
	return maps.Clone(h.clock)
}

// aheadAll is that of all streams of c. mu is held.
func (m *machine) aheadAll(c *context) clock {
	if !m.tracked {
		return nil
	}
	all := clock{}
	for _, s := range c.remembered() {
		all.join(s.history.clock)
	}
	return all
}

// know adds s to the streams with a history.
func (c *context) know(s *stream) {
	c.known[s] = struct{}{}
	if len(c.known) > max(c.mostKnown, few) {
		c.mostKnown = 2 * len(c.remembered())
	}
}

// remembered are the streams of c with a history. It forgets those that nothing can depend on any more.
func (c *context) remembered() []*stream {
	maps.DeleteFunc(c.known, func(s *stream, _ struct{}) bool { return s.settled(s.history.clock[s]) })
	return slices.Collect(maps.Keys(c.known))
}

// observe notes that the host has seen the completion of everything in c. mu is held.
func (m *machine) observe(c clock) {
	for s, t := range c {
		h := s.history
		h.seen = max(h.seen, t.work)
		m.checker.saw(s, h.seen, t.host)
		for len(h.held) > 1 && h.held[1].first <= h.seen+1 {
			h.held = h.held[1:]
		}
		if h.seen == h.clock[s].work {
			h.held = nil
			delete(m.unseen, s)
		}
	}
}

// observeAfter is observe once a wait has ended well. mu is free.
func (m *machine) observeAfter(c clock, r driver.Result) driver.Result {
	if c != nil && r == driver.Success {
		m.mu.Lock()
		defer m.unlock()
		m.observe(c)
	}
	return r
}

// settled reports whether nothing can depend any more on what s had done at t: it has ended, and all of that is seen and has run.
func (s *stream) settled(t tick) bool {
	return s.ended && s.history.seen >= t.work && s.hostsRun >= t.host
}

// active reports whether s has device work that the host has not seen, of which no host function ordered before it is left.
func (s *stream) active() bool {
	if s.history == nil || len(s.history.held) == 0 {
		return false
	}
	for t, before := range s.history.held[0].hosts {
		if t.hostsRun < before.host {
			return false
		}
	}
	return true
}
