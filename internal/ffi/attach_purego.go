//go:build linux && (amd64 || arm64) && !cgo

package ffi

import (
	"unsafe"

	"github.com/ebitengine/purego"
)

// A thread that Go did not create is attached to the Go runtime when it first
// enters Go: it is lent an M. Without cgo it would hand the M back on leaving,
// each time, which costs some microseconds. The runtime keeps a thread attached
// if the C side can tell it when the thread ends. Real cgo does that with a
// thread-specific value whose destructor detaches the thread; so does this.

// What the assembly needs: the functions to be called by C, and what bindThread
// passes to pthread_setspecific.
var (
	detachThreadPC     uintptr
	threadKey          uint32
	pthreadSetspecific uintptr
)

// keyCreated returns the address of the word with which the C side tells the
// runtime that it will detach ending threads, or nil if the runtime has none.
func keyCreated() *uintptr

// setBindThread makes bindThread the function that the runtime calls when it
// has attached a thread.
func setBindThread()

func init() {
	created := keyCreated()
	if created == nil || *created != 0 {
		return // the C side is real cgo's or has learned to do it itself
	}
	create, err1 := purego.Dlsym(purego.RTLD_DEFAULT, "pthread_key_create")
	set, err2 := purego.Dlsym(purego.RTLD_DEFAULT, "pthread_setspecific")
	if err1 != nil || err2 != nil || !createThreadKey(create) {
		return // slower, but right
	}
	pthreadSetspecific = set
	setBindThread()
	*created = 1
}

// createThreadKey sets threadKey to a new key with detachThread as destructor.
func createThreadKey(pthreadKeyCreate uintptr) bool {
	c := NewCall()
	defer c.Free()
	c.Args[0], c.Args[1] = uintptr(unsafe.Pointer(&threadKey)), detachThreadPC
	return c.Do(nil, 0, pthreadKeyCreate, 2) == 0
}
