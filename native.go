package cuda

import (
	"fmt"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
	"github.com/hostlaunch/cuda/internal/native"
)

// NativeFunc is the address of a compiled function `void f(void *data)`, in the platform's C calling convention. The function
// must stay loaded as long as it may be called.
type NativeFunc uintptr

// NativeData is what a native host function is called with. The zero NativeData is NULL; see NativeAddr, NativePointer and
// NativeBytes.
type NativeData struct {
	address uintptr
	pointer unsafe.Pointer
	bytes   []byte
	ends    *copyEnds // of a HostCopy
}

// NativeAddr is an address that arrives as it is. The memory there stays the caller's, who keeps it until the function has run.
func NativeAddr(address uintptr) NativeData { return NativeData{address: address} }

// NativePointer is a pointer that arrives as the same address. Go memory that it points to is kept alive and where it is until
// the function has run, and so is the PinnedBuffer or PinnedPool that it points into; it stays the caller's otherwise, and must hold no Go
// pointers that the function follows.
func NativePointer(p unsafe.Pointer) NativeData { return NativeData{pointer: p} }

// NativeBytes is a copy of b, made before the call returns. It lies at a multiple of 16, and lives until the function has
// returned. The function may write to it, which nobody sees but, in a graph, the next launch. No bytes arrive as NULL.
func NativeBytes(b []byte) NativeData { return NativeData{bytes: b} }

// HostLaunchNative queues the compiled function fn as a host function on on: it runs with data where HostLaunch would run a Go
// function, but Go is not entered for it. CUDA is forbidden inside. It runs exactly once, on a thread of the driver. Name,
// SyncMode and OnDone apply. What becomes of data says NativeData; what is kept for the function is let go of on an ordinary
// goroutine, some milliseconds after it has run or at the next call of the library.
//
// On a *GraphBuilder fn becomes a host node, which runs once for every launch of the graph; data is kept until nothing can run
// it any more.
//
// A function that calls back into Go (a cgo export, say) does enter Go, and counts as inside a host function there: calls of
// the library are ErrNotPermitted. (So it is for 64 threads at a time; one that finds no place among them is not recognised.)
// A panic that leaves such a callback ends the program.
//
// The software device calls compiled functions only in programs that link package libcuda, or anycuda, on Linux; else it is
// ErrNotSupported.
//
// Errors as HostLaunch's; ErrInvalidValue for a zero fn. CONTRACT HL-11, HL-12, HL-17, HL-27; cuLaunchHostFunc.
//
//go:noinline
func HostLaunchNative(on Queue, fn NativeFunc, data NativeData, opts ...HostOption) error {
	site := native.CallerPC()
	const op = "HostLaunchNative"
	if on == nil {
		return failf(op, ErrInvalidValue, "on is nil; pass a *Stream or a *GraphBuilder")
	}
	return on.hostLaunchNative(nativeLaunch{op, fn, data, site}, opts)
}

// nativeLaunch is what is to be launched.
type nativeLaunch struct {
	op   string
	fn   NativeFunc
	data NativeData
	site uintptr
}

// options checks what the launch was given.
func (l *nativeLaunch) options(opts []HostOption) (*hostOptions, error) {
	if l.fn == 0 {
		return nil, failf(l.op, ErrInvalidValue, "fn is 0; pass the address of a C function void f(void *)")
	}
	if len(opts) == 0 {
		return nil, nil
	}
	o, err := newHostOptions(l.op, opts)
	if err == nil {
		o.native = l.fn
	}
	return o, err
}

// nativeRefused is the error for a driver's answer that the function will not run.
func (c *Context) nativeRefused(op string, r driver.Result) error {
	if r == driver.ErrorNotSupported {
		return c.resultf(op, r,
			"this program cannot call C functions on the software device: import package libcuda or anycuda, on Linux for amd64 or arm64")
	}
	return c.resultf(op, r, "the driver refused the host function; it will not run")
}

// hostLaunchNative implements Queue.
func (s *Stream) hostLaunchNative(l nativeLaunch, opts []HostOption) error {
	if err := s.begin(l.op); err != nil {
		return err
	}
	defer s.end()
	o, err := l.options(opts)
	if err != nil {
		return err
	}
	if err := s.refuseCapturing(l.op); err != nil {
		return err
	}
	calls := &s.ctx.drv.natives
	call, err := calls.prepare(s.ctx, &l, o)
	if err != nil {
		return err
	}
	if !call.expect() {
		return s.ctx.lostError(l.op, s.ctx.lost())
	}
	sp := s.nativeSpan(&l, o)
	sp.begins(s)
	r := call.launch(s, o)
	if r != driver.Success && call.Take() { // else it has been swept meanwhile, and resolved: it counts as queued
		calls.endOnce(call, r.Sticky())
		err = s.ctx.nativeRefused(l.op, r)
	}
	sp.ends(s, err) // the call may be over, and another's by now
	return err
}

// launch hands the driver the entry and the cell.
func (n *nativeCall) launch(s *Stream, o *hostOptions) driver.Result {
	mode := Block
	if o != nil {
		mode = o.mode
	}
	return s.driver().LaunchNativeHostFunc(s.ctx.raw, s.raw, native.CellEntry(), n.cell.Address(), uint32(mode))
}

// hostLaunchNative implements Queue: it adds a host node.
func (b *GraphBuilder) hostLaunchNative(l nativeLaunch, opts []HostOption) error {
	c, err := b.building(l.op)
	if err != nil {
		return err
	}
	s := b.stream
	if err := s.begin(l.op); err != nil {
		return err
	}
	defer s.end()
	o, err := l.options(opts)
	if err != nil {
		return err
	}
	if err := c.nodes.mayHaveHosts(l.op); err != nil {
		return err
	}
	if o == nil {
		o = &hostOptions{native: l.fn}
	}
	h, call, err := s.ctx.keepNative(&l, o)
	if err != nil {
		return err
	}
	r, err := c.addHost(l.op, h, func() driver.Result { return call.launch(s, o) })
	if err != nil {
		return err
	}
	return s.ctx.nativeRefused(l.op, r)
}

// keepNative makes what a host node of l needs.
func (c *Context) keepNative(l *nativeLaunch, o *hostOptions) (hostfn.Handle, *nativeCall, error) {
	calls := &c.drv.natives
	call, err := calls.prepare(c, l, o)
	if err != nil {
		return 0, nil, err
	}
	h := calls.keep(call)
	if h == 0 {
		calls.release(call, false)
		return 0, nil, tooManyHosts(l.op)
	}
	return h, call, nil
}

// nativeName names a native function for reports.
func nativeName(fn NativeFunc) string {
	if uintptr(fn) == native.CopyFunc() {
		return "HostCopy"
	}
	return fmt.Sprintf("native function %#x", uintptr(fn))
}
