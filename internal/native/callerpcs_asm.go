//go:build amd64 || arm64

package native

// callerPCs follows the chain of frame pointers from its caller's caller on, while it stays on the goroutine's stack.
//
//go:noescape
func callerPCs(pcs []uintptr) int
