package cuda

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// hostRange is host memory of a copy.
type hostRange struct {
	ptr unsafe.Pointer
	n   uintptr
}

func rangeOf[T any](s []T) hostRange {
	var zero T
	return hostRange{unsafe.Pointer(unsafe.SliceData(s)), uintptr(len(s)) * unsafe.Sizeof(zero)}
}

// CopyToHost queues a copy from src to dst, which must be of src's size in bytes. dst may be ordinary Go memory or a
// PinnedBuffer's. It is in stream order; read dst only after the copy has been waited for. On the NVIDIA driver a copy to
// ordinary memory may make the caller wait for it.
//
// T must be free of Go pointers, or it is ErrInvalidValue that names T. CONTRACT CY-01, CY-02, CY-09; cuMemcpyDtoHAsync.
func CopyToHost[T any](on Queue, dst []T, src *Buffer) error {
	const op = "CopyToHost"
	if err := checkCopy[T](op, on); err != nil {
		return err
	}
	return on.copyToHost(op, rangeOf(dst), src)
}

// CopyToDevice queues a copy from src to dst, which must be of src's size in bytes. src may be ordinary Go memory or a
// PinnedBuffer's. It is in stream order; src may be written again only after the copy has been waited for.
//
// T must be free of Go pointers, or it is ErrInvalidValue that names T. CONTRACT CY-01, CY-02, CY-09; cuMemcpyHtoDAsync.
func CopyToDevice[T any](on Queue, dst *Buffer, src []T) error {
	const op = "CopyToDevice"
	if err := checkCopy[T](op, on); err != nil {
		return err
	}
	return on.copyToDevice(op, dst, rangeOf(src))
}

func checkCopy[T any](op string, on Queue) error {
	if on == nil {
		return failf(op, ErrInvalidValue, "on is nil; pass a *Stream or a *GraphBuilder")
	}
	if p := pointerIn(reflect.TypeFor[T]()); p != "" {
		return failf(op, ErrInvalidValue, "%s contains Go pointers (%s), which mean nothing to a device", reflect.TypeFor[T](), p)
	}
	return nil
}

func mustBePlain[T any](op string) {
	if p := pointerIn(reflect.TypeFor[T]()); p != "" {
		panic(fmt.Sprintf("cuda: %s: %s contains Go pointers (%s)", op, reflect.TypeFor[T](), p))
	}
}

// pointerIn finds a Go pointer in t and names where, or returns "".
func pointerIn(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Array:
		if t.Len() > 0 {
			return pointerIn(t.Elem())
		}
	case reflect.Struct:
		for i := range t.NumField() {
			if p := pointerIn(t.Field(i).Type); p != "" {
				return t.Field(i).Name + " " + p
			}
		}
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Pointer, reflect.Slice, reflect.String, reflect.UnsafePointer:
		return t.String()
	}
	return ""
}

// copyToHost implements Queue.
func (s *Stream) copyToHost(op string, dst hostRange, src *Buffer) error {
	return s.copyHost(op, "src", src, "dst", dst, func() driver.Result {
		return s.driver().MemcpyDtoHAsync(s.ctx.raw, dst.ptr, src.ptr, dst.n, s.raw)
	})
}

// copyToDevice implements Queue.
func (s *Stream) copyToDevice(op string, dst *Buffer, src hostRange) error {
	return s.copyHost(op, "dst", dst, "src", src, func() driver.Result {
		return s.driver().MemcpyHtoDAsync(s.ctx.raw, dst.ptr, src.ptr, src.n, s.raw)
	})
}

func (s *Stream) copyHost(op, bufName string, b *Buffer, hostName string, host hostRange, queue func() driver.Result) error {
	if err := s.begin(op); err != nil {
		return err
	}
	defer s.end()
	if err := b.acquire(op, bufName, s.ctx); err != nil {
		return err
	}
	defer b.res.release()
	if uintptr(b.n) != host.n {
		return failf(op, ErrInvalidValue, "%s has %d bytes and %s %d; they must be equal (see Buffer.Slice)", hostName, host.n, bufName, b.n)
	}
	if host.n == 0 {
		return nil
	}
	c := s.capture()
	if c == nil && s.ctx.drv.tasks.running.Load() > 0 && len(s.ctx.drv.pinned.at(host)) == 0 { // then the driver may wait for the copy
		waited, err := s.mayWait(op)
		if err != nil {
			return err
		}
		defer waited()
	}
	r := queue()
	if r == driver.Success {
		c.keep(b.res)
		c.keepMemory(host)
	}
	if r == driver.Success && s.ctx.pageable && c == nil {
		r = s.driver().StreamSynchronize(s.ctx.raw, s.raw)
	}
	return s.ctx.result(op, r)
}

// CopyBuffer queues a copy from src to dst. cuMemcpyDtoDAsync.
func (s *Stream) CopyBuffer(dst, src *Buffer) error {
	return s.copyBuffer("Stream.CopyBuffer", dst, src)
}

func (s *Stream) copyBuffer(op string, dst, src *Buffer) error {
	if err := s.beginQueue(op); err != nil {
		return err
	}
	defer s.end()
	if err := dst.acquire(op, "dst", s.ctx); err != nil {
		return err
	}
	defer dst.res.release()
	if err := src.acquire(op, "src", s.ctx); err != nil {
		return err
	}
	defer src.res.release()
	if dst.n != src.n {
		return failf(op, ErrInvalidValue, "dst has %d bytes and src %d; they must be equal (see Buffer.Slice)", dst.n, src.n)
	}
	if dst.ptr < src.ptr+driver.DevicePtr(src.n) && src.ptr < dst.ptr+driver.DevicePtr(dst.n) {
		return failf(op, ErrInvalidValue, "dst and src overlap; copy through a third buffer")
	}
	if dst.n == 0 {
		return nil
	}
	if s.waitsTurn() {
		return s.later(op, func() driver.Result {
			return s.driver().MemcpyDtoDAsync(s.ctx.raw, dst.ptr, src.ptr, uintptr(dst.n), s.raw)
		}, dst.res, src.res)
	}
	s.capture().keep(dst.res, src.res)
	return s.ctx.result(op, s.driver().MemcpyDtoDAsync(s.ctx.raw, dst.ptr, src.ptr, uintptr(dst.n), s.raw))
}
