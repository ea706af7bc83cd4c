//go:build linux && (amd64 || arm64) && (!cgo || hostlaunch_purego)

package ffi

// hostEntryPC and statusEntryPC are the addresses of assembly functions in the
// C calling convention.
var hostEntryPC, statusEntryPC uintptr

func hostEntry() uintptr   { return hostEntryPC }
func statusEntry() uintptr { return statusEntryPC }

// entryFrame is what an entry leaves on its C stack for the Go function that it
// has the runtime call.
type entryFrame struct {
	data   uint64
	status int32
}

// The assembly takes the Go functions' addresses from these variables, because
// a function's own symbol would give it the wrapper for the wrong convention.
var (
	goHostEntry   = func(f *entryFrame) { deliverHost(f.data) }
	goStatusEntry = func(f *entryFrame) { deliverStatus(f.data, f.status) }
)
