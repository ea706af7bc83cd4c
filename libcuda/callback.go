//go:build linux && (amd64 || arm64)

package libcuda

import (
	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/ffi"
)

// StreamAddCallback implements driver.Callbacks. The driver itself runs callbacks of a context that has failed; the watch is
// there for the case that it does not.
func (nv *nvidia) StreamAddCallback(ctx driver.Context, s driver.Stream, data uint64, flags uint32) driver.Result {
	r := nv.streamAddCallback(ctx, s, ffi.StatusEntry(), uintptr(nv.tag|data), flags)
	if r == driver.Success {
		nv.watch(ctx)
	}
	return r
}

// runCallback is called on the driver's thread.
func (nv *nvidia) runCallback(data uint64, r int32) {
	nv.upcalls.Load().Callback(data, driver.Result(r))
}
