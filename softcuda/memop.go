package softcuda

import (
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// words is zeroed memory of n bytes that begins at a multiple of 8, as memory operations want it.
func words(n uintptr) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(make([]uint64, (n+7)/8)))), n)
}

// StreamWriteValue32 implements driver.MemoryOps.
func (m *machine) StreamWriteValue32(ctx driver.Context, s driver.Stream, at driver.DevicePtr, value, flags uint32) driver.Result {
	return m.memOp(ctx, s, driver.MemOp{Op: driver.MemOpWrite32, Address: at, Value: uint64(value), Flags: flags})
}

// StreamWriteValue64 implements driver.MemoryOps.
func (m *machine) StreamWriteValue64(ctx driver.Context, s driver.Stream, at driver.DevicePtr, value uint64, flags uint32) driver.Result {
	return m.memOp(ctx, s, driver.MemOp{Op: driver.MemOpWrite64, Address: at, Value: value, Flags: flags})
}

// StreamWaitValue32 implements driver.MemoryOps.
func (m *machine) StreamWaitValue32(ctx driver.Context, s driver.Stream, at driver.DevicePtr, value, flags uint32) driver.Result {
	return m.memOp(ctx, s, driver.MemOp{Op: driver.MemOpWait32, Address: at, Value: uint64(value), Flags: flags})
}

// StreamWaitValue64 implements driver.MemoryOps.
func (m *machine) StreamWaitValue64(ctx driver.Context, s driver.Stream, at driver.DevicePtr, value uint64, flags uint32) driver.Result {
	return m.memOp(ctx, s, driver.MemOp{Op: driver.MemOpWait64, Address: at, Value: value, Flags: flags})
}

func (m *machine) memOp(ctx driver.Context, s driver.Stream, o driver.MemOp) driver.Result {
	return m.StreamBatchMemOp(ctx, s, []driver.MemOp{o}, 0)
}

// StreamBatchMemOp implements driver.MemoryOps.
func (m *machine) StreamBatchMemOp(ctx driver.Context, raw driver.Stream, list []driver.MemOp, flags uint32) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.queueable(ctx, raw)
	if r != driver.Success {
		return r
	}
	if flags != 0 {
		return driver.ErrorInvalidValue
	}
	ops, r := m.newMemOps(list)
	switch {
	case r != driver.Success:
		return r
	case s.capture != nil && len(ops) > 0:
		m.add(s, &graphNode{typ: driver.NodeBatchMemOp, act: &action{batch: slices.Clone(list), steps: ops}})
		return driver.Success
	}
	for _, o := range ops {
		m.enqueue(s, o)
	}
	return driver.Success
}

// newMemOps makes the operations that do list: all of them are looked at before one is queued. mu is held.
func (m *machine) newMemOps(list []driver.MemOp) ([]*op, driver.Result) {
	if len(list) > driver.MaxBatchMemOps {
		return nil, driver.ErrorInvalidValue
	}
	ops := make([]*op, len(list))
	for i, o := range list {
		var r driver.Result
		if ops[i], r = m.newMemOp(o); r != driver.Success {
			return nil, r
		}
	}
	return ops, driver.Success
}

// newMemOp makes the operation that does o. mu is held.
func (m *machine) newMemOp(o driver.MemOp) (*op, driver.Result) {
	switch o.Op {
	case driver.MemOpWrite32, driver.MemOpWrite64:
		if o.Flags != 0 { // CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER is not for these functions
			return nil, driver.ErrorInvalidValue
		}
		w, r := m.word(o)
		return m.ofWord(w, &op{kind: opWork, node: uint8(driver.NodeBatchMemOp), work: func() driver.Result { w.write(o.Value); return driver.Success }}), r
	case driver.MemOpWait32, driver.MemOpWait64:
		if o.Flags&driver.WaitValueFlush != 0 {
			return nil, driver.ErrorNotSupported
		}
		if o.Flags > driver.WaitValueNOR {
			return nil, driver.ErrorInvalidValue
		}
		w, r := m.word(o)
		return m.ofWord(w, &op{kind: opHold, work: func() driver.Result { return w.meets(o.Flags, o.Value) }}), r
	case driver.MemOpBarrier: // every operation is one here
		const gpu = 1
		if o.Plain > gpu {
			return nil, driver.ErrorInvalidValue
		}
		return &op{kind: opMark}, driver.Success
	case driver.MemOpFlushRemoteWrites:
		return nil, driver.ErrorNotSupported
	}
	return nil, driver.ErrorInvalidValue
}

