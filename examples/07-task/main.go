// 07-task decides on the CPU, in the middle of a stream, what the GPU does next. A task has its place in the stream's order as a
// host function has, and may call CUDA, which a host function may not.
package main

import (
	"context"
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
	helper, err := dev.NewStream()
	if err != nil {
		return err
	}
	pinned, err := dev.AllocPinned(4)
	if err != nil {
		return err
	}
	number := cuda.PinnedSlice[uint32](pinned)
	number[0] = 0
	one := cuda.Grid1D(1, 1)

	if err := stream.Launch(increment, one, pinned, uint32(1)); err != nil {
		return err
	}
	task, err := cuda.Go(stream, func(ctx context.Context) error {
		fmt.Printf("task: the number is %d, and should be 5\n", number[0])
		for number[0] < 5 { // on another stream: this task's own waits for the task
			if err := kit.Errors(helper.Launch(increment, one, pinned, uint32(1)), helper.Wait(ctx)); err != nil {
				return err
			}
		}
		return nil
	}, cuda.Name("raise to 5"))
	if err != nil {
		return err
	}
	err = kit.Errors(
		stream.Launch(increment, one, pinned, uint32(1)),
		cuda.HostLaunch(stream, func() { fmt.Printf("host function: the number is %d\n", number[0]) }),
		stream.Sync(),
	)
	if err != nil {
		return err
	}
	return task.Err()
}
