// Package native holds the few assembly routines that the rest of the module
// needs: who called, on which thread and goroutine; the copy of host memory; the
// way by which a driver's thread runs a native host function and tells of its
// end without entering Go (Cell); and that by which threads share out staged
// copies without entering Go (Board).
//
// It uses no cgo and imports nothing but the standard library, so every build
// may import it. Where a routine has no assembly for an architecture, portable
// Go with the same result stands in.
package native
