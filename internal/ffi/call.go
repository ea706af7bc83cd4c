//go:build linux && (amd64 || arm64)

package ffi

import (
	"runtime"
	"sync"
	"unsafe"
)

// Binding says how a context is made current on a thread: the addresses of
//
//	int get(void **ctx)
//	int set(void *ctx)
//
// which return 0 on success (cuCtxGetCurrent and cuCtxSetCurrent).
type Binding struct{ Get, Set uintptr }

// Call is one call of a C function: its arguments, and room for what it writes.
// It comes from [NewCall] and goes back with [Call.Free]; in between it belongs
// to one goroutine. It may be used for several calls in turn.
type Call struct {
	// What the crossing reads, with Args: words only, never a Go pointer. The
	// C and assembly sides of Do know this layout.
	get, set, ctx, also, fn, n uintptr

	// Args are the arguments: integers of up to 64 bits and addresses.
	Args [12]uintptr

	// Out is room for out parameters: [Call.Ref] is the address of an element
	// as an argument. It is zero in a new Call, so that a narrow result can be
	// read from the whole word (both architectures are little-endian).
	Out [4]uint64

	// Keep holds Go memory that an argument gives the address of, to keep it
	// alive and on the heap during the call. C must not hold on to it.
	Keep [3]unsafe.Pointer
}

var calls = sync.Pool{New: func() any { return new(Call) }}

// NewCall returns a Call with Out and Keep zero; Args hold anything.
func NewCall() *Call { return calls.Get().(*Call) }

// Free gives c back. Neither c nor an address from [Call.Ref] may be used
// afterwards.
func (c *Call) Free() {
	c.Out = [4]uint64{}
	c.Keep = [3]unsafe.Pointer{}
	calls.Put(c)
}

// Ref returns the address of Out[i], to be used as an argument of c's calls.
func (c *Call) Ref(i int) uintptr { return uintptr(unsafe.Pointer(&c.Out[i])) }

// Do calls the C function at fn with the first n of Args and returns its int
// result. Every argument and the result are passed as integers.
//
// If ctx is not 0, ctx is current on the calling thread while fn runs, and what
// was current before is current again when Do returns; b is not touched where
// ctx already is current, beyond asking. If a function of b fails before fn was
// called, Do returns that result instead and fn isn't called. If ctx is 0, b is
// not used and may be nil. All of it is a single crossing into C, so the
// goroutine's thread cannot change in between.
//
// Do holds no P while C runs: other goroutines go on, and fn may block. fn may
// call the entries.
func (c *Call) Do(b *Binding, ctx, fn uintptr, n int) int32 {
	return c.do(b, ctx, ctx, fn, n)
}

// DoUnbound is Do for a function that needs no context, but that must not be
// called in a foreign one, which it may take note of: ctx is made current only
// if another is. Where none is current, that stays so.
func (c *Call) DoUnbound(b *Binding, ctx, fn uintptr, n int) int32 {
	return c.do(b, ctx, 0, fn, n)
}

// do leaves the current context as it is if that is ctx or also.
func (c *Call) do(b *Binding, ctx, also, fn uintptr, n int) int32 {
	c.ctx, c.also, c.fn, c.n = ctx, also, fn, uintptr(n)
	if ctx != 0 {
		c.get, c.set = b.Get, b.Set
	}
	result := cross(c)
	runtime.KeepAlive(c)
	return result
}
