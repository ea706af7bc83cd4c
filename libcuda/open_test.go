//go:build linux && (amd64 || arm64)

package libcuda

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
)

// TestOpen goes through the public face once.
func TestOpen(t *testing.T) {
	newFake(t)
	d, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	if d.Name() != "nvidia" || d.DeviceCount() != 2 || d.Version() != cuda.Version(13000) {
		t.Errorf("%s, %d devices, CUDA %v", d.Name(), d.DeviceCount(), d.Version())
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestReopen: a driver's way back is given up with it; there are only 255 at a time.
func TestReopen(t *testing.T) {
	newFake(t)
	for range 300 {
		nv, err := open()
		if err != nil {
			t.Fatal(err)
		}
		nv.Shut()
		nv.Shut() // does nothing
	}
}

// TestOpenClose: a hundred drivers, each of which ran a host function and told of an event, leave no thread and no goroutine
// (CONTRACT LI-03).
func TestOpenClose(t *testing.T) {
	f := newFake(t)
	cycle := func() {
		h := new(host)
		nv := f.open(h.upcalls())
		nv.DevicePrimaryCtxRetain(0)
		h.launch(t, nv, 1)
		var told atomic.Bool
		nv.NotifyEvent(ctx, event, func(driver.Result) { told.Store(true) })
		eventually(t, 10*time.Second, "event and host function", func() bool { return told.Load() && h.pending.Load() == 0 })
		nv.DevicePrimaryCtxRelease(0)
		nv.Shut()
	}
	for range 10 { // the runtime makes its threads
		cycle()
	}
	before, goroutines := threads(t), runtime.NumGoroutine()
	for range 100 {
		cycle()
	}
	// The runtime may start a thread for reasons of its own; a hundred cycles must not.
	if now := threads(t); now > before+3 {
		t.Errorf("%d threads before, %d after", before, now)
	}
	eventually(t, 5*time.Second, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= goroutines })
	if n := f.get(knobStreams); n != 0 {
		t.Errorf("%d private streams left", n)
	}
}
