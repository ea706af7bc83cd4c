package cuda

import "github.com/hostlaunch/cuda/internal/driver"

// BorrowStream makes a Stream of a stream that another library made, by its handle (a CUstream or cudaStream_t). It stays
// that library's: Close ends the Stream and never destroys the handle. The handle must be valid as long as the Stream is
// used; neither the driver nor this library can check that. Calls bind the stream's own context.
//
// 0 and 1 give the legacy default stream of c. For the per-thread default stream (2) see WithThreadStream.
func (c *Context) BorrowStream(handle uintptr) (*Stream, error) {
	return c.borrow("BorrowStream", driver.Stream(handle), nil)
}

// StreamOf is BorrowStream of x's stream. It keeps x alive as long as the Stream.
func (c *Context) StreamOf(x interface{ CUDAStream() uintptr }) (*Stream, error) {
	const op = "StreamOf"
	if x == nil {
		return nil, failf(op, ErrInvalidValue, "x is nil")
	}
	if s, ok := x.(*Stream); ok { // of ours, it can be told whether its handle is still good
		if err := s.beginAs(op, "x"); err != nil {
			return nil, err
		}
		defer s.end()
		if c != nil && s.ctx.drv != c.drv {
			return nil, failf(op, ErrInvalidValue, "x belongs to %s and the context to %s; use one Driver for both", s.ctx.describe(), c.describe())
		}
		c = s.ctx // also for a default stream, whose handle does not tell
	}
	return c.borrow(op, driver.Stream(x.CUDAStream()), x)
}

func (c *Context) borrow(op string, raw driver.Stream, owner any) (*Stream, error) {
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
	s := &Stream{ctx: own, raw: raw, owner: owner, borrowed: true}
	s.res = newResource(own, "Stream", 0, func() driver.Result { return driver.Success })
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
	if r == driver.ErrorNotSupported { // before CUDA 12.8
		dev, r = c.device, driver.Success
	}
	if err := c.result(op, r); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.contexts[rawCtx] == nil {
		d.contexts[rawCtx] = &Context{drv: d, device: dev, ordinal: int(dev), raw: rawCtx, pageable: c.pageable, concurrent: c.concurrent, release: func() {}}
	}
	return d.contexts[rawCtx], nil
}
