package softcuda

import (
	"encoding/binary"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// queueWork queues a copy. prepare is called with mu held: it checks the operands and returns what is to be done; the zero transfer is
// nothing.
func (m *machine) queueWork(ctx driver.Context, onto driver.Stream, prepare func() (transfer, driver.Result)) driver.Result {
	return m.queueWorkAs(driver.NodeMemcpy, ctx, onto, prepare)
}

// queueWorkAs queues device work that is captured as a node of a type.
func (m *machine) queueWorkAs(typ driver.NodeType, ctx driver.Context, onto driver.Stream, prepare func() (transfer, driver.Result)) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.queueable(ctx, onto)
	if r != driver.Success {
		return r
	}
	t, r := prepare()
	touches := m.takeTouches()
	if r != driver.Success || t.do == nil {
		return r
	}
	o := &op{kind: opWork, node: uint8(typ), work: s.ctx.dev.engines.doing(t)}
	if touches != nil {
		o.note().touches = touches
	}
	m.timing.loaded(o, t.load)
	m.enqueue(s, o)
	return driver.Success
}

// hostBytes is host memory of a copy. The slice keeps it alive until the copy is done.
func hostBytes(p unsafe.Pointer, n uintptr) ([]byte, driver.Result) {
	if p == nil && n > 0 {
		return nil, driver.ErrorInvalidValue
	}
	return unsafe.Slice((*byte)(p), n), driver.Success
}

// MemcpyHtoDAsync implements driver.Memory.
func (m *machine) MemcpyHtoDAsync(ctx driver.Context, dst driver.DevicePtr, src unsafe.Pointer, n uintptr, s driver.Stream) driver.Result {
	return m.queueWork(ctx, s, func() (t transfer, r driver.Result) {
		to, r := m.span(dst, n)
		if r != driver.Success {
			return t, r
		}
		from, r := hostBytes(src, n)
		m.touch(to, true, ofHost(dst))
		m.touch(from, false, true)
		return transfer{func() { copy(to, from) }, load{toDevice, n}}, r
	})
}

// MemcpyDtoHAsync implements driver.Memory.
func (m *machine) MemcpyDtoHAsync(ctx driver.Context, dst unsafe.Pointer, src driver.DevicePtr, n uintptr, s driver.Stream) driver.Result {
	return m.queueWork(ctx, s, func() (t transfer, r driver.Result) {
		from, r := m.span(src, n)
		if r != driver.Success {
			return t, r
		}
		to, r := hostBytes(dst, n)
		m.touch(to, true, true)
		m.touch(from, false, ofHost(src))
		return transfer{func() { copy(to, from) }, load{toHost, n}}, r
	})
}

// MemcpyDtoDAsync implements driver.Memory.
func (m *machine) MemcpyDtoDAsync(ctx driver.Context, dst, src driver.DevicePtr, n uintptr, s driver.Stream) driver.Result {
	return m.queueWork(ctx, s, func() (t transfer, r driver.Result) {
		to, r := m.span(dst, n)
		if r != driver.Success {
			return t, r
		}
		from, r := m.span(src, n)
		intoHost, fromHost := ofHost(dst), ofHost(src)
		m.touch(to, true, intoHost)
		m.touch(from, false, fromHost)
		return transfer{func() { copy(to, from) }, load{wayOf(intoHost, fromHost), n}}, r
	})
}

// MemsetD8Async implements driver.Memory.
func (m *machine) MemsetD8Async(ctx driver.Context, dst driver.DevicePtr, value uint8, n uintptr, s driver.Stream) driver.Result {
	return m.memset(ctx, dst, []byte{value}, n, s)
}

// MemsetD16Async implements driver.Memory.
func (m *machine) MemsetD16Async(ctx driver.Context, dst driver.DevicePtr, value uint16, n uintptr, s driver.Stream) driver.Result {
	return m.memset(ctx, dst, binary.NativeEndian.AppendUint16(nil, value), n, s)
}

// MemsetD32Async implements driver.Memory.
func (m *machine) MemsetD32Async(ctx driver.Context, dst driver.DevicePtr, value uint32, n uintptr, s driver.Stream) driver.Result {
	return m.memset(ctx, dst, binary.NativeEndian.AppendUint32(nil, value), n, s)
}

func (m *machine) memset(ctx driver.Context, dst driver.DevicePtr, value []byte, n uintptr, s driver.Stream) driver.Result {
	return m.queueWorkAs(driver.NodeMemset, ctx, s, func() (t transfer, r driver.Result) {
		size := uintptr(len(value))
		if uintptr(dst)%size != 0 {
			return t, driver.ErrorInvalidValue
		}
		to, r := m.span(dst, n*size)
		m.touch(to, true, ofHost(dst))
		return transfer{func() { fill(to, value) }, load{onDevice, n * size}}, r
	})
}

// fill repeats value all over to, doubling what is there.
func fill(to, value []byte) {
	for done := copy(to, value); done < len(to); done *= 2 {
		copy(to[done:], to[:done])
	}
}

// sync does an operation on the legacy stream and waits for it, as the driver's synchronous copies do.
func (m *machine) sync(ctx driver.Context, queue func(driver.Stream) driver.Result) driver.Result {
	m.mu.Lock()
	r := m.forbidden()
	m.unlock()
	if r != driver.Success {
		return r
	}
	if r := queue(driver.StreamLegacy); r != driver.Success {
		return r
	}
	return m.StreamSynchronize(ctx, driver.StreamLegacy)
}

// MemcpyHtoD implements driver.Memory.
func (m *machine) MemcpyHtoD(ctx driver.Context, dst driver.DevicePtr, src unsafe.Pointer, n uintptr) driver.Result {
	return m.sync(ctx, func(s driver.Stream) driver.Result { return m.MemcpyHtoDAsync(ctx, dst, src, n, s) })
}

// MemcpyDtoH implements driver.Memory.
func (m *machine) MemcpyDtoH(ctx driver.Context, dst unsafe.Pointer, src driver.DevicePtr, n uintptr) driver.Result {
	return m.sync(ctx, func(s driver.Stream) driver.Result { return m.MemcpyDtoHAsync(ctx, dst, src, n, s) })
}
