package softcuda

import "github.com/hostlaunch/cuda"

// spinning is a machine without a mode Spin of its own, so that package cuda has to make up for it.
type spinning struct{ *machine }

func (spinning) EmulateSpin() bool { return true }

// NewSpinning is New for a device whose mode Spin is the library's.
func NewSpinning(o Options, opts ...cuda.Option) (*cuda.Driver, error) {
	return cuda.NewDriver(spinning{newMachine(o)}, opts...)
}
