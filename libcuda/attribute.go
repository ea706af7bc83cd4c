//go:build linux && (amd64 || arm64)

package libcuda

import (
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// StreamGetAttribute implements driver.StreamAttributes.
func (nv *nvidia) StreamGetAttribute(ctx driver.Context, s driver.Stream, attr int32) (driver.AttrValue, driver.Result) {
	v := new(driver.AttrValue)
	r := nv.streamGetAttribute(ctx, s, attr, unsafe.Pointer(v))
	return *v, r
}

// StreamSetAttribute implements driver.StreamAttributes.
func (nv *nvidia) StreamSetAttribute(ctx driver.Context, s driver.Stream, attr int32, v driver.AttrValue) driver.Result {
	return nv.streamSetAttribute(ctx, s, attr, unsafe.Pointer(&v))
}
