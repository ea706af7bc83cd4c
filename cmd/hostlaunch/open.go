package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/anycuda"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

// openDevice opens the first device of the NVIDIA driver or of a software driver, as anycuda decides. If that falls back, it says
// so on stderr in a line; the library's own log has warnings only.
func openDevice(stderr io.Writer) (*cuda.Driver, *cuda.Device, error) {
	warnings := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	drv, err := anycuda.Open(softcuda.Options{Kernels: testkernels.Twins()}, cuda.Logger(warnings))
	if err != nil {
		return nil, nil, err
	}
	dev, err := drv.Device(0)
	if err != nil {
		drv.Close()
		return nil, nil, err
	}
	if drv.Name() == "software" && os.Getenv(driverChoice) == "" {
		fmt.Fprintln(stderr, "no usable GPU, so this runs on the software device; hostlaunch doctor says why")
	}
	return drv, dev, nil
}

// fits is an error that names the flag if so many bytes are more than dev has.
func fits(dev *cuda.Device, flag string, bytes int) error {
	total, err := dev.TotalMemory()
	if err == nil && uint64(bytes) > total {
		err = fmt.Errorf("%s: that takes %.1f GiB, and device %d has %.1f GiB", flag, gib(uint64(bytes)), dev.Ordinal(), gib(total))
	}
	return err
}

func gib(bytes uint64) float64 { return float64(bytes) / (1 << 30) }
