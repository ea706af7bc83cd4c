package softcuda

import (
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/seamtest"
)

func TestSeam(t *testing.T) {
	m := newMachine(Options{})
	m.Attach(driver.Upcalls{
		HostFunc: func(uint64) {}, Callback: func(uint64, driver.Result) {}, Lost: func(driver.Context, driver.Result) {},
	})
	seamtest.Run(t, m)
	if r := m.LaunchHostFuncMode(0, driver.StreamLegacy, 1, 2); r != driver.ErrorInvalidValue {
		t.Errorf("sync mode 2: %d", r)
	}
	m.Shut()
}
