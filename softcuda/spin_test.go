package softcuda

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
)

// TestSpinBeside: while a function of mode Spin runs on a goroutine of the library, another one looks; so a function may even wait for
// that of another stream, which the driver's own thread would never come to.
func TestSpinBeside(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	d, err := NewSpinning(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	const streams = 4
	var came [streams + 1]chan struct{}
	for i := range came {
		came[i] = make(chan struct{})
	}
	gate := make(chan struct{})
	for i := range streams {
		s, err := dev.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		if err := cuda.HostLaunch(s, func() { <-gate }); err != nil { // so that all are pending before the first runs
			t.Fatal(err)
		}
		if err := cuda.HostLaunch(s, func() { <-came[i+1]; close(came[i]) }, cuda.SyncMode(cuda.Spin)); err != nil {
			t.Fatal(err)
		}
	}
	close(gate)
	close(came[streams])
	select {
	case <-came[0]:
	case <-time.After(5 * time.Second):
		t.Fatal("nobody took over the looking")
	}
}

// TestSpinManaged: where the host may touch managed memory only while the device rests, the device must know of the functions, and
// runs those of mode Spin itself: one at a time.
func TestSpinManaged(t *testing.T) {
	d, err := NewSpinning(Options{NoConcurrentManagedAccess: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	a, err := dev.NewStream()
	b, err2 := dev.NewStream()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	entered, other := make(chan struct{}), make(chan struct{})
	beside := false
	first := func() {
		close(entered)
		select {
		case <-other:
			beside = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := cuda.HostLaunch(a, first, cuda.SyncMode(cuda.Spin)); err != nil {
		t.Fatal(err)
	}
	<-entered
	if err := cuda.HostLaunch(b, func() { close(other) }, cuda.SyncMode(cuda.Spin)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Sync(), b.Sync()); err != nil {
		t.Fatal(err)
	}
	if beside {
		t.Error("the library ran the function, and the device does not know of it")
	}
}
