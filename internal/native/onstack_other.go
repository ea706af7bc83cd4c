//go:build !amd64 && !arm64

package native

import (
	"runtime"
	"slices"
)

// OnStack reports whether the calling goroutine is inside the call that will
// return to pc, an address that CallerPC gave.
func OnStack(pc uintptr) bool {
	var pcs [32]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		if slices.Contains(pcs[:n], pc) {
			return true
		}
		if n < len(pcs) {
			return false
		}
	}
}
