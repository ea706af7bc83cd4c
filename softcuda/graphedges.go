package softcuda

import (
	"slices"

	"github.com/hostlaunch/cuda/internal/driver"
)

// edges are what a node comes behind: each node once, in the order of their addition.
type edges struct {
	list []dependency
	set  map[*graphNode]struct{} // the nodes of a long list, once somebody asked
}

const longList = 16

func (e *edges) has(n *graphNode) bool {
	if len(e.list) <= longList {
		return slices.ContainsFunc(e.list, func(d dependency) bool { return d.on == n })
	}
	if e.set == nil {
		e.set = make(map[*graphNode]struct{}, len(e.list))
		for _, d := range e.list {
			e.set[d.on] = struct{}{}
		}
	}
	_, ok := e.set[n]
	return ok
}

// add adds d, and reports whether its node was not there yet.
func (e *edges) add(d dependency) bool {
	if e.has(d.on) {
		return false
	}
	e.list = append(e.list, d)
	if e.set != nil {
		e.set[d.on] = struct{}{}
	}
	return true
}

// remove removes the edge to n, if there is one. The list may be shared with a capture: it is not changed in place.
func (e *edges) remove(n *graphNode) {
	if !e.has(n) {
		return
	}
	kept := make([]dependency, 0, len(e.list)-1)
	for _, d := range e.list {
		if d.on != n {
			kept = append(kept, d)
		}
	}
	e.list, e.set = kept, nil
}

// data is what the edge to n says, if there is one.
func (e *edges) data(n *graphNode) (driver.EdgeData, bool) {
	if e.has(n) {
		for _, d := range e.list {
			if d.on == n {
				return d.data, true
			}
		}
	}
	return driver.EdgeData{}, false
}

// newEdges finds the nodes of g that a new node is to come behind, each given once.
func (m *machine) newEdges(g *graph, deps []driver.GraphNode, data []driver.EdgeData) (e edges, r driver.Result) {
	for i, raw := range deps {
		n := m.nodes[raw]
		if n == nil || n.graph != g || !e.add(dependency{n, edgeData(data, i)}) {
			return edges{}, driver.ErrorInvalidValue
		}
	}
	return e, driver.Success
}

// edgeData is entry i of a list that may be left out.
func edgeData(list []driver.EdgeData, i int) driver.EdgeData {
	if i < len(list) {
		return list[i]
	}
	return driver.EdgeData{}
}

// GraphGetEdges implements driver.Graphs.
func (m *machine) GraphGetEdges(_ driver.Context, raw driver.Graph) ([]driver.GraphEdge, driver.Result) {
	return graphValue(m, raw, func(g *graph) (list []driver.GraphEdge) {
		for _, n := range g.nodes {
			for _, d := range n.deps.list {
				list = append(list, driver.GraphEdge{From: d.on.raw, To: n.raw, Data: d.data})
			}
		}
		return list
	})
}

// edge is an edge to be added or removed.
type edge struct {
	from, to *graphNode
	data     driver.EdgeData
}

// newEdge finds the nodes of edge i, which must be two of g.
func (m *machine) newEdge(g *graph, from, to []driver.GraphNode, data []driver.EdgeData, i int) (edge, bool) {
	e := edge{m.nodes[from[i]], m.nodes[to[i]], edgeData(data, i)}
	return e, e.from != nil && e.to != nil && e.from != e.to && e.from.graph == g && e.to.graph == g
}

// changeEdges does something with each edge; if it cannot for one, it undoes what it has done.
func (m *machine) changeEdges(g *graph, from, to []driver.GraphNode, data []driver.EdgeData, do func(edge) bool, undo func(edge)) driver.Result {
	if len(from) != len(to) {
		return driver.ErrorInvalidValue
	}
	var done []edge
	for i := range from {
		e, ok := m.newEdge(g, from, to, data, i)
		if !ok || !do(e) {
			for _, e := range slices.Backward(done) {
				undo(e)
			}
			return driver.ErrorInvalidValue
		}
		done = append(done, e)
	}
	return driver.Success
}

func (e edge) add() bool { return e.to.deps.add(dependency{e.from, e.data}) }

func (e edge) remove() bool {
	data, ok := e.to.deps.data(e.from)
	if ok = ok && data == e.data; ok {
		e.to.deps.remove(e.from)
	}
	return ok
}

// GraphAddDependencies implements driver.Graphs. A cycle is found when the graph is instantiated.
func (m *machine) GraphAddDependencies(_ driver.Context, raw driver.Graph, from, to []driver.GraphNode, data []driver.EdgeData) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	g := m.graphs[raw]
	if g == nil {
		return driver.ErrorInvalidValue
	}
	return m.changeEdges(g, from, to, data, edge.add, func(e edge) { e.remove() })
}

// GraphRemoveDependencies implements driver.Graphs.
func (m *machine) GraphRemoveDependencies(_ driver.Context, raw driver.Graph, from, to []driver.GraphNode, data []driver.EdgeData) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	g := m.graphs[raw]
	switch {
	case g == nil:
		return driver.ErrorInvalidValue
	case g.memory:
		return driver.ErrorNotSupported
	}
	return m.changeEdges(g, from, to, data, edge.remove, func(e edge) { e.add() })
}

// sorted are the nodes of g, each behind those that it depends on; or else a node of a cycle. Nodes that were added in such an
// order keep it. Each node's place is in its at.
func (g *graph) sorted() (list []*graphNode, cyclic *graphNode) {
	const fresh, open = -1, -2
	list = make([]*graphNode, 0, len(g.nodes))
	for _, n := range g.nodes {
		n.at = fresh
	}
	type visit struct {
		n    *graphNode
		next int // of its dependencies
	}
	var path []visit
	for _, root := range g.nodes {
		if root.at == fresh {
			root.at, path = open, append(path, visit{n: root})
		}
		for len(path) > 0 {
			v := &path[len(path)-1]
			if v.next == len(v.n.deps.list) {
				v.n.at, list, path = len(list), append(list, v.n), path[:len(path)-1]
				continue
			}
			on := v.n.deps.list[v.next].on
			v.next++
			switch on.at {
			case open:
				return nil, on
			case fresh:
				on.at, path = open, append(path, visit{n: on})
			}
		}
	}
	return list, nil
}
