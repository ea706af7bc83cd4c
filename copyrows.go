package cuda

import "unsafe"

// rows is host memory of a copy: n rows of width bytes, pitch bytes from one's beginning to the next one's. One row is a plain
// range. A place in it is counted in bytes of the rows alone, one behind the other.
type rows struct {
	ptr             unsafe.Pointer
	width, pitch, n uintptr
}

// line is a plain range.
func line(h hostRange) rows { return rows{h.ptr, h.n, h.n, 1} }

func (r rows) bytes() uintptr { return r.width * r.n }

// span is the range from the first byte to the last.
func (r rows) span() hostRange {
	if r.bytes() == 0 {
		return hostRange{r.ptr, 0}
	}
	return hostRange{r.ptr, (r.n-1)*r.pitch + r.width}
}

// at is the memory at off, and how far it goes on.
func (r rows) at(off uintptr) (p unsafe.Pointer, n uintptr) {
	row, col := off/r.width, off%r.width
	return unsafe.Add(r.ptr, row*r.pitch+col), r.width - col
}

// whole is a size of at most n for a piece that begins at off: of whole rows, or of a part of one row.
func (r rows) whole(off, n uintptr) uintptr {
	switch col := off % r.width; {
	case r.n == 1:
		return n
	case col == 0 && n >= r.width:
		return n / r.width * r.width
	default:
		return min(n, r.width-col)
	}
}
