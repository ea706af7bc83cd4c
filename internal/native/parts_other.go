//go:build !linux || (!amd64 && !arm64)

package native

// PartsFunc is the address of the C function `void parts(Work *)`, a turn at a board without the Go runtime. Elsewhere than on
// Linux for amd64 and arm64 it is 0.
func PartsFunc() uintptr { return 0 }
