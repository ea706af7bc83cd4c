package cuda

import (
	"runtime"
	"testing"

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
