// Package ffi calls C functions by address and lets C call back into Go, on
// Linux for amd64 and arm64. On other platforms it is empty.
//
// A call ([Call]) crosses into C once: it makes a context current, calls the
// function, and makes the former context current again. A callback arrives at
// one of two fixed C functions ([HostEntry], [StatusEntry]), which find the Go
// function by a tag in the 64 bits of data that C passes ([Receive]). Neither
// direction allocates, and no C function is made per call or per callback.
// Programs that link this package can call native host functions by way of
// package native (native.Call).
//
// There are two builds of the same API. With cgo (the default where there is a
// C compiler) the crossing is a small C function and the entries are exported
// Go functions. Without it (CGO_ENABLED=0, or the build tag hostlaunch_purego)
// both are assembly, on the C runtime that github.com/ebitengine/purego starts
// in a program that has none; no C compiler is needed.
//
// In both builds the Go runtime orders whatever happened before a call of Do
// before the callbacks that the call gives rise to, also for the race detector.
package ffi
