package cuda

import (
	"sync/atomic"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// Word is a place in memory for memory operations: 4 or 8 bytes of a Buffer or of a PinnedBuffer, as the operation wants. It
// keeps the garbage collector from closing the buffer. Go code must read and write words of pinned memory with sync/atomic.
type Word struct {
	ctx    *Context
	res    *resource
	base   driver.DevicePtr
	n      int // bytes of the buffer
	offset int
	owner  any
}

// Word is the place at offset, in bytes.
func (b *Buffer) Word(offset int) Word {
	if b == nil {
		return Word{}
	}
	return Word{ctx: b.ctx, res: b.res, base: b.ptr, n: b.n, offset: offset, owner: b}
}

// Word is the place at offset, in bytes.
func (b *PinnedBuffer) Word(offset int) Word {
	if b == nil {
		return Word{}
	}
	return Word{ctx: b.ctx, res: b.res, base: driver.DevicePtr(uintptr(unsafe.Pointer(unsafe.SliceData(b.data)))), n: len(b.data), offset: offset, owner: b}
}

// WaitCondition says when a wait-value lets its stream go on.
type WaitCondition uint32

// Conditions, by the driver's numbers; memory is the word's value.
const (
	ValueGEQ WaitCondition = WaitCondition(driver.WaitValueGEQ) // memory - value >= 0 as a signed number, so that counters may wrap
	ValueEQ  WaitCondition = WaitCondition(driver.WaitValueEQ)  // memory == value
	ValueAND WaitCondition = WaitCondition(driver.WaitValueAND) // memory & value != 0
	ValueNOR WaitCondition = WaitCondition(driver.WaitValueNOR) // ^(memory | value) != 0; not on every device
	// FlushRemote, or'ed to a condition, has writes of other devices that arrived before the wait was over seen by later work.
	// Few platforms have it.
	FlushRemote WaitCondition = WaitCondition(driver.WaitValueFlush)
)

// BarrierScope says who sees the writes before a Barrier.
type BarrierScope uint32

// Scopes, by the driver's numbers.
const (
	SystemScope BarrierScope = 0 // everybody
	DeviceScope BarrierScope = 1 // the device
)

// MemOp is one memory operation of a Batch.
type MemOp struct {
	raw  driver.MemOp
	at   Word
	size int // of the word; 0: none
	what string
}

// Write32 writes value to 4 bytes.
func Write32(at Word, value uint32) MemOp {
	return MemOp{driver.MemOp{Op: driver.MemOpWrite32, Value: uint64(value)}, at, 4, "Write32"}
}

// Write64 writes value to 8 bytes.
func Write64(at Word, value uint64) MemOp {
	return MemOp{driver.MemOp{Op: driver.MemOpWrite64, Value: value}, at, 8, "Write64"}
}

// Wait32 waits until 4 bytes meet a condition.
func Wait32(at Word, cond WaitCondition, value uint32) MemOp {
	return MemOp{driver.MemOp{Op: driver.MemOpWait32, Value: uint64(value), Flags: uint32(cond)}, at, 4, "Wait32"}
}

// Wait64 waits until 8 bytes meet a condition.
func Wait64(at Word, cond WaitCondition, value uint64) MemOp {
	return MemOp{driver.MemOp{Op: driver.MemOpWait64, Value: value, Flags: uint32(cond)}, at, 8, "Wait64"}
}

// Barrier has earlier writes seen before later ones.
func Barrier(scope BarrierScope) MemOp {
	return MemOp{raw: driver.MemOp{Op: driver.MemOpBarrier, Plain: uint32(scope)}, what: "Barrier"}
}

// FlushWrites is FlushRemote as an operation of its own.
func FlushWrites() MemOp {
	return MemOp{raw: driver.MemOp{Op: driver.MemOpFlushRemoteWrites}, what: "FlushWrites"}
}

// WriteValue32 queues writing value to the 4 bytes at at. cuStreamWriteValue32.
func (s *Stream) WriteValue32(at Word, value uint32) error {
	return s.memOp("Stream.WriteValue32", Write32(at, value), func(p driver.DevicePtr) driver.Result {
		return s.driver().StreamWriteValue32(s.ctx.raw, s.raw, p, value, 0)
	})
}

// WriteValue64 queues writing value to the 8 bytes at at. cuStreamWriteValue64.
func (s *Stream) WriteValue64(at Word, value uint64) error {
	return s.memOp("Stream.WriteValue64", Write64(at, value), func(p driver.DevicePtr) driver.Result {
		return s.driver().StreamWriteValue64(s.ctx.raw, s.raw, p, value, 0)
	})
}

// WaitValue32 has later work of s wait until the 4 bytes at at meet a condition. cuStreamWaitValue32.
func (s *Stream) WaitValue32(at Word, cond WaitCondition, value uint32) error {
	return s.memOp("Stream.WaitValue32", Wait32(at, cond, value), func(p driver.DevicePtr) driver.Result {
		return s.driver().StreamWaitValue32(s.ctx.raw, s.raw, p, value, uint32(cond))
	})
}

// WaitValue64 has later work of s wait until the 8 bytes at at meet a condition. cuStreamWaitValue64.
func (s *Stream) WaitValue64(at Word, cond WaitCondition, value uint64) error {
	return s.memOp("Stream.WaitValue64", Wait64(at, cond, value), func(p driver.DevicePtr) driver.Result {
		return s.driver().StreamWaitValue64(s.ctx.raw, s.raw, p, value, uint32(cond))
	})
}

// Batch queues memory operations in their order, at most 255; it costs less than one call for each. On an error none is
// queued. cuStreamBatchMemOp.
func (s *Stream) Batch(ops ...MemOp) error { return s.batch("Stream.Batch", ops) }

func (s *Stream) batch(op string, ops []MemOp) error {
	if err := s.beginQueue(op); err != nil {
		return err
	}
	defer s.end()
	if len(ops) > driver.MaxBatchMemOps {
		return failf(op, ErrInvalidValue, "%d operations: a batch has at most %d; queue several", len(ops), driver.MaxBatchMemOps)
	}
	if len(ops) == 0 {
		return nil
	}
	raw := make([]driver.MemOp, len(ops))
	for i := range ops {
		if err := ops[i].acquire(op, s.ctx); err != nil {
			return err
		}
		defer ops[i].release()
		raw[i] = ops[i].raw
		raw[i].Address = ops[i].at.address()
		ops[i].keep(s.capture())
	}
	sp := s.span(TraceMemOp, op, "", 0)
	if s.waitsTurn() {
		return s.later(op, sp, func() driver.Result { return s.driver().StreamBatchMemOp(s.ctx.raw, s.raw, raw, 0) }, usedBy(ops)...)
	}
	sp.begins(s)
	err := s.ctx.result(op, s.driver().StreamBatchMemOp(s.ctx.raw, s.raw, raw, 0))
	sp.ends(s, err)
	return err
}

func (s *Stream) memOp(op string, o MemOp, queue func(driver.DevicePtr) driver.Result) error {
	if err := s.beginQueue(op); err != nil {
		return err
	}
	defer s.end()
	if err := o.acquire(op, s.ctx); err != nil {
		return err
	}
	defer o.release()
	sp := s.span(TraceMemOp, op, "", o.size)
	if s.waitsTurn() {
		return s.later(op, sp, func() driver.Result { return queue(o.at.address()) }, o.at.res)
	}
	o.keep(s.capture())
	sp.begins(s)
	err := s.ctx.result(op, queue(o.at.address()))
	sp.ends(s, err)
	return err
}

// usedBy are the resources of operations' words.
func usedBy(ops []MemOp) (list []*resource) {
	for i := range ops {
		if ops[i].size != 0 {
			list = append(list, ops[i].at.res)
		}
	}
	return list
}

func (w *Word) address() driver.DevicePtr { return w.base + driver.DevicePtr(w.offset) }

// acquire checks o for a stream of c and takes its memory; release must follow if it returns nil.
func (o *MemOp) acquire(op string, c *Context) error {
	if err := o.check(op, c); err != nil || o.size == 0 {
		return err
	}
	w := &o.at
	switch {
	case w.res == nil:
		return failf(op, ErrInvalidValue, "at of %s is no place; take one of a buffer that is not nil, with its Word", o.what)
	case w.ctx.drv != c.drv:
		return failf(op, ErrInvalidValue, "at of %s belongs to %s and the queue to %s; use one Driver for both", o.what, w.ctx.describe(), c.describe())
	case w.offset < 0 || w.offset > w.n-o.size:
		return failf(op, ErrInvalidValue, "at of %s has offset %d: the buffer has %d bytes, and the operation is on %d", o.what, w.offset, w.n, o.size)
	case uint64(w.address())%uint64(o.size) != 0:
		return failf(op, ErrInvalidValue, "at of %s has address %#x: it must be a multiple of %d", o.what, uint64(w.address()), o.size)
	case !w.res.acquire():
		return failf(op, ErrClosed, "at of %s is a place in a closed buffer", o.what)
	}
	return nil
}

// keep has c retain o's memory; c may be nil.
func (o *MemOp) keep(c *capture) {
	if o.size != 0 {
		c.keep(o.at.res)
	}
}

func (o *MemOp) release() {
	if o.size != 0 {
		o.at.res.release()
	}
}

// check refuses operations that do not exist, or not on this device.
func (o *MemOp) check(op string, c *Context) error {
	cond := WaitCondition(o.raw.Flags)
	switch {
	case o.raw.Op == 0:
		return failf(op, ErrInvalidValue, "an operation is the zero MemOp; make it with Write32, Wait32 or another")
	case cond&^FlushRemote > ValueNOR:
		return failf(op, ErrInvalidValue, "condition %d of %s is unknown; use ValueGEQ, ValueEQ, ValueAND or ValueNOR", cond, o.what)
	case o.raw.Op == driver.MemOpBarrier && o.raw.Plain > uint32(DeviceScope):
		return failf(op, ErrInvalidValue, "scope %d is unknown; use SystemScope or DeviceScope", o.raw.Plain)
	case o.size == 8 && !c.can(driver.AttrCanUse64BitStreamMemOps):
		return failf(op, ErrNotSupported, "device %d has no memory operations of 64 bits; use %s's form of 32", c.ordinal, o.what)
	case cond&^FlushRemote == ValueNOR && !c.can(driver.AttrCanUseStreamWaitValueNOR):
		return failf(op, ErrNotSupported, "device %d cannot wait for ValueNOR; use another condition", c.ordinal)
	case (cond&FlushRemote != 0 || o.raw.Op == driver.MemOpFlushRemoteWrites) && !c.can(driver.AttrCanFlushRemoteWrites):
		return failf(op, ErrNotSupported, "device %d cannot flush remote writes; leave it out", c.ordinal)
	}
	return nil
}

// memOpSupport remembers which memory operations a device has: two bits each, asked and has.
type memOpSupport struct{ bits atomic.Uint32 }

// can reports whether c's device has what attr says. If the driver does not tell, it does: what the driver refuses then has its reason.
func (c *Context) can(attr int32) bool {
	shift := 0
	switch attr {
	case driver.AttrCanUseStreamWaitValueNOR:
		shift = 2
	case driver.AttrCanFlushRemoteWrites:
		shift = 4
	}
	known := c.memOps.bits.Load() >> shift
	if known&1 == 0 {
		v, r := c.drv.drv.DeviceGetAttribute(attr, c.device)
		if r != driver.Success && r != driver.ErrorInvalidValue { // the latter: it knows no such attribute
			return true
		}
		known = 1
		if r == driver.Success && v != 0 {
			known |= 2
		}
		c.memOps.bits.Or(known << shift)
	}
	return known&2 != 0
}
