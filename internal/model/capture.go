package model

// Mode is which unsafe calls a capture forbids.
type Mode int

// Capture modes, by the driver's numbers.
const (
	Global Mode = iota
	ThreadLocal
	Relaxed
)

// condition is what is known of a capture.
type condition uint8

const (
	active   condition = iota
	invalid            // spoiled; it can only be ended
	doubtful           // spoiled or not, nobody says; it can only be ended, and its graph is not used
	ended              // with a graph
	failed             // ended without a graph
	unclear            // ended, and nobody says how
)

// capture is the model of a capture. Each has a goroutine of its own. Its nodes are numbered, and a set of them is a Set.
type capture struct {
	origin    int
	mode      Mode
	condition condition
	nodes     []node
}

// node is an operation that was captured.
type node struct {
	mark   int // -1: none
	host   bool
	behind Set // the nodes that come before it
}

// graph is what a capture gave, made ready to run.
type graph struct {
	nodes    []node
	launched bool
	last     work // what is complete when the latest launch is
}

func (c *capture) over() bool { return c.condition >= ended }

// captureNext says what o must answer where a capture has to do with it. settled is false where none has.
func (m *State) captureNext(o Op) (want Answer, settled bool) {
	switch {
	case o.Kind == Begin:
		return m.beginNext(o), true
	case o.Kind == End:
		return m.endNext(o), true
	case o.Kind == Launch && m.graphs[o.N] == nil:
		return NoGraph, true
	case o.Kind == Within:
		return m.withinNext(o), true
	case o.Kind == CloseStream && m.Captures(o.S) && m.streams[o.S].dirty:
		return Mistaken, true // nothing could tell when its work is done
	case o.Kind == Open || o.Kind == CloseStream || o.Kind == CloseEvent:
		return 0, false
	}
	if !o.UsesStream() {
		return m.askNext(o)
	}
	if c := m.streams[o.S].capture; c != nil {
		return m.capturedNext(o, c), true
	}
	if implied, sure := m.implied(o.S); implied != nil {
		return impliedNext(o, implied, sure), true
	}
	switch o.Kind {
	case QueryStream, SyncStream:
		want := m.unsafeNext()
		return want, want != OK
	case WaitEvent:
		if e := &m.events[o.E]; e.capture != nil {
			return m.forkNext(o.S, e.capture), true
		}
	case WaitStream:
		if implied, _ := m.implied(o.O); implied != nil {
			return Mistaken, true
		}
		if c := m.streams[o.O].capture; c != nil {
			return m.forkNext(o.S, c), true
		}
	}
	return 0, false
}

// mostCaptures is how many captures a program has at a time.
const mostCaptures = 3

func (m *State) beginNext(o Op) Answer {
	switch s := &m.streams[o.S]; {
	case s.capture != nil:
		return Capturing // by the library, so the capture is not harmed
	case s.kind == Legacy && m.capturing() == 0:
		return Unsupported
	case s.kind == Legacy, m.capturing() >= mostCaptures:
		return Mistaken
	}
	return OK
}

// capturing is how many captures go on.
func (m *State) capturing() (n int) {
	for _, c := range m.captures {
		if !c.over() {
			n++
		}
	}
	return n
}

// endNext: a graph is made ready at once, which may have to wait while a gate is shut.
func (m *State) endNext(o Op) Answer {
	c := m.streams[o.S].capture
	switch {
	case c == nil, c.origin != o.S, m.shut != 0:
		return Mistaken
	case c.condition == invalid:
		return Invalidated
	case c.condition == doubtful:
		return Ended
	}
	want := OK
	for i := range m.streams {
		switch s := &m.streams[i]; {
		case s.capture != c || i == o.S:
		case s.behind&^m.streams[o.S].behind != 0:
			return Unjoined
		case !s.own:
			want = Ended // nobody says whether a fork that captured nothing must be joined
		}
	}
	return want
}

// withinNext is the answer to a query by the goroutine that captures on S.
func (m *State) withinNext(o Op) Answer {
	c := m.streams[o.S].capture
	if c == nil || c.origin != o.S || m.streams[o.O].capture != nil || m.streams[o.O].closed {
		return Mistaken
	}
	if implied, _ := m.implied(o.O); implied != nil {
		return Mistaken
	}
	if c.condition != active {
		return Mistaken
	}
	if c.mode != Relaxed {
		return Unsupported
	}
	if want := m.unsafeNext(); want != OK {
		return want
	}
	return m.answer(m.behindStream(o.O), !m.dirtyStream(o.O))
}

