//go:build !amd64 && !arm64

package native

import "unsafe"

// Copy copies n bytes from src to dst, as memmove does: the ranges may overlap. They must not hold Go pointers.
func Copy(dst, src unsafe.Pointer, n uintptr) {
	copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
}
