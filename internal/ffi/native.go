//go:build linux && (amd64 || arm64)

package ffi

import "github.com/hostlaunch/cuda/internal/native"

// Whatever links this package can call native host functions.
func init() { native.SetCaller(callHost) }

// CellEntry is native.CellEntry.
func CellEntry() uintptr { return native.CellEntry() }

// callHost calls the C function `void fn(void *data)`.
func callHost(fn, data uintptr) {
	c := NewCall()
	defer c.Free()
	c.Args[0] = data
	c.Do(nil, 0, fn, 1)
}
