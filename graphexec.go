package cuda

import (
	"context"
	"fmt"
	"slices"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
)

// GraphExec is a graph made ready to run, any number of times: an executable graph. It keeps what its nodes use until it is
// closed and its last launch is done; and the collector does not close the Graph that it was made of, which SetParams needs. Its methods
// may be called from any goroutine.
type GraphExec struct {
	ctx   *Context
	raw   driver.GraphExec
	res   *resource
	nodes *nodeTable // of the graph that it was made of
	state *execState
}

// InstantiateOption configures an executable.
type InstantiateOption func(*instantiateOptions)

type instantiateOptions struct {
	flags  uint64
	upload *Stream
	ready  bool // upload was given
}

// AutoFreeOnLaunch has memory that the graph's nodes allocated and nobody freed be freed before the next launch.
func AutoFreeOnLaunch() InstantiateOption {
	return func(o *instantiateOptions) { o.flags |= driver.GraphAutoFreeOnLaunch }
}

// UploadOn has the executable's resources be made ready on s at once, in s's order, so that the first launch is as fast as
// later ones. See GraphExec.Upload.
func UploadOn(s *Stream) InstantiateOption {
	return func(o *instantiateOptions) { o.flags, o.upload, o.ready = o.flags|driver.GraphUpload, s, true }
}

// UseNodePriority has kernel nodes run with the priorities that they were captured with, not with that of the stream that the
// graph is launched on.
func UseNodePriority() InstantiateOption {
	return func(o *instantiateOptions) { o.flags |= driver.GraphUseNodePriority }
}

// Instantiate makes an executable of g as it is now.
//
// Errors: ErrClosed; ErrIllegalState while g is captured into; ErrInvalidValue for a cycle, or a Condition that no node uses;
// ErrNotSupported for a second executable of a graph that allocates memory. cuGraphInstantiateWithParams.
func (g *Graph) Instantiate(opts ...InstantiateOption) (*GraphExec, error) {
	const op = "Graph.Instantiate"
	if err := g.begin(op); err != nil {
		return nil, err
	}
	defer g.end()
	if g.outer != nil {
		return nil, failf(op, ErrInvalidValue, "the graph is inside a node; instantiate the graph that has the node")
	}
	if err := g.complete(op, "the graph"); err != nil {
		return nil, err
	}
	var o instantiateOptions
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	if !o.ready {
		return g.instantiate(op, &driver.Instantiation{Flags: o.flags})
	}
	if err := o.upload.begin(op); err != nil {
		return nil, err
	}
	defer o.upload.end()
	if err := g.with(op, "the stream", o.upload.ctx); err != nil {
		return nil, err
	}
	if err := o.upload.refuseCapturing(op); err != nil {
		return nil, err
	}
	return g.instantiate(op, &driver.Instantiation{Flags: o.flags, UploadStream: o.upload.raw})
}

// instantiate makes the executable. The graph refers to its state for the time, so that the executable does from the first.
func (g *Graph) instantiate(op string, i *driver.Instantiation) (*GraphExec, error) {
	c := g.ctx
	d := c.drv.drv
	state := &execState{ctx: c, hosts: g.nodes.hosts(), era: g.nodes.epoch()}
	state.made, _ = g.nodes.snapshot()
	state.carried.state = state
	object, r := c.drv.attach(c, g.raw, &state.carried)
	if r != driver.Success {
		return nil, c.resultf(op, r, "the driver did not take the executable's state into its care")
	}
	state.object = object
	raw, r := d.GraphInstantiateWithParams(c.raw, g.raw, i)
	d.GraphReleaseUserObject(c.raw, g.raw, object, 1)
	if r != driver.Success {
		return nil, c.resultf(op, r, "%s", g.instantiateReason(i, r))
	}
	x := &GraphExec{ctx: c, raw: raw, nodes: g.nodes, state: state}
	x.res = newResource(c, "GraphExec", 0, func() driver.Result { return d.GraphExecDestroy(c.raw, raw) })
	dropped(x, x.res)
	return x, nil
}

// instantiateReason explains why the driver made no executable.
func (g *Graph) instantiateReason(i *driver.Instantiation, r driver.Result) string {
	why := map[int32]string{
		driver.InstantiateInvalidStructure:  "the graph has a cycle, or is malformed in another way",
		driver.InstantiateNodeNotSupported:  "a node does something that the driver cannot do in a graph",
		driver.InstantiateMultipleContexts:  "nodes belong to more contexts than the driver allows",
		driver.InstantiateConditionalUnused: "a Condition of the graph is used by no node",
	}[i.Result]
	switch {
	case why == "" && r == driver.ErrorNotSupported:
		why = "a graph that allocates memory can have one executable at a time; close the other one"
	case why == "":
		why = "the graph has a cycle, a Condition that no node uses, or a node that the driver cannot run"
	}
	if i.ErrorNode != 0 {
		why += ": " + g.describeNode(i.ErrorNode)
	}
	return why
}

// describeNode names a node of g in an error, as "host node (decode)".
func (g *Graph) describeNode(raw driver.GraphNode) string {
	label := g.label(raw)
	if label.name == "" {
		return label.kind.String() + " node"
	}
	return fmt.Sprintf("%s node (%s)", label.kind, label.name)
}

// begin is the beginning of a call that queues x on s; end must follow if it returns nil.
func (x *GraphExec) begin(op string, s *Stream) error {
	if x == nil {
		return failf(op, ErrInvalidValue, "the executable graph is nil")
	}
	if err := s.beginNow(op, "the stream"); err != nil {
		return err
	}
	err := x.usable(op, s)
	if err != nil {
		s.end()
	}
	return err
}

