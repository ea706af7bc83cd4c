//go:build amd64 || arm64

package native

import "unsafe"

const (
	// streamFrom is the size from which on a copy is written past the caches, unless the caller says otherwise. Smaller ones
	// are faster through the caches, as long as the destination finds room there.
	streamFrom = 1 << 20

	copySmall = 4 << 10 // up to here Go's own copy is as good
	copyPiece = 4 << 20 // a goroutine that copies can be interrupted only between pieces
)

// Copy copies n bytes from src to dst, as memmove does: the ranges may overlap. They must not hold Go pointers. It is never
// much slower than Go's copy; from some megabytes on it is faster where the processor has wide streaming stores, and other
// goroutines are not held up while it works.
func Copy(dst, src unsafe.Pointer, n uintptr) {
	if n <= copySmall {
		copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
		return
	}
	copyPieces(dst, src, n)
}

// copyPieces copies by pieces, away from an overlap.
func copyPieces(dst, src unsafe.Pointer, n uintptr) {
	from := uintptr(streamFrom)
	if n >= streamFrom {
		from = 0
	}
	back := uintptr(dst)-uintptr(src) < n
	for done := uintptr(0); done < n; {
		piece := min(n-done, copyPiece)
		at := done
		if back {
			at = n - done - piece
		}
		move(unsafe.Add(dst, at), unsafe.Add(src, at), piece, from)
		done += piece
	}
}

// move copies n bytes as memmove does, and streams if there are at least streamFrom. It cannot be interrupted.
//
//go:noescape
func move(dst, src unsafe.Pointer, n, streamFrom uintptr)
