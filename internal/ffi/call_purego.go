//go:build linux && (amd64 || arm64) && (!cgo || hostlaunch_purego)

package ffi

import "unsafe"

// Build names this build of the package.
const Build = "purego"

// crossPC is the address of cross, an assembly function `int cross(Call *)` in
// the C calling convention.
var crossPC uintptr

// cgocall runs the C function at fn on the system stack, as a call through cgo
// does. The runtime allows this link by name. Its argument escapes, so that the
// Call is on the heap and stays where it is if a callback grows the stack.
//
//go:linkname cgocall runtime.cgocall
func cgocall(fn uintptr, arg unsafe.Pointer) int32

func cross(c *Call) int32 { return cgocall(crossPC, unsafe.Pointer(c)) }
