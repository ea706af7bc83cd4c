package softcuda

import (
	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/native"
)

// spinning is a machine without a mode Spin of its own, so that package cuda has to make up for it.
type spinning struct{ *machine }

func (spinning) EmulateSpin() bool { return true }

// spinningInjected is spinning with faults.
type spinningInjected struct{ injecting }

func (spinningInjected) EmulateSpin() bool { return true }

// NewSpinning is New for a device whose mode Spin is the library's.
func NewSpinning(o Options, opts ...cuda.Option) (*cuda.Driver, error) {
	m := newMachine(o)
	if o.Faults == nil {
		return cuda.NewDriver(spinning{m}, opts...)
	}
	o.Faults.bind(m, o.Seed)
	return cuda.NewDriver(spinningInjected{injecting{m, o.Faults}}, opts...)
}

// calling is a machine whose copying workers call native functions, as those of NVIDIA's driver do.
type calling struct{ *machine }

func (calling) HostCall(fn, data uintptr) bool { return native.Call(fn, data) }

// NewCalling is New for a device whose copies are made by native workers, where the program can call C.
func NewCalling(o Options, opts ...cuda.Option) (*cuda.Driver, error) {
	return cuda.NewDriver(calling{newMachine(o)}, opts...)
}

// stampless is a machine that tells no times but by events.
type stampless struct{ driver.Driver }

// NewWithoutStamps is New for a device of which package cuda takes times by events.
func NewWithoutStamps(o Options, opts ...cuda.Option) (*cuda.Driver, error) {
	return cuda.NewDriver(stampless{newDriver(o)}, opts...)
}
