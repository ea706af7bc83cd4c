//go:build linux && (amd64 || arm64)

package libcuda

import (
	"runtime"

	"github.com/hostlaunch/cuda/internal/driver"
)

// CtxCreate implements driver.OwnContexts. The driver puts a new context on the calling thread's stack, so it is taken off
// there again, which brings back what was current. The context is made ready to be watched, like a primary one.
func (nv *nvidia) CtxCreate(flags uint32, d driver.Device) (driver.Context, driver.Result) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, r := nv.ctxCreate(flags, d)
	if r != driver.Success {
		return 0, r
	}
	if _, r = nv.ctxPopCurrent(); r == driver.Success {
		r = nv.makeReady(nv.contexts.get(ctx))
	}
	if r != driver.Success {
		nv.CtxDestroy(ctx)
		return 0, r
	}
	return ctx, driver.Success
}

// CtxDestroy implements driver.OwnContexts.
func (nv *nvidia) CtxDestroy(ctx driver.Context) driver.Result {
	if w := nv.contexts.remove(ctx); w != nil {
		nv.unwatch(w)
	}
	return nv.ctxDestroy(ctx)
}
