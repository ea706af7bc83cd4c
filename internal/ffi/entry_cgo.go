//go:build linux && (amd64 || arm64) && cgo && !hostlaunch_purego

package ffi

/*
#include <stdint.h>

extern void hostlaunchHostEntry(uintptr_t data);
extern void hostlaunchStatusEntry(uintptr_t stream, int status, uintptr_t data);
*/
import "C"

func hostEntry() uintptr   { return uintptr(C.hostlaunchHostEntry) }
func statusEntry() uintptr { return uintptr(C.hostlaunchStatusEntry) }

//export hostlaunchHostEntry
func hostlaunchHostEntry(data C.uintptr_t) { deliverHost(uint64(data)) }

//export hostlaunchStatusEntry
func hostlaunchStatusEntry(_ C.uintptr_t, status C.int, data C.uintptr_t) {
	deliverStatus(uint64(data), int32(status))
}
