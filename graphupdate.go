package cuda

import (
	"slices"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
)

// Update has later launches of x do what g does now: a graph of the same shape, whose nodes differ in their parameters only.
// Launches that are queued do what they were to do, and keep what they use (CONTRACT GR-06). g may be closed afterwards.
//
// Errors: ErrGraphExecUpdateFailure that says why, if g is not alike enough; then x is as it was. cuGraphExecUpdate.
func (x *GraphExec) Update(g *Graph) error {
	const op = "GraphExec.Update"
	if err := g.begin(op); err != nil {
		return err
	}
	defer g.end()
	if err := x.take(op); err != nil {
		return err
	}
	defer x.give()
	c := x.ctx
	if g.outer != nil {
		return failf(op, ErrInvalidValue, "the graph is inside a node; update from the graph that has the node")
	}
	if err := g.with(op, "the executable", c); err != nil {
		return err
	}
	if err := g.complete(op, "the graph"); err != nil {
		return err
	}
	st, d := x.state, c.drv.drv
	// The driver gives x the references that g has in place of those it had: so g refers to x's state for the time.
	if r := d.GraphRetainUserObject(c.raw, g.raw, st.object, 1, 0); r != driver.Success {
		return c.result(op, r)
	}
	defer d.GraphReleaseUserObject(c.raw, g.raw, st.object, 1)
	var u driver.ExecUpdate
	if r := d.GraphExecUpdate(c.raw, x.raw, g.raw, &u); r != driver.Success {
		return c.resultf(op, r, "%s; the executable is as it was", g.updateReason(&u))
	}
	for _, v := range st.versions {
		st.supersede(v)
	}
	clear(st.versions)
	st.hosts, st.updated = g.nodes.hosts(), true
	return nil
}

// updateReason explains why the driver refused to update an executable from g.
func (g *Graph) updateReason(u *driver.ExecUpdate) string {
	why := map[int32]string{
		driver.UpdateTopologyChanged:           "the graph has other nodes or edges than the executable",
		driver.UpdateNodeTypeChanged:           "a node is of another type",
		driver.UpdateFunctionChanged:           "a kernel node has another function, which this driver cannot change",
		driver.UpdateParametersChanged:         "a node's parameters differ in a way that cannot be updated",
		driver.UpdateNotSupported:              "a node does something that cannot be updated",
		driver.UpdateUnsupportedFunctionChange: "a kernel node has a function of another context, or one that cannot take its place",
		driver.UpdateAttributesChanged:         "a node's attributes differ in a way that cannot be updated",
	}[u.Result]
	if why == "" {
		why = "the driver cannot update the executable from this graph; instantiate it instead"
	}
	if u.ErrorNode != 0 {
		why += ": " + g.describeNode(u.ErrorNode)
	}
	return why
}

// SetParams changes what later launches of x do for n, which must be a node of the graph that x was made of, or of an embedded
// graph in it (Graph.ChildGraph), and be there still. The graph itself does not change. Launches that are queued do what they
// were to do, and keep what they use (CONTRACT GR-06). Needs CUDA 12.2.
//
// Kernel, memcpy, memset, host, event, child graph and batch memory operation nodes can be changed. Errors: ErrInvalidValue
// that says what is wrong; ErrIllegalState for a host or child graph node after Update, or inside an embedded graph after that was
// set as a whole; on an error x is as it was. cuGraphExecNodeSetParams.
func (x *GraphExec) SetParams(n GraphNode, p NodeParams) error {
	const op = "GraphExec.SetParams"
	if err := x.take(op); err != nil {
		return err
	}
	defer x.give()
	found, err := x.node(op, n)
	if err != nil {
		return err
	}
	defer n.of.graph.release()
	l, err := n.of.lower(op, x.ctx, p)
	if err != nil {
		return err
	}
	defer l.end()
	if err := x.setParams(n, found, l); err != nil {
		l.drop()
		return err
	}
	return nil
}

// take is the beginning of a call that changes x; give must follow if it returns nil.
func (x *GraphExec) take(op string) error {
	if x == nil {
		return failf(op, ErrInvalidValue, "the executable graph is nil")
	}
	if err := x.ctx.enter(op); err != nil {
		return err
	}
	if !x.res.acquire() {
		x.ctx.leave()
		return failf(op, ErrClosed, "the executable graph is closed")
	}
	x.state.mu.Lock()
	return nil
}

func (x *GraphExec) give() {
	x.state.mu.Unlock()
	x.res.release()
	x.ctx.leave()
}

// node is n, a node of the graph that x was made of. n.of.graph.release must follow if it returns no error.
func (x *GraphExec) node(op string, n GraphNode) (node, error) {
	switch {
	case n.of == nil:
		return node{}, failf(op, ErrInvalidValue, "n is no node: it is the zero GraphNode")
	case n.of.root() != x.nodes:
		return node{}, failf(op, ErrInvalidValue, "n is not a node of the graph that the executable was made of")
	case !n.of.graph.acquire():
		return node{}, failf(op, ErrClosed, "the graph that the executable was made of is closed; keep it open to change nodes one by one, or Update from another graph")
	}
	found, err := n.of.get(op, "n", n)
	if err != nil {
		n.of.graph.release()
	}
	return found, err
}

