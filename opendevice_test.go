package cuda

import (
	"testing"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// twoDevices is a driver that takes its time over the second device.
type twoDevices struct {
	refusing
	asked, answer chan struct{}
}

func (*twoDevices) DeviceGetCount() (int, driver.Result) { return 2, 0 }

func (d *twoDevices) DevicePrimaryCtxRetain(i driver.Device) (driver.Context, driver.Result) {
	if i == 1 {
		close(d.asked)
		<-d.answer
	}
	return driver.Context(i + 1), 0
}

// TestDeviceBesideOpening: TK-03, a device that is open is had at once, though another is being opened: that may be waiting for the task
// that asks.
func TestDeviceBesideOpening(t *testing.T) {
	impl := &twoDevices{asked: make(chan struct{}), answer: make(chan struct{})}
	d, err := NewDriver(impl)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Device(0); err != nil {
		t.Fatal(err)
	}
	opened, again := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := d.Device(1)
		opened <- err
	}()
	<-impl.asked
	go func() {
		_, err := d.Device(0)
		again <- err
	}()
	select {
	case err := <-again:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(3 * time.Second):
		t.Error("Device(0) waits for Device(1)")
	}
	close(impl.answer)
	if err := <-opened; err != nil {
		t.Error(err)
	}
}
