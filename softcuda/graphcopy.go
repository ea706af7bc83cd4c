package softcuda

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// rows is a box of bytes in memory: depth slices of height rows of width bytes.
type rows struct {
	data                 []byte // from the first byte to the last
	width, height, depth uintptr
	pitch, slice         uintptr // how far apart rows and slices are
}

// row is one of the rows.
func (b rows) row(y, z uintptr) []byte {
	at := z*b.slice + y*b.pitch
	return b.data[at : at+b.width]
}

// each does something with every row.
func (b rows) each(do func(y, z uintptr)) {
	for z := range b.depth {
		for y := range b.height {
			do(y, z)
		}
	}
}

// extent is how many bytes there are from the first byte to the last; ok is false if the box does not fit its pitch and slice,
// or into an address space.
func (b rows) extent() (n uintptr, ok bool) {
	if b.height > 1 && b.pitch < b.width || b.depth > 1 && b.slice < b.width {
		return 0, false
	}
	return linear(b.width, b.height-1, b.pitch, b.depth-1, b.slice)
}

// linear is x + y*pitch + z*slice; ok is false if that is no size of memory.
func linear(x, y, pitch, z, slice uintptr) (n uintptr, ok bool) {
	const most = 1 << 56
	over1, a := bits.Mul64(uint64(y), uint64(pitch))
	over2, b := bits.Mul64(uint64(z), uint64(slice))
	if over1|over2 != 0 || max(uint64(x), a, b) > most {
		return 0, false
	}
	return x + uintptr(a) + uintptr(b), true
}

// end is one end of a Memcpy3D.
type end struct {
	typ           driver.MemoryType
	host          unsafe.Pointer
	device        driver.DevicePtr
	x, y, z       uintptr
	pitch, height uintptr
}

// find finds the memory of an end of a copy of a size. mu is held.
func (m *machine) findEnd(e end, width, height, depth uintptr) (b rows, at place, r driver.Result) {
	b = rows{width: width, height: height, depth: depth, pitch: e.pitch, slice: e.pitch * e.height}
	refused := driver.ErrorInvalidValue
	if over, _ := bits.Mul64(uint64(e.pitch), uint64(e.height)); over != 0 {
		return b, at, refused
	}
	n, ok := b.extent()
	off, fits := linear(e.x, e.y, b.pitch, e.z, b.slice)
	if !ok || !fits || height > 1 && e.pitch < e.x+width || depth > 1 && e.height < e.y+height {
		return b, at, refused
	}
	switch e.typ {
	case driver.MemoryHost:
		if e.host == nil {
			return b, at, refused
		}
		b.data = unsafe.Slice((*byte)(unsafe.Add(e.host, off)), n)
		return b, place{typ: e.typ}, driver.Success
	case driver.MemoryDevice:
		p := e.device + driver.DevicePtr(off)
		b.data, r = m.nodeSpan(p, n)
		return b, place{e.typ, deviceOf(p)}, r
	}
	return b, at, refused
}

// deviceOf is the number of the device that p belongs to, from 1; 0 for host memory.
func deviceOf(p driver.DevicePtr) int { return int(p / deviceSpace) }

// ofHost reports whether p is an address of host memory.
func ofHost(p driver.DevicePtr) bool { return deviceOf(p) == 0 }

// copyAction makes the action of a memcpy node, of device d.
func (m *machine) copyAction(d *device, c *driver.Memcpy3D) (*action, driver.Result) {
	if c == nil || c.Width == 0 || c.Height == 0 || c.Depth == 0 {
		return nil, driver.ErrorInvalidValue
	}
	from, a, r := m.findEnd(end{c.SrcType, c.SrcHost, c.SrcDevice, c.SrcX, c.SrcY, c.SrcZ, c.SrcPitch, c.SrcHeight}, c.Width, c.Height, c.Depth)
	if r != driver.Success {
		return nil, r
	}
	to, b, r := m.findEnd(end{c.DstType, c.DstHost, c.DstDevice, c.DstX, c.DstY, c.DstZ, c.DstPitch, c.DstHeight}, c.Width, c.Height, c.Depth)
	if r != driver.Success {
		return nil, r
	}
	m.touchRows(to, true, c.DstType == driver.MemoryHost)
	m.touchRows(from, false, c.SrcType == driver.MemoryHost)
	do := func() { to.each(func(y, z uintptr) { copy(to.row(y, z), from.row(y, z)) }) }
	t := transfer{do, load{wayOf(c.DstType == driver.MemoryHost, c.SrcType == driver.MemoryHost), c.Width * c.Height * c.Depth}}
	return &action{kind: opWork, work: d.engines.doing(t), flat: c.Height == 1 && c.Depth == 1, ends: [2]place{a, b}, form: *c, load: t.load, touches: m.nodeTouches()}, driver.Success
}

// memsetAction makes the action of a memset node, of device d.
func (m *machine) memsetAction(d *device, s *driver.Memset) (*action, driver.Result) {
	if s == nil || s.Width == 0 || s.Height == 0 || s.Width > 1<<56 {
		return nil, driver.ErrorInvalidValue
	}
	var element []byte
	switch s.ElementSize {
	case 1:
		element = []byte{byte(s.Value)}
	case 2:
		element = binary.NativeEndian.AppendUint16(nil, uint16(s.Value))
	case 4:
		element = binary.NativeEndian.AppendUint32(nil, s.Value)
	default:
		return nil, driver.ErrorInvalidValue
	}
	size := uintptr(s.ElementSize)
	b := rows{width: s.Width * size, height: s.Height, depth: 1, pitch: s.Pitch}
	n, ok := b.extent()
	if !ok || uintptr(s.Dst)%size != 0 || s.Height > 1 && s.Pitch%size != 0 {
		return nil, driver.ErrorInvalidValue
	}
	var r driver.Result
	if b.data, r = m.nodeSpan(s.Dst, n); r == driver.Success {
		m.touchRows(b, true, false)
	}
	t := transfer{func() { b.each(func(y, z uintptr) { fill(b.row(y, z), element) }) }, load{onDevice, b.width * b.height}}
	return &action{kind: opWork, work: d.engines.doing(t), flat: s.Height == 1, ends: [2]place{{driver.MemoryDevice, deviceOf(s.Dst)}}, form: *s, load: t.load, touches: m.nodeTouches()}, r
}
