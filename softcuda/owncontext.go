package softcuda

import "github.com/hostlaunch/cuda/internal/driver"

// newContext makes a context of d. mu is held.
func (m *machine) newContext(d *device) *context {
	c := &context{raw: driver.Context(m.handle()), dev: d, threads: map[uint64]*stream{}, busy: map[*stream]struct{}{}, known: map[*stream]struct{}{}}
	c.legacy = m.newStream(c, driver.StreamDefault, 0)
	m.contexts[c.raw] = c
	return c
}

// CtxCreate implements driver.OwnContexts.
func (m *machine) CtxCreate(flags uint32, i driver.Device) (driver.Context, driver.Result) {
	const scheduling, known = 7, 0xff
	d, r := m.device(i)
	if r != driver.Success {
		return 0, r
	}
	switch flags & scheduling {
	case driver.CtxSchedAuto, driver.CtxSchedSpin, driver.CtxSchedYield, driver.CtxSchedBlockingSync:
	default:
		return 0, driver.ErrorInvalidValue
	}
	if flags&^known != 0 {
		return 0, driver.ErrorInvalidValue
	}
	m.mu.Lock()
	defer m.unlock()
	return m.newContext(d).raw, driver.Success
}

// CtxDestroy implements driver.OwnContexts. What is queued is done first; then everything in the context goes with it, but for
// memory, which is the device's here: the library frees its own.
func (m *machine) CtxDestroy(raw driver.Context) driver.Result {
	m.mu.Lock()
	c := m.contexts[raw]
	if c == nil || c == c.dev.ctx {
		m.unlock()
		return driver.ErrorInvalidContext
	}
	m.waitAll(c, everyStream)
	m.mu.Lock()
	defer m.unlock()
	deleteOf(m.streams, func(s *stream) bool { return s.ctx == c })
	deleteOf(m.events, func(e *event) bool { return e.ctx == c })
	deleteOf(m.functions, func(f *function) bool { return f.mod.ctx == c })
	deleteOf(m.modules, func(x *module) bool { return x.ctx == c })
	delete(m.contexts, raw)
	return driver.Success
}

func deleteOf[K comparable, V any](all map[K]V, which func(V) bool) {
	for k, v := range all {
		if which(v) {
			delete(all, k)
		}
	}
}
