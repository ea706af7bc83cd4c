//go:build linux && (amd64 || arm64)

package libcuda

import (
	"fmt"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/ffi"
)

// LaunchKernel implements driver.Modules.
func (nv *nvidia) LaunchKernel(ctx driver.Context, f driver.Function, l *driver.Launch, s driver.Stream) (why string, r driver.Result) {
	c := ffi.NewCall()
	defer c.Free()
	for i := range 3 {
		c.Args[1+i], c.Args[4+i] = uintptr(l.Grid[i]), uintptr(l.Block[i])
	}
	c.Args[0], c.Args[7], c.Args[8], c.Args[10] = uintptr(f), uintptr(l.SharedMem), uintptr(s), 0
	params, why := parameters(c, l)
	if why != "" {
		return why, driver.ErrorInvalidValue
	}
	c.Args[9] = params
	if r = nv.call(c, ctx, fnLaunchKernel, 11); r == driver.ErrorInvalidValue {
		why = nv.refusal(ctx, l)
	}
	return why, r
}

// parameters returns the address of an array of the parameters' addresses. c keeps both it and the parameters.
func parameters(c *ffi.Call, l *driver.Launch) (array uintptr, why string) {
	if len(l.Offsets) == 0 {
		return 0, ""
	}
	addresses := make([]uintptr, len(l.Offsets))
	c.Keep[0], c.Keep[1] = unsafe.Pointer(unsafe.SliceData(l.Params)), unsafe.Pointer(&addresses[0])
	for i, at := range l.Offsets {
		if int(at) >= len(l.Params) {
			return 0, fmt.Sprintf("parameter %d is at offset %d of %d bytes", i, at, len(l.Params))
		}
		addresses[i] = uintptr(c.Keep[0]) + uintptr(at)
	}
	return uintptr(c.Keep[1]), ""
}

// A limit is a device attribute that bounds a launch.
type limit struct {
	what string
	attr int32 // CU_DEVICE_ATTRIBUTE_MAX_...
	used uint64
}

// refusal says which of the launch's dimensions the device does not allow, if it is that.
func (nv *nvidia) refusal(ctx driver.Context, l *driver.Launch) string {
	threads := uint64(1)
	var limits []limit
	for i, axis := range []string{"x", "y", "z"} {
		if l.Grid[i] == 0 || l.Block[i] == 0 {
			return fmt.Sprintf("grid %v, block %v: no dimension may be 0; use 1", l.Grid, l.Block)
		}
		threads *= uint64(l.Block[i])
		limits = append(limits,
			limit{"block." + axis, 2 + int32(i), uint64(l.Block[i])}, // MAX_BLOCK_DIM_X, Y, Z
			limit{"grid." + axis, 5 + int32(i), uint64(l.Grid[i])})   // MAX_GRID_DIM_X, Y, Z
	}
	limits = append(limits,
		limit{"threads in a block", driver.AttrMaxThreadsPerBlock, threads},
		limit{"bytes of shared memory", driver.AttrMaxSharedMemoryPerBlock, uint64(l.SharedMem)})
	d, r := nv.ctxGetDevice(ctx)
	if r != driver.Success {
		return ""
	}
	for _, m := range limits {
		if most, r := nv.DeviceGetAttribute(m.attr, d); r == driver.Success && m.used > uint64(most) {
			return fmt.Sprintf("%d %s: the device allows %d", m.used, m.what, most)
		}
	}
	return ""
}
