//go:build linux && (amd64 || arm64)

package libcuda

import (
	"os"
	"strconv"
)

// HardwareQueues implements driver.Holds. The variable is the one that the driver read when it was initialised, unless the
// program has changed it since.
func (nv *nvidia) HardwareQueues() int {
	const usual, most = 8, 32
	n, err := strconv.Atoi(os.Getenv(connectionsVariable))
	if err != nil || n < 1 {
		return usual
	}
	return min(n, most)
}

// EmulateSpin implements driver.Holds: the mode came with CUDA 13.2.
func (nv *nvidia) EmulateSpin() bool { return nv.fns[fnLaunchHostFunc_v2] == 0 }

// MemoryWritten implements driver.Holds. The GPU looks for itself.
func (nv *nvidia) MemoryWritten() {}