func (x *GraphExec) usable(op string, s *Stream) error {
	switch {
	case s.ctx.drv != x.ctx.drv:
		return failf(op, ErrInvalidValue, "the executable graph belongs to %s and the stream to %s; use one Driver for both", x.ctx.describe(), s.ctx.describeBeside(x.ctx))
	case s.ctx != x.ctx:
		return failf(op, ErrInvalidContext, "the executable graph belongs to %s and the stream to %s; launch it on a stream of its own context", x.ctx.describe(), s.ctx.describe())
	}
	if err := s.refuseCapturing(op); err != nil {
		return err
	}
	if !x.res.acquire() {
		return failf(op, ErrClosed, "the executable graph is closed")
	}
	return nil
}

func (x *GraphExec) end(s *Stream) {
	x.res.release()
	s.end()
}

// Launch queues one run of the whole graph on s, a stream of the graph's context: it begins when everything queued on s before
// is done, and the former launch of x has ended, and what is queued on s later waits for its end (CONTRACT GR-05). Every host
// function of the graph runs once, and its OnDone is told once, for every launch.
//
// Errors: ErrClosed, ErrInvalidContext for a stream of another context, ErrCapturing (see GraphBuilder.Embed). On an error
// nothing was queued. cuGraphLaunch.
func (x *GraphExec) Launch(s *Stream) error {
	const op = "GraphExec.Launch"
	if err := x.begin(op, s); err != nil {
		return err
	}
	defer x.end(s)
	if queued, err := x.launchFree(op, s); queued {
		return err
	}
	l := x.state.expectTasks()
	t, err := l.takeTurn(op, s)
	if err != nil {
		return err
	}
	defer t.end()
	x.state.mu.Lock()
	defer x.state.mu.Unlock()
	l.again(s)
	if err = x.launch(op, s); err != nil {
		l.takeBack()
	}
	return err
}

// launchFree is Launch while no tasks are about. It reports false, and does nothing, if they are.
func (x *GraphExec) launchFree(op string, s *Stream) (queued bool, err error) {
	b := &s.ctx.drv.tasks
	if b.orders() {
		return false, nil
	}
	x.state.mu.Lock()
	defer x.state.mu.Unlock()
	if b.orders() { // since: an update may have given x the first one
		return false, nil
	}
	defer b.launched(x.state, s)
	return true, x.launch(op, s)
}

// launch has every host function expect a run before the driver can begin one.
func (x *GraphExec) launch(op string, s *Stream) error {
	sp := s.span(TraceGraph, op, "", 0)
	sp.expects(x.state.hosts)
	sp.begins(s)
	err := x.launchNow(op, s)
	sp.ends(s, err)
	if err != nil {
		sp.unexpects(x.state.hosts)
	}
	return err
}

func (x *GraphExec) launchNow(op string, s *Stream) error {
	funcs, d := &x.ctx.drv.funcs, s.driver()
	for i, h := range x.state.hosts {
		if !funcs.Expect(h) {
			if x.unexpect(i) {
				return nil
			}
			return x.ctx.lostError(op, x.ctx.lost())
		}
	}
	if r := d.GraphLaunch(s.ctx.raw, x.raw, s.raw); r != driver.Success {
		if x.unexpect(len(x.state.hosts)) {
			return nil
		}
		return x.ctx.resultf(op, r, "%s", launchReason(r))
	}
	x.state.launched(s)
	return nil
}

func launchReason(r driver.Result) string {
	if r == driver.ErrorInvalidValue {
		return "the driver refused the launch; nothing of the graph will run. If it allocates memory that is not freed, see AutoFreeOnLaunch"
	}
	return "the driver refused the launch; nothing of the graph will run"
}

// unexpect takes the runs back that the first n functions expect, of a launch that fails. If the context was lost and some of
// them have been told so already, the launch counts as queued: the others are told too, and it reports true.
func (x *GraphExec) unexpect(n int) (queued bool) {
	d, hosts := x.ctx.drv, x.state.hosts
	untold := slices.DeleteFunc(slices.Clone(hosts[:n]), func(h hostfn.Handle) bool { return !d.funcs.Unexpect(h) })
	if len(untold) == n {
		return false
	}
	for _, h := range append(untold, hosts[n:]...) {
		if fn, ok := d.funcs.KeptFunc(h); ok {
			d.resolve(fn, neverRan(fn, fn.Group.Failure()))
		}
	}
	return true
}

// Upload queues on s what the first launch would otherwise do: it makes the executable's resources on the device ready.
// Later launches need not be on s. cuGraphUpload.
func (x *GraphExec) Upload(s *Stream) error {
	const op = "GraphExec.Upload"
	if err := x.begin(op, s); err != nil {
		return err
	}
	defer x.end(s)
	if b := &s.ctx.drv.tasks; b.active.Load() > 0 {
		if err := b.queueTurn(op, s, context.Background()); err != nil {
			return err
		}
	}
	x.state.mu.Lock()
	defer x.state.mu.Unlock()
	return x.ctx.result(op, s.driver().GraphUpload(s.ctx.raw, x.raw, s.raw))
}

// Close destroys x. A launch in flight goes on, and what it uses stays until it is done (CONTRACT GR-04). cuGraphExecDestroy.
func (x *GraphExec) Close() error {
	if x == nil {
		return nil
	}
	return closeHandle(x.res)
}
