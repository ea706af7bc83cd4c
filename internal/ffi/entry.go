//go:build linux && (amd64 || arm64)

package ffi

// HostEntry returns the address of the C function
//
//	void f(void *data)
//
// that calls the host function of data's tag (see [Receive]). Any thread may
// call it, at any time, also in a call by [Call.Do].
func HostEntry() uintptr { return hostEntry() }

// StatusEntry returns the address of the C function
//
//	void f(void *stream, int status, void *data)
//
// that calls the status function of data's tag with status. Otherwise it is
// like [HostEntry].
func StatusEntry() uintptr { return statusEntry() }

// deliverHost is the Go end of the host entry.
func deliverHost(data uint64) {
	if r := receivers[data>>tagShift].Load(); r != nil {
		defer leave(enter())
		r.host(data & dataMask)
	}
}

// deliverStatus is the Go end of the status entry.
func deliverStatus(data uint64, status int32) {
	if r := receivers[data>>tagShift].Load(); r != nil {
		defer leave(enter())
		r.status(data&dataMask, status)
	}
}
