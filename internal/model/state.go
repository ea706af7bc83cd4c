package model

// Set is a set of marks.
type Set uint64

// Has reports whether mark n is in s.
func (s Set) Has(n int) bool { return s&(1<<n) != 0 }

// work is what something stands behind: certainly, and possibly.
type work struct{ must, may Set }

func (w work) and(v work) work { return work{w.must | v.must, w.may | v.may} }

// stream is the model of a stream. What is queued next comes behind tail.
type stream struct {
	kind   Stream
	tail   work
	sure   Set  // what a sync of the stream certainly waits for
	loose  bool // since its last work, a blocking stream was given records or waits, which a sync need not wait for
	closed bool
	dirty  bool // something was queued since the stream was last known to be idle
}

// event is the model of an event.
type event struct {
	recorded bool
	known    bool // the latest record is known to be complete
	at       int  // the stream of the latest record
	captured work // what the latest record captured
	closed   bool
}

// State is how far a program has come.
type State struct {
	streams []stream
	events  []event

	After  [Most]Set // what certainly comes before each mark
	queued Set
	known  Set // complete, as a sync or query has shown
	hosts  Set // host functions and gates
	shut   Set // gates
}

// New is the state before a program's first operation.
func New(p *Program) *State {
	m := &State{streams: make([]stream, len(p.Streams)), events: make([]event, p.Events)}
	for i, k := range p.Streams {
		m.streams[i].kind = k
	}
	return m
}

// Answer is what a call answers.
type Answer uint8

// Answers of calls, and of queries. Any says that the model leaves it open.
const (
	OK Answer = iota
	Closed
	Done
	NotReady
	Any
	Hangs    // the call may never return: no valid program has it
	Mistaken // the program is not one
)

// String names a.
func (a Answer) String() string {
	return [...]string{"ok", "closed", "done", "not ready", "done or not ready", "may hang", "not a program"}[a]
}

// Next says what o must answer. It changes nothing.
func (m *State) Next(o Op) Answer {
	if m.usesClosed(o) {
		return Closed
	}
	switch o.Kind {
	case CloseStream, CloseEvent: // also what is closed
		return OK
	case Open:
		if !m.shut.Has(o.N) {
			return Mistaken
		}
	case Kernel, Host, Gate:
		if m.queued.Has(o.N) {
			return Mistaken
		}
	case QueryStream:
		return m.answer(m.behindStream(o.S), !m.dirtyStream(o.S))
	case QueryEvent:
		e := &m.events[o.E]
		return m.answer(e.captured, !e.recorded || e.known)
	case SyncStream, AwaitStream:
		if m.held(m.behindStream(o.S).and(m.next(o.S)).may) || m.shut != 0 && m.streams[o.S].kind == Legacy {
			return Hangs
		}
	case SyncEvent, AwaitEvent:
		if m.held(m.events[o.E].captured.may) {
			return Hangs
		}
	}
	return OK
}

// usesClosed reports whether o is a call of something closed, other than closing it again.
func (m *State) usesClosed(o Op) bool {
	switch o.Kind {
	case Open, CloseStream, CloseEvent:
		return false
	case QueryEvent, SyncEvent, AwaitEvent:
		return m.events[o.E].closed
	case Record, WaitEvent:
		return m.streams[o.S].closed || m.events[o.E].closed
	case WaitStream:
		return m.streams[o.S].closed || m.streams[o.O].closed
	}
	return m.streams[o.S].closed
}

// answer is what a query of something behind w must say.
func (m *State) answer(w work, idle bool) Answer {
	switch {
	case w.must&m.shut != 0:
		return NotReady
	case idle:
		return Done
	}
	return Any
}

// held reports whether one of the marks may not come before a gate is opened: it stands behind a gate that is shut, or is or
// stands behind a host function, since those of one context may run one at a time.
func (m *State) held(s Set) bool { return m.shut != 0 && s&^m.known&m.hosts != 0 }

// Apply has o happen, which answered got. It reports what was wrong with that, or "".
func (m *State) Apply(o Op, got Answer) (wrong string) {
	want := m.Next(o)
	if want != got && !(want == Any && (got == Done || got == NotReady)) {
		return "answered " + got.String() + ", want " + want.String()
	}
	if got != Closed {
		m.apply(o, got)
	}
	return ""
}

// OpenAll opens the gates that are still shut.
func (m *State) OpenAll() { m.shut = 0 }

// Known are the marks that must be there by now: a sync or a query has said so.
func (m *State) Known() Set { return m.known }
