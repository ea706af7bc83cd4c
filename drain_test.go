package cuda

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// TestDrainSoon: while something waits to be closed, calls do not pile up goroutines that are to close it, each of which would
// need a thread.
func TestDrainSoon(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that none of them gets to run soon
	d, err := NewDriver(new(heldArgs))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	r := newResource(dev.Context, "Event", 0, func() driver.Result {
		close(closed)
		return driver.Success
	})
	before := runtime.NumGoroutine()
	d.retired.push(retired{r, false})
	for range 500 {
		d.drainSoon()
	}
	if more := runtime.NumGoroutine() - before; more > 2 {
		t.Errorf("500 calls have started %d goroutines", more)
	}
	<-closed
}

// lingering is a driver that takes its time over a thread's capture mode.
type lingering struct {
	refusing
	calls        atomic.Int32
	came, answer chan struct{}
}

func (d *lingering) ThreadExchangeStreamCaptureMode(driver.CaptureMode) (driver.CaptureMode, driver.Result) {
	if d.calls.Add(1) == 2 { // the end of the first drain
		close(d.came)
		<-d.answer
	}
	return 0, 0
}

// TestCloseWaitsForDrain: LI-01, who closes what was dropped is done with the driver when Close returns.
func TestCloseWaitsForDrain(t *testing.T) {
	impl := &lingering{came: make(chan struct{}), answer: make(chan struct{})}
	d := deviceOf(t, impl).drv
	d.retired.push(retired{newResource(d.devices[0].Context, "Event", 0, func() driver.Result { return driver.Success }), false})
	d.drainSoon()
	<-impl.came
	closed := make(chan error)
	go func() { closed <- d.Close() }()
	select {
	case <-closed:
		t.Fatal("Close has returned, and a goroutine of the library is in a call of the driver")
	case <-time.After(50 * time.Millisecond):
	}
	close(impl.answer)
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
