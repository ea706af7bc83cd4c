//go:build linux && (amd64 || arm64)

package libcuda

import (
	"fmt"
	"os"
	"unsafe"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/ffi"
)

// minimum is the CUDA version that brought cuGetProcAddress_v2.
const minimum = 12000

// library is a driver library, loaded. The three functions by which it is judged are taken from its symbol table, where
// their names have always meant the same.
type library struct {
	*ffi.Library
	version, start, getProc uintptr
}

func load(path string) (*library, error) {
	lib, err := ffi.Open(path)
	if err != nil {
		return nil, err
	}
	l := &library{lib, lib.Symbol("cuDriverGetVersion"), lib.Symbol("cuInit"), lib.Symbol("cuGetProcAddress_v2")}
	if l.version == 0 || l.start == 0 {
		lib.Close()
		return nil, fmt.Errorf("not a CUDA driver library: it has no cuInit or no cuDriverGetVersion")
	}
	return l, nil
}

// init starts the driver; a code other than 0 says that it is not to be used, and reason why. The version is asked for
// first, so that a library that cannot be used is not even started.
func (l *library) init() (code cuda.Code, reason string) {
	if code, reason := l.judge(); code != 0 {
		return code, reason
	}
	connections()
	switch r := l.call(l.start, 0); r {
	case driver.Success:
		return l.judge()
	case driver.ErrorStubLibrary:
		return cuda.ErrStubLibrary, stub
	default:
		return cuda.Code(r), "cuInit answers " + cuda.Code(r).Error()
	}
}

const stub = "a stub"

// judge says what is wrong with the library by its version, as far as it can be known.
func (l *library) judge() (code cuda.Code, reason string) {
	c := ffi.NewCall()
	defer c.Free()
	c.Args[0] = c.Ref(0)
	r := driver.Result(c.Do(nil, 0, l.version, 1))
	version := cuda.Version(int32(c.Out[0]))
	switch {
	case r == driver.ErrorStubLibrary:
		return cuda.ErrStubLibrary, stub
	case r == driver.Success && version < minimum:
		return cuda.ErrCallRequiresNewerDriver, fmt.Sprintf("for CUDA %v", version)
	case r == driver.Success && l.getProc == 0:
		return cuda.ErrNotFound, fmt.Sprintf("for CUDA %v, yet without cuGetProcAddress_v2", version)
	}
	return 0, ""
}

// call calls a function that takes integers only.
func (l *library) call(fn uintptr, args ...uintptr) driver.Result {
	c := ffi.NewCall()
	defer c.Free()
	copy(c.Args[:], args)
	return driver.Result(c.Do(nil, 0, fn, len(args)))
}

// proc asks for a function of the driver by name and version; 0: there is none. The flag asks for the legacy default
// stream's variants, which is what stream 0 means here.
func (l *library) proc(name string, version int) uintptr {
	const legacyStream = 1 // CU_GET_PROC_ADDRESS_LEGACY_STREAM
	c := ffi.NewCall()
	defer c.Free()
	c.Keep[0] = cstring(name)
	c.Args[0], c.Args[1], c.Args[2], c.Args[3], c.Args[4] = uintptr(c.Keep[0]), c.Ref(0), uintptr(version), legacyStream, c.Ref(1)
	// A version above the driver's is an error, an unknown name a null pointer.
	if driver.Result(c.Do(nil, 0, l.getProc, 5)) != driver.Success {
		return 0
	}
	return uintptr(c.Out[0])
}

const connectionsVariable = "CUDA_DEVICE_MAX_CONNECTIONS"

// connections gives the driver its full number of hardware queues, unless the user has chosen.
func connections() {
	if _, chosen := os.LookupEnv(connectionsVariable); !chosen {
		os.Setenv(connectionsVariable, "32") // also in C's environment, in both builds of ffi
	}
}

// cstring returns s as C wants it, or nil if it holds a zero byte and so has no such form.
func cstring(s string) unsafe.Pointer {
	b := append([]byte(s), 0)
	for _, c := range b[:len(s)] {
		if c == 0 {
			return nil
		}
	}
	return unsafe.Pointer(&b[0])
}
