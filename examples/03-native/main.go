// 03-native has a C function run between two kernels, on the data that it is given. Go is not entered for it.
//
// With cgo the function is in stamp_cgo.go. Without, stamp_purego.go takes one of the C library, by its address.
package main

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/examples/internal/kit"
)

func main() { kit.Main(run) }

func run(dev *cuda.Device) error {
	stamp, err := stampFunction() // void stamp(void *data): writes the time in seconds to 8 bytes
	if err != nil {
		return err
	}
	increment, err := kit.Kernel(dev.Context, "increment")
	if err != nil {
		return err
	}
	stream, err := dev.NewStream()
	if err != nil {
		return err
	}
	number, err := dev.AllocPinned(4)
	if err != nil {
		return err
	}
	clear(number.Bytes())

	at := new(int64) // the library keeps it alive, and where it is, until the function has run
	err = kit.Errors(
		stream.Launch(increment, cuda.Grid1D(1, 1), number, uint32(1)),
		cuda.HostLaunchNative(stream, stamp, cuda.NativePointer(unsafe.Pointer(at)), cuda.Name("stamp")),
		stream.Launch(increment, cuda.Grid1D(1, 1), number, uint32(1)),
		stream.Sync(),
	)
	if err != nil {
		return err
	}
	off := time.Since(time.Unix(*at, 0))
	fmt.Printf("kernels: %d; the C function has told the time: %t\n", cuda.PinnedSlice[uint32](number)[0], off > -time.Minute && off < time.Minute)
	return nil
}
