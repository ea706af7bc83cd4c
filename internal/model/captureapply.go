package model

// captureApply has o happen, which answered got, as far as captures have to do with it. done: that was all.
func (m *State) captureApply(o Op, want, got Answer) (done bool) {
	switch o.Kind {
	case Begin:
		if got == OK {
			m.begin(o.S, Mode(o.N))
		}
		return true
	case End:
		m.end(o, want)
		return true
	case Launch:
		if got == OK {
			m.launch(o)
		}
		return true
	case Within:
		if want == Unsupported && m.streams[o.S].capture.mode != Relaxed {
			m.spoil(m.streams[o.S].capture, invalid)
		} else if want == Unsupported {
			m.forbidden()
		} else if got == Done {
			m.idle(o.O)
		}
		return true
	case Open, CloseStream, CloseEvent:
		return false
	}
	if !o.UsesStream() {
		return m.asked(o, want)
	}
	if c := m.streams[o.S].capture; c != nil {
		if !m.joinsFromOutside(o) {
			m.captured(o, c, want)
		}
		return true
	}
	if want == Implicit || want == Refused {
		c, _ := m.implied(o.S)
		m.spoil(c, doubtful)
		return true
	}
	if want == Unsupported {
		m.forbidden()
		return true
	}
	return m.fork(o)
}

func (m *State) begin(i int, mode Mode) {
	c := &capture{origin: i, mode: mode}
	m.captures = append(m.captures, c)
	m.take(i, c, 0)
}

// take has stream i belong to c, behind nodes.
func (m *State) take(i int, c *capture, behind Set) {
	s := &m.streams[i]
	s.capture, s.behind, s.own = c, behind, false
}

// fork has a stream take part in a capture if o has it wait for one.
func (m *State) fork(o Op) (done bool) {
	switch o.Kind {
	case WaitEvent:
		if e := &m.events[o.E]; e.capture != nil {
			m.take(o.S, e.capture, e.place)
			return true
		}
	case WaitStream:
		if s := &m.streams[o.O]; s.capture != nil {
			m.take(o.S, s.capture, s.behind)
			return true
		}
	}
	return false
}

// captured is what an operation on a stream of c does.
func (m *State) captured(o Op, c *capture, want Answer) {
	s := &m.streams[o.S]
	switch want {
	case Unsupported:
		m.spoil(c, invalid)
	case Refused:
		m.spoil(c, doubtful)
	case Merge:
		from := m.streams[o.O].capture
		if o.Kind == WaitEvent {
			from = m.events[o.E].capture
		}
		m.spoil(from, doubtful)
		m.spoil(c, doubtful)
	case Isolation:
		if o.Kind == WaitStream {
			m.record(o.O) // which has happened
		}
		m.spoil(c, invalid)
	}
	if want != OK {
		return
	}
	switch o.Kind {
	case Kernel, Host, Delay:
		n := node{mark: -1, host: o.Kind == Host, behind: s.behind}
		if o.Marks() {
			n.mark = o.N
			m.use(o.N)
		}
		s.own, s.behind = true, s.behind|1<<len(c.nodes)
		c.nodes = append(c.nodes, n)
	case Record:
		m.events[o.E] = event{recorded: true, at: -1, capture: c, place: s.behind}
	case WaitEvent:
		s.behind |= m.events[o.E].place
	case WaitStream:
		s.behind |= m.streams[o.O].behind
	}
}

// asked is what a question about an event does that is refused.
func (m *State) asked(o Op, want Answer) (done bool) {
	c := m.events[o.E].capture
	switch {
	case c == nil && want == Unsupported:
		m.forbidden()
	case c == nil:
		return false
	case c.over():
	case o.Kind == AwaitEvent:
		m.spoil(c, doubtful)
	default:
		m.spoil(c, invalid)
	}
	return true
}

// spoil has a call be refused that has to do with c. Whether it spoils captures that forbid unsafe calls as well, nobody says.
func (m *State) spoil(c *capture, to condition) {
	for _, other := range m.captures {
		if other != c && other.mode == Global && !other.over() {
			other.condition = doubtful
		}
	}
	c.condition = to
}

// forbidden has an unsafe call be refused. It spoils the Global capture; of several, nobody says which.
func (m *State) forbidden() {
	var spoiled []*capture
	for _, c := range m.captures {
		if c.mode == Global && !c.over() {
			spoiled = append(spoiled, c)
		}
	}
	for _, c := range spoiled {
		c.condition = doubtful
		if len(spoiled) == 1 {
			c.condition = invalid
		}
	}
}

// end ends the capture that began on stream o.S.
func (m *State) end(o Op, want Answer) {
	c := m.streams[o.S].capture
	for i := range m.streams {
		if s := &m.streams[i]; s.capture == c {
			s.capture, s.behind, s.own = nil, 0, false
		}
	}
	switch want {
	case OK:
		c.condition = ended
		m.graphs[o.N] = &graph{nodes: c.nodes}
	case Ended:
		c.condition = unclear
	default:
		c.condition = failed
	}
}

// Forks are the streams that must be joined before the capture on stream i can end.
func (m *State) Forks(i int) (forks []int) {
	c := m.streams[i].capture
	for j := range m.streams {
		if s := &m.streams[j]; c != nil && c.condition == active && c.origin == i && s.capture == c && s.behind&^m.streams[i].behind != 0 {
			forks = append(forks, j)
		}
	}
	return forks
}

// Captures reports whether stream i belongs to a capture.
func (m *State) Captures(i int) bool { return m.streams[i].capture != nil }

// Begun reports whether a capture that began on stream i goes on.
func (m *State) Begun(i int) bool {
	c := m.streams[i].capture
	return c != nil && c.origin == i
}
