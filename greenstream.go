package cuda

import (
	"sync"

	"github.com/hostlaunch/cuda/internal/driver"
)

// NewStream makes a stream whose kernels run on g's multiprocessors. It takes kernels, memory and events of the device like
// any other stream. Such streams are always non-blocking: Blocking() is ErrInvalidValue. It keeps g alive until it is closed.
//
// While streams are held by tasks it waits until none is; in a task it is ErrDeadlock (CONTRACT TK-03).
//
// CUDA 12.5; cuGreenCtxStreamCreate.
func (g *GreenContext) NewStream(opts ...StreamOption) (*Stream, error) {
	const op = "GreenContext.NewStream"
	if err := g.begin(op); err != nil {
		return nil, err
	}
	defer g.end()
	o := streamOptions{flags: StreamNonBlocking}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	if o.flags != StreamNonBlocking {
		return nil, failf(op, ErrInvalidValue, "flags %#x: streams of green contexts are NonBlocking()", uint32(o.flags))
	}
	c := g.dev
	if err := c.checkPriority(op, &o); err != nil {
		return nil, err
	}
	d := c.drv.drv
	var raw driver.Stream
	var r driver.Result
	if err := c.whileNoneHeld(op, "make the stream before", func() {
		raw, r = d.GreenCtxStreamCreate(g.raw, uint32(o.flags), int32(o.priority))
	}); err != nil {
		return nil, err
	}
	if r != driver.Success {
		return nil, c.needs(op, r, "cuGreenCtxStreamCreate", "")
	}
	lane := laneKey{ctx: c, raw: raw}
	c.drv.tasks.renew(lane)
	s := &Stream{ctx: c, raw: raw, green: g}
	c.drv.greenStreams.add(raw, g)
	s.res = newResource(c, "Stream", 0, g.outlived(func() driver.Result {
		c.drv.greenStreams.remove(raw)
		c.drv.tasks.forget(lane)
		return d.StreamDestroy(c.raw, raw)
	}))
	dropped(s, s.res)
	return s, nil
}

// greenStreams knows which streams GreenContext.NewStream has made: whoever borrows one by its handle gets a Stream of the same contexts,
// which the order of tasks is kept by.
type greenStreams struct {
	mu   sync.Mutex
	made map[driver.Stream]*GreenContext
}

func (l *greenStreams) add(raw driver.Stream, g *GreenContext) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made == nil {
		l.made = map[driver.Stream]*GreenContext{}
	}
	l.made[raw] = g
}

func (l *greenStreams) remove(raw driver.Stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.made, raw)
}

// of is the green context that a stream was made in; nil: in none by NewStream.
func (l *greenStreams) of(raw driver.Stream) *GreenContext {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.made[raw]
}

// outlived makes g stay until free has been called: streams cannot be destroyed without their green context.
func (g *GreenContext) outlived(free func() driver.Result) func() driver.Result {
	held := g.res
	if held == nil {
		return free
	}
	held.retain()
	return func() driver.Result {
		defer held.release()
		return free()
	}
}

// Contexts are the contexts that s belongs to: for a stream of a green context the device's primary context and the green
// one, for others their context and nil. On a special handle the calling context answers (CONTRACT ST-08, ST-09).
//
// CUDA 12.5; cuStreamGetCtx.
func (s *Stream) Contexts() (primary *Context, green *GreenContext, err error) {
	const op = "Stream.Contexts"
	if err := s.begin(op); err != nil {
		return nil, nil, err
	}
	defer s.end()
	raw, rawGreen, r := s.driver().StreamGetCtxs(s.ctx.raw, s.raw)
	if r != driver.Success {
		return nil, nil, s.ctx.needs(op, r, "cuStreamGetCtx", "")
	}
	primary = s.ctx
	if known := s.ctx.drv.context(raw); known != nil {
		primary = known
	}
	switch {
	case rawGreen == 0:
		return primary, nil, nil
	case s.green != nil && s.green.raw == rawGreen:
		return primary, s.green, nil
	}
	as, r := s.driver().CtxFromGreenCtx(rawGreen)
	if r != driver.Success {
		return nil, nil, s.ctx.needs(op, r, "cuCtxFromGreenCtx", "")
	}
	stands := primary.adopt(as)
	if g := stands.handedOut.Load(); g != nil { // s was made in its Context
		return primary, g, nil
	}
	return primary, &GreenContext{dev: primary, raw: rawGreen, ctx: stands}, nil // somebody else's: not ours to destroy
}

// SMResource is the multiprocessors that s's kernels run on. CUDA 13.1; cuStreamGetDevResource.
func (s *Stream) SMResource() (SMResource, error) {
	const op = "Stream.SMResource"
	if err := s.begin(op); err != nil {
		return SMResource{}, err
	}
	defer s.end()
	raw, r := s.driver().StreamGetDevResource(s.ctx.raw, s.raw, driver.DevResourceSM)
	return SMResource{s.ctx, raw}, s.ctx.needs(op, r, "cuStreamGetDevResource", "")
}
