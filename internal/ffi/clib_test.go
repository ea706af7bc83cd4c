//go:build linux && (amd64 || arm64)

package ffi

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// scratch is where the run's C library is compiled.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "ffi"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// compile builds the C library of testdata and opens it, once. A nil library
// without an error means that there is no C compiler.
var compile = sync.OnceValues(func() (*Library, error) {
	// As in Go's own use of it, CC may hold arguments.
	cc := strings.Fields(cmp.Or(os.Getenv("CC"), "cc"))
	if _, err := exec.LookPath(cc[0]); err != nil {
		return nil, nil
	}
	path := filepath.Join(scratch, "libffi_test.so")
	args := append(cc[1:], "-O2", "-shared", "-fPIC", "-pthread", "-o", path, filepath.Join("testdata", "ffi.c"))
	if out, err := exec.Command(cc[0], args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v\n%s", err, out)
	}
	return Open(path)
})

// library returns the C library of testdata. Without a C compiler the test is
// skipped, or fails if HOSTLAUNCH_REQUIRE_CC is 1.
func library(t testing.TB) *Library {
	t.Helper()
	l, err := compile()
	if err != nil {
		t.Fatal(err)
	}
	if l != nil {
		return l
	}
	const why = "no C compiler (set CC) to build testdata/ffi.c with"
	if os.Getenv("HOSTLAUNCH_REQUIRE_CC") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
	return nil
}

// symbol returns the address of one of the library's functions.
func symbol(t testing.TB, name string) uintptr {
	t.Helper()
	address := library(t).Symbol(name)
	if address == 0 {
		t.Fatalf("no symbol %s", name)
	}
	return address
}

// call calls one of the library's functions with no context.
func call(t testing.TB, name string, args ...uintptr) int32 {
	t.Helper()
	fn := symbol(t, name)
	c := NewCall()
	defer c.Free()
	copy(c.Args[:], args)
	return c.Do(nil, 0, fn, len(args))
}
