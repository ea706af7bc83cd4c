//go:build linux && (amd64 || arm64)

package libcuda

import (
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// StreamBatchMemOp implements driver.MemoryOps.
func (nv *nvidia) StreamBatchMemOp(ctx driver.Context, s driver.Stream, ops []driver.MemOp, flags uint32) driver.Result {
	return nv.streamBatchMemOp(ctx, s, uint32(len(ops)), unsafe.Pointer(unsafe.SliceData(ops)), flags)
}
