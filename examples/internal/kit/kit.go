// Package kit is what the examples have in common: two kernels with their Go twins, and the opening of a driver.
package kit

import (
	_ "embed"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/anycuda"
	"github.com/hostlaunch/cuda/softcuda"
)

//go:embed kernels.ptx
var ptx []byte

// Twins are the Go functions that the software device runs in place of the kernels in kernels.cu.
func Twins() softcuda.Kernels {
	return softcuda.Kernels{
		"spin": func(l *softcuda.Launch) { time.Sleep(time.Duration(softcuda.Arg[uint64](l, 0))) },
		"increment": func(l *softcuda.Launch) {
			v := softcuda.Slice[uint32](l, 0, int(softcuda.Arg[uint32](l, 1)))
			for i := range v {
				v[i]++
			}
		},
	}
}

// Kernel loads a kernel of kernels.cu: "spin" or "increment".
func Kernel(c *cuda.Context, name string) (*cuda.Kernel, error) {
	mod, err := c.LoadModule(ptx)
	if err != nil {
		return nil, err
	}
	return mod.Kernel(name)
}

// Main runs an example on the first device of an NVIDIA driver, or else of a software driver, and says on stderr which it is.
func Main(example func(*cuda.Device) error) {
	MainOn(1, func(devices []*cuda.Device) error { return example(devices[0]) })
}

// MainOn is Main for an example that needs n devices: of the software driver, if there are fewer GPUs.
func MainOn(n int, example func([]*cuda.Device) error) {
	drv, err := open(n)
	if err != nil {
		log.Fatal(err)
	}
	defer drv.Close()
	devices := make([]*cuda.Device, n)
	for i := range devices {
		if devices[i], err = drv.Device(i); err != nil {
			log.Fatal(err)
		}
		fmt.Fprintf(os.Stderr, "on %v (%s driver, CUDA %v)\n", devices[i], drv.Name(), drv.Version())
	}
	if err := example(devices); err != nil {
		log.Fatal(err)
	}
}

func open(n int) (*cuda.Driver, error) {
	software := softcuda.Options{Devices: n, Kernels: Twins()}
	drv, err := anycuda.Open(software)
	if err != nil || drv.DeviceCount() >= n {
		return drv, err
	}
	defer drv.Close()
	if os.Getenv(anycuda.Variable) != "" {
		return nil, fmt.Errorf("this example needs %d devices and there are %d; with %s=software it runs without GPUs", n, drv.DeviceCount(), anycuda.Variable)
	}
	return softcuda.New(software), nil
}

// Errors is the first of some errors that is not nil. It keeps examples short that queue several things in a row.
func Errors(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}
