package softcuda

import (
	"encoding/binary"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// queueWork queues a copy. prepare is called with mu held: it checks the operands and returns what is to be done.
func (m *machine) queueWork(ctx driver.Context, onto driver.Stream, prepare func() (work func(), r driver.Result)) driver.Result {
	return m.queueWorkAs(driver.NodeMemcpy, ctx, onto, prepare)
}

// queueWorkAs queues device work that is captured as a node of a type.
func (m *machine) queueWorkAs(typ driver.NodeType, ctx driver.Context, onto driver.Stream, prepare func() (work func(), r driver.Result)) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.queueable(ctx, onto)
	if r != driver.Success {
		return r
	}
	work, r := prepare()
	touches := m.takeTouches()
	if r != driver.Success || work == nil {
		return r
	}
	o := &op{kind: opWork, node: uint8(typ), work: func() driver.Result {
		work()
		return driver.Success
	}}
	if touches != nil {
		o.note().touches = touches
	}
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
	return m.queueWork(ctx, s, func() (func(), driver.Result) {
		to, r := m.span(dst, n)
		if r != driver.Success {
			return nil, r
		}
		from, r := hostBytes(src, n)
		m.touch(to, true, false)
		m.touch(from, false, true)
		return on(&m.engines(ctx, s).toDevice, func() { copy(to, from) }), r
	})
}

// MemcpyDtoHAsync implements driver.Memory.
func (m *machine) MemcpyDtoHAsync(ctx driver.Context, dst unsafe.Pointer, src driver.DevicePtr, n uintptr, s driver.Stream) driver.Result {
	return m.queueWork(ctx, s, func() (func(), driver.Result) {
		from, r := m.span(src, n)
		if r != driver.Success {
			return nil, r
		}
		to, r := hostBytes(dst, n)
		m.touch(to, true, true)
		m.touch(from, false, false)
		return on(&m.engines(ctx, s).toHost, func() { copy(to, from) }), r
	})
}

// MemcpyDtoDAsync implements driver.Memory.
func (m *machine) MemcpyDtoDAsync(ctx driver.Context, dst, src driver.DevicePtr, n uintptr, s driver.Stream) driver.Result {
	return m.queueWork(ctx, s, func() (func(), driver.Result) {
		to, r := m.span(dst, n)
		if r != driver.Success {
			return nil, r
		}
		from, r := m.span(src, n)
		m.touch(to, true, deviceOf(dst) == 0)
		m.touch(from, false, deviceOf(src) == 0)
		return func() { copy(to, from) }, r
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
	return m.queueWorkAs(driver.NodeMemset, ctx, s, func() (func(), driver.Result) {
		size := uintptr(len(value))
		if uintptr(dst)%size != 0 {
			return nil, driver.ErrorInvalidValue
		}
		to, r := m.span(dst, n*size)
		m.touch(to, true, false)
		return func() { fill(to, value) }, r
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
