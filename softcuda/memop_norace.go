//go:build !race

package softcuda

import (
	"sync/atomic"
	"unsafe"
)

// acquired has what was written before the word at p seen by whoever comes now.
func acquired(p unsafe.Pointer) { atomic.LoadUint32((*uint32)(p)) }
