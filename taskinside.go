package cuda

import (
	"errors"
	"fmt"

	"github.com/hostlaunch/cuda/internal/hostfn"
)

// waitsInside is the error of a call that waits for s and that was refused with err. If that was because it was made inside a host
// function, it is a deadlock too: it would have waited for the function that it was made in (CONTRACT HL-07).
func (s *Stream) waitsInside(op string, err error) error {
	if s == nil || !errors.Is(err, ErrNotPermitted) {
		return err
	}
	return s.ctx.waitsInside(op, fmt.Sprintf("stream %#x", uintptr(s.raw)), uintptr(s.lane().raw))
}

// waitsInside is the same for a call that waits for e.
func (e *Event) waitsInside(op string, err error) error {
	if e == nil || !errors.Is(err, ErrNotPermitted) {
		return err
	}
	return e.ctx.waitsInside(op, "an event", 0)
}

// waitsInside is the error of a call inside a host function that waits for what: for stream on, or something in it, or 0.
func (c *Context) waitsInside(op, what string, on uintptr) error {
	reason := fmt.Sprintf("called inside a host function, to wait for %s; the device runs nothing else of the kind meanwhile, "+
		"and what is behind the function never", what)
	if fn, ok := c.runningOn(on); ok {
		reason = fmt.Sprintf("host function %s, queued at %s, would wait for %s, which may be behind it", funcName(fn), siteName(fn.Site), what)
	}
	const wayOut = "; wait in a goroutine that the function starts"
	return &Error{Op: op, Code: ErrNotPermitted, also: ErrDeadlock, Reason: reason + wayOut}
}

// runningOn is the host function of c that runs, if only one does or one does on the stream named.
func (c *Context) runningOn(stream uintptr) (found hostfn.Func, ok bool) {
	n := 0
	c.drv.funcs.Each(func(_ hostfn.Handle, fn hostfn.Func, started bool) bool {
		if !started || fn.Group != &c.funcs && fn.Group != &c.callbacks {
			return true
		}
		if found, n = fn, n+1; stream != 0 && fn.On == stream {
			n = 1
			return false
		}
		return true
	})
	return found, n == 1
}
