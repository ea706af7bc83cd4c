package cuda

import (
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/driver"
)

// GraphBuilder is a Queue whose work becomes a graph instead of being done: what can be queued on a Stream can be queued on a
// builder by the same call. Capture hands one out for the time of a function; NewGraphBuilder makes one that stays.
//
// A builder that stays goes from Begin to End, as often as wanted. Unless the mode is CaptureRelaxed, Begin locks the calling
// goroutine to its thread, and End and Close must be called on that goroutine, which they unlock; the calls in between may
// come from any. A builder that is closed or dropped in between ends its capture, and nothing is left of it (CONTRACT CP-10);
// dropped on another goroutine than it began on, it leaves that one locked to its thread.
//
// What nodes use (buffers, modules, pinned memory, external events, slices, host functions) is retained by the graph and all
// that is made of it: closing a Buffer that a graph uses forbids its further use by the program, and its memory is freed when
// nothing can run the graph any more (CONTRACT GR-08).
type GraphBuilder struct {
	stream  *Stream
	now     atomic.Pointer[capture] // the latest capture; nil: none yet
	kind    builderKind
	res     *resource                // of one that stays
	current *atomic.Pointer[capture] // for res, which must not point to the builder
}

type builderKind uint8

const (
	lentBuilder builderKind = iota // by Capture
	openBuilder                    // by NewGraphBuilder
	forkBuilder                    // by Split
)

var _ Queue = (*GraphBuilder)(nil)

// NewGraphBuilder makes a builder, with a stream of its own in c to capture on.
func (c *Context) NewGraphBuilder() (*GraphBuilder, error) {
	const op = "NewGraphBuilder"
	if err := c.enter(op); err != nil {
		return nil, err
	}
	defer c.leave()
	s, err := c.newHelperStream(op)
	if err != nil {
		return nil, err
	}
	b := &GraphBuilder{stream: s, kind: openBuilder, current: new(atomic.Pointer[capture])}
	current := b.current
	b.res = newResource(c, "GraphBuilder", 0, func() driver.Result {
		if now := current.Load(); now != nil {
			now.abandon(false)
		}
		s.res.close()
		return driver.Success
	})
	b.res.urgent = true
	dropped(b, b.res)
	return b, nil
}

// newHelperStream makes a non-blocking stream for the library's own use. It may be in the middle of a capture.
func (c *Context) newHelperStream(op string) (*Stream, error) {
	var raw driver.Stream
	var pooled bool
	var err error
	c.drv.relaxed(func() { raw, pooled, err = c.createStream(op, streamOptions{flags: StreamNonBlocking}) })
	if err != nil {
		return nil, err
	}
	return c.newStream(raw, pooled), nil
}

// Begin begins a capture. See CaptureMode for the choice of mode; CaptureThreadLocal is recommended.
//
// Errors: ErrCapturing if it has begun already, ErrNotBuilding if b is closed. cuStreamBeginCapture.
func (b *GraphBuilder) Begin(mode CaptureMode) error {
	const op = "GraphBuilder.Begin"
	if err := b.mayBegin(op); err != nil {
		return err
	}
	return b.start(op, mode, target{})
}

// BeginToGraph begins a capture that adds to g, behind the nodes after. g cannot be instantiated until End, which returns it. If
// the capture fails, by whatever End or Close then answer, g is lost with all its nodes: the driver destroys it, and every call on it
// is ErrClosed. Executables and clones made of it before are not affected. Needs CUDA 12.3.
//
// Errors: as Begin's; ErrInvalidValue for a node that is not of g, ErrNotSupported. CONTRACT CP-08; cuStreamBeginCaptureToGraph.
func (b *GraphBuilder) BeginToGraph(g *Graph, after []GraphNode, mode CaptureMode) error {
	return b.beginInto("GraphBuilder.BeginToGraph", mode, target{into: g, after: after})
}

// beginInto begins a capture into a graph, which it holds.
func (b *GraphBuilder) beginInto(op string, mode CaptureMode, to target) error {
	if err := b.mayBegin(op); err != nil {
		return err
	}
	g := to.into
	if err := g.acquire(op); err != nil {
		return err
	}
	err := b.mayBeginInto(op, g)
	if err == nil && !g.captured(true) {
		err = failf(op, ErrCapturing, "the graph is being captured into already; end that first")
	} else if err == nil {
		if err = b.start(op, mode, to); err != nil {
			g.captured(false)
		}
	}
	if err != nil {
		g.res.release()
	}
	return err
}

