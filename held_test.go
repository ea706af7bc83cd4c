package cuda

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

// heldArgs is a driver whose launch takes a while, in which the program closes what it has passed.
type heldArgs struct {
	refusing
	launching func()
	freed     atomic.Int32
}

func (*heldArgs) MemAlloc(driver.Context, uintptr) (driver.DevicePtr, driver.Result) { return 512, 0 }
func (h *heldArgs) MemFree(driver.Context, driver.DevicePtr) driver.Result {
	h.freed.Add(1)
	return 0
}
func (*heldArgs) ModuleLoadData(driver.Context, []byte) (driver.Module, string, driver.Result) {
	return 1, "", 0
}
func (h *heldArgs) ModuleUnload(driver.Context, driver.Module) driver.Result {
	h.freed.Add(1)
	return 0
}
func (*heldArgs) ModuleGetFunction(driver.Context, driver.Module, string) (driver.Function, driver.Result) {
	return 1, 0
}
func (*heldArgs) FuncGetParamInfo(driver.Context, driver.Function, int) (uintptr, uintptr, driver.Result) {
	return 0, 0, driver.ErrorNotSupported
}
func (h *heldArgs) LaunchKernel(driver.Context, driver.Function, *driver.Launch, driver.Stream) (string, driver.Result) {
	h.launching()
	return "", 0
}

// What a launch is given stays open until the driver has it, though the program closes it meanwhile.
func TestLaunchHoldsBuffers(t *testing.T) {
	h := new(heldArgs)
	d, err := NewDriver(h)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := dev.Alloc(64)
	m, err2 := dev.LoadModule([]byte("x"))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	k, err := m.Kernel("k")
	if err != nil {
		t.Fatal(err)
	}
	h.launching = func() {
		if err := errors.Join(b.Close(), m.Close()); err != nil {
			t.Error(err)
		}
		if n := h.freed.Load(); n != 0 {
			t.Errorf("%d of buffer and module were freed under the launch", n)
		}
	}
	if err := dev.DefaultStream().Launch(k, Grid1D(1, 1), b); err != nil {
		t.Error(err)
	}
	if n := h.freed.Load(); n != 2 {
		t.Errorf("%d of buffer and module were freed after the launch, want both", n)
	}
}
