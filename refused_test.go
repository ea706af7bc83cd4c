package cuda

import (
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// refusing is a driver that refuses host functions with a result of its own choosing. It has one device and one stream.
type refusing struct {
	driver.Driver
	up     driver.Upcalls
	result driver.Result
	during func() // called while the driver refuses
}

func (*refusing) Name() string                                                 { return "refusing" }
func (*refusing) DriverGetVersion() (int, driver.Result)                       { return 12000, 0 }
func (*refusing) DeviceGetCount() (int, driver.Result)                         { return 1, 0 }
func (*refusing) DeviceGetName(driver.Device) (string, driver.Result)          { return "none", 0 }
func (*refusing) DeviceGetAttribute(int32, driver.Device) (int, driver.Result) { return 0, 0 }
func (*refusing) InHostFunction() bool                                         { return false }
func (*refusing) Shut()                                                        {}
func (*refusing) CtxSynchronize(driver.Context) driver.Result                  { return 0 }
func (*refusing) DevicePrimaryCtxRelease(driver.Device) driver.Result          { return 0 }
func (r *refusing) Attach(up driver.Upcalls)                                   { r.up = up }
func (*refusing) DevicePrimaryCtxRetain(driver.Device) (driver.Context, driver.Result) {
	return 7, 0
}
func (*refusing) ThreadExchangeStreamCaptureMode(driver.CaptureMode) (driver.CaptureMode, driver.Result) {
	return 0, 0
}
func (r *refusing) LaunchHostFunc(driver.Context, driver.Stream, uint64) driver.Result {
	if r.during != nil {
		r.during()
	}
	return r.result
}

func refusingStream(t *testing.T, impl *refusing, opts ...Option) *Stream {
	t.Helper()
	return deviceOf(t, impl, opts...).DefaultStream()
}

// deviceOf is the first device of a Driver by impl, which is closed when the test ends.
func deviceOf(t testing.TB, impl driver.Driver, opts ...Option) *Device {
	t.Helper()
	d, err := NewDriver(impl, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

// HL-16: what the driver refuses is released, never runs, and the error says so.
func TestRefusedByDriver(t *testing.T) {
	s := refusingStream(t, &refusing{result: driver.ErrorInvalidHandle})
	var collected atomic.Bool
	func() {
		data := new([64]byte)
		runtime.AddCleanup(data, func(int) { collected.Store(true) }, 0)
		err := HostLaunch(s, func() { data[0]++ }, OnDone(func(error) { t.Error("OnDone was called") }))
		if !errors.Is(err, ErrInvalidHandle) || !strings.Contains(err.Error(), "will not run") {
			t.Errorf("error %v", err)
		}
	}()
	if st := s.Context().drv.Stats(); st.Waiting != 0 {
		t.Errorf("%d functions wait", st.Waiting)
	}
	for deadline := time.Now().Add(5 * time.Second); !collected.Load(); time.Sleep(time.Millisecond) {
		if runtime.GC(); time.Now().After(deadline) {
			t.Fatal("what the function captured is still held")
		}
	}
}

// A function that the sweep of a lost context resolved while the driver was refusing it counts as queued: told once.
func TestRefusedWhileSwept(t *testing.T) {
	impl := &refusing{result: driver.ErrorIllegalAddress}
	told := make(chan error, 2)
	s := refusingStream(t, impl)
	impl.during = func() {
		impl.up.Lost(7, driver.ErrorIllegalAddress)
		<-s.Context().drv.reports.idle() // the sweep is through
	}
	err := HostLaunch(s, func() { t.Error("ran") }, OnDone(func(err error) { told <- err }))
	if err != nil {
		t.Errorf("HostLaunch = %v", err)
	}
	var lost *LostError
	if err := <-told; !errors.As(err, &lost) || !errors.Is(err, ErrDeviceLost) || !strings.Contains(lost.Site, "refused_test.go:") {
		t.Errorf("told %v", err)
	}
	if len(told) > 0 {
		t.Error("told twice")
	}
}
