//go:build amd64 || arm64

package native

// OnStack reports whether the calling goroutine is inside the call that will
// return to pc, an address that CallerPC gave. It costs a nanosecond or two for
// each frame of the stack, where runtime.Callers costs ten times as much.
func OnStack(pc uintptr) bool {
	switch onStack(pc) {
	case 0:
		return false
	case 1:
		return true
	}
	return callersHas(pc)
}

// onStack follows the chain of frame pointers while it stays on the goroutine's
// stack: 1 if it meets pc, 0 if it ends with 0, 2 if C code has cut it (a
// callback from C, which may use the frame pointer register for data).
func onStack(pc uintptr) byte
