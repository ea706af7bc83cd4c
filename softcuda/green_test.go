package softcuda

import (
	"slices"
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

// TestSplit: sizes are rounded up to the granularity, and what does not fit is left.
func TestSplit(t *testing.T) {
	m, _, _ := seam(t, Options{})
	all, r := m.DeviceGetDevResource(0, driver.DevResourceSM)
	want(t, "resource", r, driver.Success)
	for _, c := range []struct {
		groups     int
		flags, min uint32
		want       []uint32 // the parts, and the rest
		r          driver.Result
	}{
		{1, 0, 0, []uint32{8, 8}, driver.Success},
		{1, 0, 8, []uint32{8, 8}, driver.Success},
		{16, 0, 3, []uint32{8, 8, 0}, driver.Success},
		{2, 0, 9, []uint32{16, 0}, driver.Success},
		{16, driver.SMSplitIgnoreCoscheduling, 3, []uint32{4, 4, 4, 4, 0}, driver.Success},
		{2, driver.SMSplitIgnoreCoscheduling, 5, []uint32{6, 6, 4}, driver.Success},
		{1, 0, 17, nil, driver.ErrorInvalidValue},
		{0, 0, 1, nil, driver.ErrorInvalidValue},
		{1, 4, 1, nil, driver.ErrorInvalidValue},
	} {
		parts, rest, r := m.DevSmResourceSplitByCount(&all, c.groups, c.flags, c.min)
		want(t, "split", r, c.r)
		var got []uint32
		for _, p := range parts {
			got = append(got, p.SM.Count)
		}
		if r == driver.Success {
			got = append(got, rest.SM.Count)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d groups of at least %d, flags %d: %v, want %v", c.groups, c.min, c.flags, got, c.want)
		}
	}
	parts, rest, _ := m.DevSmResourceSplitByCount(&all, 1, 0, 8)
	_, _, r = m.DevSmResourceSplitByCount(&parts[0], 1, 0, 8)
	want(t, "split a part", r, driver.ErrorInvalidResourceConfiguration)
	_, _, r = m.DevSmResourceSplitByCount(new(driver.DevResource), 1, 0, 8)
	want(t, "split nothing", r, driver.ErrorInvalidResourceType)
	_, r = m.DeviceGetDevResource(0, 2)
	want(t, "another type", r, driver.ErrorInvalidResourceType)
	_, r = m.DeviceGetDevResource(1, driver.DevResourceSM)
	want(t, "another device", r, driver.ErrorInvalidDevice)
	_, r = m.DevResourceGenerateDesc(nil)
	want(t, "describe nothing", r, driver.ErrorInvalidValue)
	_, r = m.DevResourceGenerateDesc([]driver.DevResource{parts[0], rest})
	want(t, "describe a split", r, driver.Success)
	_, r = m.DevResourceGenerateDesc([]driver.DevResource{parts[0], all})
	want(t, "describe different splits", r, driver.ErrorInvalidResourceConfiguration)
}

// newGreen makes a green context of all multiprocessors of device 0.
func newGreen(t *testing.T, m *machine) (driver.GreenContext, driver.Context) {
	t.Helper()
	all, r := m.DeviceGetDevResource(0, driver.DevResourceSM)
	want(t, "resource", r, driver.Success)
	desc, r := m.DevResourceGenerateDesc([]driver.DevResource{all})
	want(t, "describe", r, driver.Success)
	_, r = m.GreenCtxCreate(desc, 0, 0)
	want(t, "create without the required flag", r, driver.ErrorInvalidValue)
	_, r = m.GreenCtxCreate(desc+1, 0, driver.GreenCtxDefaultStream)
	want(t, "create of nothing", r, driver.ErrorInvalidValue)
	g, r := m.GreenCtxCreate(desc, 0, driver.GreenCtxDefaultStream)
	want(t, "create", r, driver.Success)
	ctx, r := m.CtxFromGreenCtx(g)
	want(t, "convert", r, driver.Success)
	return g, ctx
}

// CONTRACT ST-09 on special handles: the calling context answers.
func TestContextsOfSpecialHandles(t *testing.T) {
	m, primary, regular := seam(t, Options{})
	g, ctx := newGreen(t, m)
	inside, r := m.StreamCreateWithPriority(ctx, driver.StreamNonBlocking, 0)
	want(t, "a stream made with the green context current", r, driver.Success)
	for _, c := range []struct {
		what  string
		ctx   driver.Context
		s     driver.Stream
		green driver.GreenContext
		of    driver.Context // cuStreamGetCtx's answer
		r     driver.Result
	}{
		{"legacy, primary", primary, driver.StreamLegacy, 0, primary, driver.Success},
		{"per-thread, primary", primary, driver.StreamPerThread, 0, primary, driver.Success},
		{"0, green", ctx, 0, g, ctx, driver.Success},
		{"legacy, green", ctx, driver.StreamLegacy, g, ctx, driver.Success},
		{"per-thread, green", ctx, driver.StreamPerThread, 0, ctx, driver.ErrorInvalidHandle},
		{"legacy, none", 0, driver.StreamLegacy, 0, 0, driver.ErrorInvalidContext},
		{"per-thread, none", 0, driver.StreamPerThread, 0, 0, driver.ErrorInvalidContext},
		{"a stream of its own, green current", ctx, regular, 0, primary, driver.Success},
		{"a green stream, primary current", primary, inside, g, ctx, driver.Success},
	} {
		p, green, r := m.StreamGetCtxs(c.ctx, c.s)
		want(t, c.what, r, c.r)
		if r == driver.Success && (p != primary || green != c.green) {
			t.Errorf("%s: contexts %#x, %#x; want %#x, %#x", c.what, p, green, primary, c.green)
		}
		green, r = m.StreamGetGreenCtx(c.ctx, c.s)
		want(t, c.what, r, c.r)
		if green != c.green {
			t.Errorf("%s: green context %#x, want %#x", c.what, green, c.green)
		}
		if of, r := m.StreamGetCtx(c.ctx, c.s); of != c.of {
			t.Errorf("%s: context %#x (%s), want %#x", c.what, of, r.Name(), c.of)
		}
	}
}

// A green context that is destroyed takes its streams with it, whatever is called.
func TestGreenDestroyed(t *testing.T) {
	m, primary, _ := seam(t, Options{})
	g, ctx := newGreen(t, m)
	_, r := m.GreenCtxStreamCreate(g, driver.StreamDefault, 0)
	want(t, "a blocking stream", r, driver.ErrorInvalidValue)
	s, r := m.GreenCtxStreamCreate(g, driver.StreamNonBlocking, 0)
	want(t, "stream", r, driver.Success)
	want(t, "destroy", m.GreenCtxDestroy(g), driver.Success)
	want(t, "destroy again", m.GreenCtxDestroy(g), driver.ErrorInvalidContext)
	want(t, "query", m.StreamQuery(primary, s), driver.ErrorContextIsDestroyed)
	want(t, "destroy its stream", m.StreamDestroy(primary, s), driver.ErrorContextIsDestroyed)
	want(t, "synchronize it", m.CtxSynchronize(ctx), driver.ErrorInvalidContext)
	_, r = m.GreenCtxStreamCreate(g, driver.StreamNonBlocking, 0)
	want(t, "another stream", r, driver.ErrorInvalidContext)
	_, r = m.CtxFromGreenCtx(g)
	want(t, "convert", r, driver.ErrorInvalidContext)
	_, r = m.GreenCtxGetDevResource(g, driver.DevResourceSM)
	want(t, "resource", r, driver.ErrorInvalidContext)
	want(t, "the primary context", m.CtxSynchronize(primary), driver.Success)
	if m.devices[0].retains != 1 {
		t.Errorf("the primary context is retained %d times, want once", m.devices[0].retains)
	}
}
