//go:build linux && (amd64 || arm64)

package ffi

import (
	"sync"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/native"
)

// copyCall is what a native copy is called with, behind a wait or not.
type copyCall struct {
	await native.Await
	args  native.CopyArgs
}

var copyCalls = sync.Pool{New: func() any { return new(copyCall) }}

// Memcpy copies as native.Copy does. No P is held meanwhile, so that neither GOMAXPROCS nor the garbage collector has a part in
// it. From streamFrom bytes on it writes past the caches.
func Memcpy(dst, src unsafe.Pointer, n, streamFrom uintptr) {
	MemcpyAfter(nil, 0, 0, dst, src, n, streamFrom)
}

// MemcpyAfter is Memcpy, but that it first waits, for so many looks at most, until word has come to value, counted cyclically.
// It reports false if it has given up, and then nothing was copied. With a nil word it does not wait.
func MemcpyAfter(word *uint32, value uint32, looks uint64, dst, src unsafe.Pointer, n, streamFrom uintptr) bool {
	m := copyCalls.Get().(*copyCall)
	defer copyCalls.Put(m)
	m.args = native.CopyArgs{Dst: uintptr(dst), Src: uintptr(src), N: n, StreamFrom: streamFrom}
	c := NewCall()
	defer c.Free()
	c.Keep = [...]unsafe.Pointer{unsafe.Pointer(m), dst, src}
	if word == nil {
		c.Args[0] = uintptr(unsafe.Pointer(&m.args))
		c.Do(nil, 0, native.CopyFunc(), 1)
		return true
	}
	m.await = native.Await{
		Word: uintptr(unsafe.Pointer(word)), Value: value, Tries: looks, Fn: native.CopyFunc(), Data: uintptr(unsafe.Pointer(&m.args)),
	}
	c.Args[0] = uintptr(unsafe.Pointer(&m.await))
	c.Do(nil, 0, native.AwaitFunc(), 1)
	return m.await.Tries > 0
}
