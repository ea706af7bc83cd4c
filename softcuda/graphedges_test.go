package softcuda

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

// pairs is a list of edges as the seam wants it.
func pairs(nodes ...driver.GraphNode) (from, to []driver.GraphNode) {
	for pair := range slices.Chunk(nodes, 2) {
		from, to = append(from, pair[0]), append(to, pair[1])
	}
	return from, to
}

func TestGraphEdges(t *testing.T) {
	g := newGraphRig(t)
	raw, other := g.graph(), g.graph()
	a := g.host(raw, 1)
	b := g.host(raw, 2, a)
	c := g.host(raw, 3, b)
	z := g.host(other, 4)
	add := func(what string, want driver.Result, nodes ...driver.GraphNode) {
		t.Helper()
		from, to := pairs(nodes...)
		g.want("add "+what, g.GraphAddDependencies(g.ctx, raw, from, to, nil), want)
	}
	remove := func(what string, want driver.Result, nodes ...driver.GraphNode) {
		t.Helper()
		from, to := pairs(nodes...)
		g.want("remove "+what, g.GraphRemoveDependencies(g.ctx, raw, from, to, nil), want)
	}
	edges := func(want ...driver.GraphEdge) {
		t.Helper()
		if got, r := g.GraphGetEdges(g.ctx, raw); !slices.Equal(got, want) || r != 0 {
			t.Errorf("edges %v, %d, want %v", got, r, want)
		}
	}
	add("one that closes a circle", 0, c, a)
	i := driver.Instantiation{}
	_, r := g.GraphInstantiateWithParams(g.ctx, raw, &i)
	g.want("instantiate", r, driver.ErrorInvalidValue)
	if i.Result != driver.InstantiateInvalidStructure || i.ErrorNode == 0 {
		t.Errorf("refused with %d, node %d", i.Result, i.ErrorNode)
	}
	remove("it", 0, c, a)
	g.run(g.instantiate(raw, 0, 0))
	g.expect("chain", 1, 2, 3)

	add("one that is there", driver.ErrorInvalidValue, a, b)
	add("one to itself", driver.ErrorInvalidValue, a, a)
	add("one from another graph", driver.ErrorInvalidValue, z, b)
	add("one to another graph", driver.ErrorInvalidValue, b, z)
	add("one from nowhere", driver.ErrorInvalidValue, 1, b)
	add("a good one and a bad one", driver.ErrorInvalidValue, a, c, a, b)
	add("one twice", driver.ErrorInvalidValue, a, c, a, c)
	remove("one that is not there", driver.ErrorInvalidValue, a, c)
	remove("a good one and a bad one", driver.ErrorInvalidValue, a, b, a, c)
	edges(driver.GraphEdge{From: a, To: b}, driver.GraphEdge{From: b, To: c})
	g.want("lists of different lengths", g.GraphAddDependencies(g.ctx, raw, []driver.GraphNode{a}, nil, nil), driver.ErrorInvalidValue)
	g.want("no graph", g.GraphAddDependencies(g.ctx, 1, nil, nil, nil), driver.ErrorInvalidValue)
	g.want("no graph", g.GraphRemoveDependencies(g.ctx, 1, nil, nil, nil), driver.ErrorInvalidValue)
	g.refused("behind a node twice", driver.ErrorInvalidValue, raw, emptyNode, a, a)
	g.refused("behind another graph's node", driver.ErrorInvalidValue, raw, emptyNode, z)

	port := []driver.EdgeData{{Type: 1}}
	from, to := pairs(a, c)
	g.want("add one with data", g.GraphAddDependencies(g.ctx, raw, from, to, port), 0)
	edges(driver.GraphEdge{From: a, To: b}, driver.GraphEdge{From: b, To: c}, driver.GraphEdge{From: a, To: c, Data: port[0]})
	remove("it without", driver.ErrorInvalidValue, a, c)
	g.want("remove it with", g.GraphRemoveDependencies(g.ctx, raw, from, to, port), 0)

	g.want("destroy the node between", g.GraphDestroyNode(g.ctx, b), 0)
	edges()
	g.want("destroy it again", g.GraphDestroyNode(g.ctx, b), driver.ErrorInvalidValue)
	_, r = g.GraphNodeGetType(g.ctx, b)
	g.want("ask it", r, driver.ErrorInvalidValue)
	x := g.instantiate(raw, 0, 0)
	g.want("destroy the graph", g.GraphDestroy(g.ctx, raw), 0)
	g.run(x)
	if ran := g.noted(); len(ran) != 2 {
		t.Errorf("ran %v", ran)
	}
}

