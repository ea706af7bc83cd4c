//go:build linux && (amd64 || arm64)

package libcuda

import (
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/ffi"
)

// DeviceGetDevResource implements driver.GreenContexts.
func (nv *nvidia) DeviceGetDevResource(d driver.Device, typ uint32) (driver.DevResource, driver.Result) {
	res := new(driver.DevResource)
	r := nv.deviceGetDevResource(d, unsafe.Pointer(res), typ)
	return *res, r
}

// GreenCtxGetDevResource implements driver.GreenContexts.
func (nv *nvidia) GreenCtxGetDevResource(g driver.GreenContext, typ uint32) (driver.DevResource, driver.Result) {
	res := new(driver.DevResource)
	r := nv.greenCtxGetDevResource(g, unsafe.Pointer(res), typ)
	return *res, r
}

// StreamGetDevResource implements driver.GreenContexts.
func (nv *nvidia) StreamGetDevResource(ctx driver.Context, s driver.Stream, typ uint32) (driver.DevResource, driver.Result) {
	res := new(driver.DevResource)
	r := nv.streamGetDevResource(ctx, s, unsafe.Pointer(res), typ)
	return *res, r
}

// DevResourceGenerateDesc implements driver.GreenContexts.
func (nv *nvidia) DevResourceGenerateDesc(resources []driver.DevResource) (driver.ResourceDesc, driver.Result) {
	return nv.devResourceGenerateDesc(unsafe.Pointer(unsafe.SliceData(resources)), uint32(len(resources)))
}

// split is what cuDevSmResourceSplitByCount reads and writes beside the parts.
type split struct {
	groups   uint32
	in, rest driver.DevResource
}

// DevSmResourceSplitByCount implements driver.GreenContexts.
func (nv *nvidia) DevSmResourceSplitByCount(in *driver.DevResource, groups int, flags, minCount uint32) ([]driver.DevResource, driver.DevResource, driver.Result) {
	parts := make([]driver.DevResource, groups)
	m := &split{groups: uint32(groups), in: *in}
	c := ffi.NewCall()
	defer c.Free()
	c.Keep[0], c.Keep[1] = unsafe.Pointer(unsafe.SliceData(parts)), unsafe.Pointer(m)
	at := uintptr(c.Keep[1])
	c.Args[0], c.Args[1] = uintptr(c.Keep[0]), at+unsafe.Offsetof(m.groups)
	c.Args[2], c.Args[3] = at+unsafe.Offsetof(m.in), at+unsafe.Offsetof(m.rest)
	c.Args[4], c.Args[5] = uintptr(flags), uintptr(minCount)
	r := nv.call(c, 0, fnDevSmResourceSplitByCount, 6)
	if r != driver.Success {
		return nil, driver.DevResource{}, r
	}
	return parts[:min(m.groups, uint32(groups))], m.rest, r
}
