package cuda

import (
	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
)

// AddNode adds a node that does what p says and runs after the nodes after, which must be nodes of g, each once. A graph's node
// runs once for every launch, when all that it depends on are done (CONTRACT GR-01, GR-02). Needs CUDA 12.3.
//
// Errors: ErrInvalidValue that names what is wrong, ErrClosed, ErrNotSupported. On an error nothing was added. cuGraphAddNode.
func (g *Graph) AddNode(p NodeParams, after ...GraphNode) (GraphNode, error) {
	const op = "Graph.AddNode"
	if err := g.change(op); err != nil {
		return GraphNode{}, err
	}
	defer g.end()
	l, err := g.nodes.lower(op, g.ctx, p)
	if err != nil {
		return GraphNode{}, err
	}
	defer l.end()
	return g.insert(l, after)
}

// insert adds l's node to g. What the node uses is attached to the graph first: so no node is ever without (CONTRACT GR-07).
func (g *Graph) insert(l *lowering, after []GraphNode) (GraphNode, error) {
	c := g.ctx
	deps, err := g.nodes.raws(l.op, after, l.deps)
	if err != nil {
		l.drop()
		return GraphNode{}, err
	}
	l.deps = deps
	if err := g.attach(l); err != nil {
		return GraphNode{}, err
	}
	raw, r := c.drv.drv.GraphAddNode(c.raw, g.raw, deps, nil, &l.params)
	if r != driver.Success {
		c.detach(g.raw, l.object())
		return GraphNode{}, c.needs(l.op, r, "cuGraphAddNode", "%s", l.addReason(r))
	}
	return g.nodes.add(l.node(raw)), nil
}

// attach has the graph own what l's node uses.
func (g *Graph) attach(l *lowering) error {
	if l.owner == nil {
		return nil
	}
	if r := l.owner.attach(g.ctx, g.raw); r != driver.Success {
		return g.ctx.resultf(l.op, r, "the driver did not take what the node uses into its care; the graph is as it was")
	}
	return nil
}

// object is the user object that carries what the node uses, once it is attached.
func (l *lowering) object() driver.UserObject {
	if l.owner == nil {
		return 0
	}
	return l.owner.object
}

// node is what is known of l's node.
func (l *lowering) node(raw driver.GraphNode) node {
	n := node{raw: raw, object: l.object()}
	switch {
	case l.params.Type == driver.NodeHost:
		n.host = l.hosts[0]
	case len(l.hosts) > 0:
		n.inner = &innerGraphs{hosts: l.hosts}
	}
	return n
}

// addReason explains why the driver refused to add a node.
func (l *lowering) addReason(r driver.Result) string {
	kind := GraphNodeType(l.params.Type).String()
	switch {
	case r == driver.ErrorNotSupported && l.params.Type == driver.NodeGraph:
		return "a graph with memory allocation, memory free or conditional nodes cannot be embedded"
	case r == driver.ErrorInvalidValue && l.params.Type == driver.NodeMemFree:
		return "the memory is freed by another node of the graph already, or no node before this one allocates it"
	}
	return "the driver refused the " + kind + " node; the graph is as it was"
}

// SetParams changes what n, a node of g, does, which must stay of its type. Executables made of g before do what they did: see
// GraphExec.SetParams and GraphExec.Update. Needs CUDA 12.2.
//
// Errors: as AddNode's. On an error n is as it was. cuGraphNodeSetParams.
func (g *Graph) SetParams(n GraphNode, p NodeParams) error {
	const op = "Graph.SetParams"
	if err := g.change(op); err != nil {
		return err
	}
	defer g.end()
	l, err := g.nodes.lower(op, g.ctx, p)
	if err != nil {
		return err
	}
	defer l.end()
	old, err := g.settable(op, n, l)
	if err != nil {
		l.drop()
		return err
	}
	if err := g.attach(l); err != nil {
		return err
	}
	c := g.ctx
	if r := c.drv.drv.GraphNodeSetParams(c.raw, old.raw, &l.params); r != driver.Success {
		c.detach(g.raw, l.object())
		return c.needs(op, r, "cuGraphNodeSetParams", "the driver refused the parameters; the node is as it was")
	}
	now := l.node(old.raw)
	now.first = old.first
	g.nodes.set(n, now)
	old.leave(c, g.raw)
	return nil
}

// settable is node n, if it is of the type that l has and can have its parameters set.
func (g *Graph) settable(op string, n GraphNode, l *lowering) (node, error) {
	found, err := g.nodes.get(op, "n", n)
	if err != nil {
		return node{}, err
	}
	t, err := l.typeOf(found.raw)
	switch {
	case err != nil:
		return node{}, err
	case t == driver.NodeMemFree || t == driver.NodeConditional:
		return node{}, failf(op, ErrNotSupported, "a %s node cannot be changed; remove it and add another", GraphNodeType(t))
	}
	return g.nodes.identify(op, g.ctx, n, t)
}

