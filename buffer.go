package cuda

import "github.com/hostlaunch/cuda/internal/driver"

// Buffer is memory of a device, or a part of such memory (see Slice). Its contents are undefined until written.
type Buffer struct {
	ctx *Context
	ptr driver.DevicePtr
	n   int
	res *resource // shared by all parts of an allocation

	whole *Buffer // for a part: what keeps the allocation open
}

// DevicePtr is an address in a device's memory, for kernel arguments and for other libraries.
type DevicePtr uint64

// Alloc allocates n bytes of device memory, n > 0.
//
// Errors: ErrInvalidValue, ErrOutOfMemory. cuMemAlloc.
func (c *Context) Alloc(n int) (*Buffer, error) {
	const op = "Alloc"
	if err := c.enter(op); err != nil {
		return nil, err
	}
	defer c.leave()
	if n <= 0 {
		return nil, failf(op, ErrInvalidValue, "size %d: allocate at least one byte", n)
	}
	d := c.drv.drv
	ptr, r := d.MemAlloc(c.raw, uintptr(n))
	if r != driver.Success {
		return nil, c.resultf(op, r, "%d bytes on device %d", n, c.ordinal)
	}
	b := &Buffer{ctx: c, ptr: ptr, n: n}
	b.res = newResource(c, "Buffer", n, func() driver.Result { return d.MemFree(c.raw, ptr) })
	b.res.memory = ptr
	dropped(b, b.res)
	return b, nil
}

// Len is the size in bytes.
func (b *Buffer) Len() int {
	if b == nil {
		return 0
	}
	return b.n
}

// Ptr is the device address. It is valid until the allocation is closed; keep the Buffer alive while it is used.
func (b *Buffer) Ptr() DevicePtr {
	if b == nil {
		return 0
	}
	return DevicePtr(b.ptr)
}

// Context is the context that b belongs to.
func (b *Buffer) Context() *Context {
	if b == nil {
		return nil
	}
	return b.ctx
}

// Slice returns the n bytes of b from offset on, as a Buffer that shares b's memory. Closing either closes the allocation.
func (b *Buffer) Slice(offset, n int) (*Buffer, error) {
	const op = "Buffer.Slice"
	if b == nil {
		return nil, failf(op, ErrInvalidValue, "the buffer is nil")
	}
	if offset < 0 || n < 0 || offset > b.n-n {
		return nil, failf(op, ErrInvalidValue, "offset %d, length %d: the buffer has %d bytes", offset, n, b.n)
	}
	return &Buffer{ctx: b.ctx, ptr: b.ptr + driver.DevicePtr(offset), n: n, res: b.res, whole: b}, nil
}

// WriteAt copies p to b from offset off on and returns when that is done: a synchronous copy on the legacy default stream,
// which waits for blocking streams and not for others. It implements io.WriterAt. cuMemcpyHtoD.
func (b *Buffer) WriteAt(p []byte, off int64) (int, error) {
	return b.transfer("Buffer.WriteAt", p, off, func(at driver.DevicePtr, host hostRange) driver.Result {
		// The driver returns when it has taken p, which may be before b has it; a stream that does not wait for the legacy
		// one could still read the old bytes (seen on an H200).
		if r := b.ctx.drv.drv.MemcpyHtoD(b.ctx.raw, at, host.ptr, host.n); r != driver.Success {
			return r
		}
		return b.ctx.drv.drv.StreamSynchronize(b.ctx.raw, driver.StreamLegacy)
	})
}

// ReadAt copies b's bytes from offset off on to p and returns when that is done, like WriteAt. It implements io.ReaderAt,
// but that a range beyond the end is ErrInvalidValue. cuMemcpyDtoH.
func (b *Buffer) ReadAt(p []byte, off int64) (int, error) {
	return b.transfer("Buffer.ReadAt", p, off, func(at driver.DevicePtr, host hostRange) driver.Result {
		return b.ctx.drv.drv.MemcpyDtoH(b.ctx.raw, host.ptr, at, host.n)
	})
}