func (b *GraphBuilder) mayBeginInto(op string, g *Graph) error {
	if err := g.with(op, "the builder", b.stream.ctx); err != nil {
		return err
	}
	if g.nodes.kind == embeddedGraph {
		return failf(op, ErrNotPermitted, "the graph is a copy inside a child graph node; change the graph before it is embedded")
	}
	return g.defined(op, "the graph")
}

func (b *GraphBuilder) mayBegin(op string) error {
	switch {
	case b == nil:
		return failf(op, ErrInvalidValue, "the graph builder is nil")
	case b.kind == lentBuilder:
		return failf(op, ErrInvalidValue, "Capture begins and ends this graph builder; for one that stays see NewGraphBuilder")
	case b.kind == forkBuilder:
		return failf(op, ErrInvalidValue, "the graph builder is a fork; begin the one that it was split from")
	case b.res.closed():
		return failf(op, ErrNotBuilding, "the graph builder is closed")
	}
	return nil
}

// target is the graph that a capture is to add to, behind the nodes after, or to replace the nodes' work of.
type target struct {
	into  *Graph // nil: the capture makes one
	after []GraphNode
	again bool

	behind []driver.GraphNode // after, as the driver has them
}

// start begins a capture on b's stream, into a graph or to make one.
func (b *GraphBuilder) start(op string, mode CaptureMode, to target) error {
	if err := mode.check(op); err != nil {
		return err
	}
	s := b.stream
	if err := s.begin(op); err != nil {
		return err
	}
	defer s.end()
	if s.isCapturing() { // the driver would refuse, but spoil the capture (seen on an H200)
		return failf(op, ErrCapturing, "the stream is capturing already; end that capture first")
	}
	d := s.ctx.drv
	c := &capture{origin: s, target: to, owner: newOwner(d), nodes: new(nodeTable)}
	if err := c.prepare(op); err != nil {
		return err
	}
	c.locked = mode != CaptureRelaxed && b.kind == openBuilder // Capture locks by itself
	if c.locked {
		runtime.LockOSThread()
	}
	d.capturing.add(c)
	if r := c.begin(driver.CaptureMode(mode)); r != driver.Success {
		d.capturing.remove(c)
		if c.locked {
			runtime.UnlockOSThread()
		}
		c.disown()
		return c.beginError(op, r)
	}
	c.join(s)
	b.now.Store(c)
	if b.current != nil {
		b.current.Store(c)
	}
	return nil
}

func (c *capture) begin(mode driver.CaptureMode) driver.Result {
	s := c.origin
	switch {
	case c.into == nil:
		return s.driver().StreamBeginCapture(s.ctx.raw, s.raw, mode)
	case c.again:
		return s.driver().StreamBeginRecaptureToGraph(s.ctx.raw, s.raw, c.into.raw, mode)
	}
	return s.driver().StreamBeginCaptureToGraph(s.ctx.raw, s.raw, c.into.raw, c.behind, nil, mode)
}

// beginError explains why the driver refused to begin c.
func (c *capture) beginError(op string, r driver.Result) error {
	s := c.origin
	switch {
	case c.again:
		return s.ctx.needs(op, r, "cuStreamBeginRecaptureToGraph", "the driver refused to begin")
	case r == driver.ErrorIllegalState:
		return &Error{Op: op, Code: ErrCapturing, also: ErrIllegalState, Reason: "the stream is capturing already; end that capture first"}
	case r != driver.ErrorNotSupported && s.raw <= driver.StreamLegacy:
		return s.ctx.resultf(op, r, "the legacy default stream cannot capture; make a stream with NewStream")
	}
	return s.ctx.needs(op, r, "cuStreamBeginCaptureToGraph", "the driver refused to begin")
}

// End ends the capture and gives its graph, which the program closes. After an error there is none, nothing is left of the
// capture, and b can begin again.
//
// Errors: ErrNotBuilding; ErrCaptureInvalidated if something spoiled the capture; ErrCaptureUnjoined if work forked from it was
// not joined; ErrCaptureWrongThread if it must end on the goroutine that began it and did not; ErrCaptureUnmatched for a fork,
// which ends by Join. cuStreamEndCapture.
func (b *GraphBuilder) End() (*Graph, error) {
	const op = "GraphBuilder.End"
	switch {
	case b == nil:
		return nil, failf(op, ErrInvalidValue, "the graph builder is nil")
	case b.kind == lentBuilder:
		return nil, failf(op, ErrInvalidValue, "Capture ends this graph builder, when build returns")
	case b.kind == forkBuilder:
		return nil, failf(op, ErrCaptureUnmatched, "the graph builder is a fork, which ends by Join; end the one that it was split from")
	}
	return b.finish(op)
}

