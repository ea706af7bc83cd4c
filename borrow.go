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
	return c.borrowHandle("BorrowStream", driver.Stream(handle), nil)
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
			where := c.describeBeside(s.ctx)
			return nil, failf(op, ErrInvalidValue, "x belongs to %s and the context to %s; use one Driver for both", s.ctx.describe(), where)
		}
		return s.ctx.borrow(op, &Stream{ctx: s.ctx, raw: s.raw, green: s.green, altered: s.altered, owner: x}, s.res)
	}
	return c.borrowHandle(op, driver.Stream(x.CUDAStream()), x)
}

// borrowHandle makes a Stream of a handle, which keeps owner alive.
func (c *Context) borrowHandle(op string, raw driver.Stream, owner any) (*Stream, error) {
	if err := c.enter(op); err != nil {
		return nil, err
	}
	defer c.leave()
	s := &Stream{ctx: c, raw: raw, owner: owner}
	if raw > driver.StreamPerThread {
		if s.green = c.drv.greenStreams.of(raw); s.green != nil { // as the Stream that has it
			s.ctx = s.green.dev
		} else if own, err := c.contextOf(op, raw); err != nil {
			return nil, err
		} else {
			s.ctx = own
		}
	}
	return c.borrow(op, s, nil)
}

// borrow makes s a borrowed Stream. If it is not nil, of is kept open. c is in use.
func (c *Context) borrow(op string, s *Stream, of *resource) (*Stream, error) {
	if s.raw == driver.StreamPerThread {
		return nil, failf(op, ErrInvalidHandle, "the per-thread default stream is another one on every thread; use WithThreadStream")
	}
	if of != nil && !of.acquire() {
		return nil, failf(op, ErrClosed, "x is closed")
	}
	s.borrowed = true
	if s.raw > driver.StreamPerThread {
		s.id, _ = c.drv.drv.StreamGetID(s.ctx.raw, s.raw) // else ID asks again, and says why not
	}
	s.res = newResource(s.ctx, "Stream", 0, func() driver.Result {
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
	return d.takeIn(&Context{device: dev, ordinal: int(dev), raw: rawCtx, pageable: pageable != 0, concurrent: concurrent != 0}), nil
}
