package native

import (
	"fmt"
	"unsafe"
)

// copiers are the ways to copy that this processor has: with each kind of vectors, past the caches and not.
func copiers() (all []copier) {
	best := processorLevel()
	for level := range best + 1 {
		for _, from := range []uintptr{0, 1 << 40} {
			all = append(all, copier{fmt.Sprintf("level %d, streaming %v", level, from == 0), func(dst, src unsafe.Pointer, n uintptr) {
				copyLevel = level
				defer func() { copyLevel = best }()
				move(dst, src, n, from)
			}})
		}
	}
	return append(all, copier{"Copy", Copy})
}
