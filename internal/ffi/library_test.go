//go:build linux && (amd64 || arm64)

package ffi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

func TestOpenNamesWhatIsMissing(t *testing.T) {
	const name = "libhostlaunch-is-not-there.so.7"
	l, err := Open(name)
	if l != nil || err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("Open = %v, %v; want an error that names %s", l, err, name)
	}
}

func TestSymbol(t *testing.T) {
	l := library(t)
	if l.Symbol("take0") == 0 {
		t.Error("take0 not found")
	}
	if a := l.Symbol("hostlaunch_no_such_symbol"); a != 0 {
		t.Errorf("missing symbol has address %#x", a)
	}
}

func TestClose(t *testing.T) {
	library(t)
	l, err := Open(filepath.Join(scratch, "libffi_test.so"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if a := l.Symbol("take0"); a != 0 {
		t.Errorf("a closed library has a symbol at %#x", a)
	}
}

func TestSetenvReachesC(t *testing.T) {
	const name, value = "HOSTLAUNCH_FFI_TEST", "seen from C"
	t.Setenv(name, value)
	if got, ok := environment(t, name); !ok || got != value {
		t.Errorf("C has %q, %v; want %q", got, ok, value)
	}
	os.Unsetenv(name)
	if got, ok := environment(t, name); ok {
		t.Errorf("C still has %q", got)
	}
}

// environment is C's getenv.
func environment(t *testing.T, name string) (value string, ok bool) {
	fn := symbol(t, "environment")
	cname, out := append([]byte(name), 0), make([]byte, 64)
	c := NewCall()
	defer c.Free()
	c.Keep = [3]unsafe.Pointer{unsafe.Pointer(&cname[0]), unsafe.Pointer(&out[0])}
	c.Args = [12]uintptr{uintptr(c.Keep[0]), uintptr(c.Keep[1]), uintptr(len(out))}
	n := c.Do(nil, 0, fn, 3)
	return string(out[:max(n, 0)]), n >= 0
}