func (b *GraphBuilder) finish(op string) (*Graph, error) {
	c, err := b.building(op)
	if err != nil {
		return nil, err
	}
	ctx := c.origin.ctx
	if err := ctx.enter(op); err != nil {
		if errors.Is(err, ErrDeviceLost) {
			c.abandon(true)
		}
		return nil, err
	}
	defer ctx.leave()
	raw, r, first := c.end(true)
	if !first {
		return nil, failf(op, ErrNotBuilding, "the graph builder has ended")
	}
	defer c.letGo()
	switch {
	case c.into != nil: // has the nodes in any case
		if err := c.settle(op, r == driver.Success); err != nil {
			return nil, err
		}
	case r != driver.Success:
		c.owner.release()
	}
	if r != driver.Success {
		return nil, ctx.resultf(op, r, "%s", c.endReason(r))
	}
	if c.into != nil {
		return c.into, nil
	}
	return c.makeGraph(op, raw)
}

// makeGraph makes a Graph of what the driver has built, and has that own what its nodes use.
func (c *capture) makeGraph(op string, raw driver.Graph) (*Graph, error) {
	ctx := c.origin.ctx
	c.nodes.addLoose(c.owner.hosts)
	if c.owner.empty() {
		c.owner.release()
	} else if r := c.owner.attach(ctx, raw); r != driver.Success {
		ctx.drv.drv.GraphDestroy(ctx.raw, raw)
		return nil, ctx.resultf(op, r, "the driver did not take what the nodes use into its care; there is no graph")
	}
	return newGraph(ctx, raw, c.nodes), nil
}

// prepare is what comes before a capture into a graph begins: the graph owns from then on what is added to it. A recapture is
// another thing: it makes the driver let go of what the graph owned.
func (c *capture) prepare(op string) (err error) {
	if c.into == nil {
		return nil
	}
	c.nodes = c.into.nodes
	if c.behind, err = c.nodes.raws(op, c.after, nil); err != nil || c.again {
		return err
	}
	ctx := c.origin.ctx
	if r := c.owner.attach(ctx, c.into.raw); r != driver.Success {
		return ctx.resultf(op, r, "the driver did not take what the nodes will use into its care")
	}
	return nil
}

// disown gives up what the nodes were to use, of a capture that did not begin.
func (c *capture) disown() {
	if c.into != nil && !c.again {
		c.origin.ctx.detach(c.into.raw, c.owner.object)
	} else {
		c.owner.release()
	}
}

// endReason explains why a capture gave no graph, or did not come to its end in the one that it adds to.
func (c *capture) endReason(r driver.Result) string {
	switch r {
	case driver.ErrorStreamCaptureInvalidated:
		left := "there is no graph"
		if c.into != nil {
			left = "the graph that was captured into is lost"
		}
		return "a call that cannot be captured spoiled the capture (see CaptureMode); " + left + ", and the stream can be used again"
	case driver.ErrorStreamCaptureUnjoined:
		return "work was forked from the capture and not joined; have the builder wait for it (Join, WaitStream, WaitEvent) before it ends"
	case driver.ErrorGraphRecaptureFailure:
		return "what was captured has not the nodes and the order of what the graph was made of; close the graph, which is of no use any more"
	case driver.ErrorStreamCaptureWrongThread:
		return "the capture must end on the goroutine that began it, unless it is CaptureRelaxed; it is gone"
	}
	return "the capture gave no graph"
}

// building is the capture in progress, of a call that adds to it.
func (b *GraphBuilder) building(op string) (*capture, error) {
	switch {
	case b == nil:
		return nil, failf(op, ErrInvalidValue, "the graph builder is nil")
	case b.res != nil && b.res.closed():
		return nil, failf(op, ErrNotBuilding, "the graph builder is closed")
	}
	c := b.now.Load()
	switch {
	case c == nil:
		return nil, failf(op, ErrNotBuilding, "the graph builder has not begun; call Begin first")
	case c.isOver():
		return nil, failf(op, ErrNotBuilding, "the graph builder has ended; what is queued on it comes before End, or before build returns")
	case b.kind == forkBuilder && b.stream.res.closed():
		return nil, failf(op, ErrNotBuilding, "the graph builder is a fork that was joined or closed; use the one that it was joined to")
	}
	return c, nil
}

// Close ends a capture that is in progress, of which nothing is left then, and lets go of b's stream. Closing a fork leaves it
// unjoined. For a builder that Capture lent it does nothing.
func (b *GraphBuilder) Close() error {
	if b == nil || b.kind == lentBuilder {
		return nil
	}
	if b.kind == forkBuilder {
		return closeHandle(b.stream.res)
	}
	if c := b.now.Load(); c != nil && !b.stream.ctx.drv.inHostFunction() {
		c.abandon(true)
	}
	return closeHandle(b.res)
}
