package softcuda

import (
	"slices"

	"github.com/hostlaunch/cuda/internal/driver"
)

// forbidden answers for a call that is potentially unsafe while something is captured: one that does its work at once, where
// no capture sees it. A call that is refused invalidates every capture that forbids it. mu is held.
func (m *machine) forbidden() driver.Result {
	if len(m.captures) == 0 {
		return driver.Success
	}
	thread, r := goroutineID(), driver.Success
	for _, c := range m.captures {
		if c.forbids(thread, m.modes[thread]) {
			c.invalid = true
			r = driver.ErrorStreamCaptureUnsupported
		}
	}
	return r
}

// forbids reports whether c keeps a thread that is in mode from unsafe calls.
func (c *capture) forbids(thread uint64, mode driver.CaptureMode) bool {
	switch {
	case mode == driver.CaptureRelaxed || c.mode == driver.CaptureRelaxed:
		return false
	case c.thread == thread:
		return true
	}
	return mode == driver.CaptureGlobal && c.mode == driver.CaptureGlobal
}

// ThreadExchangeStreamCaptureMode implements driver.Captures. A goroutine whose mode is not in the map is in Global mode.
func (m *machine) ThreadExchangeStreamCaptureMode(mode driver.CaptureMode) (driver.CaptureMode, driver.Result) {
	if mode < driver.CaptureGlobal || mode > driver.CaptureRelaxed {
		return 0, driver.ErrorInvalidValue
	}
	m.mu.Lock()
	defer m.unlock()
	thread := goroutineID()
	former := m.modes[thread]
	if mode == driver.CaptureGlobal {
		delete(m.modes, thread)
	} else {
		m.modes[thread] = mode
	}
	return former, driver.Success
}

// synchronizable answers for a wait for all of c, which no capture survives, in whatever mode (facts/h200.md).
func (m *machine) synchronizable(c *context) driver.Result {
	r := driver.Success
	for _, capture := range m.captures {
		if slices.ContainsFunc(capture.streams, func(s *stream) bool { return s.ctx == c }) {
			capture.invalid = true
			r = driver.ErrorStreamCaptureUnsupported
		}
	}
	return r
}

// StreamIsCapturing implements driver.Captures.
func (m *machine) StreamIsCapturing(ctx driver.Context, raw driver.Stream) (driver.CaptureStatus, driver.Result) {
	i, r := m.StreamGetCaptureInfo(ctx, raw)
	return i.Status, r
}

// StreamGetCaptureInfo implements driver.Captures.
func (m *machine) StreamGetCaptureInfo(ctx driver.Context, raw driver.Stream) (driver.CaptureInfo, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	var info driver.CaptureInfo
	s, r := m.stream(ctx, raw)
	switch {
	case r != driver.Success:
		return info, r
	case m.implied(s) != nil: // which the capture survives
		return info, driver.ErrorStreamCaptureImplicit
	case s.capture == nil:
		return info, driver.Success
	case s.capture.invalid:
		info.Status = driver.CaptureInvalidated
		return info, driver.Success
	}
	info = driver.CaptureInfo{Status: driver.CaptureActive, ID: s.capture.id, Graph: s.capture.raw}
	for _, d := range s.deps {
		info.Deps, info.Edges = append(info.Deps, d.on.raw), append(info.Edges, d.data)
	}
	return info, driver.Success
}

// StreamUpdateCaptureDependencies implements driver.Captures.
func (m *machine) StreamUpdateCaptureDependencies(ctx driver.Context, raw driver.Stream, deps []driver.GraphNode, edges []driver.EdgeData, flags uint32) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.stream(ctx, raw)
	switch {
	case r != driver.Success:
		return r
	case flags > driver.CaptureSetDependencies:
		return driver.ErrorInvalidValue
	case s.capture == nil:
		return driver.ErrorIllegalState
	case s.capture.invalid:
		return driver.ErrorStreamCaptureInvalidated
	}
	list, r := m.dependencies(s.capture.graph, deps, edges)
	if r != driver.Success {
		return r
	}
	if flags == driver.CaptureAddDependencies {
		list = union(s.deps, list)
	}
	s.deps = list
	return driver.Success
}

// dependencies finds nodes of g.
func (m *machine) dependencies(g *graph, deps []driver.GraphNode, edges []driver.EdgeData) ([]dependency, driver.Result) {
	var list []dependency
	for i, raw := range deps {
		n := m.nodes[raw]
		if n == nil || n.graph != g {
			return nil, driver.ErrorInvalidValue
		}
		d := dependency{on: n}
		if i < len(edges) {
			d.data = edges[i]
		}
		list = union(list, []dependency{d})
	}
	return list, driver.Success
}
