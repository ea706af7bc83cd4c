package softcuda

import (
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// stamp is where the time goes when an operation is done.
type stamp struct {
	since  time.Time
	at     *atomic.Int64
	behind *atomic.Int64 // a second place, since stamps often come in pairs: the end of one thing, the start of the next; nil: none
	next   *stamp        // further ones
}

var _ driver.Stamper = (*machine)(nil)

// StreamStamp implements driver.Stamper. Nothing is queued: an idle stream is there already, and otherwise it is when its last operation
// is done. Only where the legacy stream's rules put more before it, which that operation does not wait for, there is an operation for it.
func (m *machine) StreamStamp(ctx driver.Context, onto driver.Stream, since time.Time, at *atomic.Int64) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.stream(ctx, onto)
	switch {
	case r != driver.Success:
		return r
	case s.capture != nil, m.implied(s) != nil:
		return driver.ErrorStreamCaptureUnsupported
	case s.behindLegacy():
		m.enqueue(s, new(op))
	}
	if s.last == nil {
		at.Store(int64(time.Since(since)))
	} else {
		s.last.stampAt(since, at)
	}
	return driver.Success
}

// behindLegacy reports whether more is put before the next operation of s than what is queued on s.
func (s *stream) behindLegacy() bool {
	legacy := s.ctx.legacy
	if s != legacy {
		return s.blocking() && legacy.last != nil && s.fenced != legacy.last
	}
	for b := range s.ctx.busy {
		if b != s && b.blocking() {
			return true
		}
	}
	return false
}

// stampAt has the time stored in at when o is done.
func (o *op) stampAt(since time.Time, at *atomic.Int64) {
	if o.extra == nil {
		both := new(struct {
			extra opExtra
			stamp stamp
		})
		both.stamp = stamp{since: since, at: at}
		o.extra, both.extra.stamp = &both.extra, &both.stamp
		return
	}
	if t := o.extra.stamp; t != nil && t.behind == nil && t.since == since {
		t.behind = at
		return
	}
	o.extra.stamp = &stamp{since: since, at: at, next: o.extra.stamp}
}

func (t *stamp) store() {
	since, at := t.since, int64(time.Since(t.since))
	for ; t != nil; t = t.next {
		if t.since != since {
			since, at = t.since, int64(time.Since(t.since))
		}
		t.at.Store(at)
		if t.behind != nil {
			t.behind.Store(at)
		}
	}
}
