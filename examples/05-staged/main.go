// 05-staged copies results into ordinary Go slices, without waiting: the library stages them through pinned memory. A host
// function behind each copy finds the slice filled.
package main

import (
	"fmt"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/examples/internal/kit"
)

const (
	batches = 3
	count   = 1 << 20
)

func main() { kit.Main(run) }

func run(dev *cuda.Device) error {
	increment, err := kit.Kernel(dev.Context, "increment")
	if err != nil {
		return err
	}
	stream, err := dev.NewStream()
	if err != nil {
		return err
	}
	buf, err := dev.Alloc(4 * count)
	if err != nil {
		return err
	}
	if err := stream.Memset(buf, 0); err != nil {
		return err
	}
	var progress cuda.CopyProgress
	for i := range batches {
		result := make([]uint32, count)
		err := kit.Errors(
			stream.Launch(increment, cuda.Grid1D(count, 256), buf, uint32(count)),
			cuda.CopyToHost(stream, result, buf, cuda.Progress(&progress)), // returns at once
			cuda.HostLaunch(stream, func() {
				var sum uint64
				for _, v := range result {
					sum += uint64(v)
				}
				fmt.Printf("batch %d: %d numbers, sum %d\n", i, len(result), sum)
			}),
		)
		if err != nil {
			return err
		}
	}
	if err := stream.Sync(); err != nil {
		return err
	}
	fmt.Printf("%d of %d bytes copied\n", progress.BytesDone(), progress.BytesTotal())
	return nil
}
