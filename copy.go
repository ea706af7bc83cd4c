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

// CopyToHost queues a copy from src to dst, which must be of src's size in bytes. dst may be any slice: of pinned memory
// (AllocPinned, Pin) the copy engine writes it directly; to ordinary memory the copy goes through pinned memory of the library,
// in chunks, by several threads; a caller that waits in Sync meanwhile copies along. Either way it is in stream order and CopyToHost
// returns at once, also when the stream is busy or a task holds it: later work of the stream, Sync and events wait until the last byte
// is in dst. Read dst only after one of them, and do not touch it before. dst is kept alive meanwhile. Only behind a task that
// has no room to hold the stream yet (MaxHeldStreams), or that may stop it (StopOnError), the call waits for its turn: see Go.
//
// Every size goes that way, since the driver's own copy to ordinary memory holds its caller up until the stream has come to it
// and the copy is done. Below a megabyte that copy is some 20 µs sooner done on an H200; Direct asks for it.
//
// On a *GraphBuilder it becomes the driver's own copy node, which copies to dst at every launch, at the driver's rate.
//
// T must be free of Go pointers, or it is ErrInvalidValue that names T. Further errors: ErrOutOfMemory if there is no pinned
// memory to stage in. CONTRACT CY-01, CY-02, CY-04 to CY-10; cuMemcpyDtoHAsync.
func CopyToHost[T any](on Queue, dst []T, src *Buffer, opts ...CopyOption) error {
	const op = "CopyToHost"
	o := newCopyOptions(op, opts)
	if err := checkCopy[T](op, on); err != nil {
		return err
	}
	return on.copyToHost(op, rangeOf(dst), src, o)
}

// CopyToDevice queues a copy from src to dst, which must be of src's size in bytes. src may be any slice, as for CopyToHost. It
// is in stream order and returns at once, as CopyToHost does. src must have its contents when CopyToDevice is called,
// and keep them until the copy has been waited for: ordinary memory is read at any time in between, and only pinned
// memory just when the stream has come to the copy. src is kept alive meanwhile.
//
// A source of ordinary memory of up to 64 KiB is left to the driver, but in tasks. NVIDIA's reads it at the call; the software device
// does not, so that its tests show who relies on that. On a *GraphBuilder the copy becomes the driver's own copy node, which
// reads src at every launch.
//
// T must be free of Go pointers, or it is ErrInvalidValue that names T. Further errors: ErrOutOfMemory if there is no pinned
// memory to stage in. CONTRACT CY-01, CY-02, CY-04 to CY-10; cuMemcpyHtoDAsync.
func CopyToDevice[T any](on Queue, dst *Buffer, src []T, opts ...CopyOption) error {
	const op = "CopyToDevice"
	o := newCopyOptions(op, opts)
	if err := checkCopy[T](op, on); err != nil {
		return err
	}
	return on.copyToDevice(op, dst, rangeOf(src), o)
}

func checkCopy[T any](op string, on Queue) error {
	if on == nil {
		return failf(op, ErrInvalidValue, "on is nil; pass a *Stream or a *GraphBuilder")
	}
	return refusePointers(op, reflect.TypeFor[T]())
}

// refusePointers refuses elements of type t for memory that a device reads or writes, if they hold Go pointers.
func refusePointers(op string, t reflect.Type) error {
	if p := pointerIn(t); p != "" {
		return failf(op, ErrInvalidValue, "%s contains Go pointers (%s), which mean nothing to a device", t, p)
	}
	return nil
}

// mustBePlain panics if T holds Go pointers.
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
func (s *Stream) copyToHost(op string, dst hostRange, src *Buffer, o *copyOptions) error {
	if err := s.beginCopy(op, "src", src, "dst", dst, o); err != nil {
		return err
	}
	defer s.endCopy(src)
	d := s.driver()
	return s.copyHost(op, true, line(dst), o, func(p unsafe.Pointer, off, n uintptr) driver.Result {
		return d.MemcpyDtoHAsync(s.ctx.raw, p, src.ptr+driver.DevicePtr(off), n, s.raw)
	}, src.res)
}

// copyToDevice implements Queue.
func (s *Stream) copyToDevice(op string, dst *Buffer, src hostRange, o *copyOptions) error {
	if err := s.beginCopy(op, "dst", dst, "src", src, o); err != nil {
		return err
	}
	defer s.endCopy(dst)
	d := s.driver()
	return s.copyHost(op, false, line(src), o, func(p unsafe.Pointer, off, n uintptr) driver.Result {
		return d.MemcpyHtoDAsync(s.ctx.raw, dst.ptr+driver.DevicePtr(off), p, n, s.raw)
	}, dst.res)
}