func (b *Buffer) transfer(op string, p []byte, off int64, do func(driver.DevicePtr, hostRange) driver.Result) (int, error) {
	if b == nil {
		return 0, failf(op, ErrInvalidValue, "the buffer is nil")
	}
	if err := b.ctx.enter(op); err != nil {
		return 0, err
	}
	defer b.ctx.leave()
	if off < 0 || off > int64(b.n-len(p)) {
		return 0, failf(op, ErrInvalidValue, "offset %d, length %d: the buffer has %d bytes", off, len(p), b.n)
	}
	if err := b.acquire(op, "the buffer", b.ctx); err != nil {
		return 0, err
	}
	defer b.res.release()
	if len(p) == 0 {
		return 0, nil
	}
	legacy := b.ctx.DefaultStream()
	if err := legacy.begin(op); err != nil {
		return 0, err
	}
	defer legacy.end()
	done, err := legacy.blockInTurn(op)
	if err != nil {
		return 0, err
	}
	defer done()
	sp := legacy.hostTimedSpan(TraceCopy, op, len(p))
	sp.runs()
	err = b.ctx.result(op, do(b.ptr+driver.DevicePtr(off), rangeOf(p)))
	b.ctx.drv.observe()
	sp.ran()
	sp.queued(err)
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// acquire takes b as the argument called name of an operation in c; b.res.release must follow if it returns nil.
func (b *Buffer) acquire(op, name string, c *Context) error {
	if b == nil {
		return failf(op, ErrInvalidValue, "%s is nil", name)
	}
	if b.ctx.drv != c.drv {
		return failf(op, ErrInvalidValue, "%s belongs to %s and the queue to %s; use one Driver for both", name, b.ctx.describe(), c.describeBeside(b.ctx))
	}
	if !b.res.acquire() {
		return failf(op, ErrClosed, "%s is closed", name)
	}
	return nil
}

// Close frees the memory. It waits until queued work that may use it is done; while a task holds a stream it returns at once, and the
// memory is freed later. cuMemFree.
func (b *Buffer) Close() error {
	if b == nil {
		return nil
	}
	return closeHandle(b.res)
}

// fill checks the operands of a memset of elements of size bytes and queues it.
func (s *Stream) fill(op string, b *Buffer, size int, queue func(n uintptr) driver.Result) error {
	if err := s.beginQueue(op); err != nil {
		return err
	}
	defer s.end()
	if err := b.acquire(op, "b", s.ctx); err != nil {
		return err
	}
	defer b.res.release()
	if err := b.divides(op, "b", size); err != nil {
		return err
	}
	if b.n == 0 {
		return nil
	}
	sp := s.span(TraceMemset, op, "", b.n)
	if s.waitsTurn() {
		return s.later(op, sp, func() driver.Result { return queue(uintptr(b.n / size)) }, b.res)
	}
	s.capture().keep(b.res)
	sp.begins(s)
	err := s.ctx.result(op, queue(uintptr(b.n/size)))
	sp.ends(s, err)
	return err
}

// Memset queues filling b with value. cuMemsetD8Async.
func (s *Stream) Memset(b *Buffer, value byte) error { return s.memset8("Stream.Memset", b, value) }

func (s *Stream) memset8(op string, b *Buffer, value byte) error {
	return s.fill(op, b, 1, func(n uintptr) driver.Result {
		return s.driver().MemsetD8Async(s.ctx.raw, b.ptr, value, n, s.raw)
	})
}

// Memset16 queues filling b with a value of two bytes. cuMemsetD16Async.
func (s *Stream) Memset16(b *Buffer, value uint16) error {
	return s.memset16("Stream.Memset16", b, value)
}

func (s *Stream) memset16(op string, b *Buffer, value uint16) error {
	return s.fill(op, b, 2, func(n uintptr) driver.Result {
		return s.driver().MemsetD16Async(s.ctx.raw, b.ptr, value, n, s.raw)
	})
}

// Memset32 queues filling b with a value of four bytes. cuMemsetD32Async.
func (s *Stream) Memset32(b *Buffer, value uint32) error {
	return s.memset32("Stream.Memset32", b, value)
}

func (s *Stream) memset32(op string, b *Buffer, value uint32) error {
	return s.fill(op, b, 4, func(n uintptr) driver.Result {
		return s.driver().MemsetD32Async(s.ctx.raw, b.ptr, value, n, s.raw)
	})
}

// divides refuses b, an argument's name, if it is not elements of size bytes.
func (b *Buffer) divides(op, name string, size int) error {
	if b.n%size != 0 || uint64(b.ptr)%uint64(size) != 0 {
		return failf(op, ErrInvalidValue, "%s has %d bytes at %#x: both must be multiples of %d", name, b.n, uint64(b.ptr), size)
	}
	return nil
}

// overlap reports whether a and b have memory in common.
func overlap(a, b *Buffer) bool {
	return a.ptr < b.ptr+driver.DevicePtr(b.n) && b.ptr < a.ptr+driver.DevicePtr(a.n)
}
