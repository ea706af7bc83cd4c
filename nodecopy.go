package cuda

import (
	"reflect"

	"github.com/hostlaunch/cuda/internal/driver"
)

// MemcpyParams copy src to dst, which must be of one length, not 0, and must not overlap.
func MemcpyParams(dst, src *Buffer) NodeParams { return &bufferCopy{dst, src} }

type bufferCopy struct{ dst, src *Buffer }

func (p *bufferCopy) lower(l *lowering) error {
	if err := l.buffer("dst", p.dst); err != nil {
		return err
	}
	if err := l.buffer("src", p.src); err != nil {
		return err
	}
	if p.dst.n != p.src.n {
		return failf(l.op, ErrInvalidValue, "dst has %d bytes and src %d; they must be equal (see Buffer.Slice)", p.dst.n, p.src.n)
	}
	if overlap(p.dst, p.src) {
		return failf(l.op, ErrInvalidValue, "dst and src overlap; copy through a third buffer")
	}
	return l.copy(driver.Memcpy3D{
		SrcType: driver.MemoryDevice, SrcDevice: p.src.ptr, DstType: driver.MemoryDevice, DstDevice: p.dst.ptr, Width: uintptr(p.dst.n),
	})
}

// MemcpyToHostParams copy src to dst, which must be of src's size in bytes. dst may be ordinary Go memory or a PinnedBuffer's,
// and is kept as long as anything can run the node. T must be free of Go pointers.
func MemcpyToHostParams[T any](dst []T, src *Buffer) NodeParams {
	return &hostCopy{b: src, host: rangeOf(dst), toHost: true, elem: reflect.TypeFor[T]()}
}

// MemcpyToDeviceParams copy src to dst, which must be of src's size in bytes. src is read at every launch, and is kept as long
// as anything can run the node; it may be ordinary Go memory or a PinnedBuffer's. T must be free of Go pointers.
func MemcpyToDeviceParams[T any](dst *Buffer, src []T) NodeParams {
	return &hostCopy{b: dst, host: rangeOf(src), elem: reflect.TypeFor[T]()}
}

type hostCopy struct {
	b      *Buffer
	host   hostRange
	toHost bool
	elem   reflect.Type
}

func (p *hostCopy) lower(l *lowering) error {
	bufName, hostName := "dst", "src"
	if p.toHost {
		bufName, hostName = hostName, bufName
	}
	if err := refusePointers(l.op, p.elem); err != nil {
		return err
	}
	if err := l.buffer(bufName, p.b); err != nil {
		return err
	}
	if uintptr(p.b.n) != p.host.n {
		return failf(l.op, ErrInvalidValue, "%s has %d bytes and %s %d; they must be equal (see Buffer.Slice)", hostName, p.host.n, bufName, p.b.n)
	}
	l.own().addMemory(p.host)
	if p.toHost {
		return l.copy(driver.Memcpy3D{
			SrcType: driver.MemoryDevice, SrcDevice: p.b.ptr, DstType: driver.MemoryHost, DstHost: p.host.ptr, Width: p.host.n,
		})
	}
	return l.copy(driver.Memcpy3D{
		SrcType: driver.MemoryHost, SrcHost: p.host.ptr, DstType: driver.MemoryDevice, DstDevice: p.b.ptr, Width: p.host.n,
	})
}

// copy completes the parameters of a copy in one dimension.
func (l *lowering) copy(c driver.Memcpy3D) error {
	if c.Width == 0 {
		return failf(l.op, ErrInvalidValue, "there is nothing to copy: a memcpy node needs at least one byte")
	}
	c.Height, c.Depth = 1, 1
	l.params.Type, l.params.Copy = driver.NodeMemcpy, &c
	return nil
}

// MemsetParams fill b with value.
func MemsetParams(b *Buffer, value byte) NodeParams { return &memsetParams{b, uint32(value), 1} }

// Memset16Params fill b with a value of two bytes; b's address and length must be a multiple of that.
func Memset16Params(b *Buffer, value uint16) NodeParams { return &memsetParams{b, uint32(value), 2} }

// Memset32Params fill b with a value of four bytes; b's address and length must be a multiple of that.
func Memset32Params(b *Buffer, value uint32) NodeParams { return &memsetParams{b, value, 4} }

type memsetParams struct {
	buffer *Buffer
	value  uint32
	size   int
}

func (p *memsetParams) lower(l *lowering) error {
	if err := l.buffer("the buffer", p.buffer); err != nil {
		return err
	}
	b := p.buffer
	if err := b.divides(l.op, "the buffer", p.size); err != nil {
		return err
	}
	if b.n == 0 {
		return failf(l.op, ErrInvalidValue, "there is nothing to fill: a memset node needs at least one byte")
	}
	l.params.Type = driver.NodeMemset
	l.params.Memset = &driver.Memset{Dst: b.ptr, Value: p.value, ElementSize: uint32(p.size), Width: uintptr(b.n / p.size), Height: 1}
	return nil
}
