package cuda

import "github.com/hostlaunch/cuda/internal/driver"

// Clone makes a copy of g, with all that its nodes use. Needs that g has no memory allocation, memory free or conditional
// nodes. See FindInClone for its nodes. cuGraphClone.
func (g *Graph) Clone() (*Graph, error) {
	const op = "Graph.Clone"
	if err := g.begin(op); err != nil {
		return nil, err
	}
	defer g.end()
	if err := g.complete(op, "the graph"); err != nil {
		return nil, err
	}
	raw, r := g.ctx.drv.drv.GraphClone(g.ctx.raw, g.raw)
	if r != driver.Success {
		if r == driver.ErrorNotSupported {
			return nil, g.ctx.resultf(op, r, "a graph with memory allocation, memory free or conditional nodes cannot be cloned; build it again")
		}
		return nil, g.ctx.result(op, r)
	}
	clone := newGraph(g.ctx, raw, new(nodeTable))
	g.copyNodes(clone)
	return clone, nil
}

// copyNodes tells a clone of g what is known of g's nodes.
func (g *Graph) copyNodes(clone *Graph) {
	d, c := g.ctx.drv.drv, g.ctx
	list, loose := g.nodes.snapshot()
	clone.nodes.addLoose(loose)
	for _, n := range list {
		if n.raw == 0 || n.object == 0 && n.inner == nil && n.host == 0 {
			continue
		}
		raw, r := d.GraphNodeFindInClone(c.raw, n.raw, clone.raw)
		if r != driver.Success { // the node stays unknown, and so does which function is its
			clone.nodes.addLoose(n.appendHosts(nil))
			continue
		}
		copied := node{raw: raw, object: n.object, host: n.host, first: n.first}
		if n.inner != nil {
			copied.inner = &innerGraphs{hosts: n.inner.hosts}
		}
		clone.nodes.add(copied)
	}
}

// FindInClone is the node of clone, which Clone made of g, that is the copy of n. cuGraphNodeFindInClone.
func (g *Graph) FindInClone(n GraphNode, clone *Graph) (GraphNode, error) {
	const op = "Graph.FindInClone"
	if err := g.begin(op); err != nil {
		return GraphNode{}, err
	}
	defer g.end()
	if err := clone.acquire(op); err != nil {
		return GraphNode{}, err
	}
	defer clone.res.release()
	if err := g.with(op, "clone", clone.ctx); err != nil {
		return GraphNode{}, err
	}
	found, err := g.nodes.get(op, "n", n)
	if err != nil {
		return GraphNode{}, err
	}
	raw, r := g.ctx.drv.drv.GraphNodeFindInClone(g.ctx.raw, found.raw, clone.raw)
	if r != driver.Success {
		return GraphNode{}, g.ctx.resultf(op, r, "clone was not made of the graph since it has n, or has lost the copy of n")
	}
	return clone.nodes.of(raw), nil
}

// ChildGraph is the copy of a graph that n, a child graph node of g, runs. Its nodes can be listed, and set in an executable
// (GraphExec.SetParams); it cannot be changed. It lives as long as n. cuGraphChildGraphNodeGetGraph.
func (g *Graph) ChildGraph(n GraphNode) (*Graph, error) {
	const op = "Graph.ChildGraph"
	if err := g.begin(op); err != nil {
		return nil, err
	}
	defer g.end()
	found, err := g.nodes.get(op, "n", n)
	if err != nil {
		return nil, err
	}
	d, c := g.ctx.drv.drv, g.ctx
	if t, r := d.GraphNodeGetType(c.raw, found.raw); r != driver.Success || t != driver.NodeGraph {
		if r != driver.Success {
			return nil, c.result(op, r)
		}
		return nil, failf(op, ErrInvalidValue, "n is a %s node, not a child graph node", GraphNodeType(t))
	}
	if found.inner != nil && len(found.inner.graphs) > 0 {
		return found.inner.graphs[0], nil
	}
	raw, r := d.GraphChildGraphNodeGetGraph(c.raw, found.raw)
	if err := c.result(op, r); err != nil {
		return nil, err
	}
	if found, err = g.nodes.identify(op, c, n, driver.NodeGraph); err != nil {
		return nil, err
	}
	child := g.innerGraph(n, raw, embeddedGraph)
	child.nodes.addLoose(found.inner.hosts)
	found.inner = &innerGraphs{hosts: found.inner.hosts, graphs: []*Graph{child}}
	g.nodes.set(n, found)
	return child, nil
}
