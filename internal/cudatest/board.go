package cudatest

import (
	"errors"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
)

// board is a driver made ready for cases: its kernels are loaded, since loading can wait for a host function that runs, and
// host functions have run, so that the driver's threads for them exist.
type board struct {
	Driver  *cuda.Driver
	modules map[*cuda.Context]*cuda.Module
}

// newBoard opens a driver, or skips the test. It is closed when the test ends.
func newBoard(t *testing.T, cfg Config, opts ...cuda.Option) *board {
	t.Helper()
	b := &board{Driver: open(t, cfg, opts...), modules: map[*cuda.Context]*cuda.Module{}}
	t.Cleanup(func() { b.Driver.Close() })
	for i := range b.Driver.DeviceCount() {
		if err := b.prepare(i, cfg.PTX); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *board) prepare(device int, ptx []byte) error {
	dev, err := b.Driver.Device(device)
	if err != nil {
		return err
	}
	if b.modules[dev.Context], err = dev.LoadModule(ptx); err != nil {
		return err
	}
	s := dev.DefaultStream()
	if err := cuda.HostLaunch(s, func() {}); err != nil {
		return err
	}
	if err := s.Sync(); err != nil {
		return err
	}
	return b.destructors(dev)
}

// destructors has the driver make the thread that tells when an executable graph is gone: which it does for the first that is
// closed while a launch of it is under way.
func (b *board) destructors(dev *cuda.Device) error {
	s, err := dev.NewStream()
	if err != nil {
		return err
	}
	defer s.Close()
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(c *cuda.GraphBuilder) error {
		return cuda.HostLaunch(c, func() { time.Sleep(5 * time.Millisecond) })
	})
	if err != nil {
		return err
	}
	defer g.Close()
	x, err := g.Instantiate()
	if err != nil {
		return err
	}
	if err := errors.Join(x.Launch(s), x.Close(), g.Close(), s.Sync()); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Second); b.Driver.Stats().UserObjects > 0 && time.Now().Before(deadline); {
		time.Sleep(100 * time.Microsecond)
	}
	return nil
}
