package softcuda

import (
	"slices"

	"github.com/hostlaunch/cuda/internal/driver"
)

// capture is a capture that has begun and not ended. What its streams are given becomes nodes of its graph.
type capture struct {
	id      uint64
	raw     driver.Graph
	graph   *graph
	given   bool // the graph is not the capture's own
	origin  *stream
	streams []*stream // the origin, and those forked from it by events
	mode    driver.CaptureMode
	thread  uint64 // that began it
	invalid bool   // nothing more can be captured; it waits for its end
	over    bool
}

// question is the answer to who asks whether an event recorded in c is complete. Once c is over the event is of no use until it
// is recorded anew: seen on an H200, after captures that were spoiled and after others.
func (c *capture) question() driver.Result {
	if c.over {
		return driver.ErrorInvalidValue
	}
	return driver.ErrorCapturedEvent
}

// dependency is a node that another one comes behind.
type dependency struct {
	on   *graphNode
	data driver.EdgeData
}

// queueable is stream, for work that is to be queued: not on the legacy stream while a blocking stream captures, nor where a
// capture is invalid. mu is held.
func (m *machine) queueable(ctx driver.Context, raw driver.Stream) (*stream, driver.Result) {
	s, r := m.stream(ctx, raw)
	if r != driver.Success || len(m.captures) == 0 {
		return s, r
	}
	if s.capture != nil && s.capture.invalid {
		return nil, driver.ErrorStreamCaptureInvalidated
	}
	if implied := m.implied(s); implied != nil {
		implied.invalid = true
		return nil, driver.ErrorStreamCaptureImplicit
	}
	return s, driver.Success
}

// implied is a capture that s would depend on if it were used: s is the legacy stream, and a blocking stream captures.
func (m *machine) implied(s *stream) *capture {
	if s != s.ctx.legacy {
		return nil
	}
	for _, c := range m.captures {
		for _, b := range c.streams {
			if b.ctx == s.ctx && b.blocking() {
				return c
			}
		}
	}
	return nil
}

// observable answers for a call that looks at, or waits for, what s has done. mu is held.
func (m *machine) observable(s *stream) driver.Result {
	if len(m.captures) == 0 {
		return driver.Success
	}
	if s.capture != nil {
		return s.capture.refuse()
	}
	if implied := m.implied(s); implied != nil {
		implied.invalid = true
		return driver.ErrorStreamCaptureImplicit
	}
	return m.forbidden()
}

// refuse answers for what cannot be captured, and invalidates the capture.
func (c *capture) refuse() driver.Result {
	if c.invalid {
		return driver.ErrorStreamCaptureInvalidated
	}
	c.invalid = true
	return driver.ErrorStreamCaptureUnsupported
}

// StreamBeginCapture implements driver.Captures.
func (m *machine) StreamBeginCapture(ctx driver.Context, raw driver.Stream, mode driver.CaptureMode) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.capturable(ctx, raw, mode)
	if r != driver.Success {
		return r
	}
	g := m.newGraph(s.ctx)
	m.begin(s, &capture{raw: g.raw, graph: g, mode: mode})
	return driver.Success
}

// StreamBeginCaptureToGraph implements driver.Captures.
func (m *machine) StreamBeginCaptureToGraph(ctx driver.Context, raw driver.Stream, g driver.Graph, deps []driver.GraphNode, edges []driver.EdgeData, mode driver.CaptureMode) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.capturable(ctx, raw, mode)
	if r != driver.Success {
		return r
	}
	into := m.graphs[g]
	if into == nil {
		return driver.ErrorInvalidValue
	}
	if into.capture != nil {
		return driver.ErrorIllegalState
	}
	behind, r := m.dependencies(into, deps, edges)
	if r != driver.Success {
		return r
	}
	m.begin(s, &capture{raw: g, graph: into, given: true, mode: mode})
	s.deps = behind
	return driver.Success
}

// StreamBeginRecaptureToGraph implements driver.Captures. It came after the version that is implemented here.
func (m *machine) StreamBeginRecaptureToGraph(driver.Context, driver.Stream, driver.Graph, driver.CaptureMode) driver.Result {
	return driver.ErrorNotSupported
}

// capturable finds a stream on which a capture may begin.
func (m *machine) capturable(ctx driver.Context, raw driver.Stream, mode driver.CaptureMode) (*stream, driver.Result) {
	s, r := m.stream(ctx, raw)
	switch {
	case r != driver.Success:
		return nil, r
	case mode < driver.CaptureGlobal || mode > driver.CaptureRelaxed:
		return nil, driver.ErrorInvalidValue
	case s == s.ctx.legacy:
		return nil, driver.ErrorStreamCaptureUnsupported
	case s.capture != nil:
		return nil, driver.ErrorIllegalState
	}
	return s, driver.Success
}

