// 11-testing is a small program whose tests need no GPU and no time: see main_test.go. On the software device kernels are Go
// functions, failures can be made to happen, and inside testing/synctest the clock is virtual.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/examples/internal/kit"
)

func main() {
	kit.Main(func(dev *cuda.Device) error {
		err := simulate(context.Background(), dev, 20*time.Millisecond)
		fmt.Println("simulated:", err)
		return err
	})
}

// simulate keeps the GPU busy for d, and waits for that unless ctx ends first.
func simulate(ctx context.Context, dev *cuda.Device, d time.Duration) error {
	spin, err := kit.Kernel(dev.Context, "spin")
	if err != nil {
		return err
	}
	stream, err := dev.NewStream()
	if err != nil {
		return err
	}
	defer stream.Close()
	ended := make(chan error, 1)
	err = kit.Errors(
		stream.Launch(spin, cuda.Grid1D(1, 1), uint64(d)),
		cuda.HostLaunch(stream, func() {}, cuda.OnDone(func(err error) { ended <- err })),
	)
	if err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
