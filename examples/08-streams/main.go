// 08-streams runs sixteen streams beside each other, with host functions on each, and has one more stream wait for all of them.
package main

import (
	"fmt"
	"sync/atomic"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/examples/internal/kit"
)

const (
	streams = 16
	rounds  = 3
)

func main() { kit.Main(run) }

func run(dev *cuda.Device) error {
	increment, err := kit.Kernel(dev.Context, "increment")
	if err != nil {
		return err
	}
	numbers, err := dev.Alloc(4 * streams)
	if err != nil {
		return err
	}
	last, err := dev.NewStream()
	if err != nil {
		return err
	}
	if err := kit.Errors(last.Memset(numbers, 0), last.Sync()); err != nil {
		return err
	}
	var ran atomic.Int64 // host functions of different streams have no order
	for i := range streams {
		s, err := queue(dev, increment, numbers, i, func() { ran.Add(1) })
		if err != nil {
			return err
		}
		if err := last.WaitStream(s); err != nil { // on the device: nobody here waits
			return err
		}
	}
	result := make([]uint32, streams)
	err = kit.Errors(
		cuda.CopyToHost(last, result, numbers),
		cuda.HostLaunch(last, func() { fmt.Printf("%d host functions of %d streams have run: %v\n", ran.Load(), streams, result) }),
	)
	if err != nil {
		return err
	}
	return last.Sync()
}

// queue makes a stream that increments number i some times, with a host function behind each.
func queue(dev *cuda.Device, increment *cuda.Kernel, numbers *cuda.Buffer, i int, each func()) (*cuda.Stream, error) {
	s, err := dev.NewStream()
	if err != nil {
		return nil, err
	}
	number, err := numbers.Slice(4*i, 4)
	if err != nil {
		return nil, err
	}
	for range rounds {
		if err := kit.Errors(s.Launch(increment, cuda.Grid1D(1, 1), number, uint32(1)), cuda.HostLaunch(s, each)); err != nil {
			return nil, err
		}
	}
	return s, nil
}
