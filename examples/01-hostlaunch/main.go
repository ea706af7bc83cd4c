// 01-hostlaunch runs a Go closure exactly between two GPU kernels, and prints a proof of it.
//
// Without a GPU it runs on the software device, and says so; the proof is the same. HOSTLAUNCH_DRIVER=nvidia or =software
// decides instead.
package main

import (
	_ "embed"
	"fmt"
	"log"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/anycuda"
	"github.com/hostlaunch/cuda/softcuda"
)

//go:embed kernels.ptx
var ptx []byte

// mark is the Go twin of the kernel in kernels.cu: what the software device runs in its place.
func mark(l *softcuda.Launch) {
	log := softcuda.Slice[uint64](l, 0, -1)
	log[1+log[0]] = softcuda.Arg[uint64](l, 1)
	log[0]++
}

func main() {
	drv, err := anycuda.Open(softcuda.Options{Kernels: softcuda.Kernels{"mark": mark}})
	if err != nil {
		log.Fatal(err)
	}
	defer drv.Close()
	if err := run(drv); err != nil {
		log.Fatal(err)
	}
}

func run(drv *cuda.Driver) error {
	dev, err := drv.Device(0)
	if err != nil {
		return err
	}
	where := dev.Name()
	if drv.Name() == "software" {
		where += ", which needs no GPU"
	}
	fmt.Printf("on %s (%s driver, CUDA %v)\n", where, drv.Name(), drv.Version())

	mod, err := dev.LoadModule(ptx)
	if err != nil {
		return err
	}
	mark, err := mod.Kernel("mark")
	if err != nil {
		return err
	}
	// Pinned memory is read and written by the kernels and by Go alike: word 0 counts the marks, which follow it.
	pinned, err := dev.AllocPinned(8 * 4)
	if err != nil {
		return err
	}
	stream, err := dev.NewStream()
	if err != nil {
		return err
	}
	return prove(stream, mark, pinned)
}

// prove queues kernel, host function, kernel. Each leaves its mark; the host function, before it does, says how many it finds.
func prove(stream *cuda.Stream, mark *cuda.Kernel, pinned *cuda.PinnedBuffer) error {
	marks := cuda.PinnedSlice[uint64](pinned)
	clear(marks)
	one := cuda.LaunchConfig{Grid: cuda.Dim3{X: 1}, Block: cuda.Dim3{X: 1}}
	if err := stream.Launch(mark, one, pinned, uint64(1)); err != nil {
		return err
	}
	err := cuda.HostLaunch(stream, func() {
		fmt.Printf("host function: %d kernel has run before me\n", marks[0])
		marks[1+marks[0]] = 2
		marks[0]++
	})
	if err != nil {
		return err
	}
	if err := stream.Launch(mark, one, pinned, uint64(3)); err != nil {
		return err
	}
	if err := stream.Sync(); err != nil {
		return err
	}
	fmt.Printf("order: kernel %d, host function %d, kernel %d\n", marks[1], marks[2], marks[3])
	return nil
}
