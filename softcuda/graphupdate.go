package softcuda

import "github.com/hostlaunch/cuda/internal/driver"

// updating is an update of an executable: its nodes are paired with those of a graph, and nothing changes unless all fit. Nodes
// are paired from the ends on, in the order of their addition, and then along their dependencies, in the order of theirs.
type updating struct {
	x       *graphExec
	changes []change
	why     *driver.ExecUpdate
}

// change is an action to be given to a node.
type change struct {
	at  spot
	act *action
}

// refuse notes what is wrong with a node of the graph, and with the dependency of it that is at fault. Both may be nil.
func (u *updating) refuse(why int32, n, from *graphNode) bool {
	*u.why = driver.ExecUpdate{Result: why}
	if n != nil {
		u.why.ErrorNode = n.raw
	}
	if from != nil {
		u.why.ErrorFrom = from.raw
	}
	return false
}

// pair pairs a plan with g, and reports whether the plan can become what g is.
func (u *updating) pair(index int, g *graph) bool {
	p := &u.x.plans[index]
	sorted, cyclic := g.sorted()
	if cyclic != nil || len(sorted) != len(p.nodes) {
		return u.refuse(driver.UpdateTopologyChanged, nil, nil)
	}
	last := ends(g)
	if len(last) != len(p.ends) {
		return u.refuse(driver.UpdateTopologyChanged, sorted[last[0]], nil)
	}
	partner := make([]int, len(sorted)) // by the place of g's node: that in the plan, from 1
	taken := make([]bool, len(sorted))
	var todo []int
	meet := func(n, of int) bool {
		if partner[n] != 0 || taken[of] {
			return partner[n] == of+1
		}
		partner[n], taken[of] = of+1, true
		todo = append(todo, n)
		return true
	}
	for i, n := range last {
		meet(n, p.ends[i])
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n, e := sorted[at], &p.nodes[partner[at]-1]
		if len(n.deps.list) != len(e.behind) {
			return u.refuse(driver.UpdateTopologyChanged, n, nil)
		}
		for i, d := range n.deps.list {
			if d.data != e.behind[i].data || !meet(d.on.at, e.behind[i].at) {
				return u.refuse(driver.UpdateTopologyChanged, n, d.on)
			}
		}
	}
	for at, n := range sorted {
		if !u.compare(spot{index, partner[at] - 1}, n) {
			return false
		}
	}
	return true
}

// compare notes what n changes about the node that it is paired with.
func (u *updating) compare(at spot, n *graphNode) bool {
	e := u.x.node(at)
	switch {
	case n.typ != e.typ:
		return u.refuse(driver.UpdateNodeTypeChanged, n, nil)
	case n.ctx != e.ctx, !n.act.replaces(e.act):
		return u.refuse(driver.UpdateParametersChanged, n, nil)
	}
	for i, g := range n.inner {
		if !u.pair(e.inner[i], g) {
			return false
		}
	}
	u.changes = append(u.changes, change{at, n.act})
	return true
}

// apply makes the changes.
func (u *updating) apply() {
	for _, c := range u.changes {
		u.x.changing(c.at).act = c.act
		u.x.events = u.x.events || c.act.event != 0
	}
}

// GraphExecUpdate implements driver.Graphs. Launches that are queued run as they were.
func (m *machine) GraphExecUpdate(_ driver.Context, raw driver.GraphExec, from driver.Graph, why *driver.ExecUpdate) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	x, g := m.execs[raw], m.graphs[from]
	switch {
	case x == nil, g == nil:
		return driver.ErrorInvalidValue
	case g.capturing():
		return driver.ErrorIllegalState
	case x.ctx.lost != driver.Success:
		return x.ctx.lost
	case len(x.conds) > 0, !g.unconditional():
		*why = driver.ExecUpdate{Result: driver.UpdateNotSupported}
		return driver.ErrorNotSupported
	}
	u := updating{x: x, why: why}
	if !u.pair(0, g) {
		return driver.ErrorGraphExecUpdateFailure
	}
	u.apply()
	m.supersede(x, bundleOf(g))
	*why = driver.ExecUpdate{Result: driver.UpdateSuccess}
	return driver.Success
}
