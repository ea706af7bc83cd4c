// 09-two-devices hands work from one device to another, with host functions on the streams of both. An event of the first
// device's stream is what the second device's stream waits for.
//
// Without two GPUs it runs on two software devices.
package main

import (
	"fmt"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/examples/internal/kit"
)

func main() { kit.MainOn(2, run) }

// place is a device's share of the work.
type place struct {
	stream    *cuda.Stream
	increment *cuda.Kernel
	number    *cuda.Buffer
}

func run(devices []*cuda.Device) error {
	a, err := newPlace(devices[0])
	if err != nil {
		return err
	}
	b, err := newPlace(devices[1])
	if err != nil {
		return err
	}
	one, result := cuda.Grid1D(1, 1), make([]uint32, 1)
	err = kit.Errors(
		a.stream.Memset(a.number, 0),
		a.stream.Launch(a.increment, one, a.number, uint32(1)),
		cuda.HostLaunch(a.stream, func() { fmt.Println("device 0 is done") }),

		b.stream.WaitStream(a.stream), // by an event; nobody here waits
		b.stream.CopyBuffer(b.number, a.number),
		b.stream.Launch(b.increment, one, b.number, uint32(1)),
		cuda.CopyToHost(b.stream, result, b.number),
		cuda.HostLaunch(b.stream, func() { fmt.Printf("device 1 is done: the number is %d\n", result[0]) }),
	)
	if err != nil {
		return err
	}
	return b.stream.Sync()
}

func newPlace(dev *cuda.Device) (p place, err error) {
	if p.stream, err = dev.NewStream(); err != nil {
		return p, err
	}
	if p.increment, err = kit.Kernel(dev.Context, "increment"); err != nil {
		return p, err
	}
	p.number, err = dev.Alloc(4)
	return p, err
}
