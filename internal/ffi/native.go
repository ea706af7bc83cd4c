//go:build linux && (amd64 || arm64)

package ffi

import "github.com/hostlaunch/cuda/internal/native"

// Whatever links this package can call native host functions.
func init() { native.SetCaller(CallHost) }

// CellEntry is native.CellEntry.
func CellEntry() uintptr { return native.CellEntry() }

// CallHost calls the C function `void fn(void *data)`. No P is held meanwhile.
func CallHost(fn, data uintptr) {
	c := NewCall()
	defer c.Free()
	c.Args[0] = data
	c.Do(nil, 0, fn, 1)
}
