package softcuda

import (
	"slices"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// memory is a device's memory, and the pinned host memory made with it. Device addresses lie where no host address can, and
// allocations have gaps between them, so that a stray address meets nothing.
type memory struct {
	size       int64
	used       int64
	usedPinned int64
	next       driver.DevicePtr
	blocks     []block            // by address
	pinned     map[uintptr][]byte // by address
	registered map[uintptr][]byte // memory of the program that is pinned for now, by address
}

// block is an allocation of device memory.
type block struct {
	at   driver.DevicePtr
	data []byte
}

func (b block) end() driver.DevicePtr { return b.at + driver.DevicePtr(len(b.data)) }

const (
	deviceSpace = 1 << 49 // where device 0's addresses begin, and how far apart devices are
	granularity = 512     // of allocations, as on hardware
)

func newMemory(device int, size int64) memory {
	return memory{size: size, next: deviceSpace * driver.DevicePtr(device+1), pinned: map[uintptr][]byte{}, registered: map[uintptr][]byte{}}
}

func (mem *memory) alloc(n uintptr) (driver.DevicePtr, driver.Result) {
	if n == 0 {
		return 0, driver.ErrorInvalidValue
	}
	if n > uintptr(mem.size-mem.used) {
		return 0, driver.ErrorOutOfMemory
	}
	at := mem.address(n)
	mem.used += int64(n)
	mem.blocks = append(mem.blocks, block{at, words(n)})
	return at, driver.Success
}

// address gives out an address for n bytes.
func (mem *memory) address(n uintptr) driver.DevicePtr {
	at := mem.next
	mem.next += driver.DevicePtr((n+granularity-1)/granularity*granularity + granularity)
	return at
}

// find gives the place in blocks of the block that contains p.
func (mem *memory) find(p driver.DevicePtr) (int, bool) {
	return slices.BinarySearchFunc(mem.blocks, p, func(b block, p driver.DevicePtr) int {
		switch {
		case b.end() <= p:
			return -1
		case b.at > p:
			return 1
		}
		return 0
	})
}

func (mem *memory) free(p driver.DevicePtr) driver.Result {
	if p == 0 {
		return driver.Success
	}
	i, ok := mem.find(p)
	if !ok || mem.blocks[i].at != p {
		return driver.ErrorInvalidValue
	}
	mem.used -= int64(len(mem.blocks[i].data))
	mem.blocks = slices.Delete(mem.blocks, i, i+1)
	return driver.Success
}

// bytes is the memory from p to the end of its allocation, or nil if p is no address of this memory.
func (mem *memory) bytes(p driver.DevicePtr) []byte {
	if i, ok := mem.find(p); ok {
		return mem.blocks[i].data[p-mem.blocks[i].at:]
	}
	return nil
}

// reach is the memory of any device, or pinned memory, from p to the end of its allocation; nil for a stray address. Like
// hardware with unified addressing, any device reaches it all. mu is held.
func (m *machine) reach(p driver.DevicePtr) []byte {
	if i := p/deviceSpace - 1; p >= deviceSpace {
		if int(i) < len(m.devices) {
			return m.devices[i].mem.bytes(p)
		}
		return nil
	}
	for _, d := range m.devices {
		for _, list := range []map[uintptr][]byte{d.mem.pinned, d.mem.registered} {
			for at, data := range list {
				if off := uintptr(p) - at; uintptr(p) >= at && off < uintptr(len(data)) {
					return data[off:]
				}
			}
		}
	}
	return m.reachManaged(p)
}

// span is the n bytes at p, if they all belong to one allocation. mu is held.
func (m *machine) span(p driver.DevicePtr, n uintptr) ([]byte, driver.Result) {
	data := m.reach(p)
	if n > uintptr(len(data)) {
		return nil, driver.ErrorInvalidValue
	}
	return data[:n:n], driver.Success
}

// MemAlloc implements driver.Memory.
func (m *machine) MemAlloc(ctx driver.Context, n uintptr) (driver.DevicePtr, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	c, r := m.context(ctx)
	if r == driver.Success {
		r = m.forbidden()
	}
	if r != driver.Success {
		return 0, r
	}
	p, r := c.dev.mem.alloc(n)
	if r == driver.Success {
		m.checker.allocated(c, deviceMemory, c.dev.mem.bytes(p), p)
	}
	return p, r
}

// MemFree implements driver.Memory. Like the driver's it first waits for the context's work.
func (m *machine) MemFree(ctx driver.Context, p driver.DevicePtr) driver.Result {
	return m.afterAll(ctx, func(c *context) driver.Result {
		if m.freeManaged(p) {
			return driver.Success
		}
		if v := m.reserved[p]; v != nil {
			return m.freeReserved(v)
		}
		data := c.dev.mem.bytes(p)
		r := c.dev.mem.free(p)
		if r == driver.Success && data != nil {
			m.checker.released(data, p)
		}
		return r
	})
}

// afterAll waits for everything queued in a context and then does something with mu held.
func (m *machine) afterAll(ctx driver.Context, do func(*context) driver.Result) driver.Result {
	m.mu.Lock()
	c, r := m.context(ctx)
	if r == driver.Success {
		r = m.forbidden()
	}
	if r != driver.Success {
		m.unlock()
		return r
	}
	seen := m.aheadAll(c)
	if r := m.observeAfter(seen, m.waitAll(c, everyStream)); r != driver.Success {
		return r
	}
	m.mu.Lock()
	defer m.unlock()
	return do(c)
}

// MemHostAlloc implements driver.Memory.
func (m *machine) MemHostAlloc(ctx driver.Context, n uintptr, flags uint32) (unsafe.Pointer, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	c, r := m.context(ctx)
	if r == driver.Success {
		r = m.forbidden()
	}
	switch {
	case r != driver.Success:
		return nil, r
	case flags > 7:
		return nil, driver.ErrorInvalidValue
	case n == 0:
		return nil, driver.Success
	case n > uintptr(c.dev.mem.size-c.dev.mem.usedPinned):
		return nil, driver.ErrorOutOfMemory
	}
	data := words(n)
	c.dev.mem.usedPinned += int64(n)
	p := unsafe.Pointer(unsafe.SliceData(data))
	c.dev.mem.pinned[uintptr(p)] = data
	m.checker.allocated(c, pinnedMemory, data, driver.DevicePtr(uintptr(p)))
	return p, driver.Success
}

// MemFreeHost implements driver.Memory. Like the driver's it first waits for the context's work.
func (m *machine) MemFreeHost(ctx driver.Context, p unsafe.Pointer) driver.Result {
	return m.afterAll(ctx, func(c *context) driver.Result {
		if p == nil {
			return driver.Success
		}
		data, ok := c.dev.mem.pinned[uintptr(p)]
		if !ok {
			return driver.ErrorInvalidValue
		}
		c.dev.mem.usedPinned -= int64(len(data))
		delete(c.dev.mem.pinned, uintptr(p))
		m.checker.released(data, driver.DevicePtr(uintptr(p)))
		return driver.Success
	})
}
