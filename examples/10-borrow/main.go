// 10-borrow queues a host function on a stream that another library made and owns.
//
// All it takes is the stream's handle, a CUstream or cudaStream_t. Whatever has a method CUDAStream can be passed to StreamOf,
// which keeps it alive; BorrowStream takes the bare handle.
package main

import (
	"fmt"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/examples/internal/kit"
)

// library stands for another CUDA library of the process, one for linear algebra perhaps, that queues work on its own stream.
type library struct {
	stream    *cuda.Stream
	increment *cuda.Kernel
	number    *cuda.PinnedBuffer
}

// CUDAStream is the handle of the library's stream.
func (l *library) CUDAStream() uintptr { return l.stream.CUDAStream() }

func (l *library) work() error {
	return l.stream.Launch(l.increment, cuda.Grid1D(1, 1), l.number, uint32(1))
}

func main() { kit.Main(run) }

func run(dev *cuda.Device) error {
	lib, err := openLibrary(dev)
	if err != nil {
		return err
	}
	number := cuda.PinnedSlice[uint32](lib.number)
	number[0] = 0

	borrowed, err := dev.StreamOf(lib)
	if err != nil {
		return err
	}
	err = kit.Errors(
		lib.work(),
		cuda.HostLaunch(borrowed, func() { fmt.Printf("between the library's kernels the number is %d\n", number[0]) }),
		lib.work(),
		borrowed.Sync(),
		borrowed.Close(), // ends the borrowing, and leaves the library its stream
		lib.work(),
		lib.stream.Sync(),
	)
	if err != nil {
		return err
	}
	fmt.Printf("the library goes on: %d\n", number[0])
	return nil
}

func openLibrary(dev *cuda.Device) (l *library, err error) {
	l = new(library)
	if l.stream, err = dev.NewStream(); err != nil {
		return nil, err
	}
	if l.increment, err = kit.Kernel(dev.Context, "increment"); err != nil {
		return nil, err
	}
	l.number, err = dev.AllocPinned(4)
	return l, err
}
