package softcuda

import "github.com/hostlaunch/cuda/internal/driver"

// GreenCtxStreamCreate implements driver.GreenContexts.
func (m *machine) GreenCtxStreamCreate(handle driver.GreenContext, flags uint32, priority int32) (driver.Stream, driver.Result) {
	m.mu.Lock()
	g := m.greens[handle]
	m.unlock()
	switch {
	case g == nil:
		return 0, driver.ErrorInvalidContext
	case flags != driver.StreamNonBlocking:
		return 0, driver.ErrorInvalidValue
	}
	return m.StreamCreateWithPriority(g.raw, flags, priority)
}

// greenOf is the green context that ctx stands for, and its handle; or none. mu is held.
func (m *machine) greenOf(ctx driver.Context) (*green, driver.GreenContext) {
	for handle, g := range m.greens {
		if g.raw == ctx {
			return g, handle
		}
	}
	return nil, 0
}

// greenStream finds the green context of a stream. A special handle takes that of the calling context. mu is held.
func (m *machine) greenStream(ctx driver.Context, raw driver.Stream) (*stream, driver.GreenContext, driver.Result) {
	s, r := m.stream(ctx, raw)
	if r != driver.Success {
		return nil, 0, r
	}
	if raw > driver.StreamPerThread {
		if s.green == nil {
			return s, 0, driver.Success
		}
		ctx = s.green.raw
	}
	_, handle := m.greenOf(ctx)
	if raw == driver.StreamPerThread && handle != 0 {
		return nil, 0, driver.ErrorInvalidHandle
	}
	return s, handle, driver.Success
}

// StreamGetCtxs implements driver.GreenContexts.
func (m *machine) StreamGetCtxs(ctx driver.Context, raw driver.Stream) (driver.Context, driver.GreenContext, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	s, handle, r := m.greenStream(ctx, raw)
	if r != driver.Success {
		return 0, 0, r
	}
	return s.ctx.raw, handle, driver.Success
}

// StreamGetGreenCtx implements driver.GreenContexts.
func (m *machine) StreamGetGreenCtx(ctx driver.Context, raw driver.Stream) (driver.GreenContext, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	_, handle, r := m.greenStream(ctx, raw)
	return handle, r
}

// StreamGetDevResource implements driver.GreenContexts. It came after the version that is implemented here.
func (m *machine) StreamGetDevResource(driver.Context, driver.Stream, uint32) (driver.DevResource, driver.Result) {
	return driver.DevResource{}, driver.ErrorNotSupported
}

// Needs implements driver.Requirements.
func (m *machine) Needs(function string) int {
	switch function {
	case "cuStreamGetDevResource":
		return 13010
	case "cuStreamBeginRecaptureToGraph":
		return 13030
	}
	return 0
}
