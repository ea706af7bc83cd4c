// Package anycuda opens whichever CUDA driver works here: the NVIDIA driver if there is a usable GPU, and else the software
// device. A program that uses it runs everywhere, and Driver.Name tells which it got.
package anycuda

import (
	"fmt"
	"os"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/libcuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// Variable is the environment variable that decides instead of Open: "nvidia" or "software".
const Variable = "HOSTLAUNCH_DRIVER"

// Open opens the NVIDIA driver if it has a usable device, and else a software device with the options soft. With
// HOSTLAUNCH_DRIVER=nvidia it never falls back, and with HOSTLAUNCH_DRIVER=software it never looks for a GPU; any other
// value is an error. If it falls back, it says so in a line at level Info, and the whole reason at level Debug, to the Logger among
// opts or else to slog.Default().
func Open(soft softcuda.Options, opts ...cuda.Option) (*cuda.Driver, error) {
	switch choice := os.Getenv(Variable); choice {
	case "nvidia":
		return libcuda.Open(opts...)
	case "software":
		return softcuda.New(soft, opts...), nil
	case "":
		return first(soft, opts)
	default:
		return nil, &cuda.Error{
			Op: "anycuda.Open", Code: cuda.ErrInvalidValue,
			Reason: fmt.Sprintf("%s is %q; set it to nvidia or software, or leave it unset", Variable, choice),
		}
	}
}

func first(soft softcuda.Options, opts []cuda.Option) (*cuda.Driver, error) {
	d, err := usable(opts)
	if err != nil {
		log := cuda.LoggerOf(opts...)
		log.Info("no usable GPU, so this runs on the software device; hostlaunch doctor says why; " + Variable + "=software silences this")
		log.Debug("anycuda: why there is no usable GPU", "reason", err)
		return softcuda.New(soft, opts...), nil
	}
	return d, nil
}

// usable opens the NVIDIA driver and its device 0, or says why that cannot be had.
func usable(opts []cuda.Option) (*cuda.Driver, error) {
	d, err := libcuda.Open(opts...)
	if err != nil {
		return nil, err
	}
	if _, err := d.Device(0); err != nil { // also if there is none
		d.Close()
		return nil, err
	}
	return d, nil
}
