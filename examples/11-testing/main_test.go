package main

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/examples/internal/kit"
	"github.com/hostlaunch/cuda/softcuda"
)

func Example() {
	os.Setenv("HOSTLAUNCH_DRIVER", "software")
	main()
	// Output:
	// simulated: <nil>
}

// open opens a software device of the test's own.
func open(t *testing.T, kernels softcuda.Kernels) *cuda.Device {
	drv := softcuda.New(softcuda.Options{Kernels: kernels})
	t.Cleanup(func() { drv.Close() })
	dev, err := drv.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

// TestHour: an hour of GPU time is over at once, and takes exactly that on the virtual clock.
func TestHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev, start := open(t, kit.Twins()), time.Now()
		if err := simulate(t.Context(), dev, time.Hour); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != time.Hour {
			t.Errorf("took %v", took)
		}
	})
}

// TestGivenUp: a caller that does not want to wait is not kept, and the GPU ends its work all the same.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev, start := open(t, kit.Twins()), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := simulate(ctx, dev, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// TestFault: a kernel that fails loses the device, and the program is told.
func TestFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := open(t, softcuda.Kernels{"spin": func(*softcuda.Launch) { panic("a fault of the GPU") }})
		var lost *cuda.LostError
		if err := simulate(t.Context(), dev, time.Hour); !errors.As(err, &lost) && !errors.Is(err, cuda.ErrDeviceLost) {
			t.Errorf("error %v", err)
		}
	})
}
