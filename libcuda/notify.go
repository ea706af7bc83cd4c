//go:build linux && (amd64 || arm64)

package libcuda

import (
	"sync"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// polls are the events that are waited for. However many wait for an event, it is asked once a time.
type polls struct {
	mu sync.Mutex // not held across driver calls, nor while somebody is told
	by map[driver.Event]*poll
}

// poll is an event that the service asks.
type poll struct {
	list    *polls
	event   driver.Event
	start   time.Time
	waiters map[*waiter]struct{}
	asking  bool      // the event is in use
	stopped []*waiter // while it was; told when it no longer is
}

// waiter is told once.
type waiter struct{ tell func(driver.Result) }

// NotifyEvent implements driver.Events. The event is asked again and again, by the service; see patience.
func (nv *nvidia) NotifyEvent(ctx driver.Context, e driver.Event, fn func(driver.Result)) (stop func(), r driver.Result) {
	w := &waiter{fn}
	p, first := nv.polls.join(e, w)
	if first && !nv.service.add(nv, p.task(nv, ctx)) {
		for other := range nv.polls.over(p) {
			if other != w {
				other.tell(driver.ErrorDeinitialized)
			}
		}
		return nil, driver.ErrorDeinitialized
	}
	return func() { p.stop(w) }, driver.Success
}

// join has w wait for e. first: nobody did, and the poll has yet to be looked at.
func (l *polls) join(e driver.Event, w *waiter) (p *poll, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p = l.by[e]
	if first = p == nil; first {
		p = &poll{list: l, event: e, start: time.Now(), waiters: map[*waiter]struct{}{}}
		if l.by == nil {
			l.by = map[driver.Event]*poll{}
		}
		l.by[e] = p
	}
	p.waiters[w] = struct{}{}
	return p, first
}

// over takes p off the list and returns who waits for it. The event's next waiter starts a new poll.
func (l *polls) over(p *poll) map[*waiter]struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remove(p)
}

// remove is over with mu held.
func (l *polls) remove(p *poll) map[*waiter]struct{} {
	if l.by[p.event] == p {
		delete(l.by, p.event)
	}
	waiters := p.waiters
	p.waiters = nil
	return waiters
}

// task is what the service looks at.
func (p *poll) task(nv *nvidia, ctx driver.Context) *task {
	tell := func(waiters map[*waiter]struct{}, r driver.Result) {
		for w := range waiters {
			w.tell(r)
		}
	}
	return &task{
		due: p.start,
		look: func(now time.Time) (time.Duration, bool) {
			if !p.begin() {
				return 0, true
			}
			r := nv.EventQuery(ctx, p.event)
			if done := p.end(r); r != driver.ErrorNotReady || done != nil {
				tell(done, r)
				return 0, true
			}
			return patience(now.Sub(p.start)), false
		},
		drop: func() { tell(p.list.over(p), driver.ErrorDeinitialized) },
	}
}

// begin reports whether somebody still waits, and takes the event into use if so.
func (p *poll) begin() bool {
	p.list.mu.Lock()
	defer p.list.mu.Unlock()
	p.asking = len(p.waiters) > 0
	return p.asking
}

// end is the end of the use that begin began. It tells those who have stopped meanwhile, and returns those whom the answer
// is for, or an empty list if nobody waits any more.
func (p *poll) end(r driver.Result) (done map[*waiter]struct{}) {
	l := p.list
	l.mu.Lock()
	p.asking = false
	stopped := p.stopped
	p.stopped = nil
	if r != driver.ErrorNotReady {
		done = l.remove(p)
	} else if len(p.waiters) == 0 {
		l.remove(p)
		done = map[*waiter]struct{}{}
	}
	l.mu.Unlock()
	for _, w := range stopped {
		w.tell(driver.ErrorNotReady)
	}
	return done
}

// stop ends w's wait. Once w is told, the event is not used for it any more: so that happens at once, or when the event is no
// longer being asked. With the last waiter the event is let go of; the service notices when it looks next.
func (p *poll) stop(w *waiter) {
	l := p.list
	l.mu.Lock()
	_, waits := p.waiters[w]
	delete(p.waiters, w)
	later := waits && p.asking
	if later {
		p.stopped = append(p.stopped, w)
	} else if waits && len(p.waiters) == 0 {
		l.remove(p)
	}
	l.mu.Unlock()
	if waits && !later {
		w.tell(driver.ErrorNotReady)
	}
}

// patience is how long to leave an event alone that has been waited for so long: not at all in the beginning, then a sixteenth
// of the time so far, so that the wait is seldom longer than it must be by more than that.
func patience(waited time.Duration) time.Duration {
	const spin, least, most = 40 * time.Microsecond, 4 * time.Microsecond, time.Millisecond
	if waited < spin {
		return 0
	}
	return min(max(waited/16, least), most)
}
