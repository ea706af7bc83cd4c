//go:build linux && (amd64 || arm64)

package libcuda

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
)

const (
	overrideVariable = "HOSTLAUNCH_LIBCUDA"
	soname           = "libcuda.so.1"
)

// places lists where to look, in order. No stubs directories: what lies there cannot be used.
func places() []string {
	if path := os.Getenv(overrideVariable); path != "" {
		return []string{path}
	}
	multiarch := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	list := []string{soname} // as the loader finds it: LD_LIBRARY_PATH, then its cache
	for _, dir := range []string{
		"/usr/lib/wsl/lib",        // Windows' driver, under WSL
		"/usr/local/nvidia/lib64", // mounted into containers
		"/usr/lib64",
		"/usr/lib/" + multiarch,
		"/usr/lib/" + multiarch + "/nvidia", // Jetson
		"/run/opengl-driver/lib",            // NixOS
		"/usr/local/cuda/compat",            // a newer user-mode driver, from the toolkit
	} {
		list = append(list, filepath.Join(dir, soname))
	}
	return list
}

// find returns the first library of paths that can be used, initialised. Only a library's own refusal to be initialised is
// final; past a missing one, a stub or one that is too old, it goes on.
func find(paths []string) (*library, error) {
	lib, _, err := findAt(paths)
	return lib, err
}

// findAt is find, and says which of paths it is.
func findAt(paths []string) (lib *library, at string, err error) {
	var tried []Attempt
	for _, path := range paths {
		lib, code, reason := try(path)
		if code == 0 {
			return lib, path, nil
		}
		tried = append(tried, Attempt{path, code, reason})
		if !passable(code) {
			break
		}
	}
	return nil, "", failure(tried)
}

// passable reports whether the search goes on after code.
func passable(code cuda.Code) bool {
	return code == cuda.ErrNotFound || code == cuda.ErrStubLibrary || code == cuda.ErrCallRequiresNewerDriver
}

// try loads the library at path and initialises it.
func try(path string) (lib *library, code cuda.Code, reason string) {
	if filepath.IsAbs(path) {
		if _, err := os.Stat(path); os.IsNotExist(err) {
			return nil, cuda.ErrNotFound, noFile
		}
	}
	lib, err := load(path)
	if err != nil {
		return nil, cuda.ErrNotFound, whyNot(path, err)
	}
	code, reason = lib.init()
	if code != 0 && passable(code) {
		lib.Close() // it was not initialised, so nothing of it runs
	}
	return lib, code, reason
}

// whyNot shortens the loader's message, which repeats the path.
func whyNot(path string, err error) string {
	reason := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "dlopen: "), path+": ")
	if reason == "cannot open shared object file: No such file or directory" {
		return noFile
	}
	return reason
}

// failure is the error for a search that found nothing: of what was found, it tells of what came closest.
func failure(tried []Attempt) *OpenError {
	last := tried[len(tried)-1]
	if !passable(last.Code) {
		return searchError(last.Code, tried, hint(driver.Result(last.Code)), "%s does not start: %s", last.Path, last.Reason)
	}
	found := map[cuda.Code]bool{}
	for _, a := range tried {
		found[a.Code] = true
	}
	switch {
	case found[cuda.ErrCallRequiresNewerDriver]:
		const newer = "for CUDA 12.0 or newer: 525.60.13 or later"
		e := searchError(cuda.ErrCallRequiresNewerDriver, tried, overridden(), "the NVIDIA driver is too old (%s). Install one "+newer, describe(tried))
		e.Advice = sentences("Install an NVIDIA driver "+newer, e.Advice)
		return e
	case found[cuda.ErrStubLibrary]:
		return searchError(cuda.ErrStubLibrary, tried, cmp.Or(overridden(), "Take the stub's folder out of LD_LIBRARY_PATH. "+install),
			"found only the CUDA toolkit's stub, which serves to link programs (%s)", describe(tried))
	}
	return searchError(cuda.ErrNotFound, tried, cmp.Or(overridden(), install), "found no NVIDIA driver library (%s)", describe(tried))
}

// searchError is an error whose text ends in the advice.
func searchError(code cuda.Code, tried []Attempt, advice, format string, args ...any) *OpenError {
	return openError(code, tried, advice, "%s", sentences(fmt.Sprintf(format, args...), advice))
}

// sentences joins those that are not empty.
func sentences(list ...string) string {
	return strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" }), ". ")
}

// install is what to do about a library that is not found.
const install = "Install the NVIDIA driver, have a container started with its GPUs (--gpus all), or name the library in " + overrideVariable

// overridden reminds of the variable that has narrowed the search.
func overridden() string {
	if os.Getenv(overrideVariable) == "" {
		return ""
	}
	return overrideVariable + " names the only library that is tried; unset it to have the usual places searched"
}

// hint is the way out of a refusal to initialise.
func hint(r driver.Result) string {
	switch r {
	case driver.ErrorNoDevice:
		if v, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok {
			return "CUDA_VISIBLE_DEVICES is " + strconv.Quote(v) + ": unset it, or check it against nvidia-smi -L"
		}
		return "Check that nvidia-smi lists a GPU, and that a container was started with it (--gpus all)"
	case driver.ErrorSystemDriverMismatch:
		return "The library and the kernel module are of different drivers: restart the machine after an update, or update the container's"
	case driver.ErrorCompatNotSupportedOnDevice:
		return "The library is a compatibility library for data centre GPUs: remove it from LD_LIBRARY_PATH"
	case driver.ErrorSystemNotReady:
		return "Check that the services of the system run, such as nvidia-fabricmanager"
	case driver.ErrorUnknown:
		return "Check that the kernel modules nvidia and nvidia_uvm are loaded (nvidia-modprobe -u) and dmesg"
	}
	return ""
}
