//go:build linux && (amd64 || arm64)

package libcuda

import "github.com/hostlaunch/cuda/internal/driver"

// HostAccess implements driver.ManagedMemory: the NVIDIA driver does not tell.
func (nv *nvidia) HostAccess(driver.Context, driver.DevicePtr) (uint64, driver.Result) {
	return 0, driver.ErrorNotSupported
}
