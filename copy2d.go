package cuda

import (
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// Rows says how rows of bytes lie in two memories, for copies of a rectangle. A pitch is the distance from one row's beginning
// to the next one's, at least Width; 0 means Width, so that there is nothing between the rows.
type Rows struct {
	Width, Height      int // bytes of a row, and rows
	DstPitch, SrcPitch int
}

// check completes r's pitches and refuses what does not fit two memories of so many bytes.
func (r *Rows) check(op string, dst, src int) error {
	if r.Width < 0 || r.Height < 0 {
		return failf(op, ErrInvalidValue, "%d rows of %d bytes: neither may be negative", r.Height, r.Width)
	}
	for _, end := range []struct {
		name  string
		pitch *int
		n     int
	}{{"dst", &r.DstPitch, dst}, {"src", &r.SrcPitch, src}} {
		if *end.pitch == 0 {
			*end.pitch = r.Width
		}
		if *end.pitch < r.Width {
			return failf(op, ErrInvalidValue, "%s has a pitch of %d bytes: rows of %d would overlap", end.name, *end.pitch, r.Width)
		}
		if r.Width == 0 || r.Height == 0 {
			continue
		}
		if left := end.n - r.Width; left < 0 || left/max(*end.pitch, 1) < r.Height-1 {
			return failf(op, ErrInvalidValue, "%s has %d bytes, too few for %d rows of %d, %d apart", end.name, end.n, r.Height, r.Width, *end.pitch)
		}
	}
	return nil
}

// CopyRowsToHost queues a copy of rows from src to dst, as CopyToHost does of all; bytes between dst's rows stay as they are.
// Use Buffer.Slice and a part of the slice to begin elsewhere than at the first byte.
//
// Errors: as CopyToHost; ErrInvalidValue for rows that do not fit. CONTRACT CY-01; cuMemcpy2DAsync.
func CopyRowsToHost[T any](on Queue, dst []T, src *Buffer, r Rows, opts ...CopyOption) error {
	const op = "CopyRowsToHost"
	o := newCopyOptions(op, opts)
	if err := checkCopy[T](op, on); err != nil {
		return err
	}
	return on.copyRowsHost(op, true, rangeOf(dst), src, r, o)
}

// CopyRowsToDevice queues a copy of rows from src to dst, as CopyToDevice does of all; see CopyRowsToHost.
//
// Errors: as CopyToDevice; ErrInvalidValue for rows that do not fit. CONTRACT CY-01; cuMemcpy2DAsync.
func CopyRowsToDevice[T any](on Queue, dst *Buffer, src []T, r Rows, opts ...CopyOption) error {
	const op = "CopyRowsToDevice"
	o := newCopyOptions(op, opts)
	if err := checkCopy[T](op, on); err != nil {
		return err
	}
	return on.copyRowsHost(op, false, rangeOf(src), dst, r, o)
}

// copyRowsHost implements Queue.
func (s *Stream) copyRowsHost(op string, toHost bool, host hostRange, b *Buffer, r Rows, o *copyOptions) error {
	if err := s.begin(op); err != nil {
		return err
	}
	defer s.end()
	name, dst, src := "dst", b.Len(), int(host.n)
	if toHost {
		name, dst, src = "src", int(host.n), b.Len()
	}
	if err := b.acquire(op, name, s.ctx); err != nil {
		return err
	}
	defer b.res.release()
	if err := r.check(op, dst, src); err != nil {
		return err
	}
	if err := o.check(op, s); err != nil {
		return err
	}
	at, hostPitch, devPitch := rows{host.ptr, uintptr(r.Width), uintptr(r.SrcPitch), uintptr(r.Height)}, r.SrcPitch, r.DstPitch
	if toHost {
		hostPitch, devPitch = devPitch, hostPitch
		at.pitch = uintptr(hostPitch)
	}
	return s.copyHost(op, toHost, at, o, s.moveRows(toHost, at, b.ptr, uintptr(devPitch)), b.res)
}

// moveRows is the device's part of a copy of rows: between the device and a slot, where rows stand close together, or the
// program's own memory, if all of it is to be copied at once.
func (s *Stream) moveRows(toHost bool, host rows, dev driver.DevicePtr, devPitch uintptr) deviceSide {
	return func(p unsafe.Pointer, off, n uintptr) driver.Result {
		width, height, pitch := host.width, n/max(host.width, 1), host.width
		if p == host.ptr {
			pitch = host.pitch
		}
		if n < host.width { // a part of a row that is too long for a slot
			width, height = n, 1
		}
		h := driver.Copy2DEnd{Type: driver.MemoryHost, Host: p, Pitch: pitch}
		d := driver.Copy2DEnd{Type: driver.MemoryDevice, Device: dev, X: off % host.width, Y: off / host.width, Pitch: devPitch}
		c := driver.Copy2D{Src: h, Dst: d, Width: width, Height: height}
		if toHost {
			c.Src, c.Dst = d, h
		}
		return s.driver().Memcpy2DAsync(s.ctx.raw, &c, s.raw)
	}
}

// CopyRows queues a copy of rows from src to dst, buffers of one context or of two on one device.
// Ranges that overlap are refused. CONTRACT CY-01; cuMemcpy2DAsync.
func (s *Stream) CopyRows(dst, src *Buffer, r Rows) error {
	return s.copyRows("Stream.CopyRows", dst, src, r)
}

func (s *Stream) copyRows(op string, dst, src *Buffer, r Rows) error {
	if err := s.begin(op); err != nil {
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
	if err := r.check(op, dst.n, src.n); err != nil {
		return err
	}
	if r.Width == 0 || r.Height == 0 {
		return nil
	}
	reach := func(pitch int) driver.DevicePtr { return driver.DevicePtr((r.Height-1)*pitch + r.Width) }
	if dst.ptr < src.ptr+reach(r.SrcPitch) && src.ptr < dst.ptr+reach(r.DstPitch) {
		return failf(op, ErrInvalidValue, "dst and src overlap; copy through a third buffer")
	}
	s.capture().keep(dst.res, src.res)
	sp := s.span(TraceCopy, op, "", r.Width*r.Height)
	sp.begins(s)
	err := s.ctx.result(op, s.driver().Memcpy2DAsync(s.ctx.raw, &driver.Copy2D{
		Src:   driver.Copy2DEnd{Type: driver.MemoryDevice, Device: src.ptr, Pitch: uintptr(r.SrcPitch)},
		Dst:   driver.Copy2DEnd{Type: driver.MemoryDevice, Device: dst.ptr, Pitch: uintptr(r.DstPitch)},
		Width: uintptr(r.Width), Height: uintptr(r.Height),
	}, s.raw))
	sp.ends(s, err)
	return err
}

// CopyRows adds a copy of rows between buffers. See Stream.CopyRows.
func (b *GraphBuilder) CopyRows(dst, src *Buffer, r Rows) error {
	const op = "GraphBuilder.CopyRows"
	if _, err := b.building(op); err != nil {
		return err
	}
	return b.stream.copyRows(op, dst, src, r)
}

// copyRowsHost implements Queue.
func (b *GraphBuilder) copyRowsHost(op string, toHost bool, host hostRange, buf *Buffer, r Rows, o *copyOptions) error {
	if _, err := b.building(op); err != nil {
		return err
	}
	return b.stream.copyRowsHost(op, toHost, host, buf, r, o)
}
