package native

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// CellEntry is the address of the C function `void f(Cell *)`. Elsewhere than on Linux for amd64 and arm64 it is a number that
// only Call knows.
func CellEntry() uintptr { return cellEntry() }

// CopyFunc is the address of the C function `void f(CopyArgs *)`, which copies as Copy does. It runs on any thread, on that
// thread's own stack, and does not enter Go. Elsewhere than on Linux for amd64 and arm64 it is a number that only Call knows.
func CopyFunc() uintptr { return copyFunc() }

// CopyArgsAt are those at an address that a CopyFunc is to be called with.
func CopyArgsAt(address uintptr) CopyArgs { return *(*CopyArgs)(pointer(address)) }

// CopyArgs is what CopyFunc is called with.
type CopyArgs struct {
	Dst, Src, N uintptr
	StreamFrom  uintptr // size from which on to write past the caches; 0: what is usually best
}

// caller calls a C function; nil: this program links nothing that can.
var caller atomic.Pointer[func(fn, data uintptr)]

// SetCaller gives Call a way to call C functions. Package ffi does, so it works in every program that links it.
func SetCaller(call func(fn, data uintptr)) { caller.Store(&call) }

// twins are Go functions with the same effect as native ones, by address: for programs that cannot call C.
var twins sync.Map // uintptr -> func(data uintptr)

// Twin says that twin does what the C function at fn does.
func Twin(fn uintptr, twin func(data uintptr)) { twins.Store(fn, twin) }

func init() {
	Twin(CellEntry(), func(data uintptr) { cellAt(data).run() })
	Twin(CopyFunc(), func(data uintptr) {
		a := CopyArgsAt(data)
		Copy(pointer(a.Dst), pointer(a.Src), a.N)
	})
}

// Call calls the C function `void fn(void *data)`. It reports false if the program cannot: nothing in it calls C, and fn has
// no twin in Go.
func Call(fn, data uintptr) bool {
	if hasAssembly {
		if call := caller.Load(); call != nil {
			(*call)(fn, data)
			return true
		}
	}
	twin, ok := twins.Load(fn)
	if ok {
		twin.(func(uintptr))(data)
	}
	return ok
}

// Callable reports whether Call can call fn with data. For CellEntry it tells of the cell's own function.
func Callable(fn, data uintptr) bool {
	if hasAssembly && caller.Load() != nil {
		return true
	}
	if fn == CellEntry() {
		fn = cellAt(data).fn
	}
	_, ok := twins.Load(fn)
	return ok
}

// pointer is what an address points to that has been a number for a while. Whoever made it a number keeps the memory alive.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }
