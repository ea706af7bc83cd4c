package cuda

import (
	"fmt"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/driver"
)

// traceLane is a stream of a trace. A Stream keeps it, so it must not keep the trace.
type traceLane struct {
	serial uint32 // of the tracer
	index  int
	ctx    *Context
	name   string
	clock  atomic.Pointer[traceClock] // nil: there is no need for one, or not any more
	last   atomic.Int32               // the span of what was queued last
}

// traceKey tells streams apart: a handle may come again.
type traceKey struct {
	laneKey
	id uint64
}

// lane is the lane of s.
func (t *Tracer) lane(s *Stream) *traceLane {
	if l := s.traced.Load(); l != nil && l.serial == t.serial {
		return l
	}
	l := t.laneAt(traceKey{s.lane(), s.id})
	s.traced.Store(l)
	return l
}

// laneAt is the lane of a key.
func (t *Tracer) laneAt(k traceKey) *traceLane {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lanes[k]
	if l != nil {
		return l
	}
	if t.lanes == nil {
		t.lanes = map[traceKey]*traceLane{}
	}
	l = &traceLane{serial: t.serial, index: len(t.order), ctx: k.ctx, name: k.name()}
	l.clock.Store(t.clock(k.ctx))
	t.lanes[k] = l
	t.order = append(t.order, l)
	return l
}

// laneOn is the latest lane of a stream of c of which only the handle is known.
func (t *Tracer) laneOn(c *Context, raw driver.Stream) *traceLane {
	t.mu.Lock()
	var found *traceLane
	for k, l := range t.lanes {
		if k.ctx == c && k.raw == raw && (found == nil || l.index > found.index) {
			found = l
		}
	}
	t.mu.Unlock()
	if found != nil {
		return found
	}
	return t.laneAt(traceKey{laneKey: laneKey{ctx: c, raw: raw}})
}

// name is what a trace calls the stream.
func (k traceKey) name() string {
	name := ""
	switch {
	case k.raw == driver.StreamLegacy:
		name = "legacy default stream"
	case k.raw == driver.StreamPerThread:
		name = "per-thread default stream"
	case k.id != 0:
		return fmt.Sprintf("stream %d", k.id)
	default:
		return fmt.Sprintf("stream %#x", uintptr(k.raw))
	}
	if k.ctx.own {
		name += fmt.Sprintf(" of context %#x", uintptr(k.ctx.raw))
	}
	return name
}
