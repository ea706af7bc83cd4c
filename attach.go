package cuda

import (
	"reflect"
	"runtime"

	"github.com/hostlaunch/cuda/internal/driver"
)

// Attach changes, in stream order, which streams may use m: it takes effect when everything queued on s before is done, and
// replaces the earlier association. With AttachSingle that is s alone, and the host may touch m as soon as s has been waited
// for, whatever other streams do. Closing s returns m to the association of AllocManaged once s's work is done.
//
// It is always all of m: CUDA cannot attach a part. It cannot be captured, so a Stream has it and no other Queue.
//
// The first call in a process has a price: an H200's driver (580.159) runs some 10,000 host functions a second from then on, of 400,000
// before, on all streams and for good. Whoever needs both can do without, since AttachGlobal is what AllocManaged gives.
//
// Errors: ErrInvalidValue for an unknown mode and for AttachSingle on the legacy default stream. CONTRACT ST-10;
// cuStreamAttachMemAsync.
func (s *Stream) Attach(m *ManagedBuffer, mode AttachMode) error {
	const op = "Stream.Attach"
	if err := s.begin(op); err != nil {
		return err
	}
	defer s.end()
	b := m.Buffer()
	if err := b.acquire(op, "m", s.ctx); err != nil {
		return err
	}
	defer b.res.release()
	return s.attach(op, b.ptr, 0, mode) // 0: all of it
}

// AttachHostMemory is Stream.Attach for ordinary memory, on devices that reach it (CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
// others are ErrNotSupported). mem must not be empty. The caller keeps mem alive as long as the device uses it.
//
// T must be free of Go pointers, or it is ErrInvalidValue that names T. CONTRACT ST-10; cuStreamAttachMemAsync.
func AttachHostMemory[T any](s *Stream, mem []T, mode AttachMode) error {
	const op = "AttachHostMemory"
	if err := refusePointers(op, reflect.TypeFor[T]()); err != nil {
		return err
	}
	return s.attachHost(op, rangeOf(mem), mode)
}

func (s *Stream) attachHost(op string, mem hostRange, mode AttachMode) error {
	if err := s.begin(op); err != nil {
		return err
	}
	defer s.end()
	if mem.n == 0 {
		return failf(op, ErrInvalidValue, "mem is empty; attach at least one byte")
	}
	if !s.ctx.pageable {
		return failf(op, ErrNotSupported, "device %d cannot use ordinary host memory; use Context.AllocManaged", s.ctx.ordinal)
	}
	var pin runtime.Pinner // the address goes on as a number: without this, mem might be on a stack, which moves
	pin.Pin(mem.ptr)
	defer pin.Unpin()
	return s.attach(op, driver.DevicePtr(uintptr(mem.ptr)), mem.n, mode)
}

// attach checks the mode and queues. s is in use.
func (s *Stream) attach(op string, p driver.DevicePtr, length uintptr, mode AttachMode) error {
	switch mode {
	case AttachGlobal, AttachHost:
	case AttachSingle:
		if s.raw <= driver.StreamLegacy {
			return failf(op, ErrInvalidValue, "mode AttachSingle on the legacy default stream, which stands for all streams; use another stream")
		}
	default:
		return failf(op, ErrInvalidValue, "mode %d: there are AttachGlobal, AttachHost and AttachSingle", uint32(mode))
	}
	sp := s.span(TraceMemOp, op, "", 0)
	sp.begins(s)
	err := s.ctx.result(op, s.driver().StreamAttachMemAsync(s.ctx.raw, s.raw, p, length, uint32(mode)))
	sp.ends(s, err)
	return err
}
