//go:build linux && (amd64 || arm64)

package libcuda

import (
	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/ffi"
)

// LaunchHostFunc implements driver.HostFunctions. What it hands to the driver is an integer: this driver's tag and data.
//
// The function counts in Upcalls.Pending before it is launched; the failure watch relies on that to end without missing one.
func (nv *nvidia) LaunchHostFunc(ctx driver.Context, s driver.Stream, data uint64) driver.Result {
	r := nv.launchHostFunc(ctx, s, ffi.HostEntry(), uintptr(nv.tag|data))
	if r == driver.Success {
		nv.watch(ctx)
	}
	return r
}

// runHostFunc is called on the driver's thread.
func (nv *nvidia) runHostFunc(data uint64) { nv.upcalls.Load().HostFunc(data) }
