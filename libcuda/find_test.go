//go:build linux && (amd64 || arm64)

package libcuda

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
)

// TestPlaces: the loader's library first, then the usual places; or the one that the user names and no other.
func TestPlaces(t *testing.T) {
	t.Setenv(overrideVariable, "")
	list := places()
	if list[0] != "libcuda.so.1" {
		t.Errorf("first %s", list[0])
	}
	multiarch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	for _, want := range []string{
		"/usr/lib/wsl/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib64/libcuda.so.1",
		"/usr/lib/" + multiarch + "-linux-gnu/libcuda.so.1", "/usr/local/cuda/compat/libcuda.so.1",
	} {
		if !strings.Contains(strings.Join(list, "\n"), want) {
			t.Errorf("%s is not looked at", want)
		}
	}
	for _, path := range list {
		if strings.Contains(path, "stubs") {
			t.Errorf("%s holds stubs", path)
		}
	}
	t.Setenv(overrideVariable, "/my/libcuda.so")
	if list := places(); !reflect.DeepEqual(list, []string{"/my/libcuda.so"}) {
		t.Errorf("with the override: %v", list)
	}
}

// TestOpenErrors: one clear error for each thing that can be missing, with what was tried and the way out (CONTRACT LI-04).
func TestOpenErrors(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "7")
	for _, c := range []struct {
		name         string
		spoil        func(*fake)
		code         error
		want, advice string
	}{
		{"no library", func(f *fake) { f.t.(*testing.T).Setenv(overrideVariable, "/nowhere/libcuda.so.1") }, cuda.ErrNotFound,
			"found no NVIDIA driver library (no such file: /nowhere/libcuda.so.1). ONLY", "ONLY"},
		{"no driver", func(f *fake) { f.t.(*testing.T).Setenv(overrideVariable, "libm.so.6") }, cuda.ErrNotFound,
			"found no NVIDIA driver library (libm.so.6: not a CUDA driver library: it has no cuInit or no cuDriverGetVersion). ONLY", "ONLY"},
		{"stub", func(f *fake) { f.set(knobVersionResult, 34); f.set(knobInit, 34) }, cuda.ErrStubLibrary,
			"found only the CUDA toolkit's stub, which serves to link programs (PATH: a stub). ONLY", "ONLY"},
		{"stub that tells a version", func(f *fake) { f.set(knobInit, 34) }, cuda.ErrStubLibrary,
			"found only the CUDA toolkit's stub, which serves to link programs (PATH: a stub). ONLY", "ONLY"},
		{"too old", func(f *fake) { f.set(knobVersion, 11080) }, cuda.ErrCallRequiresNewerDriver,
			"the NVIDIA driver is too old (PATH: for CUDA 11.8). Install one for CUDA 12.0 or newer: 525.60.13 or later. ONLY",
			"Install an NVIDIA driver for CUDA 12.0 or newer: 525.60.13 or later. ONLY"},
		{"no device", func(f *fake) { f.set(knobInit, 100) }, cuda.ErrNoDevice,
			"PATH does not start: cuInit answers CUDA_ERROR_NO_DEVICE (100). CUDA_VISIBLE_DEVICES is \"7\": unset it, or check it against nvidia-smi -L",
			"CUDA_VISIBLE_DEVICES is \"7\": unset it, or check it against nvidia-smi -L"},
		{"mismatch", func(f *fake) { f.set(knobInit, 803) }, cuda.ErrSystemDriverMismatch,
			"PATH does not start: cuInit answers CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803). The library and the kernel module are of " +
				"different drivers: restart the machine after an update, or update the container's",
			"The library and the kernel module are of different drivers: restart the machine after an update, or update the container's"},
		{"other", func(f *fake) { f.set(knobInit, 304) }, cuda.ErrOperatingSystem,
			"PATH does not start: cuInit answers CUDA_ERROR_OPERATING_SYSTEM (304)", ""},
		{"broken", func(f *fake) { f.missing("cuStreamGetId") }, cuda.ErrSharedObjectSymbolNotFound,
			"the driver has no cuStreamGetId of version 12000, as every driver from CUDA 12.0 on has; reinstall the NVIDIA driver",
			"Reinstall the NVIDIA driver"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			c.spoil(f)
			d, err := Open()
			if d != nil || !errors.Is(err, c.code) {
				t.Fatalf("Open: %v, %v; want %v", d, err, c.code)
			}
			want := "cuda: libcuda.Open: " + strings.NewReplacer("PATH", f.path, "ONLY", only).Replace(c.want) + ": " + c.code.Error()
			if err.Error() != want {
				t.Errorf("\n%v\nwant\n%v", err, want)
			}
			var open *OpenError
			var base *cuda.Error
			if !errors.As(err, &open) || !errors.As(err, &base) {
				t.Fatalf("not an OpenError that wraps a cuda.Error: %T", err)
			}
			if want := strings.ReplaceAll(c.advice, "ONLY", only); open.Advice != want {
				t.Errorf("advice %q, want %q", open.Advice, want)
			}
		})
	}
}

