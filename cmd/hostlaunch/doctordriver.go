package main

import (
	"errors"
	"os"
	"regexp"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/libcuda"
)

// driverReport is what was found of the NVIDIA driver.
type driverReport struct {
	Usable       bool      `json:"usable"`
	Path         string    `json:"path,omitempty"`
	File         string    `json:"file,omitempty"`
	CUDA         string    `json:"cuda,omitempty"`          // the version that it implements
	KernelModule string    `json:"kernel_module,omitempty"` // the version that is loaded
	Error        string    `json:"error,omitempty"`
	Code         string    `json:"code,omitempty"` // of the error
	Tried        []attempt `json:"tried,omitempty"`

	version  cuda.Version
	optional []libcuda.Function
	advice   string // of the error
}

// attempt is a place where the driver was looked for.
type attempt struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// findDriver looks for the NVIDIA driver.
func findDriver() driverReport {
	found, err := libcuda.Probe()
	r := driverReport{
		Usable: err == nil, Path: found.Path, File: found.File, version: found.Version, KernelModule: kernelModule(), optional: found.Optional,
	}
	if err == nil {
		r.CUDA = found.Version.String()
		return r
	}
	r.Error = err.Error()
	var coded *cuda.Error
	if errors.As(err, &coded) {
		r.Code = coded.Code.Error()
	}
	var open *libcuda.OpenError
	if errors.As(err, &open) {
		r.advice = open.Advice
		for _, a := range open.Tried {
			r.Tried = append(r.Tried, attempt{a.Path, a.Reason})
		}
	}
	return r
}

var moduleVersion = regexp.MustCompile(`Kernel Module\s+(?:for \S+\s+)?(\d[\d.]*)`)

// kernelModule is the version of the NVIDIA kernel module that is loaded, or "" if none is or the system does not tell.
func kernelModule() string {
	text, err := os.ReadFile("/proc/driver/nvidia/version")
	if err != nil {
		return ""
	}
	return moduleIn(string(text))
}

func moduleIn(text string) string {
	if m := moduleVersion.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