// word is the memory of a memory operation: 4 or 8 bytes.
type word []byte

// word finds the memory of o. mu is held.
func (m *machine) word(o driver.MemOp) (word, driver.Result) {
	size := uintptr(4)
	if o.Op == driver.MemOpWait64 || o.Op == driver.MemOpWrite64 {
		size = 8
	}
	if uintptr(o.Address)%size != 0 {
		return nil, driver.ErrorInvalidValue
	}
	data, r := m.span(o.Address, size)
	return data, r
}

// ofWord is o, with w noted as its word if there is a checker. mu is held.
func (m *machine) ofWord(w word, o *op) *op {
	if m.checker != nil {
		o.note().word = w
	}
	return o
}

func (w word) at() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(w)) }

func (w word) write(v uint64) {
	if len(w) == 4 {
		atomic.StoreUint32((*uint32)(w.at()), uint32(v))
		return
	}
	atomic.StoreUint64((*uint64)(w.at()), v)
}

// meets answers Success once w meets the condition, ErrorNotReady before.
func (w word) meets(condition uint32, value uint64) driver.Result {
	v := w.peek()
	var met bool
	switch condition {
	case driver.WaitValueGEQ: // cyclic
		met = int64(v-value) >= 0
		if len(w) == 4 {
			met = int32(uint32(v)-uint32(value)) >= 0
		}
	case driver.WaitValueEQ:
		met = v == value
	case driver.WaitValueAND:
		met = v&value != 0
	case driver.WaitValueNOR:
		met = ^(v | value) != 0
		if len(w) == 4 {
			met = ^(uint32(v) | uint32(value)) != 0
		}
	}
	if !met {
		return driver.ErrorNotReady
	}
	acquired(w.at())
	return driver.Success
}

// peek reads w while somebody may be writing it: kernels with plain stores, as a GPU's, the program with atomic ones. Both are
// well ordered by the device; the race detector, which cannot know, is not asked.
//
//go:norace
//go:noinline
func (w word) peek() uint64 {
	if len(w) == 4 {
		return uint64(*(*uint32)(w.at()))
	}
	return *(*uint64)(w.at())
}

// hold notes that the operation at the head of s, a wait-value, is not met yet. mu is held.
func (m *machine) hold(s *stream) {
	m.held = append(m.held, s.first)
	if !m.watching {
		m.watching = true
		m.workers.Add(1)
		go m.watchHeld()
	}
}

// releaseHeld lets go of the streams whose wait-values are met now. Whoever has changed memory calls it. mu is held, and the
// caller settles.
func (m *machine) releaseHeld() {
	kept := m.held[:0]
	for _, o := range m.held {
		switch {
		case o.done: // with its context
		case o.work() == driver.Success:
			o.owner.running = false
			m.finish(o.owner)
			m.settling = append(m.settling, o.owner)
		default:
			kept = append(kept, o)
		}
	}
	clear(m.held[len(kept):])
	m.held = kept
}

// watchHeld looks at the wait-values while there are any, for the program may meet them by writing to memory: often at first,
// then every millisecond.
func (m *machine) watchHeld() {
	defer m.workers.Done()
	const first, most = 20 * time.Microsecond, time.Millisecond
	for pause := first; ; pause = min(pause*2, most) {
		time.Sleep(pause)
		m.mu.Lock()
		m.releaseHeld()
		m.settle()
		m.watching = len(m.held) > 0
		more := m.watching
		m.unlock()
		if !more {
			return
		}
	}
}