const only = "HOSTLAUNCH_LIBCUDA names the only library that is tried; unset it to have the usual places searched"

// TestSearch: a missing library, a stub and one that is too old are passed over, and not started; a refusal is final.
func TestSearch(t *testing.T) {
	stubbed, old, refusing, good := newFake(t), newFake(t), newFake(t), newFake(t)
	stubbed.set(knobVersionResult, 34)
	old.set(knobVersion, 11040)
	refusing.set(knobInit, 100)

	lib, err := find([]string{"/nowhere", stubbed.path, old.path, good.path, refusing.path})
	if err != nil || lib == nil {
		t.Fatal(err)
	}
	for _, f := range []*fake{stubbed, old, refusing} {
		if n := f.get(knobInits); n != 0 {
			t.Errorf("%d starts of a library that is not used", n)
		}
	}
	_, err = find([]string{"/nowhere", stubbed.path, refusing.path, good.path})
	var open *OpenError
	if !errors.As(err, &open) {
		t.Fatal(err)
	}
	want := []Attempt{
		{"/nowhere", cuda.ErrNotFound, "no such file"},
		{stubbed.path, cuda.ErrStubLibrary, "a stub"},
		{refusing.path, cuda.ErrNoDevice, "cuInit answers CUDA_ERROR_NO_DEVICE (100)"},
	}
	if !reflect.DeepEqual(open.Tried, want) {
		t.Errorf("tried %v, want %v", open.Tried, want)
	}
	_, err = find([]string{"/nowhere/a", "/nowhere/b", stubbed.path, old.path})
	wantText := "(" + stubbed.path + ": a stub; " + old.path + ": for CUDA 11.4; no such file: /nowhere/a, /nowhere/b)"
	if !errors.Is(err, cuda.ErrCallRequiresNewerDriver) || !strings.Contains(err.Error(), wantText) {
		t.Errorf("%v\nwant %s", err, wantText)
	}
}

// TestNothingFound: without the override, the error says where it looked and what to do.
func TestNothingFound(t *testing.T) {
	t.Setenv(overrideVariable, "")
	_, err := find([]string{"libcuda-is-nowhere.so.1", "/nowhere/libcuda.so.1"})
	const want = "cuda: libcuda.Open: found no NVIDIA driver library (no such file: libcuda-is-nowhere.so.1, /nowhere/libcuda.so.1). " +
		"Install the NVIDIA driver, have a container started with its GPUs (--gpus all), or name the library in HOSTLAUNCH_LIBCUDA: " +
		"CUDA_ERROR_NOT_FOUND (500)"
	if err == nil || err.Error() != want {
		t.Errorf("\n%v\nwant\n%s", err, want)
	}
}

// TestOnlyStub: without the override, the way out of a stub is to take it off the loader's path and to have a driver.
func TestOnlyStub(t *testing.T) {
	f := newFake(t)
	f.set(knobInit, 34)
	t.Setenv(overrideVariable, "")
	_, err := find([]string{f.path})
	const advice = "Take the stub's folder out of LD_LIBRARY_PATH. " +
		"Install the NVIDIA driver, have a container started with its GPUs (--gpus all), or name the library in HOSTLAUNCH_LIBCUDA"
	var open *OpenError
	if !errors.As(err, &open) || open.Advice != advice || !strings.Contains(err.Error(), "("+f.path+": a stub). "+advice) {
		t.Errorf("%v", err)
	}
}

// TestLoadFailure: the loader's own words are kept where a file is there and cannot be loaded.
func TestLoadFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libcuda.so.1")
	if err := os.WriteFile(path, []byte("not a library"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, code, reason := try(path)
	if code != cuda.ErrNotFound || !strings.Contains(reason, "too short") && !strings.Contains(reason, "ELF") {
		t.Errorf("%v, %q", code, reason)
	}
}

// TestConnections: the driver finds all hardware queues asked for in C's environment, or what the user chose.
func TestConnections(t *testing.T) {
	const variable = "CUDA_DEVICE_MAX_CONNECTIONS"
	t.Setenv(variable, "8") // has the test restore it
	os.Unsetenv(variable)
	f := newFake(t)
	f.open(driver.Upcalls{})
	if n := f.get(knobConnections); n != 32 {
		t.Errorf("%d connections, want 32", n)
	}
	os.Setenv(variable, "4")
	f = newFake(t)
	f.open(driver.Upcalls{})
	if n := f.get(knobConnections); n != 4 {
		t.Errorf("%d connections, want the user's 4", n)
	}
}
