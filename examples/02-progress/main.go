// 02-progress shows how far a stream is, without waiting for it.
//
// A host function behind each batch counts it and passes it on. The program is told of every batch as it ends, and calls Sync
// only when there is nothing left to do.
package main

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/examples/internal/kit"
)

const batches = 5

func main() { kit.Main(run) }

func run(dev *cuda.Device) error {
	spin, err := kit.Kernel(dev.Context, "spin")
	if err != nil {
		return err
	}
	stream, err := dev.NewStream()
	if err != nil {
		return err
	}
	var done atomic.Int64            // a metric: anybody may read it at any time
	ended := make(chan int, batches) // with room for all, since a host function must not wait
	for i := range batches {
		err := kit.Errors(
			stream.Launch(spin, cuda.Grid1D(1, 1), uint64(20*time.Millisecond)),
			cuda.HostLaunch(stream, func() {
				done.Add(1)
				ended <- i
			}),
		)
		if err != nil {
			return err
		}
	}
	for range batches { // all of them are queued; this goroutine is free to show them
		fmt.Printf("batch %d has ended\n", <-ended)
	}
	if err := stream.Sync(); err != nil {
		return err
	}
	fmt.Printf("%d batches\n", done.Load())
	return nil
}
