// 06-pool lets many batches share a few blocks of pinned memory: each block goes back to its pool at a point of the stream, when
// the host function that read it has ended, also if that panicked or the device failed.
package main

import (
	"context"
	"fmt"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/examples/internal/kit"
)

const (
	batches = 6
	blocks  = 2 // for six batches
	count   = 1 << 10
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
	pool, err := dev.NewPinnedPool(blocks * 4 * count)
	if err != nil {
		return err
	}
	if err := stream.Memset(buf, 0); err != nil {
		return err
	}
	for i := range batches {
		block, err := pool.Get(context.Background(), 4*count) // waits while both blocks are in use
		if err != nil {
			return err
		}
		result := cuda.BlockSlice[uint32](block)
		err = kit.Errors(
			stream.Launch(increment, cuda.Grid1D(count, 256), buf, uint32(count)),
			cuda.CopyToHost(stream, result, buf),
			cuda.HostLaunch(stream, func() { fmt.Printf("batch %d: all are %d\n", i, result[count-1]) },
				cuda.OnDone(func(error) { block.Release() })),
		)
		if err != nil {
			return err
		}
	}
	if err := stream.Sync(); err != nil {
		return err
	}
	fmt.Printf("%d batches went through %d blocks\n", batches, blocks)
	return nil
}
