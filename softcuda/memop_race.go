//go:build race

package softcuda

import (
	"runtime"
	"unsafe"
)

// acquired tells the race detector that what was written before the word at p, atomically, is seen now.
func acquired(p unsafe.Pointer) { runtime.RaceAcquire(p) }
