//go:build linux && (amd64 || arm64)

package libcuda

import (
	"bytes"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// DeviceGetName implements driver.Devices.
func (nv *nvidia) DeviceGetName(d driver.Device) (string, driver.Result) {
	name := new([256]byte)
	r := nv.deviceGetName(unsafe.Pointer(name), int32(len(name)), d)
	return text(name[:]), r
}

// DevicePrimaryCtxRetain implements driver.Devices. The context is made ready to be watched: later, while a stream is held,
// making a stream may wait for that.
func (nv *nvidia) DevicePrimaryCtxRetain(d driver.Device) (driver.Context, driver.Result) {
	ctx, r := nv.devicePrimaryCtxRetain(d)
	if r != driver.Success {
		return 0, r
	}
	if r = nv.makeReady(nv.contexts.retain(ctx, d)); r != driver.Success {
		nv.DevicePrimaryCtxRelease(d)
		return 0, r
	}
	return ctx, driver.Success
}

// DevicePrimaryCtxRelease implements driver.Devices.
func (nv *nvidia) DevicePrimaryCtxRelease(d driver.Device) driver.Result {
	if w := nv.contexts.release(d); w != nil {
		nv.unwatch(w)
	}
	return nv.devicePrimaryCtxRelease(d)
}

// StreamGetDevice implements driver.Streams, also on drivers before CUDA 12.8, by way of the stream's context.
func (nv *nvidia) StreamGetDevice(ctx driver.Context, s driver.Stream) (driver.Device, driver.Result) {
	if nv.fns[fnStreamGetDevice] != 0 {
		return nv.streamGetDevice(ctx, s)
	}
	of, r := nv.StreamGetCtx(ctx, s)
	if r != driver.Success {
		return 0, r
	}
	return nv.ctxGetDevice(of)
}

// text is what the driver wrote into b: a C string.
func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
