// Package softcuda is a CUDA device in software. It needs no GPU and no C compiler, and runs wherever Go does.
//
// Its Driver behaves as the NVIDIA driver does: the same order of work, the same result codes, the same freedom where CUDA
// promises nothing. Streams run beside each other, host functions run one at a time on a goroutine of the device, and an
// error of a kernel loses the device as it would on hardware. What it cannot do is run GPU code: a kernel runs as a Go
// function that the program registers under the kernel's name (see Options.Kernels).
//
// It works inside a testing/synctest bubble, with virtual time, and no goroutine of it exists while nothing is queued.
package softcuda

import (
	"fmt"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
)

// Options configure a software driver. The zero value is one device without kernels.
type Options struct {
	// Devices is how many devices there are. 0 means one; a negative number means none, to test how a program copes.
	Devices int
	// Memory is the size of each device's memory in bytes, and of the pinned memory made with it. 0 means 8 GiB, a negative
	// number none. Host memory is taken only as it is used.
	Memory int64
	// NoConcurrentManagedAccess makes devices like those on which the host may touch managed memory only while no stream that
	// may use it is active: cuda.ManagedBuffer.HostAccess tells then (CONTRACT HL-19, HL-20). It costs some time for each
	// operation. Without it the host may touch managed memory at any time, as on most GPUs under Linux.
	NoConcurrentManagedAccess bool
	// Seed makes the device choose all that hardware leaves open (which stream goes on next, which host function comes first, how
	// soon a call's work begins, when an event is seen to be complete, how long things take) by this number, one operation at a
	// time: the same number gives the same schedule, if the program's own goroutines are ordered by the library, or stand in
	// a testing/synctest bubble. 0 is a fast device, whose streams run beside each other. See Explore.
	Seed uint64
	// Trace notes what a device with a Seed does.
	Trace *Trace
	// Faults are what goes wrong on demand. They belong to this driver only.
	Faults *Faults
	// Check looks for accesses to the same bytes that nothing orders. It costs time and memory for each operation.
	Check *Check
	// Cost says how long operations take. Without it they take as long as the computer needs, or with a Seed what that draws.
	Cost *Cost
	// Arguments say what kernels do with the memory that their arguments point to, by the kernels' names, for Check. What is not said is
	// InOut.
	Arguments map[string][]ArgKind
	// Kernels are the Go functions that stand for kernels, by the kernels' names.
	Kernels Kernels

	script *script // choices of a schedule: see Explore
}

const (
	version       = 13000 // the CUDA version that is implemented
	defaultMemory = 8 << 30
	mostMemory    = 1 << 40
)

// New makes a software driver. Unlike opening the NVIDIA driver this cannot fail.
func New(o Options, opts ...cuda.Option) *cuda.Driver {
	d, err := cuda.NewDriver(newDriver(o), opts...)
	if err != nil {
		panic(fmt.Sprintf("softcuda: %v", err)) // a machine always answers
	}
	return d
}

// newDriver is a machine, behind what o wants between it and the library.
func newDriver(o Options) driver.Driver {
	m := newMachine(o)
	if o.Faults == nil {
		return m
	}
	o.Faults.bind(m, o.Seed)
	return injecting{m, o.Faults}
}
