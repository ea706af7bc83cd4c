package cudatest

import (
	"testing"

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
	return s.Sync()
}