// unsafeNext is the answer to an unsafe call of the program's goroutine, which has no capture of its own: only Global captures
// forbid it. OK: none does.
func (m *State) unsafeNext() Answer {
	want := OK
	for _, c := range m.captures {
		if c.over() || c.mode != Global {
			continue
		}
		if c.condition != active {
			return Mistaken // nobody says whether it still forbids anything
		}
		want = Unsupported
	}
	return want
}

// askNext is the answer to a question about an event.
func (m *State) askNext(o Op) (Answer, bool) {
	c := m.events[o.E].capture
	if o.Kind != AwaitEvent { // which is for the library's own thread to ask
		if want := m.unsafeNext(); want == Mistaken || want != OK && c == nil {
			return want, true
		} else if want != OK {
			return onlyIf(c.condition == active, Refused), true
		}
	}
	switch {
	case c == nil:
		return 0, false
	case c.condition == active, c.condition == ended:
		return CapturedEvent, true
	case c.over():
		return Refused, true
	}
	return Mistaken, true
}

// joinsFromOutside reports whether o has the origin of a capture wait for a stream that does not belong to it.
func (m *State) joinsFromOutside(o Op) bool {
	if o.Kind != WaitStream {
		return false
	}
	c := m.streams[o.S].capture
	return c != nil && c.origin == o.S && m.streams[o.O].capture != c
}

func onlyIf(sure bool, want Answer) Answer {
	if sure {
		return want
	}
	return Mistaken
}

// capturedNext is the answer to a call on a stream that belongs to c.
func (m *State) capturedNext(o Op, c *capture) Answer {
	origin := c.origin == o.S
	switch o.Kind {
	case Gate:
		return Mistaken
	case AwaitStream, Launch:
		return Capturing // by the library
	case Host:
		if !origin {
			return Capturing // a GraphBuilder has to be used
		}
	}
	switch {
	case c.condition == doubtful, len(c.nodes) == Most && o.Kind <= Delay:
		return Mistaken
	case c.condition == invalid:
		return onlyIf(o.Kind == Kernel || o.Kind == Host || o.Kind == Delay, Invalidated)
	}
	switch o.Kind {
	case QueryStream, SyncStream:
		if origin {
			return Unsupported
		}
		return Refused
	case WaitEvent:
		return waitNext(c, m.events[o.E].capture, m.events[o.E].recorded)
	case WaitStream:
		if implied, _ := m.implied(o.O); implied != nil {
			return Mistaken
		}
		return waitNext(c, m.streams[o.O].capture, true)
	}
	return OK
}

// waitNext is the answer to a wait in c for what was recorded in from, or outside of any capture.
func waitNext(c, from *capture, recorded bool) Answer {
	switch {
	case from == nil:
		return onlyIf(recorded, Isolation)
	case from == c:
		return OK
	}
	return onlyIf(from.condition == active, Merge)
}

// forkNext is the answer to a wait of stream i, which does not capture, for what was recorded in c.
func (m *State) forkNext(i int, c *capture) Answer {
	return onlyIf(c.condition == active && m.streams[i].kind != Legacy, OK)
}

// implied is a capture that stream i would depend on if it were used: it is the legacy stream, and a blocking stream captures.
// sure is false if only a fork is blocking, or the capture is not in order.
func (m *State) implied(i int) (c *capture, sure bool) {
	if m.streams[i].kind != Legacy {
		return nil, false
	}
	n := 0
	for j := range m.streams {
		if s := &m.streams[j]; s.kind == Blocking && s.capture != nil {
			c, sure = s.capture, s.capture.origin == j && s.capture.condition == active
			n++
		}
	}
	return c, sure && n == 1
}

// impliedNext is the answer to a call on the legacy stream while c captures on a blocking one.
func impliedNext(o Op, c *capture, sure bool) Answer {
	switch {
	case !sure:
		return Mistaken
	case o.Kind == Kernel, o.Kind == Host, o.Kind == Delay:
		return Implicit
	}
	return onlyIf(o.Kind == QueryStream || o.Kind == SyncStream, Refused)
}
