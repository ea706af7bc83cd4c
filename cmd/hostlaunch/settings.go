package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/hostlaunch/cuda/anycuda"
)

// setting is something outside of the program that matters to it.
type setting struct {
	Name    string `json:"name"`
	Value   string `json:"value"` // "" if it is not set
	Note    string `json:"note"`
	Problem bool   `json:"problem,omitempty"` // the note says what to change
}

// Names of settings.
const (
	driverChoice = anycuda.Variable
	connections  = "CUDA_DEVICE_MAX_CONNECTIONS"
	hugePages    = "transparent huge pages"
)

// settings are those that matter, as they are now.
func settings() []setting {
	return []setting{
		gomaxprocs(runtime.GOMAXPROCS(0), runtime.NumCPU()),
		maxConnections(os.Getenv(connections)),
		moduleLoading(os.Getenv("CUDA_MODULE_LOADING")),
		visibleDevices(os.LookupEnv("CUDA_VISIBLE_DEVICES")),
		launchBlocking(os.Getenv("CUDA_LAUNCH_BLOCKING")),
		driverChosen(os.Getenv(driverChoice)),
		libraryChosen(os.Getenv("HOSTLAUNCH_LIBCUDA")),
		transparentHugePages("/sys/kernel/mm/transparent_hugepage/enabled"),
	}
}

func gomaxprocs(n, cpus int) setting {
	s := setting{Name: "GOMAXPROCS", Value: strconv.Itoa(n), Note: fmt.Sprintf("of %d processors", cpus)}
	if n < 2 {
		s.Problem = true
		s.Note = "Go code has one processor: everything works, but host functions wait for goroutines that compute, and SyncMode(Spin) takes time from the rest. Give the program two or more."
	}
	return s
}

func maxConnections(v string) setting {
	s := setting{Name: connections, Value: v, Note: "as set: tasks hold one stream less than that at a time, and eight at most"}
	switch n, err := strconv.Atoi(v); {
	case v == "":
		s.Note = "libcuda.Open sets it to 32: all hardware queues"
	case err != nil || n < 1 || n > 32:
		s.Problem, s.Note = true, "It must be a number from 1 to 32. Unset it, and libcuda.Open sets it to 32."
	case n < 9:
		s.Problem = true
		s.Note = fmt.Sprintf("With %d hardware queues tasks hold %s at a time. Unset it, and libcuda.Open sets it to 32.", n, streams(max(n-1, 1)))
	}
	return s
}

func streams(n int) string {
	if n == 1 {
		return "one stream"
	}
	return fmt.Sprintf("%d streams", n)
}

func moduleLoading(v string) setting {
	s := setting{Name: "CUDA_MODULE_LOADING", Value: v, Note: "lazy from CUDA 12.2 on: launch a kernel once before tasks hold streams, or set it to EAGER"}
	if strings.EqualFold(v, "EAGER") {
		s.Note = "kernels are loaded with their module, so no first launch waits for held streams"
	}
	return s
}

func visibleDevices(v string, set bool) setting {
	s := setting{Name: "CUDA_VISIBLE_DEVICES", Value: v, Note: "all devices are visible"}
	switch {
	case set && (v == "" || v == "-1"):
		s.Problem, s.Note = true, "It hides every GPU. Unset it to use them."
	case set:
		s.Note = "other devices are hidden from this program"
	}
	return s
}

func launchBlocking(v string) setting {
	s := setting{Name: "CUDA_LAUNCH_BLOCKING", Value: v, Note: "kernels are launched without waiting for them"}
	if v != "" && v != "0" {
		s.Problem, s.Note = true, "Every launch waits for its kernel: nothing runs beside anything. Unset it, unless you are looking for a fault."
	}
	return s
}

func driverChosen(v string) setting {
	s := setting{Name: driverChoice, Value: v, Note: "anycuda.Open takes the GPU if there is one, and else the software device"}
	switch v {
	case "":
	case "nvidia":
		s.Note = "anycuda.Open never falls back to the software device"
	case "software":
		s.Note = "anycuda.Open never looks for a GPU"
	default:
		s.Problem, s.Note = true, "anycuda.Open refuses this value. Set it to nvidia or software, or leave it unset."
	}
	return s
}

func libraryChosen(path string) setting {
	s := setting{Name: "HOSTLAUNCH_LIBCUDA", Value: path, Note: "the usual places are searched for the driver"}
	if path != "" {
		s.Note = "the only library that is tried"
	}
	return s
}

// transparentHugePages reads the kernel's choice, which stands in brackets.
func transparentHugePages(path string) setting {
	s := setting{Name: hugePages, Note: "this system does not tell; copies to fresh memory cost a page fault for each page"}
	text, err := os.ReadFile(path)
	if err != nil {
		return s
	}
	_, v, _ := strings.Cut(string(text), "[")
	s.Value, _, _ = strings.Cut(v, "]")
	switch s.Value {
	case "always", "madvise":
		s.Note = "copies into large fresh slices get huge pages: the library asks for them"
	default:
		s.Problem = true
		s.Note = "Large copies into fresh slices are slow, with a page fault for every 4 KiB. Set it to madvise, or reuse the slices."
	}
	return s
}
