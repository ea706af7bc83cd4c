package cuda

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// losing is a driver whose context fails while a graph is launched.
type losing struct {
	recapturing
	launching func()
}

func (d *losing) GraphLaunch(driver.Context, driver.GraphExec, driver.Stream) driver.Result {
	d.launching()
	return driver.ErrorIllegalAddress
}

// TestLaunchHalfSwept: the context fails during a launch, and the sweep has come to some of the functions when the driver
// refuses it. The launch counts as queued, so all functions are told, once.
func TestLaunchHalfSwept(t *testing.T) {
	const functions = 3
	impl := new(losing)
	d, err := NewDriver(impl)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	var told [functions]atomic.Int32
	g, err := Capture(dev.DefaultStream(), CaptureRelaxed, func(b *GraphBuilder) error {
		for i := range told {
			done := OnDone(func(err error) {
				told[i].Add(1)
				if lost := new(LostError); !errors.As(err, &lost) || !errors.Is(err, ErrDeviceLost) {
					t.Errorf("told %v", err)
				}
			})
			if err := HostLaunch(b, func() {}, done); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	x, err := g.Instantiate()
	if err != nil {
		t.Fatal(err)
	}
	impl.launching = func() { // what fail does, but no further than the second function
		why := dev.lostError("HostLaunch", driver.ErrorIllegalAddress)
		dev.funcs.Fail(why)
		d.funcs.Shut(&dev.funcs)
		fn, ok := d.funcs.StartKept(x.state.hosts[1])
		if !ok {
			t.Error("the second function is not expected to run")
		}
		d.resolve(fn, neverRan(fn, why))
		d.funcs.FinishKept(x.state.hosts[1])
	}
	if err := x.Launch(dev.DefaultStream()); err != nil {
		t.Errorf("a launch of which a function was told: %v", err)
	}
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline) && told[0].Load()*told[2].Load() == 0; {
		time.Sleep(time.Millisecond)
	}
	x.Close()
	g.Close()
	d.Close()
	for i := range told {
		if n := told[i].Load(); n != 1 {
			t.Errorf("function %d was told %d times", i, n)
		}
	}
}

// failing is a driver whose context has failed while a function runs: nothing waits for that any more.
type failing struct{ recapturing }

func (*failing) CtxSynchronize(driver.Context) driver.Result { return driver.ErrorIllegalAddress }
func (*failing) GraphLaunch(driver.Context, driver.GraphExec, driver.Stream) driver.Result {
	return 0
}

// TestCloseAwaitsHostNode: LI-01, nothing of ours runs after Close, also where the driver does not wait.
func TestCloseAwaitsHostNode(t *testing.T) {
	impl := new(failing)
	d, err := NewDriver(impl)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	s, entered, open := dev.DefaultStream(), make(chan struct{}), make(chan struct{})
	var ended atomic.Bool
	g, err := Capture(s, CaptureRelaxed, func(b *GraphBuilder) error {
		return HostLaunch(b, func() { close(entered); <-open; ended.Store(true) })
	})
	if err != nil {
		t.Fatal(err)
	}
	x, err := g.Instantiate()
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Launch(s); err != nil {
		t.Fatal(err)
	}
	go impl.up.HostFunc(impl.node)
	<-entered
	time.AfterFunc(20*time.Millisecond, func() { close(open) })
	d.Close()
	if !ended.Load() {
		t.Error("Close has returned, and the function runs")
	}
}
