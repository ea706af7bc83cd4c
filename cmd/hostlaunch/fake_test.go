//go:build linux && (amd64 || arm64)

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// fakeDriver is a driver library for the test that answers as it says.
type fakeDriver struct{ version, versionResult, init, lost, idle int }

// install compiles f and has the library find it and nothing else.
func (f fakeDriver) install(t *testing.T) (path string) {
	t.Helper()
	cc, err := exec.LookPath("gcc")
	if err != nil {
		if os.Getenv("HOSTLAUNCH_REQUIRE_CC") == "1" {
			t.Fatal("no C compiler (gcc) to build the fake driver with")
		}
		t.Skip("no C compiler (gcc) to build the fake driver with")
	}
	path = filepath.Join(t.TempDir(), "libcuda.so.1")
	define := func(name string, v int) string { return fmt.Sprintf("-D%s_IS=%d", name, v) }
	out, err := exec.Command(cc, "-Wall", "-Werror", "-shared", "-fPIC", "-pthread", "-o", path, define("VERSION", f.version),
		define("VERSIONRESULT", f.versionResult), define("INIT", f.init), define("LOST", f.lost), define("IDLE", f.idle), "testdata/fake.c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("HOSTLAUNCH_LIBCUDA", path)
	return path
}