// A node with very many edges loses and gains them like any other.
func TestGraphManyEdges(t *testing.T) {
	g := newGraphRig(t)
	raw := g.graph()
	var all []driver.GraphNode
	for range 100 {
		all = append(all, g.add(raw, emptyNode))
	}
	last := g.add(raw, emptyNode, all...)
	g.want("add", g.GraphAddDependencies(g.ctx, raw, all[40:41], []driver.GraphNode{last}, nil), driver.ErrorInvalidValue)
	g.want("remove", g.GraphRemoveDependencies(g.ctx, raw, all[40:41], []driver.GraphNode{last}, nil), 0)
	g.want("remove", g.GraphRemoveDependencies(g.ctx, raw, all[40:41], []driver.GraphNode{last}, nil), driver.ErrorInvalidValue)
	g.want("add", g.GraphAddDependencies(g.ctx, raw, all[40:41], []driver.GraphNode{last}, nil), 0)
	g.want("destroy", g.GraphDestroyNode(g.ctx, all[0]), 0)
	if edges, _ := g.GraphGetEdges(g.ctx, raw); len(edges) != 99 || edges[98].From != all[40] {
		t.Errorf("%d edges", len(edges))
	}
}

// Random graphs, their edges added in any order, run each node once and behind those that it depends on: also through a clone and
// as a child graph.
func TestGraphOrderOfRandomGraphs(t *testing.T) {
	g := newGraphRig(t)
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 100 {
		n := 1 + random.IntN(60)
		raw := g.graph()
		nodes, names := make([]driver.GraphNode, n), make([]uint64, n)
		for at, i := range random.Perm(n) { // a node of a low number may be added late
			nodes[i], names[i] = g.host(raw, uint64(i)), uint64(i)
			if at%5 == 4 {
				g.add(raw, emptyNode)
			}
		}
		var from, to []driver.GraphNode
		behind := map[[2]int]bool{}
		for range random.IntN(3 * n) {
			a, b := random.IntN(n), random.IntN(n)
			if a < b && !behind[[2]int{a, b}] {
				behind[[2]int{a, b}] = true
				from, to = append(from, nodes[a]), append(to, nodes[b])
			}
		}
		g.want("add edges", g.GraphAddDependencies(g.ctx, raw, from, to, nil), 0)
		clone, r := g.GraphClone(g.ctx, raw)
		g.want("clone", r, 0)
		parent := g.graph()
		g.add(parent, &driver.NodeParams{Type: driver.NodeGraph, Child: clone})
		for _, each := range []driver.Graph{raw, clone, parent} {
			g.run(g.instantiate(each, 0, 0))
			ran := g.noted()
			for pair := range behind {
				if slices.Index(ran, uint64(pair[0])) > slices.Index(ran, uint64(pair[1])) {
					t.Fatalf("round %d: %d ran before %d", round, pair[1], pair[0])
				}
			}
			if slices.Sort(ran); !slices.Equal(ran, names) {
				t.Fatalf("round %d: ran %v of %d", round, ran, n)
			}
			g.want("destroy", g.GraphDestroy(g.ctx, each), 0)
		}
	}
}

// Every pair of nodes without order runs at the same time, wherever they stand: here two of which each waits for the other.
func TestGraphRunsBesideEachOther(t *testing.T) {
	g := newGraphRig(t)
	child := g.graph()
	p := g.alloc(16)
	memop := func(op uint32, at driver.DevicePtr) *driver.NodeParams {
		return &driver.NodeParams{Type: driver.NodeBatchMemOp, Ops: []driver.MemOp{{Op: op, Address: at, Value: 1, Flags: driver.WaitValueEQ * b2u(op == driver.MemOpWait32)}}}
	}
	g.add(child, memop(driver.MemOpWait32, p+8), g.add(child, memop(driver.MemOpWrite32, p)))
	raw := g.graph()
	root := g.add(raw, emptyNode)
	c := g.add(raw, &driver.NodeParams{Type: driver.NodeGraph, Child: child}, root)
	w := g.add(raw, memop(driver.MemOpWait32, p), root)
	w = g.add(raw, memop(driver.MemOpWrite32, p+8), w)
	g.host(raw, 1, w, c)
	g.run(g.instantiate(raw, 0, 0))
	g.expect("launch", 1)
}

func b2u(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
