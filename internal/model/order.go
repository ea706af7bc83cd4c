package model

import "fmt"

// apply is what an operation that was accepted does.
func (m *State) apply(o Op, got Answer) {
	switch o.Kind {
	case Kernel:
		m.mark(o)
	case Host:
		m.hosts |= 1 << o.N
		m.mark(o)
	case Gate:
		m.hosts |= 1 << o.N
		m.shut |= 1 << o.N
		m.mark(o)
	case Open:
		m.shut &^= 1 << o.N
	case Delay:
		m.queue(o.S)
		m.work(o.S)
	case Record:
		m.events[o.E] = event{recorded: true, at: o.S, captured: m.record(o.S)}
	case WaitEvent:
		m.wait(o.S, m.events[o.E].captured)
	case WaitStream:
		m.wait(o.S, m.record(o.O))
	case QueryStream, SyncStream:
		if got != NotReady {
			m.idle(o.S)
		}
	case AwaitStream: // by a record, so the stream itself may still say that it is busy
		m.known |= m.record(o.S).must
	case QueryEvent, SyncEvent, AwaitEvent:
		if e := &m.events[o.E]; got != NotReady && e.recorded {
			e.known = true
			m.known |= e.captured.must
		}
	case CloseStream:
		if s := &m.streams[o.S]; s.kind != Legacy {
			if !s.closed && s.capture == nil {
				m.record(o.S) // by which whoever closes it knows its end
			}
			s.closed = true
		}
	case CloseEvent:
		m.events[o.E].closed = true
	}
}

// next is what the next operation of stream i will stand behind. The legacy stream and the blocking ones order each other's
// work. Whether it also waits for what is left of blocking streams that are closed, nobody says.
func (m *State) next(i int) work {
	w, kind := m.streams[i].tail, m.streams[i].kind
	for _, t := range m.streams {
		if !(kind == Legacy && t.kind == Blocking || kind == Blocking && t.kind == Legacy) {
			continue
		}
		w.may |= t.tail.may
		if !t.closed {
			w.must |= t.tail.must
		}
	}
	return w
}

// queue queues something on stream i, and returns what it stands behind.
func (m *State) queue(i int) work {
	s := &m.streams[i]
	s.dirty, s.tail = true, m.next(i)
	return s.tail
}

// record queues a record on stream i, and returns what it captures. On an H200 the record of a blocking stream waits for the
// legacy stream's work, as everything there does, but a query or sync of the stream does not wait for the record.
func (m *State) record(i int) work {
	m.loosen(i)
	return m.queue(i)
}

// loosen notes that stream i is about to be given something that is no work.
func (m *State) loosen(i int) {
	s := &m.streams[i]
	s.loose = s.loose || s.kind == Blocking
}

// work notes that what was queued on stream i last is work, which a sync waits for.
func (m *State) work(i int) {
	s := &m.streams[i]
	s.sure, s.loose = s.tail.must, false
}

// mark queues o's mark.
func (m *State) mark(o Op) {
	m.use(o.N)
	before := m.queue(o.S)
	m.After[o.N] = before.must
	m.queued |= 1 << o.N
	s := &m.streams[o.S]
	s.tail = before.and(work{1 << o.N, 1 << o.N})
	m.work(o.S)
}

// wait has later work of stream i wait for w. A wait for what is complete need not be an operation at all, so by itself it is
// certain to order nothing else.
func (m *State) wait(i int, w work) {
	s := &m.streams[i]
	certain := s.tail.must
	m.loosen(i)
	m.queue(i)
	s.tail.must = certain
	s.tail = s.tail.and(w)
	s.sure |= w.must
}

// behindStream is what a sync of stream i waits for: on the legacy stream, the work of all blocking streams too.
func (m *State) behindStream(i int) work {
	w := work{m.streams[i].sure, m.streams[i].tail.may}
	for j := range m.streams {
		if t := &m.streams[j]; m.streams[i].kind == Legacy && t.kind == Blocking {
			w.may |= t.tail.may
			if !t.closed {
				w.must |= t.sure
			}
		}
	}
	return w
}

// dirtyStream reports whether stream i may have something to do.
func (m *State) dirtyStream(i int) bool {
	for j := range m.streams {
		t, kind := &m.streams[j], m.streams[i].kind
		if t.dirty && (i == j || kind == Legacy && t.kind == Blocking || kind == Blocking && t.kind == Legacy) {
			return true
		}
	}
	return false
}

// idle is what is known once stream i has been found to have nothing left to do.
func (m *State) idle(i int) {
	m.known |= m.behindStream(i).must
	for j := range m.streams {
		if t := &m.streams[j]; !t.loose && (i == j || m.streams[i].kind == Legacy && t.kind == Blocking && !t.closed) {
			t.dirty = false
			for k := range m.events {
				if e := &m.events[k]; e.recorded && e.at == j {
					e.known = true
				}
			}
		}
	}
}

// Sight is what was seen of a mark. Kernels leave theirs in one log, host functions in another; a host function also notes
// how many marks the kernels' log has when it begins and when it ends.
type Sight struct {
	Times      int // how often
	Host       bool
	Place      int // in its log
	Begin, End int // a host function: marks of kernels
}

// Check compares what was seen of a program that has come to its end with the order it must have had. It reports what was
// wrong, or "".
func (m *State) Check(seen *[Most]Sight) string {
	for n := range Most {
		if !m.queued.Has(n) {
			if seen[n].Times != 0 {
				return fmt.Sprintf("mark %d came, which was never queued", n)
			}
			continue
		}
		if seen[n].Times != 1 {
			return fmt.Sprintf("mark %d came %d times", n, seen[n].Times)
		}
		if seen[n].Host != m.hosts.Has(n) {
			return fmt.Sprintf("mark %d is in the wrong log", n)
		}
	}
	for n := range Most {
		for before := range Most {
			if m.queued.Has(n) && m.After[n].Has(before) && !earlier(seen[before], seen[n]) {
				return fmt.Sprintf("mark %d did not come after mark %d", n, before)
			}
		}
	}
	return ""
}

// earlier reports whether what was seen allows a to have come before b.
func earlier(a, b Sight) bool {
	switch {
	case a.Host == b.Host:
		return a.Place < b.Place
	case b.Host:
		return a.Place < b.Begin
	}
	return b.Place >= a.End
}

// Valid reports whether p can be run: no call in it can hang, whatever the queries answer, and its numbers are right.
func (p *Program) Valid() bool {
	m := New(p)
	for _, o := range p.Ops {
		want := m.Next(o)
		if want == Hangs || want == Mistaken {
			return false
		}
		m.Apply(o, want.Least()) // the less is known to be complete, the more may hang
	}
	return true
}
