//go:build linux && (amd64 || arm64)

package ffi

import (
	"sync"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/native"
)

var awaits = sync.Pool{New: func() any { return new(native.Await) }}

// Await waits, for so many looks at most, until word has come to n, counted cyclically, and then calls the C function at fn with
// data, unless fn is 0. It reports false if it has given up. No P is held meanwhile, so that neither GOMAXPROCS nor the garbage
// collector has a part in it.
func Await(word *uint32, n uint32, looks uint64, fn uintptr, data unsafe.Pointer) bool {
	a := awaits.Get().(*native.Await)
	defer awaits.Put(a)
	*a = native.Await{Word: uintptr(unsafe.Pointer(word)), Value: n, Tries: looks, Fn: fn, Data: uintptr(data)}
	c := NewCall()
	defer c.Free()
	c.Keep[0], c.Keep[1] = unsafe.Pointer(a), data
	c.Args[0] = uintptr(unsafe.Pointer(a))
	c.Do(nil, 0, native.AwaitFunc(), 1)
	return a.Tries > 0
}
