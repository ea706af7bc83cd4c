//go:build linux && (amd64 || arm64)

package libcuda

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/ffi"
)

// fake is an instance of testdata/fakecuda.c: a driver library that writes down what it is called with.
type fake struct {
	t    testing.TB
	path string
	lib  *ffi.Library
}

// What can be set and read in a fake, in fakecuda.c's order.
const (
	knobVersion = iota
	knobInit
	knobVersionResult
	knobLost
	knobEvent
	knobHold
	knobConnections
	knobInits
	knobPolls
	knobUnrelaxed
	knobStreams
	knobCapturing
	knobStrict
)

// compiled is the fake's library, made once.
var compiled = sync.OnceValues(func() (image []byte, problem string) {
	cc, err := exec.LookPath("gcc")
	if err != nil {
		return nil, "no C compiler (gcc) to build the fake libcuda with"
	}
	dir, err := os.MkdirTemp("", "fakecuda")
	if err != nil {
		return nil, err.Error()
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "fakecuda.so")
	out, err := exec.Command(cc, "-Wall", "-Werror", "-shared", "-fPIC", "-pthread", "-o", path, "testdata/fakecuda.c").CombinedOutput()
	if err != nil {
		return nil, err.Error() + "\n" + string(out)
	}
	image, err = os.ReadFile(path)
	if err != nil {
		return nil, err.Error()
	}
	return image, ""
})

// newFake gives the test a driver library of its own, and has open find it and nothing else.
func newFake(t testing.TB) *fake {
	t.Helper()
	image, problem := compiled()
	if problem != "" {
		if os.Getenv("HOSTLAUNCH_REQUIRE_CC") == "1" || !strings.HasPrefix(problem, "no C compiler") {
			t.Fatal(problem)
		}
		t.Skip(problem)
	}
	f := &fake{t: t, path: filepath.Join(t.TempDir(), "libcuda.so.1")}
	if err := os.WriteFile(f.path, image, 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if f.lib, err = ffi.Open(f.path); err != nil { // and never closed: its threads stay
		t.Fatal(err)
	}
	if s, ok := t.(interface{ Setenv(string, string) }); ok {
		s.Setenv(overrideVariable, f.path)
	}
	return f
}

// open opens the fake as a driver, with upcalls that the test may have set.
func (f *fake) open(up driver.Upcalls) *nvidia {
	f.t.Helper()
	nv, err := open()
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(nv.Shut)
	nv.Attach(up)
	return nv
}

func (f *fake) call(name string, args ...uintptr) {
	c := ffi.NewCall()
	defer c.Free()
	copy(c.Args[:], args)
	c.Do(nil, 0, f.lib.Symbol(name), len(args))
}

func (f *fake) set(knob int, value int64) { f.call("fake_set", uintptr(knob), uintptr(value)) }

func (f *fake) get(knob int) int64 {
	c := ffi.NewCall()
	defer c.Free()
	c.Args[0], c.Args[1] = uintptr(knob), c.Ref(0)
	c.Do(nil, 0, f.lib.Symbol("fake_get"), 2)
	return int64(c.Out[0])
}

// missing has the fake lack a function.
func (f *fake) missing(name string) {
	c := ffi.NewCall()
	defer c.Free()
	c.Keep[0] = cstring(name)
	c.Args[0] = uintptr(c.Keep[0])
	c.Do(nil, 0, f.lib.Symbol("fake_missing"), 1)
}

// log returns what has been called since the last time, a line each.
func (f *fake) log() []string {
	c := ffi.NewCall()
	defer c.Free()
	b := make([]byte, 1<<17)
	c.Keep[0] = unsafe.Pointer(&b[0])
	c.Args[0], c.Args[1] = uintptr(c.Keep[0]), uintptr(len(b))
	c.Do(nil, 0, f.lib.Symbol("fake_log"), 2)
	b, _, _ = bytes.Cut(b, []byte{0})
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' })
}

// eventually fails the test unless ok becomes true within d.
func eventually(t testing.TB, d time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}
