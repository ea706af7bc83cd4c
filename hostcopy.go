package cuda

import (
	"reflect"

	"github.com/hostlaunch/cuda/internal/native"
)

// HostMemory is a range of host memory: a *PinnedBuffer, a *ManagedBuffer, or what HostSlice makes of a slice. The interface is
// sealed.
type HostMemory interface {
	// memory is what op's argument name stands for.
	memory(op, name string) (hostRange, error)
	// owner is what keeps the memory, if that is no matter of the garbage collector's and not found by its address.
	owner() *resource
}

// HostSlice is the memory of s: ordinary Go memory, or a part of a PinnedBuffer's. T must be free of Go pointers.
func HostSlice[T any](s []T) HostMemory {
	m := sliceMemory{all: rangeOf(s)}
	if p := pointerIn(reflect.TypeFor[T]()); p != "" {
		m.pointers, m.elem = p, reflect.TypeFor[T]().String()
	}
	return m
}

// sliceMemory is HostMemory that is a slice.
type sliceMemory struct {
	all            hostRange
	elem, pointers string // an element's type and the Go pointers in it, if there are some
}

func (m sliceMemory) memory(op, name string) (hostRange, error) {
	if m.pointers != "" {
		return hostRange{}, failf(op, ErrInvalidValue,
			"%s: %s contains Go pointers (%s), which the garbage collector would lose sight of", name, m.elem, m.pointers)
	}
	return m.all, nil
}

func (m sliceMemory) owner() *resource { return nil }

func (b *PinnedBuffer) memory(op, name string) (hostRange, error) {
	if b == nil {
		return hostRange{}, failf(op, ErrInvalidValue, "%s is a nil *PinnedBuffer", name)
	}
	if b.res.closed() {
		return hostRange{}, failf(op, ErrClosed, "%s is closed", name)
	}
	return rangeOf(b.data), nil
}

func (b *PinnedBuffer) owner() *resource { return b.res }

func (m *ManagedBuffer) memory(op, name string) (hostRange, error) {
	if m == nil {
		return hostRange{}, failf(op, ErrInvalidValue, "%s is a nil *ManagedBuffer", name)
	}
	if m.whole.res.closed() {
		return hostRange{}, failf(op, ErrClosed, "%s is closed", name)
	}
	return rangeOf(m.data), nil
}

func (m *ManagedBuffer) owner() *resource { return m.whole.res }

// HostCopy queues a copy of src to dst, which must be of one length, between any two ranges of host memory. It runs in stream
// order as a native host function does: on a thread of the driver, without entering Go. The ranges may overlap; the result is
// that of Go's copy. Both ends are kept, and stay where they are, until the copy is done, and for a *GraphBuilder until nothing
// can run it any more: so a slice may be dropped and a PinnedBuffer closed at once. Read dst, and write src, only after the
// copy has been waited for.
//
// Name, SyncMode and OnDone apply. Errors as HostLaunch's; ErrInvalidValue for nil ends, for lengths that differ, and for a
// slice type that contains Go pointers, which it names. CONTRACT CY-03, CY-09.
//
//go:noinline
func HostCopy(on Queue, dst, src HostMemory, opts ...HostOption) error {
	site := native.CallerPC()
	const op = "HostCopy"
	if on == nil {
		return failf(op, ErrInvalidValue, "on is nil; pass a *Stream or a *GraphBuilder")
	}
	data, err := hostEnds(op, dst, src)
	if err != nil {
		return err
	}
	return on.hostLaunchNative(nativeLaunch{op, NativeFunc(native.CopyFunc()), data, site}, opts)
}

// hostEnds are the ends of a copy, checked.
func hostEnds(op string, dst, src HostMemory) (NativeData, error) {
	to, err := hostEnd(op, "dst", dst)
	if err != nil {
		return NativeData{}, err
	}
	from, err := hostEnd(op, "src", src)
	if err != nil {
		return NativeData{}, err
	}
	if to.n != from.n {
		return NativeData{}, failf(op, ErrInvalidValue, "dst has %d bytes and src %d; they must be equal", to.n, from.n)
	}
	return NativeData{ends: &copyEnds{to, from, [2]HostMemory{dst, src}}}, nil
}

func hostEnd(op, name string, m HostMemory) (hostRange, error) {
	if m == nil {
		return hostRange{}, failf(op, ErrInvalidValue, "%s is nil; pass a *PinnedBuffer, a *ManagedBuffer or HostSlice(s)", name)
	}
	return m.memory(op, name)
}

// copyEnds are the ends of a HostCopy.
type copyEnds struct {
	dst, src hostRange
	by       [2]HostMemory
}
