//go:build !amd64 && !arm64

package native

// OnStack reports whether the calling goroutine is inside the call that will
// return to pc, an address that CallerPC gave.
func OnStack(pc uintptr) bool { return callersHas(pc) }
