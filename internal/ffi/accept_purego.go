//go:build linux && (amd64 || arm64) && (!cgo || hostlaunch_purego)

package ffi

// acceptEntryPC is the address of an assembly function in the C calling
// convention.
var acceptEntryPC uintptr

func acceptEntry() uintptr { return acceptEntryPC }
