package softcuda

import (
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// stamp is where the time goes when an operation, which is nothing else, is done.
type stamp struct {
	since  time.Time
	at     *atomic.Int64
	behind *atomic.Int64 // of a second stamp with nothing between; nil: there is none
}

// stampOp is the operation of a stamp, in one piece.
type stampOp struct {
	op    op
	extra opExtra
	stamp stamp
}

var _ driver.Stamper = (*machine)(nil)

// StreamStamp implements driver.Stamper. On an idle stream nothing is queued, and of two stamps with nothing between only one is: most of
// what is stamped stands alone or in a row.
func (m *machine) StreamStamp(ctx driver.Context, onto driver.Stream, since time.Time, at *atomic.Int64) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.stream(ctx, onto)
	switch {
	case r != driver.Success:
		return r
	case s.capture != nil, m.implied(s) != nil:
		return driver.ErrorStreamCaptureUnsupported
	}
	legacy := s.ctx.legacy
	if plain := m.sched == nil && !m.tracked && s != legacy; plain && s.first == nil && (!s.blocking() || legacy.last == nil) {
		at.Store(int64(time.Since(since)))
		return driver.Success
	} else if plain && (!s.blocking() || s.fenced == legacy.last) && s.last.alsoStamps(at) {
		return driver.Success
	}
	o := &stampOp{stamp: stamp{since: since, at: at}}
	o.extra.stamp = &o.stamp
	o.op.extra = &o.extra
	m.enqueue(s, &o.op)
	return driver.Success
}

// alsoStamps makes o, the last operation of its stream, stamp at as well if it is a stamp that can.
func (o *op) alsoStamps(at *atomic.Int64) bool {
	if o == nil || o.extra == nil || o.extra.stamp == nil || o.extra.stamp.behind != nil {
		return false
	}
	o.extra.stamp.behind = at
	return true
}

func (t *stamp) store() {
	now := int64(time.Since(t.since))
	t.at.Store(now)
	if t.behind != nil {
		t.behind.Store(now)
	}
}
