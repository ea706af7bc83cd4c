// 04-graph records two kernels and a host function between them as a graph, and launches that three times. The host function
// runs once for every launch, in its place.
package main

import (
	"fmt"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/examples/internal/kit"
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
	pinned, err := dev.AllocPinned(4)
	if err != nil {
		return err
	}
	number := cuda.PinnedSlice[uint32](pinned)
	number[0] = 0

	launches := 0
	graph, err := cuda.Capture(stream, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		return kit.Errors(
			b.Launch(increment, cuda.Grid1D(1, 1), pinned, uint32(1)),
			cuda.HostLaunch(b, func() {
				launches++
				fmt.Printf("launch %d: the number is %d\n", launches, number[0])
			}),
			b.Launch(increment, cuda.Grid1D(1, 1), pinned, uint32(1)),
		)
	})
	if err != nil {
		return err
	}
	exec, err := graph.Instantiate()
	if err != nil {
		return err
	}
	for range 3 {
		if err := exec.Launch(stream); err != nil {
			return err
		}
	}
	if err := stream.Sync(); err != nil {
		return err
	}
	fmt.Printf("in the end it is %d\n", number[0])
	return nil
}
