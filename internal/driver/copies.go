package driver

import (
	"time"
	"unsafe"
)

// MemHostRegisterPortable makes registered memory pinned for every context.
const MemHostRegisterPortable uint32 = 1

// Copy2D is a CUDA_MEMCPY2D, laid out as the driver wants it: 128 bytes. Each end is Host or Device, as its Type says.
type Copy2D struct {
	Src, Dst      Copy2DEnd
	Width, Height uintptr // bytes of a row, and rows
}

// Copy2DEnd is one end of a Copy2D.
type Copy2DEnd struct {
	X, Y   uintptr // where the copy begins: bytes within a row, and rows
	Type   MemoryType
	_      uint32
	Host   unsafe.Pointer
	Device DevicePtr
	Array  uintptr
	Pitch  uintptr // bytes from one row's beginning to the next one's
}

// The struct is handed to the driver as it is.
var _ [128 - unsafe.Sizeof(Copy2D{})]byte
var _ [unsafe.Sizeof(Copy2D{}) - 128]byte

// Bytes is how far an end's memory reaches.
func (e *Copy2DEnd) Bytes(c *Copy2D) uintptr {
	if c.Width == 0 || c.Height == 0 {
		return 0
	}
	return (e.Y+c.Height-1)*e.Pitch + e.X + c.Width
}

// MoreMemory is the rest of the memory management section that copies need.
type MoreMemory interface {
	// MemHostRegister page-locks memory of the program, which stays until MemHostUnregister.
	MemHostRegister(ctx Context, p unsafe.Pointer, size uintptr, flags uint32) Result
	MemHostUnregister(Context, unsafe.Pointer) Result
	// Memcpy2DAsync copies rows. Both ends are pinned or device memory.
	Memcpy2DAsync(ctx Context, c *Copy2D, s Stream) Result
	// MemcpyPeerAsync copies between the memory of two contexts, perhaps of two devices; s belongs to ctx.
	MemcpyPeerAsync(ctx Context, dst DevicePtr, dstCtx Context, src DevicePtr, srcCtx Context, size uintptr, s Stream) Result
}

// HostCopies are what the library's copying goroutines need of a driver. None of it is CUDA's, and none of it waits for the
// driver: they go on whatever calls of the program the driver holds up.
type HostCopies interface {
	// HostCall calls the C function `void fn(void *data)`, which may take long, without holding a P meanwhile, so that neither
	// GOMAXPROCS nor the garbage collector has a part in it. false: it was not called, and its like in Go is to be.
	HostCall(fn, data uintptr) bool
	// HostPrepare says that the range is about to be overwritten whole.
	HostPrepare(p unsafe.Pointer, size uintptr)
	// HostPause lets about d pass, as exactly as can be had; a thread may sleep for it, so it is for less than some 100 µs. 0 need not
	// take any time: it is for a caller that looks at memory in between, and others may run meanwhile.
	HostPause(d time.Duration)
	// WatchContext has Upcalls.Lost called should ctx fail while Upcalls.Pending is not 0, even if nobody calls the driver.
	WatchContext(ctx Context)
}
