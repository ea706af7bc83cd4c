package softcuda

import (
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// managed is an allocation of managed memory: host memory, which any device reaches under the same address.
type managed struct {
	data    []byte
	dev     *device // whose memory it counts as
	initial uint32  // the association given at allocation
	now     uint32  // the association in force
	single  *stream // the stream, if now is driver.MemAttachSingle
}

// attach changes the association.
func (a *managed) attach(flags uint32, s *stream) {
	a.now, a.single = flags, nil
	if flags == driver.MemAttachSingle {
		a.single = s
	}
}

// MemAllocManaged implements driver.ManagedMemory.
func (m *machine) MemAllocManaged(ctx driver.Context, n uintptr, flags uint32) (driver.DevicePtr, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	c, r := m.context(ctx)
	switch {
	case r != driver.Success:
		return 0, r
	case n == 0, flags != driver.MemAttachGlobal && flags != driver.MemAttachHost:
		return 0, driver.ErrorInvalidValue
	case n > uintptr(c.dev.mem.size-c.dev.mem.used):
		return 0, driver.ErrorOutOfMemory
	}
	data := words(n)
	c.dev.mem.used += int64(n)
	p := driver.DevicePtr(uintptr(unsafe.Pointer(unsafe.SliceData(data))))
	m.checker.allocated(c, managedMemory, data, p)
	m.managed[p] = &managed{data: data, dev: c.dev, initial: flags, now: flags}
	return p, driver.Success
}

// freeManaged frees managed memory, and reports whether p is some. mu is held.
func (m *machine) freeManaged(p driver.DevicePtr) bool {
	a := m.managed[p]
	if a == nil {
		return false
	}
	a.dev.mem.used -= int64(len(a.data))
	delete(m.managed, p)
	m.checker.released(a.data, p)
	return true
}

// reachManaged is managed memory from p to the end of its allocation; nil if p is none. mu is held.
func (m *machine) reachManaged(p driver.DevicePtr) []byte {
	for at, a := range m.managed {
		if p >= at && p-at < driver.DevicePtr(len(a.data)) {
			return a.data[p-at:]
		}
	}
	return nil
}

// StreamAttachMemAsync implements driver.ManagedMemory. It takes effect in stream order, and is no device work: it makes no
// stream active.
func (m *machine) StreamAttachMemAsync(ctx driver.Context, raw driver.Stream, p driver.DevicePtr, length uintptr, flags uint32) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.stream(ctx, raw)
	if r != driver.Success {
		return r
	}
	switch flags {
	case driver.MemAttachGlobal, driver.MemAttachHost:
	case driver.MemAttachSingle:
		if s == s.ctx.legacy {
			return driver.ErrorInvalidValue
		}
		s.attached = true
	default:
		return driver.ErrorInvalidValue
	}
	a := m.managed[p]
	if a == nil || length != 0 && length != uintptr(len(a.data)) {
		return driver.ErrorInvalidValue // also pageable memory, which these devices do not reach
	}
	m.queueEffect(s, func() { a.attach(flags, s) })
	return driver.Success
}

// queueEffect queues something to be done with mu held when everything before it is done. mu is held.
func (m *machine) queueEffect(s *stream, do func()) {
	o := &op{kind: opMark}
	o.more().effect = do
	m.enqueue(s, o)
}

// detach returns what is attached to s, about to be destroyed, to its first association once the work of s is done. mu is held.
func (m *machine) detach(s *stream) {
	if !s.attached {
		return
	}
	m.queueEffect(s, func() {
		for _, a := range m.managed {
			if a.single == s {
				a.attach(a.initial, nil)
			}
		}
	})
}

// HostAccess implements driver.ManagedMemory: the access checker (CONTRACT HL-19, HL-20). activity.go says which streams are
// active.
func (m *machine) HostAccess(_ driver.Context, p driver.DevicePtr) (busy uint64, r driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	a := m.managed[p]
	switch {
	case a == nil:
		return 0, driver.ErrorInvalidValue
	case a.now == driver.MemAttachHost:
		return 0, driver.Success
	case a.now == driver.MemAttachSingle:
		if a.single.active() {
			return a.single.id, driver.ErrorNotReady
		}
		return 0, driver.Success
	}
	for s := range m.unseen {
		if id := s.shownID(); s.active() && (busy == 0 || id < busy) {
			busy, r = id, driver.ErrorNotReady
		}
	}
	return busy, r
}