func (m *machine) begin(s *stream, c *capture) {
	m.captureIDs++
	c.id, c.origin, c.thread = m.captureIDs, s, goroutineID()
	c.graph.capture = c
	c.take(s, nil)
	m.captures = append(m.captures, c)
}

// take has s capture into c, behind deps.
func (c *capture) take(s *stream, deps []dependency) {
	s.capture, s.deps = c, slices.Clone(deps)
	c.streams = append(c.streams, s)
}

// StreamEndCapture implements driver.Captures.
func (m *machine) StreamEndCapture(ctx driver.Context, raw driver.Stream) (driver.Graph, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.stream(ctx, raw)
	if s == nil {
		return 0, r
	}
	c := s.capture
	switch {
	case c == nil && r != driver.Success:
		return 0, r
	case c == nil:
		return 0, driver.ErrorIllegalState
	case c.origin != s:
		return 0, driver.ErrorStreamCaptureUnmatched
	case r != driver.Success: // the context is lost, and the capture with it
	case c.mode != driver.CaptureRelaxed && c.thread != goroutineID():
		r = driver.ErrorStreamCaptureWrongThread // and the capture is gone: measured on an H200
	case c.invalid:
		r = driver.ErrorStreamCaptureInvalidated
	case !c.joined():
		r = driver.ErrorStreamCaptureUnjoined
	}
	m.finishCapture(c, r == driver.Success)
	if r != driver.Success {
		return 0, r
	}
	return c.raw, driver.Success
}

// finishCapture lets the streams of c go. Unless the graph is wanted, it goes too, if it is the capture's own.
func (m *machine) finishCapture(c *capture, wanted bool) {
	for _, s := range c.streams {
		s.capture, s.deps = nil, nil
	}
	c.streams, c.over, c.graph.capture = nil, true, nil
	m.captures = slices.DeleteFunc(m.captures, func(other *capture) bool { return other == c })
	if !wanted { // a graph that was given goes too, with what it is inside of: seen on an H200
		m.dropGraph(c.graph.root())
	}
}

// joined reports whether the origin is behind everything that forked streams have captured.
func (c *capture) joined() bool {
	reached := map[*graphNode]bool{}
	reach(reached, c.origin.deps)
	for _, s := range c.streams {
		for _, d := range s.deps {
			if !reached[d.on] {
				return false
			}
		}
	}
	return true
}

// reach notes the nodes of deps, and those before them.
func reach(reached map[*graphNode]bool, deps []dependency) {
	for todo := slices.Clone(deps); len(todo) > 0; {
		n := todo[len(todo)-1].on
		todo = todo[:len(todo)-1]
		if !reached[n] {
			reached[n] = true
			todo = append(todo, n.deps.list...)
		}
	}
}

// add makes a node of what was queued on s, which captures. mu is held.
func (m *machine) add(s *stream, n *graphNode) {
	n.ctx, n.deps.list = s.ctx, slices.Clip(s.deps)
	m.addNode(s.capture.graph, n)
	s.deps = []dependency{{on: n}}
}

// waitCaptured is the wait of s for e as far as captures have to do with it. done: that was all.
func (m *machine) waitCaptured(s *stream, e *event) (r driver.Result, done bool) {
	var from *capture
	if e.latest != nil {
		from = e.latest.capture
	}
	switch into := s.capture; {
	case from == nil && into == nil:
		return driver.Success, false
	case from == nil && e.latest == nil: // nothing to wait for
		return driver.Success, true
	case from == nil, from.over && into != nil: // work outside the capture
		into.invalid = true
		return driver.ErrorStreamCaptureIsolation, true
	case from.over:
		return driver.ErrorCapturedEvent, true
	case from.invalid:
		return driver.ErrorStreamCaptureInvalidated, true
	case into == nil && s == s.ctx.legacy: // which never captures
		return from.refuse(), true
	case into == nil:
		from.take(s, e.latest.deps)
	case into != from:
		into.invalid, from.invalid = true, true
		return driver.ErrorStreamCaptureMerge, true
	default:
		s.deps = union(s.deps, e.latest.deps)
	}
	return driver.Success, true
}

// union adds to deps those of more whose nodes are not there yet.
func union(deps, more []dependency) []dependency {
	deps = slices.Clone(deps)
	for _, d := range more {
		if !slices.ContainsFunc(deps, func(have dependency) bool { return have.on == d.on }) {
			deps = append(deps, d)
		}
	}
	return deps
}