// typeOf is the type of a node, argument n, that l's parameters are for.
func (l *lowering) typeOf(n driver.GraphNode) (driver.NodeType, error) {
	t, r := l.ctx.drv.drv.GraphNodeGetType(l.ctx.raw, n)
	switch {
	case r != driver.Success:
		return t, l.ctx.result(l.op, r)
	case t != l.params.Type:
		return t, failf(l.op, ErrInvalidValue, "n is a %s node and the parameters are a %s node's", GraphNodeType(t), GraphNodeType(l.params.Type))
	}
	return t, nil
}

// identify finds out which functions node n has, of which no more was known than that it is there: a host node that capture
// made, or a child graph node of a graph that is itself inside one.
func (t *nodeTable) identify(op string, c *Context, n GraphNode, kind driver.NodeType) (node, error) {
	found, err := t.get(op, "n", n)
	if err != nil {
		return node{}, err
	}
	d := c.drv.drv
	switch {
	case kind == driver.NodeHost && found.host == 0:
		if data, r := d.GraphHostNodeGetParams(c.raw, found.raw); r == driver.Success && data != 0 {
			t.tie(n, c.drv.hostOf(data))
		}
	case kind == driver.NodeGraph && found.inner == nil:
		inside, r := d.GraphChildGraphNodeGetGraph(c.raw, found.raw)
		if err := c.result(op, r); err != nil {
			return node{}, err
		}
		t.tieInner(n, functions(c, inside, nil))
	}
	return t.get(op, "n", n)
}

// functions appends those of the host nodes of a graph, and of the graphs inside its nodes.
func functions(c *Context, g driver.Graph, hosts []hostfn.Handle) []hostfn.Handle {
	d := c.drv.drv
	nodes, _ := d.GraphGetNodes(c.raw, g)
	for _, n := range nodes {
		switch t, _ := d.GraphNodeGetType(c.raw, n); t {
		case driver.NodeHost:
			if data, r := d.GraphHostNodeGetParams(c.raw, n); r == driver.Success && data != 0 {
				hosts = append(hosts, c.drv.hostOf(data))
			}
		case driver.NodeGraph:
			if inside, r := d.GraphChildGraphNodeGetGraph(c.raw, n); r == driver.Success {
				hosts = functions(c, inside, hosts)
			}
		}
	}
	return hosts
}

// RemoveNode removes n and its edges from g. Executables made of g are not affected. cuGraphDestroyNode.
//
// Errors: ErrInvalidValue; ErrIllegalState while g, or a graph inside n, is captured into; ErrNotSupported for a graph with
// memory allocation nodes, whose nodes cannot be removed.
func (g *Graph) RemoveNode(n GraphNode) error {
	const op = "Graph.RemoveNode"
	if err := g.change(op); err != nil {
		return err
	}
	defer g.end()
	found, err := g.nodes.get(op, "n", n)
	if err != nil {
		return err
	}
	if err := g.refuseRemoval(op, found); err != nil {
		return err
	}
	d, c := g.ctx.drv.drv, g.ctx
	if t, r := d.GraphNodeGetType(c.raw, found.raw); r == driver.Success {
		if found, err = g.nodes.identify(op, c, n, t); err != nil {
			return err
		}
	}
	if r := d.GraphDestroyNode(c.raw, found.raw); r != driver.Success {
		if r == driver.ErrorNotSupported {
			return c.resultf(op, r, "nodes of a graph with memory allocation nodes cannot be removed; build another graph")
		}
		return c.result(op, r)
	}
	g.nodes.remove(n)
	found.leave(c, g.raw)
	return nil
}

// refuseRemoval refuses to remove a node that a capture may be at: the driver does not look.
func (g *Graph) refuseRemoval(op string, n node) error {
	if g.building.Load() {
		return failf(op, ErrIllegalState, "the graph is being captured into; end that first")
	}
	if n.inner != nil {
		for _, inside := range n.inner.graphs {
			if err := inside.refuseCaptured(op, "a graph inside n"); err != nil {
				return err
			}
		}
	}
	return nil
}

// leave lets go of what n used in graph g.
func (n *node) leave(c *Context, g driver.Graph) {
	c.detach(g, n.object)
	if n.inner != nil {
		for _, inside := range n.inner.graphs {
			inside.nodes.gone.Store(true)
		}
	}
}
