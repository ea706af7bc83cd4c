package cuda

import (
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// ManagedBuffer is managed memory: it has one address, under which the host and kernels read and write the same bytes. As a
// kernel's argument it is its address; for everything else that devices do with memory, see Buffer.
//
// Where the device supports concurrent managed access (most GPUs under Linux) the host may touch it at any time, ordered with
// the device's work as other memory is. Elsewhere the host may touch it only while no stream that may use it is active, which
// its association decides (see Stream.Attach) and HostAccess tells.
//
// Like a PinnedBuffer it is never closed by the garbage collector, since slices of its memory may outlive it.
type ManagedBuffer struct {
	whole Buffer
	data  []byte
}

// AttachMode says which streams may use managed memory (CONTRACT ST-10).
type AttachMode uint32

// Associations, by the driver's numbers (CUmemAttach_flags).
const (
	// AttachGlobal: any stream of any device may use the memory.
	AttachGlobal AttachMode = AttachMode(driver.MemAttachGlobal)
	// AttachHost: the program promises not to use it on a device without concurrent managed access. Nobody checks.
	AttachHost AttachMode = AttachMode(driver.MemAttachHost)
	// AttachSingle: the program promises to use it, on such a device, only from the stream that it is attached to. Nobody
	// checks. Not for the legacy default stream, nor for AllocManaged.
	AttachSingle AttachMode = AttachMode(driver.MemAttachSingle)
)

// AllocManaged allocates n bytes of managed memory, n > 0, which are associated with initial: AttachGlobal or AttachHost. That
// is also what the memory returns to when a stream that it was attached to is closed. Its contents are undefined.
//
// Errors: ErrInvalidValue, ErrOutOfMemory. CONTRACT ST-10; cuMemAllocManaged.
func (c *Context) AllocManaged(n int, initial AttachMode) (*ManagedBuffer, error) {
	const op = "AllocManaged"
	if err := c.enter(op); err != nil {
		return nil, err
	}
	defer c.leave()
	if n <= 0 {
		return nil, failf(op, ErrInvalidValue, "size %d: allocate at least one byte", n)
	}
	if initial != AttachGlobal && initial != AttachHost {
		return nil, failf(op, ErrInvalidValue, "initial %d: memory begins as AttachGlobal or AttachHost; see Stream.Attach for AttachSingle", uint32(initial))
	}
	d := c.drv.drv
	ptr, r := d.MemAllocManaged(c.raw, uintptr(n), uint32(initial))
	if r != driver.Success {
		return nil, c.resultf(op, r, "%d bytes of managed memory on device %d", n, c.ordinal)
	}
	m := &ManagedBuffer{whole: Buffer{ctx: c, ptr: ptr, n: n}, data: hostView(ptr, n)}
	host, pinned := unsafe.Pointer(unsafe.SliceData(m.data)), &c.drv.pinned
	m.whole.res = newResource(c, "ManagedBuffer", n, func() driver.Result {
		pinned.remove(host)
		return d.MemFree(c.raw, ptr)
	})
	m.whole.res.memory = ptr
	pinned.add(host, n, m.whole.res) // the device reaches it as it does pinned memory
	return m, nil
}

// hostView is the memory at an address that the host shares with the device. The address is the driver's: it comes as an
// integer, and is no Go pointer that the collector could move.
func hostView(ptr driver.DevicePtr, n int) []byte {
	at := uintptr(ptr)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), n)
}

// Bytes is the memory as the host sees it. It must not be used after Close, nor at the wrong moment: see HostAccess. It needs
// no driver, so it works in host functions too.
func (m *ManagedBuffer) Bytes() []byte {
	if m == nil || m.whole.res.closed() {
		return nil
	}
	return m.data
}

// ManagedSlice is m's memory as a slice of T, as many as fit. T must be free of Go pointers, or it panics.
func ManagedSlice[T any](m *ManagedBuffer) []T {
	mustBePlain[T]("ManagedSlice")
	return sliceOf[T](m.Bytes())
}

// Buffer is the same memory for the calls that take a *Buffer: copies, Memset, Slice. Closing either closes both.
func (m *ManagedBuffer) Buffer() *Buffer {
	if m == nil {
		return nil
	}
	return &m.whole
}

// Len is the size in bytes.
func (m *ManagedBuffer) Len() int { return m.Buffer().Len() }

// Context is the context that m was made in.
func (m *ManagedBuffer) Context() *Context { return m.Buffer().Context() }

// Close frees the memory, as Buffer.Close does. cuMemFree.
func (m *ManagedBuffer) Close() error { return m.Buffer().Close() }

// HostAccess reports whether the host may touch m's memory now: nil if so, and otherwise ErrHostAccess with the id of a stream
// that is active and what to wait for. Where the device supports concurrent managed access it is always nil. It may be called
// in a host function, whose stream counts as idle (CONTRACT HL-19, HL-20).
//
// A stream is active from the queuing of device work on it until the program has seen that completed, by a Sync, Wait, Query
// or event, or in a host function that is ordered behind it; device work behind a host function counts once that has returned.
//
// The software device can tell (see softcuda.Options). The NVIDIA driver cannot: ErrNotSupported on such a GPU.
func (m *ManagedBuffer) HostAccess() error {
	const op = "ManagedBuffer.HostAccess"
	if m == nil {
		return failf(op, ErrInvalidValue, "the buffer is nil")
	}
	if m.whole.res.closed() {
		return failf(op, ErrClosed, "the buffer is closed")
	}
	c := m.whole.ctx
	if c.concurrent {
		return nil
	}
	busy, r := c.drv.drv.HostAccess(c.raw, m.whole.ptr)
	switch r {
	case driver.Success:
		return nil
	case driver.ErrorNotReady:
		return failf(op, ErrHostAccess, "stream %d is active and may use the memory; wait for it (Stream.Sync), or for an event behind its work, or touch the memory in a host function behind it", busy)
	case driver.ErrorNotSupported:
		return failf(op, ErrNotSupported, "device %d has no concurrent managed access, and this driver does not tell which streams are active; wait for the streams that may use the memory", c.ordinal)
	}
	return c.result(op, r)
}