// beginCopy takes s and b into use for a copy, and checks that the sizes match; endCopy must follow if it returns nil.
func (s *Stream) beginCopy(op, bufName string, b *Buffer, hostName string, host hostRange, o *copyOptions) error {
	if err := s.begin(op); err != nil {
		return err
	}
	if err := b.acquire(op, bufName, s.ctx); err != nil {
		s.end()
		return err
	}
	err := o.check(op, s)
	if err == nil && uintptr(b.n) != host.n {
		err = failf(op, ErrInvalidValue, "%s has %d bytes and %s %d; they must be equal (see Buffer.Slice)", hostName, host.n, bufName, b.n)
	}
	if err != nil {
		s.endCopy(b)
	}
	return err
}

func (s *Stream) endCopy(b *Buffer) {
	b.res.release()
	s.end()
}

// copyHost queues a copy between a device and host memory, in the way that suits the memory: by move at once for the driver's
// own copy, or staged. dev is the device's end.
func (s *Stream) copyHost(op string, toHost bool, host rows, o *copyOptions, move deviceSide, dev *resource) error {
	sp := s.span(TraceCopy, op, "", int(host.bytes()))
	sp.begins(s)
	err := s.copyHostNow(op, toHost, host, o, move, dev)
	sp.ends(s, err)
	return err
}

func (s *Stream) copyHostNow(op string, toHost bool, host rows, o *copyOptions, move deviceSide, dev *resource) error {
	if host.bytes() == 0 {
		return s.tellCopied(op, host, o) // in its place of the stream all the same, if somebody is to be told
	}
	capturing := s.isCapturing()
	pinned := s.ctx.drv.pinned.find(host.span())
	if !capturing && pinned == nil && !(o != nil && o.direct) {
		st := s.ctx.stagingOf(o)
		small := !toHost && host.n == 1 && host.width <= st.tune.small
		if !small || s.ctx.pageable || s.ctx.drv.tasks.current() != nil { // a task must not wait for what may be behind itself
			return s.stage(op, st, toHost, host, o, move)
		}
	}
	if pinned == nil && !capturing { // then the driver may wait for the copy
		done, err := s.blockInTurn(op)
		if err != nil {
			return err
		}
		defer done()
	}
	c := s.capture()
	r := move(host.ptr, 0, host.bytes())
	if r == driver.Success {
		c.keep(dev)
		c.keepMemory(host.span())
	}
	if r == driver.Success && s.ctx.pageable && pinned == nil && !capturing {
		r = s.driver().StreamSynchronize(s.ctx.raw, s.raw)
	}
	if r != driver.Success {
		return s.ctx.result(op, r)
	}
	return s.tellCopied(op, host, o)
}

// tellCopied has o told when the copy that was queued last on s is done.
func (s *Stream) tellCopied(op string, host rows, o *copyOptions) error {
	if !o.told() {
		return nil
	}
	d, c := s.ctx.drv, s.ctx
	raw, err := s.behind(op)
	if err != nil {
		return err
	}
	done := o.progress(host.bytes())
	_, err = c.told(op, raw, func(r driver.Result) {
		c.events.put(raw)
		if r == driver.Success {
			done.Add(int64(host.bytes()))
		}
		if o.done != nil {
			err := c.result(op, r)
			d.report("CopyDone", o.about(), func() { o.done(err) })
		}
	})
	if err != nil {
		o.takeBack(host.bytes())
		c.events.put(raw)
	}
	return err
}

// CopyBuffer queues a copy from src to dst, which may be of different contexts and devices. cuMemcpyDtoDAsync, cuMemcpyPeerAsync.
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
	if dst.n == 0 {
		return nil
	}
	if overlap(dst, src) {
		return failf(op, ErrInvalidValue, "dst and src overlap; copy through a third buffer")
	}
	sp := s.span(TraceCopy, op, "", dst.n)
	if s.waitsTurn() {
		return s.later(op, sp, func() driver.Result { return s.queueCopy(dst, src) }, dst.res, src.res)
	}
	s.capture().keep(dst.res, src.res)
	sp.begins(s)
	r := s.queueCopy(dst, src)
	err := s.ctx.blamed(r, dst.ctx, src.ctx).result(op, r)
	sp.ends(s, err)
	return err
}

func (s *Stream) queueCopy(dst, src *Buffer) driver.Result {
	if dst.ctx.device != src.ctx.device {
		return s.driver().MemcpyPeerAsync(s.ctx.raw, dst.ptr, dst.ctx.raw, src.ptr, src.ctx.raw, uintptr(dst.n), s.raw)
	}
	return s.driver().MemcpyDtoDAsync(s.ctx.raw, dst.ptr, src.ptr, uintptr(dst.n), s.raw)
}
