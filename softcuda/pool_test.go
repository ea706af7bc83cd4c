package softcuda

import (
	gocontext "context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
)

// counting is a machine that counts its events.
type counting struct {
	*machine
	made, destroyed, wrong atomic.Int32
}

func (c *counting) EventCreate(ctx driver.Context, flags uint32) (driver.Event, driver.Result) {
	e, r := c.machine.EventCreate(ctx, flags)
	if r == driver.Success {
		c.made.Add(1)
	}
	return e, r
}

func (c *counting) EventDestroy(ctx driver.Context, e driver.Event) driver.Result {
	r := c.machine.EventDestroy(ctx, e)
	if r == driver.Success {
		c.destroyed.Add(1)
	} else {
		c.wrong.Add(1)
	}
	return r
}

// TestPoolEvents: the events that the library makes for itself are used again, and destroyed at last, each once: whether the
// wait came to its end, was cancelled, or was still on when the Driver was closed.
func TestPoolEvents(t *testing.T) {
	c := &counting{machine: newMachine(Options{})}
	d, err := cuda.NewDriver(c)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := dev.NewStream()
	other, err2 := dev.NewStream()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err := errors.Join(s.Wait(t.Context()), other.WaitStream(s)); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.made.Load(); n > 2 {
		t.Errorf("%d events were made for waits that came one by one", n)
	}
	gate := make(chan struct{})
	if err := cuda.HostLaunch(s, func() { <-gate }); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		ctx, cancel := gocontext.WithTimeout(t.Context(), time.Duration(i)*100*time.Microsecond)
		if err := s.Wait(ctx); !errors.Is(err, gocontext.DeadlineExceeded) {
			t.Fatal(err)
		}
		cancel()
	}
	on := make(chan error)
	for range 5 {
		go func() { on <- s.Wait(gocontext.Background()) }()
	}
	time.Sleep(5 * time.Millisecond)
	go func() {
		time.Sleep(5 * time.Millisecond)
		close(gate)
	}()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for range 5 {
		if err := <-on; err != nil && !errors.Is(err, cuda.ErrClosed) {
			t.Error(err)
		}
	}
	if made, destroyed := c.made.Load(), c.destroyed.Load(); made != destroyed || c.wrong.Load() != 0 || len(c.events) != 0 {
		t.Errorf("%d events made, %d destroyed, %d destroyed twice, %d left", made, destroyed, c.wrong.Load(), len(c.events))
	}
}
