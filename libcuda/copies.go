//go:build linux && (amd64 || arm64)

package libcuda

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/ffi"
)

// Memcpy2DAsync implements driver.MoreMemory.
func (nv *nvidia) Memcpy2DAsync(ctx driver.Context, c *driver.Copy2D, s driver.Stream) driver.Result {
	return nv.memcpy2DAsync(ctx, unsafe.Pointer(c), s)
}

// WatchContext implements driver.HostCopies.
func (nv *nvidia) WatchContext(ctx driver.Context) { nv.watch(ctx) }

// HostCall implements driver.HostCopies.
func (nv *nvidia) HostCall(fn, data uintptr) bool {
	if fn == 0 {
		return false
	}
	ffi.CallHost(fn, data)
	return true
}

// HostPrepare implements driver.HostCopies: it has the kernel back memory that was never touched with huge pages, where it may
// choose. Otherwise page faults set the rate of a copy there: 11 GB/s, where touched memory takes 50 (facts/h200.md).
func (nv *nvidia) HostPrepare(p unsafe.Pointer, n uintptr) {
	const huge, adviseHuge, worth = 2 << 20, 14 /* MADV_HUGEPAGE */, 8 << 20
	if n < worth {
		return
	}
	skip := -uintptr(p) % huge
	inside := (n - skip) / huge * huge
	syscall.RawSyscall(syscall.SYS_MADVISE, uintptr(unsafe.Add(p, skip)), inside, adviseHuge) // refused: the copy is slower
}

// HostPause implements driver.HostCopies.
func (nv *nvidia) HostPause(d time.Duration) {
	if d <= 0 { // the caller looks at memory, which takes its time
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer exactSleep()()
	nap(d)
}
