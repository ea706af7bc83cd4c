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

	capture *capture // that it belongs to
	behind  Set      // nodes that come before the next one captured
	own     bool     // it has captured a node
}

// event is the model of an event.
type event struct {
	recorded bool
	known    bool // the latest record is known to be complete
	at       int  // the stream of the latest record
	captured work // what the latest record captured
	closed   bool

	capture *capture // that the latest record was in: it marks a place
	place   Set      // the nodes before that place
}

// State is how far a program has come.
type State struct {
	streams  []stream
	events   []event
	captures []*capture
	graphs   map[int]*graph

	After  [Most]Set // what certainly comes before each mark
	queued Set
	known  Set // complete, as a sync or query has shown
	hosts  Set // host functions and gates
	shut   Set // gates

	used        Set // marks of the program, be they queued or captured
	low, copied int // how many numbers of marks are taken at either end
	copies      map[int][]int
}

// New is the state before a program's first operation.
func New(p *Program) *State {
	m := &State{streams: make([]stream, len(p.Streams)), events: make([]event, p.Events), graphs: map[int]*graph{}, copies: map[int][]int{}}
	for i, k := range p.Streams {
		m.streams[i].kind = k
	}
	return m
}

// Answer is what a call answers.
type Answer uint8

// Answers of calls, and of queries.
const (
	OK Answer = iota
	Closed
	Done
	NotReady
	NoGraph // there is none to launch
	Capturing
	Unsupported
	Invalidated
	Unjoined
	Merge
	Isolation
	Implicit
	CapturedEvent
	InvalidValue
	answers

	// What the model wants where it leaves something open.
	Any      // Done or NotReady
	Refused  // one of the answers of calls that captures do not allow
	Ended    // OK, or as Refused
	Hangs    // the call may never return: no valid program has it
	Mistaken // the program is not one
)

// Answers is how many answers a call may give.
const Answers = int(answers)

// String names a.
func (a Answer) String() string {
	return [...]string{OK: "ok", Closed: "closed", Done: "done", NotReady: "not ready", NoGraph: "no graph", Capturing: "capturing",
		Unsupported: "unsupported while capturing", Invalidated: "capture invalidated", Unjoined: "unjoined", Merge: "merge",
		Isolation: "isolation", Implicit: "implicit", CapturedEvent: "captured event", InvalidValue: "invalid value",
		answers: "", Any: "done or not ready", Refused: "refused", Ended: "ok or refused", Hangs: "may hang", Mistaken: "not a program"}[a]
}

// allows reports whether got is as a wants.
func (a Answer) allows(got Answer) bool {
	refused := got >= Unsupported && got < answers
	switch a {
	case Any:
		return got == Done || got == NotReady
	case Refused:
		return refused
	case Ended:
		return refused || got == OK
	}
	return a == got
}

// Refuses reports whether a is, or may be, the answer of a call that captures do not allow.
func (a Answer) Refuses() bool { return a >= Capturing && a < answers || a == Refused }

// Least is an answer that a allows and that tells the least.
func (a Answer) Least() Answer {
	switch a {
	case Any:
		return NotReady
	case Refused, Ended:
		return Unsupported
	}
	return a
}

// Next says what o must answer. It changes nothing.
func (m *State) Next(o Op) Answer {
	if m.joinsFromOutside(o) {
		return Isolation // by the library, before it looks further
	}
	if m.usesClosed(o) {
		return Closed
	}
	if o.Marks() && m.taken(o.N) {
		return Mistaken
	}
	if want, settled := m.captureNext(o); settled {
		return want
	}
	switch o.Kind {
	case Launch:
		return m.launchNext(o)
	case CloseStream, CloseEvent: // also what is closed
		return OK
	case Open:
		if !m.shut.Has(o.N) {
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
	case Open, CloseStream, CloseEvent, End, Within:
		return false
	case Launch:
		return m.graphs[o.N] != nil && m.streams[o.S].closed
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
	if !want.allows(got) {
		return "answered " + got.String() + ", want " + want.String()
	}
	if got != Closed && !m.captureApply(o, want, got) {
		m.apply(o, got)
	}
	return ""
}

// OpenAll opens the gates that are still shut.
func (m *State) OpenAll() { m.shut = 0 }

// Known are the marks that must be there by now: a sync or a query has said so.
func (m *State) Known() Set { return m.known }
