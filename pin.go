package cuda

import (
	"reflect"
	"runtime"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// Pin page-locks the memory of s, for every context, until the PinnedBuffer is closed: copies between it and a device then go at
// the link's speed. c is any context of the device, as in Pin(dev.Context, s). It takes the system a few dozen milliseconds for
// each GiB, and half as long to undo, so it pays for memory that is copied more than once or twice.
//
// The memory is kept alive as long. The PinnedBuffer's Bytes are s's. Memory that is pinned already, also in part, is
// ErrHostMemoryAlreadyRegistered, an empty slice ErrInvalidValue.
//
// T must be free of Go pointers, or it is ErrInvalidValue that names T. CONTRACT CY-01, CY-07; cuMemHostRegister.
func Pin[T any](c *Context, s []T) (*PinnedBuffer, error) {
	const op = "Pin"
	if err := refusePointers(op, reflect.TypeFor[T]()); err != nil {
		return nil, err
	}
	return c.pin(op, rangeOf(s))
}

func (c *Context) pin(op string, host hostRange) (*PinnedBuffer, error) {
	if err := c.enter(op); err != nil {
		return nil, err
	}
	defer c.leave()
	if host.n == 0 {
		return nil, failf(op, ErrInvalidValue, "s is empty; pin at least one byte")
	}
	d, pinned, n := c.drv.drv, &c.drv.pinned, int(host.n)
	b := &PinnedBuffer{ctx: c, data: unsafe.Slice((*byte)(host.ptr), n)}
	pin := new(runtime.Pinner)
	pin.Pin(host.ptr)
	b.res = newResource(c, "PinnedBuffer", n, func() driver.Result {
		pinned.remove(host.ptr)
		defer pin.Unpin()
		return d.MemHostUnregister(c.raw, host.ptr)
	})
	if pinned.add(host.ptr, n, b.res) {
		c.unpin(b, pin)
		return nil, failf(op, ErrHostMemoryAlreadyRegistered, "s overlaps memory that is pinned already; close that first, or use it")
	}
	if r := d.MemHostRegister(c.raw, host.ptr, host.n, driver.MemHostRegisterPortable); r != driver.Success {
		pinned.remove(host.ptr)
		c.unpin(b, pin)
		return nil, c.resultf(op, r, "%d bytes at %p cannot be pinned", n, host.ptr)
	}
	return b, nil
}

// unpin undoes a pin that has come to nothing.
func (c *Context) unpin(b *PinnedBuffer, pin *runtime.Pinner) {
	b.res.free = func() driver.Result {
		pin.Unpin()
		return driver.Success
	}
	b.res.close()
}
