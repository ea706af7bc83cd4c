//go:build amd64 || arm64

package native

// OnStack reports whether the calling goroutine is inside the call that will
// return to pc, an address that CallerPC gave. It costs a nanosecond or two for
// each frame of the stack, where runtime.Callers costs ten times as much.
func OnStack(pc uintptr) bool { return onStack(pc) }

// onStack follows the chain of frame pointers, which ends with 0. It is
// assembly, and so not preempted: the stack does not move meanwhile.
func onStack(pc uintptr) bool
