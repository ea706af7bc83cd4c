//go:build linux && (amd64 || arm64)

package libcuda

import (
	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/ffi"
)

// LaunchHostFunc implements driver.HostFunctions. What it hands to the driver is an integer: this driver's tag and data.
func (nv *nvidia) LaunchHostFunc(ctx driver.Context, s driver.Stream, data uint64) driver.Result {
	return nv.LaunchNativeHostFunc(ctx, s, ffi.HostEntry(), uintptr(nv.tag|data), 0)
}

// LaunchHostFuncMode implements driver.HostFunctions.
func (nv *nvidia) LaunchHostFuncMode(ctx driver.Context, s driver.Stream, data uint64, mode uint32) driver.Result {
	return nv.LaunchNativeHostFunc(ctx, s, ffi.HostEntry(), uintptr(nv.tag|data), mode)
}

// LaunchNativeHostFunc implements driver.HostFunctions: the driver itself calls fn. A driver without modes takes all functions alike.
//
// The function counts in Upcalls.Pending before it is launched; the failure watch relies on that to end without missing one.
func (nv *nvidia) LaunchNativeHostFunc(ctx driver.Context, s driver.Stream, fn, data uintptr, mode uint32) (r driver.Result) {
	if mode == 0 || nv.fns[fnLaunchHostFunc_v2] == 0 {
		r = nv.launchUnbound(ctx, s, fn, data)
	} else {
		r = nv.launchHostFuncMode(ctx, s, fn, data, mode)
	}
	if r == driver.Success {
		nv.watch(ctx)
	}
	return r
}

// runHostFunc is called on the driver's thread.
func (nv *nvidia) runHostFunc(data uint64) { nv.upcalls.Load().HostFunc(data) }

// launchUnbound launches without making ctx current, which a stream's own handle needs no more: seen on driver 580 (CUDA
// 13.0), and worth a tenth of a microsecond. A driver that does want it answers so, and is asked again.
func (nv *nvidia) launchUnbound(ctx driver.Context, s driver.Stream, fn, data uintptr) driver.Result {
	if s > driver.StreamPerThread {
		r := nv.launchHostFunc(0, s, fn, data)
		if r != driver.ErrorInvalidContext && r != driver.ErrorInvalidHandle {
			return r
		}
	}
	return nv.launchHostFunc(ctx, s, fn, data)
}
