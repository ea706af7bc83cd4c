//go:build linux && (amd64 || arm64)

package kit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hostlaunch/cuda/anycuda"
)

// TestTooFewGPUs: an example that needs more devices than there are GPUs gets software devices, unless the GPUs are asked for.
func TestTooFewGPUs(t *testing.T) {
	cc, err := exec.LookPath("gcc")
	if err != nil && os.Getenv("HOSTLAUNCH_REQUIRE_CC") == "1" {
		t.Fatal("no C compiler (gcc) to build a fake driver with")
	} else if err != nil {
		t.Skip("no C compiler (gcc) to build a fake driver with")
	}
	path := filepath.Join(t.TempDir(), "libcuda.so.1")
	out, err := exec.Command(cc, "-shared", "-fPIC", "-pthread", "-o", path, "../../../libcuda/testdata/fakecuda.c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("HOSTLAUNCH_LIBCUDA", path) // two devices
	for _, c := range []struct {
		choice string
		n      int
		name   string
	}{{"", 2, "nvidia"}, {"", 3, "software"}, {"software", 3, "software"}, {"nvidia", 2, "nvidia"}, {"nvidia", 3, ""}} {
		t.Setenv(anycuda.Variable, c.choice)
		drv, err := open(c.n)
		if c.name == "" {
			if err == nil || !strings.Contains(err.Error(), "needs 3 devices and there are 2") {
				t.Errorf("%+v: error %v", c, err)
			}
			continue
		}
		if err != nil || drv.Name() != c.name || drv.DeviceCount() < c.n {
			t.Errorf("%+v: the %s driver with %d devices, %v", c, drv.Name(), drv.DeviceCount(), err)
		}
		drv.Close()
	}
}

// TestEntries: the PTX has the kernels that have twins, in a form that every supported driver reads.
func TestEntries(t *testing.T) {
	source, err := os.ReadFile("kernels.cu")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(ptx), ".version 6.4\n.target sm_52\n") || strings.Count(string(ptx), ".entry") != len(Twins()) {
		t.Errorf("kernels.ptx is not what scripts/ptx.sh makes of %d kernels", len(Twins()))
	}
	for name := range Twins() {
		if !strings.Contains(string(ptx), ".visible .entry "+name+"(") || !strings.Contains(string(source), "void "+name+"(") {
			t.Errorf("no kernel %s", name)
		}
	}
}
