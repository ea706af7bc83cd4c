package softcuda

import "github.com/hostlaunch/cuda/internal/driver"

// plan is a graph made ready to run. An executable has one for its graph and one for each graph in that.
type plan struct {
	nodes []execNode // each behind those that it depends on
	ends  []int      // the nodes that nothing comes behind, in the order of their addition
	lanes int
}

// execNode is a node of a plan. Nodes of a lane run one behind the other.
type execNode struct {
	ctx    *context
	typ    driver.NodeType
	act    *action
	behind []link
	lane   int
	inner  []int // the plans of its child graph, or of its bodies
	cond   *condValue
	kind   int32 // of a conditional
	off    bool
}

// link is a dependency on a node, by its place in the plan.
type link struct {
	at   int
	data driver.EdgeData
}

// planner makes the plans of an executable.
type planner struct {
	*graphExec
	fault driver.Instantiation // why it cannot be made
}

// refuse notes why there can be no executable, where hardware tells.
func (p *planner) refuse(why int32, n *graphNode) bool {
	p.fault.Result = why
	if n != nil {
		p.fault.ErrorNode = n.raw
	}
	return false
}

// add adds the plan of g, and those of the graphs in it. It reports whether g can run; body: as part of a conditional.
func (p *planner) add(g *graph, body bool) (index int, ok bool) {
	sorted, cyclic := g.sorted()
	if cyclic != nil {
		return 0, p.refuse(driver.InstantiateInvalidStructure, cyclic)
	}
	for _, c := range g.conds {
		if c.node == nil {
			return 0, p.refuse(driver.InstantiateConditionalUnused, nil)
		}
		p.conds[c.raw] = &condValue{cond: c}
	}
	index = len(p.plans)
	p.plans = append(p.plans, plan{})
	made := plan{nodes: make([]execNode, len(sorted)), ends: ends(g)}
	made.arrange(sorted)
	for i, n := range sorted {
		if body && !inBody(n.typ) {
			return 0, p.refuse(0, nil) // hardware tells no more
		}
		if !p.furnish(&made.nodes[i], n, body) {
			return 0, false
		}
		p.where[n.raw] = spot{index, i}
	}
	p.plans[index] = made
	return index, true
}

// furnish fills in what n does.
func (p *planner) furnish(e *execNode, n *graphNode, body bool) bool {
	e.ctx, e.typ, e.act = n.ctx, n.typ, n.act
	if e.act.mem != nil {
		p.memory.note(n)
	}
	if e.act.event != 0 {
		p.events = true
	}
	if n.cond != nil {
		e.cond, e.kind, body = p.conds[n.cond.raw], n.cond.kind, true
	}
	for _, g := range n.inner {
		i, ok := p.add(g, body)
		if !ok {
			return false
		}
		e.inner = append(e.inner, i)
	}
	return true
}

// inBody reports whether a body of a conditional may have nodes of a type.
func inBody(t driver.NodeType) bool {
	switch t {
	case driver.NodeKernel, driver.NodeMemcpy, driver.NodeMemset, driver.NodeGraph, driver.NodeEmpty, driver.NodeConditional:
		return true
	}
	return false
}

// ends are the places in sorted order of the nodes that nothing comes behind.
func ends(g *graph) (list []int) {
	followed := make([]bool, len(g.nodes))
	for _, n := range g.nodes {
		for _, d := range n.deps.list {
			followed[d.on.at] = true
		}
	}
	for _, n := range g.nodes {
		if !followed[n.at] {
			list = append(list, n.at)
		}
	}
	return list
}

// arrange gives every node a lane: that of a node before it, if it is the first behind that one, or else a new one.
func (p *plan) arrange(sorted []*graphNode) {
	taken := make([]bool, len(sorted))
	for i, n := range sorted {
		e := &p.nodes[i]
		e.lane = -1
		for _, d := range n.deps.list {
			at := d.on.at
			e.behind = append(e.behind, link{at, d.data})
			if e.lane < 0 && !taken[at] && sorted[at].ctx == n.ctx {
				e.lane, taken[at] = p.nodes[at].lane, true
			}
		}
		if e.lane < 0 {
			e.lane = p.lanes
			p.lanes++
		}
	}
}
