package native

import (
	"runtime"
	"slices"
)

// callersHas is OnStack the slow way, which knows every kind of stack.
func callersHas(pc uintptr) bool {
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
