package cuda

import "github.com/hostlaunch/cuda/internal/driver"

// BorrowStream makes a Stream of a stream that another library made, by its handle (a CUstream or cudaStream_t). It stays
// that library's: Close ends the Stream and never destroys the handle. The handle must be valid as long as the Stream is
// used; neither the driver nor this library can check that. Calls bind the stream's own context.
//
// Borrow a stream before it captures: asking the driver whose it is in the middle of a capture spoiled that on an H200.
//
// 0 and 1 give the legacy default stream of c. For the per-thread default stream (2) see WithThreadStream.
func (c *Context) BorrowStream(handle uintptr) (*Stream, error) {
	return c.borrow("BorrowStream", driver.Stream(handle), nil, nil)
}

// StreamOf is BorrowStream of x's stream. It keeps x alive as long as the Stream. If x is a *Stream of this library, its
// stream is destroyed only when both it and the one returned are closed.
func (c *Context) StreamOf(x interface{ CUDAStream() uintptr }) (*Stream, error) {
	const op = "StreamOf"
	if x == nil {
		return nil, failf(op, ErrInvalidValue, "x is nil")
	}
	if s, ok := x.(*Stream); ok { // of ours, it can be told whether its handle is still good
		if err := s.beginNow(op, "x"); err != nil {
			return nil, err
		}
		defer s.end()
		if c != nil && s.ctx.drv != c.drv {
			return nil, failf(op, ErrInvalidValue, "x belongs to %s and the context to %s; use one Driver for both", s.ctx.describe(), c.describeBeside(s.ctx))
		}
		b, err := s.ctx.borrow(op, s.raw, x, s.res) // its context, also for a default stream, whose handle does not tell
		if err == nil {
			b.altered = s.altered
		}
		return b, err
	}
	return c.borrow(op, driver.Stream(x.CUDAStream()), x, nil)
}

// borrow makes a Stream of raw. It keeps owner alive and, if it is not nil, of open.
func (c *Context) borrow(op string, raw driver.Stream, owner any, of *resource) (*Stream, error) {
	if err := c.enter(op); err != nil {
		return nil, err
	}
	defer c.leave()
	if raw == driver.StreamPerThread {
		return nil, failf(op, ErrInvalidHandle, "the per-thread default stream is another one on every thread; use WithThreadStream")
	}
	own := c
	if raw > driver.StreamPerThread {
		var err error
		if own, err = c.contextOf(op, raw); err != nil {
			return nil, err
		}
	}
	if of != nil && !of.acquire() {
		return nil, failf(op, ErrClosed, "x is closed")
	}
	s := &Stream{ctx: own, raw: raw, owner: owner, borrowed: true}
	if raw > driver.StreamPerThread {
		s.id, _ = c.drv.drv.StreamGetID(own.raw, raw) // else ID asks again, and says why not
	}
	s.res = newResource(own, "Stream", 0, func() driver.Result {
		if of != nil {
			of.release()
		}
		return driver.Success
	})
	dropped(s, s.res)
	return s, nil
}

// contextOf finds the context of a stream that others made, and takes it in if it is new here. It is not ours to release.
func (c *Context) contextOf(op string, raw driver.Stream) (*Context, error) {
	d := c.drv
	rawCtx, r := d.drv.StreamGetCtx(c.raw, raw)
	if r != driver.Success {
		return nil, c.resultf(op, r, "handle %#x is no stream", uintptr(raw))
	}
	if known := d.context(rawCtx); known != nil {
		return known, nil
	}
	dev, r := d.drv.StreamGetDevice(rawCtx, raw)
	if err := c.result(op, r); err != nil {
		return nil, err
	}
	pageable, _ := d.drv.DeviceGetAttribute(driver.AttrPageableMemoryAccess, dev)
	concurrent, _ := d.drv.DeviceGetAttribute(driver.AttrConcurrentManagedAccess, dev)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.contexts[rawCtx] == nil {
		d.contexts[rawCtx] = &Context{
			drv: d, device: dev, ordinal: int(dev), raw: rawCtx, pageable: pageable != 0, concurrent: concurrent != 0, release: func() {},
		}
	}
	return d.contexts[rawCtx], nil
}
