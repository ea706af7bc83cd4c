package softcuda

import "github.com/hostlaunch/cuda/internal/driver"

// copyGraph copies g with all that is attached to it. It must be plain.
func (m *machine) copyGraph(g *graph) *graph {
	c := m.newGraph(g.ctx)
	for i, n := range g.nodes {
		n.at = i
		m.addNode(c, &graphNode{ctx: n.ctx, typ: n.typ, act: n.act, origin: n.raw})
	}
	for i, n := range g.nodes {
		to := c.nodes[i]
		for _, d := range n.deps.list {
			to.deps.list = append(to.deps.list, dependency{c.nodes[d.on.at], d.data})
		}
		for _, inner := range n.inner {
			to.own(m.copyGraph(inner))
		}
	}
	for o, n := range g.objects {
		c.give(o, n)
	}
	return c
}

// own makes g a graph in n.
func (n *graphNode) own(g *graph) {
	g.owner = n
	n.inner = append(n.inner, g)
}

// copyable answers for a copy of g.
func (g *graph) copyable() driver.Result {
	switch {
	case !g.plain():
		return driver.ErrorNotSupported
	case g.capturing():
		return driver.ErrorIllegalState
	}
	return driver.Success
}

// GraphClone implements driver.Graphs.
func (m *machine) GraphClone(_ driver.Context, raw driver.Graph) (driver.Graph, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	g := m.graphs[raw]
	if g == nil {
		return 0, driver.ErrorInvalidValue
	}
	if r := g.copyable(); r != driver.Success {
		return 0, r
	}
	return m.copyGraph(g).raw, driver.Success
}

// embed makes n a node that runs a copy of a graph other than its own.
func (m *machine) embed(n *graphNode, raw driver.Graph) driver.Result {
	g := m.graphs[raw]
	if g == nil || g == n.graph {
		return driver.ErrorInvalidValue
	}
	if r := g.copyable(); r != driver.Success {
		return r
	}
	n.act = &action{kind: opMark}
	n.own(m.copyGraph(g))
	return driver.Success
}

// GraphNodeFindInClone implements driver.Graphs. A child graph is a clone too.
func (m *machine) GraphNodeFindInClone(_ driver.Context, original driver.GraphNode, clone driver.Graph) (driver.GraphNode, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	n, g := m.nodes[original], m.graphs[clone]
	if n == nil || g == nil {
		return 0, driver.ErrorInvalidValue
	}
	if g.copies == nil {
		g.copies = map[driver.GraphNode]*graphNode{}
		for _, c := range g.nodes {
			g.copies[c.origin] = c
		}
	}
	c := g.copies[original]
	if c == nil || m.nodes[c.raw] == nil {
		return 0, driver.ErrorInvalidValue
	}
	return c.raw, driver.Success
}
