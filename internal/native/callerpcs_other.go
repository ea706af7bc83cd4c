//go:build !amd64 && !arm64

package native

import "runtime"

func callerPCs(pcs []uintptr) int { return runtime.Callers(3, pcs) }
