//go:build !amd64 && !arm64

package native

import "runtime"

// CallerPC returns the return address of the function that calls it: for a
// function F that calls CallerPC, the place in F's caller that F returns to,
// the value that runtime.Callers(2, pcs) called in F leaves in pcs[0].
//
// F must be marked go:noinline.
//
//go:noinline
func CallerPC() uintptr {
	var pc [1]uintptr
	runtime.Callers(3, pc[:])
	return pc[0]
}
