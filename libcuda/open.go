//go:build linux && (amd64 || arm64)

package libcuda

import (
	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/ffi"
)

// Open opens the NVIDIA driver. It takes the library that the environment variable HOSTLAUNCH_LIBCUDA names, or else the
// first that works of libcuda.so.1, as the loader finds it, and the usual places. The driver must be of CUDA 12.0 or newer.
// The error is an [*OpenError], or one of cuda.NewDriver's.
//
// Before the driver starts, Open sets CUDA_DEVICE_MAX_CONNECTIONS to 32 in the process's environment, unless it is set: of
// the default 8 hardware queues, eight streams that wait for the CPU leave none to the others.
func Open(opts ...cuda.Option) (*cuda.Driver, error) {
	nv, err := open()
	if err != nil {
		return nil, err
	}
	d, err := cuda.NewDriver(nv, opts...)
	if err != nil {
		nv.Shut()
		return nil, err
	}
	return d, nil
}

// open finds the driver and makes it ready.
//
// The library stays loaded for good: its threads may be anywhere in it. Opening it again gets the same one from the loader,
// which only counts.
func open() (*nvidia, error) {
	lib, err := find(places())
	if err != nil {
		return nil, err
	}
	nv := &nvidia{}
	if err := nv.resolve(lib); err != nil {
		return nil, err
	}
	nv.tag, nv.stop, err = ffi.Receive(nv.runHostFunc, nv.runCallback)
	if err != nil {
		return nil, openError(cuda.ErrOutOfMemory, nil, "Close some drivers; a program needs one", "%v: close some drivers; a program needs one", err)
	}
	return nv, nil
}
