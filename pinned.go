package cuda

import (
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// PinnedBuffer is page-locked host memory, allocated (AllocPinned) or the program's own (Pin): copies between it and a device go
// at the link's speed and truly in the background. It is pinned for every context (CU_MEMHOSTALLOC_PORTABLE). Unlike other objects it is
// never closed by the garbage collector, since slices of its memory may outlive it: its memory lives until Close, or until the Driver's
// Close.
type PinnedBuffer struct {
	ctx  *Context
	data []byte
	res  *resource
}

// AllocPinned allocates n bytes of pinned host memory, n > 0. Its contents are undefined. cuMemHostAlloc.
func (c *Context) AllocPinned(n int) (*PinnedBuffer, error) {
	const op = "AllocPinned"
	if err := c.enter(op); err != nil {
		return nil, err
	}
	defer c.leave()
	if n <= 0 {
		return nil, failf(op, ErrInvalidValue, "size %d: allocate at least one byte", n)
	}
	d, pinned := c.drv.drv, &c.drv.pinned
	p, r := d.MemHostAlloc(c.raw, uintptr(n), driver.MemHostAllocPortable)
	if r != driver.Success {
		return nil, c.resultf(op, r, "%d bytes of pinned memory", n)
	}
	b := &PinnedBuffer{ctx: c, data: unsafe.Slice((*byte)(p), n)}
	b.res = newResource(c, "PinnedBuffer", n, func() driver.Result {
		pinned.remove(p)
		return d.MemFreeHost(c.raw, p)
	})
	b.res.memory = driver.DevicePtr(uintptr(p))
	pinned.add(p, n, b.res)
	return b, nil
}

// Bytes is the memory. It must not be used after Close. It needs no driver, so it works in host functions too.
func (b *PinnedBuffer) Bytes() []byte {
	if b == nil || b.res.closed() {
		return nil
	}
	return b.data
}

// Len is the size in bytes.
func (b *PinnedBuffer) Len() int {
	if b == nil {
		return 0
	}
	return len(b.data)
}

// Context is the context that b was made in.
func (b *PinnedBuffer) Context() *Context {
	if b == nil {
		return nil
	}
	return b.ctx
}

// Close frees the memory, or unpins it if it is the program's own. It waits until queued work that may use it is done (CONTRACT
// CY-07); while a task holds a stream it returns at once, and the memory is freed later. cuMemFreeHost, cuMemHostUnregister.
func (b *PinnedBuffer) Close() error {
	if b == nil {
		return nil
	}
	return closeHandle(b.res)
}

// PinnedSlice is b's memory as a slice of T, as many as fit. T must be free of Go pointers, or it panics.
func PinnedSlice[T any](b *PinnedBuffer) []T {
	mustBePlain[T]("PinnedSlice")
	return sliceOf[T](b.Bytes())
}

// sliceOf is data as a slice of T, as many as fit.
func sliceOf[T any](data []byte) []T {
	var zero T
	if unsafe.Sizeof(zero) == 0 || len(data) < int(unsafe.Sizeof(zero)) {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/int(unsafe.Sizeof(zero)))
}
