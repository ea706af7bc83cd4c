//go:build linux && (amd64 || arm64)

package libcuda

import (
	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/ffi"
)

// noDestructorSync is CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, which must be said: no call waits until a destructor has run.
const noDestructorSync = 1

// UserObjectCreate implements driver.Graphs. The destructor is the entry of host functions, and its data this driver's tag and
// data.
func (nv *nvidia) UserObjectCreate(data uint64) (driver.UserObject, driver.Result) {
	return nv.userObjectCreate(uintptr(nv.tag|data), ffi.HostEntry(), 1, noDestructorSync)
}
