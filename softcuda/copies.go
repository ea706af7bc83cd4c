package softcuda

import (
	"runtime"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// MemHostRegister implements driver.MoreMemory. As on hardware a range must not meet one that is pinned already.
func (m *machine) MemHostRegister(ctx driver.Context, p unsafe.Pointer, n uintptr, flags uint32) driver.Result {
	const known = 1 | 2 | 4 | 8
	m.mu.Lock()
	defer m.unlock()
	c, r := m.context(ctx)
	if r == driver.Success {
		r = m.forbidden()
	}
	switch {
	case r != driver.Success:
		return r
	case p == nil, n == 0, flags&^known != 0:
		return driver.ErrorInvalidValue
	case m.pinnedMeets(uintptr(p), n):
		return driver.ErrorHostMemoryAlreadyRegistered
	}
	c.dev.mem.registered[uintptr(p)] = unsafe.Slice((*byte)(p), n)
	return driver.Success
}

// pinnedMeets reports whether a range of host memory meets one that is pinned. mu is held.
func (m *machine) pinnedMeets(p, n uintptr) bool {
	for _, d := range m.devices {
		for _, list := range []map[uintptr][]byte{d.mem.pinned, d.mem.registered} {
			for at, data := range list {
				if p < at+uintptr(len(data)) && at < p+n {
					return true
				}
			}
		}
	}
	return false
}

// MemHostUnregister implements driver.MoreMemory. Like the driver's it first waits for the context's work.
func (m *machine) MemHostUnregister(ctx driver.Context, p unsafe.Pointer) driver.Result {
	return m.afterAll(ctx, func(c *context) driver.Result {
		if c.dev.mem.registered[uintptr(p)] == nil {
			return driver.ErrorHostMemoryNotRegistered
		}
		delete(c.dev.mem.registered, uintptr(p))
		return driver.Success
	})
}

// Memcpy2DAsync implements driver.MoreMemory.
func (m *machine) Memcpy2DAsync(ctx driver.Context, c *driver.Copy2D, s driver.Stream) driver.Result {
	rows := *c
	return m.queueWork(ctx, s, func() (t transfer, r driver.Result) {
		from, r := m.end2D(&rows, &rows.Src)
		if r != driver.Success {
			return t, r
		}
		to, r := m.end2D(&rows, &rows.Dst)
		if r != driver.Success || rows.Width == 0 || rows.Height == 0 {
			return t, r
		}
		intoHost, fromHost := rows.Dst.Type == driver.MemoryHost, rows.Src.Type == driver.MemoryHost
		m.touchRows(rows2D(to, &rows, &rows.Dst), true, intoHost)
		m.touchRows(rows2D(from, &rows, &rows.Src), false, fromHost)
		do := func() {
			for y := range rows.Height {
				copy(to[y*rows.Dst.Pitch:][:rows.Width], from[y*rows.Src.Pitch:])
			}
		}
		return transfer{do, load{wayOf(intoHost, fromHost), rows.Width * rows.Height}}, r
	})
}

// rows2D are the rows of an end of a copy, in its memory.
func rows2D(data []byte, c *driver.Copy2D, e *driver.Copy2DEnd) rows {
	b := rows{data: data, width: c.Width, height: c.Height, depth: 1, pitch: e.Pitch}
	if c.Width == 0 {
		b.height = 0
	}
	return b
}

// end2D is the memory of an end of a copy of rows, from its first byte on. mu is held.
func (m *machine) end2D(c *driver.Copy2D, e *driver.Copy2DEnd) ([]byte, driver.Result) {
	n, skip := e.Bytes(c), e.Y*e.Pitch+e.X
	var data []byte
	r := driver.ErrorInvalidValue
	switch {
	case n == 0:
		return nil, driver.Success
	case c.Height > 1 && e.Pitch < e.X+c.Width:
	case e.Type == driver.MemoryHost:
		data, r = hostBytes(e.Host, n)
	case e.Type == driver.MemoryDevice:
		data, r = m.span(e.Device, n)
	}
	if r != driver.Success {
		return nil, r
	}
	return data[skip:], r
}

// MemcpyPeerAsync implements driver.MoreMemory.
func (m *machine) MemcpyPeerAsync(ctx driver.Context, dst driver.DevicePtr, dstCtx driver.Context, src driver.DevicePtr, srcCtx driver.Context, n uintptr, s driver.Stream) driver.Result {
	m.mu.Lock()
	for _, raw := range []driver.Context{dstCtx, srcCtx} {
		if _, r := m.context(raw); r != driver.Success {
			m.unlock()
			return r
		}
	}
	m.unlock()
	return m.MemcpyDtoDAsync(ctx, dst, src, n, s)
}

// HostCall implements driver.HostCopies. A goroutine of the device may be what has to run first, so nobody waits natively.
func (m *machine) HostCall(fn, data uintptr) bool { return false }

// HostPrepare implements driver.HostCopies.
func (m *machine) HostPrepare(unsafe.Pointer, uintptr) {}

// HostPause implements driver.HostCopies.
func (m *machine) HostPause(d time.Duration) {
	if d <= 0 {
		runtime.Gosched()
		return
	}
	time.Sleep(d)
}

// WatchContext implements driver.HostCopies. A context that fails says so by itself.
func (m *machine) WatchContext(driver.Context) {}