// setParams takes l's owner over if it returns nil.
func (x *GraphExec) setParams(n GraphNode, found node, l *lowering) error {
	c, st := x.ctx, x.state
	t, err := l.typeOf(found.raw)
	switch {
	case err != nil:
		return err
	case st.updated && (t == driver.NodeHost || t == driver.NodeGraph):
		return failf(l.op, ErrIllegalState, "the executable was updated as a whole, so it is not known which function the node has now; set it in the graph and Update again")
	}
	var former, was []hostfn.Handle
	if t == driver.NodeHost || t == driver.NodeGraph {
		if former, was, err = x.former(l.op, n, t); err != nil {
			return err
		}
	}
	if r := c.drv.drv.GraphExecNodeSetParams(c.raw, x.raw, found.raw, &l.params); r != driver.Success {
		return c.needs(l.op, r, "cuGraphExecNodeSetParams", "the driver refused the parameters; the executable is as it was")
	}
	st.replace(former, l.hosts)
	if st.versions == nil {
		st.versions = map[GraphNode]version{}
	}
	st.supersede(st.versions[n])
	st.versions[n] = version{l.owner, l.hosts, st.launches, was}
	st.inside(n, func(m GraphNode, v version) {
		st.supersede(v)
		delete(st.versions, m)
	})
	return nil
}

// former are the functions that node n of x, a host or child graph node, runs at a launch now, and those that it ran when x was
// made. st.mu is held.
func (x *GraphExec) former(op string, n GraphNode, t driver.NodeType) (now, was []hostfn.Handle, err error) {
	st := x.state
	for outer := n.of.inside; outer.of != nil; outer = outer.of.inside {
		if _, ok := st.versions[outer]; ok {
			return nil, nil, failf(op, ErrIllegalState, "the embedded graph that has n was set as a whole, so it is not known which function n has now; set it in a graph, and that with ChildGraphParams")
		}
	}
	if v, ok := st.versions[n]; ok {
		now, was = slices.Clone(v.hosts), v.was
	} else {
		if was, err = x.madeWith(op, n, t); err != nil {
			return nil, nil, err
		}
		now = slices.Clone(was)
	}
	st.inside(n, func(_ GraphNode, v version) { now = append(without(now, v.was), v.hosts...) })
	return now, was, nil
}

// madeWith are the functions that node n of x, a host or child graph node, had when x was made.
func (x *GraphExec) madeWith(op string, n GraphNode, t driver.NodeType) ([]hostfn.Handle, error) {
	if n.of == x.nodes && int(n.at) < len(x.state.made) {
		if hosts := x.state.made[n.at].appendHosts(nil); len(hosts) > 0 {
			return hosts, nil
		}
	}
	if x.state.era != x.nodes.epoch() {
		return nil, failf(op, ErrIllegalState, "the graph was recaptured since the executable was made, so it is not known which function the node had then; Update the executable")
	}
	known, err := n.of.identify(op, x.ctx, n, t)
	switch {
	case err != nil:
		return nil, err
	case t == driver.NodeGraph:
		return known.appendHosts(nil), nil
	case known.first != 0:
		return []hostfn.Handle{known.first}, nil
	}
	return nil, nil
}

// SetEnabled has later launches of x run n or leave it out, with its dependents behind what it depends on. n must be a kernel,
// memcpy or memset node of the graph that x was made of. cuGraphNodeSetEnabled.
func (x *GraphExec) SetEnabled(n GraphNode, enabled bool) error {
	const op = "GraphExec.SetEnabled"
	return x.enabling(op, n, func(raw driver.GraphNode) driver.Result {
		return x.ctx.drv.drv.GraphNodeSetEnabled(x.ctx.raw, x.raw, raw, enabled)
	})
}

// Enabled reports whether launches of x run n. See SetEnabled. cuGraphNodeGetEnabled.
func (x *GraphExec) Enabled(n GraphNode) (enabled bool, err error) {
	const op = "GraphExec.Enabled"
	err = x.enabling(op, n, func(raw driver.GraphNode) (r driver.Result) {
		enabled, r = x.ctx.drv.drv.GraphNodeGetEnabled(x.ctx.raw, x.raw, raw)
		return r
	})
	return enabled, err
}

func (x *GraphExec) enabling(op string, n GraphNode, call func(driver.GraphNode) driver.Result) error {
	if err := x.take(op); err != nil {
		return err
	}
	defer x.give()
	found, err := x.node(op, n)
	if err != nil {
		return err
	}
	defer n.of.graph.release()
	r := call(found.raw)
	if r == driver.ErrorInvalidValue {
		return x.ctx.resultf(op, r, "n is a node that is always run: only kernel, memcpy and memset nodes can be left out")
	}
	return x.ctx.result(op, r)
}
