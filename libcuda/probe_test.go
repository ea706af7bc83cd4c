//go:build linux && (amd64 || arm64)

package libcuda

import (
	"errors"
	"strings"
	"testing"

	"github.com/hostlaunch/cuda"
)

// TestProbe: where the driver is, its version, and which optional functions it has.
func TestProbe(t *testing.T) {
	f := newFake(t)
	f.missing("cuGreenCtxCreate")
	found, err := Probe()
	if err != nil {
		t.Fatal(err)
	}
	if found.Path != f.path || found.File != f.path || found.Version != 13000 {
		t.Errorf("found %q, %q, CUDA %v", found.Path, found.File, found.Version)
	}
	present := map[string]bool{}
	for _, o := range found.Optional {
		present[o.Name] = o.Present
		if o.Since <= minimum {
			t.Errorf("%s since CUDA %v is not optional", o.Name, o.Since)
		}
	}
	for name, want := range map[string]bool{"cuGreenCtxCreate": false, "cuGraphAddNode": true, "cuStreamGetDevResource": false} {
		if got, listed := present[name]; got != want || !listed {
			t.Errorf("%s: present %t, listed %t", name, got, listed)
		}
	}
}

// TestProbeNothing: without a driver the optional functions are listed, and none is present.
func TestProbeNothing(t *testing.T) {
	f := newFake(t)
	f.set(knobVersionResult, 34)
	found, err := Probe()
	var open *OpenError
	if !errors.As(err, &open) || !errors.Is(err, cuda.ErrStubLibrary) {
		t.Fatalf("%v", err)
	}
	if found.Path != "" || len(found.Optional) == 0 {
		t.Errorf("found %+v", found)
	}
	for _, o := range found.Optional {
		if o.Present {
			t.Errorf("%s is present without a driver", o.Name)
		}
	}
}

// TestMappedAt: the file of an address, of which the end is not part.
func TestMappedAt(t *testing.T) {
	const maps = "1000-2000 r-xp 00000000 fe:00 1   /lib/a b.so\n2000-3000 rw-p 00000000 00:00 0\n"
	for address, want := range map[uintptr]string{0x1000: "/lib/a b.so", 0x1fff: "/lib/a b.so", 0x2000: "", 0x9000: ""} {
		if got := mappedAt(strings.NewReader(maps), address); got != want {
			t.Errorf("at %#x: %q, want %q", address, got, want)
		}
	}
}
