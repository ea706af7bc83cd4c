//go:build linux && (amd64 || arm64)

package libcuda

import (
	"os"
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/seamtest"
)

// TestSeam needs a GPU.
func TestSeam(t *testing.T) {
	nv, err := open()
	if err == nil {
		if n, r := nv.DeviceGetCount(); n == 0 || r != driver.Success {
			t.Skipf("no GPU: %d devices, %d", n, r)
		}
	} else if required := os.Getenv("HOSTLAUNCH_REQUIRE_GPU"); required != "" && required != "0" {
		t.Fatal(err)
	} else {
		t.Skipf("no GPU: %v", err)
	}
	defer nv.Shut()
	nv.Attach(driver.Upcalls{HostFunc: func(uint64) {}, Callback: func(uint64, driver.Result) {}, Pending: func(driver.Context) int { return 0 }})
	seamtest.Run(t, nv)
}
