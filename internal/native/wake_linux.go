//go:build linux && (amd64 || arm64)

package native

import (
	"syscall"
	"unsafe"
)

// Wake wakes up to n of those who sleep at b, and keeps from sleeping who is about to.
func Wake(b *Board, n int) {
	const wake, private = 1, 128
	b.Bell.Add(1)
	if b.Sleepers.Load() > 0 {
		syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&b.Bell)), wake|private, uintptr(n), 0, 0, 0)
	}
}
