package cuda

import (
	"context"
	"sync"

	"github.com/hostlaunch/cuda/internal/driver"
)

// completion is an event that is being waited for.
type completion struct {
	ch   chan struct{} // closed when complete, or stopped
	r    driver.Result // valid then
	stop func()        // ends the wait
}

// notify waits for e without a thread. release is called once when e is no longer needed, also on an error.
func (c *Context) notify(op string, e driver.Event, release func()) (*completion, error) {
	done := &completion{ch: make(chan struct{})}
	stop, err := c.told(op, e, func(r driver.Result) {
		done.r = r
		release()
		close(done.ch)
	})
	if err != nil {
		release()
		return nil, err
	}
	done.stop = stop
	return done, nil
}

// told has fn called, on a goroutine of the driver's, once e is complete or its context has failed; if it returns an error, never. Close
// waits for it.
func (c *Context) told(op string, e driver.Event, fn func(driver.Result)) (stop func(), err error) {
	c.drv.notices.add()
	stop, r := c.drv.drv.NotifyEvent(c.raw, e, func(r driver.Result) {
		defer c.drv.notices.done()
		fn(r)
	})
	if r != driver.Success {
		c.drv.notices.done()
	}
	return stop, c.result(op, r)
}

// await waits for done or ctx. If ctx ends first, nothing of the wait is left behind.
func (c *Context) await(op string, ctx context.Context, done *completion) error {
	select {
	case <-done.ch:
	case <-ctx.Done():
		select {
		case <-done.ch: // both: then it is done
		default:
			done.stop()
			return endedError(op, ctx, "")
		}
	}
	c.drv.observe()
	return c.result(op, done.r)
}

// behind is an event of the library's own that is recorded behind what s has queued; it goes back to the context's.
func (s *Stream) behind(op string) (driver.Event, error) {
	e, r := s.ctx.events.take(s.ctx)
	if r != driver.Success {
		return 0, s.ctx.result(op, r)
	}
	if r = s.driver().EventRecord(s.ctx.raw, e, s.raw); r != driver.Success {
		s.ctx.events.put(e)
	}
	return e, s.ctx.result(op, r)
}

// eventPool keeps events of a context for the library's own use. They are made without timing.
type eventPool struct {
	mu      sync.Mutex
	free    []driver.Event
	made    int
	drained *Context // by which events that come back are destroyed, since the pool's own may be gone; nil: not drained
}

// get is take for a call of the library's.
func (p *eventPool) get(c *Context, op string) (driver.Event, error) {
	e, r := p.take(c)
	return e, c.result(op, r)
}

// take takes an event from the pool, or makes one.
func (p *eventPool) take(c *Context) (e driver.Event, r driver.Result) {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		e := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return e, driver.Success
	}
	p.made++
	p.mu.Unlock()
	c.drv.relaxed(func() { e, r = c.drv.drv.EventCreate(c.raw, driver.EventDisableTiming) })
	if r != driver.Success {
		p.mu.Lock()
		p.made--
		p.mu.Unlock()
	}
	return e, r
}

// put gives e back. When the pool has been drained, e is destroyed: it has come with a notification after a green context's end.
func (p *eventPool) put(e driver.Event) {
	p.mu.Lock()
	by := p.drained
	if by == nil {
		p.free = append(p.free, e)
	}
	p.mu.Unlock()
	if by != nil {
		by.drv.drv.EventDestroy(by.raw, e)
	}
}

// drain destroys the events, those too that come back later, when c has come to its end.
func (p *eventPool) drain(c *Context) {
	p.mu.Lock()
	free := p.free
	p.free, p.drained = nil, c
	if c.green != nil {
		p.drained = c.green.ctx
	}
	p.mu.Unlock()
	for _, e := range free {
		c.drv.drv.EventDestroy(c.raw, e)
	}
}
