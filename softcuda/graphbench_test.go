package softcuda

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// BenchmarkGraph builds, instantiates, launches and destroys graphs of host functions and empty nodes. It must show about the same
// time per node for any number of them.
func BenchmarkGraph(b *testing.B) {
	shapes := map[string]func(r *rand.Rand, nodes []driver.GraphNode) []driver.GraphNode{
		"chain": func(_ *rand.Rand, nodes []driver.GraphNode) []driver.GraphNode { return nodes[max(len(nodes)-1, 0):] },
		"wide":  func(*rand.Rand, []driver.GraphNode) []driver.GraphNode { return nil },
		"fork":  func(_ *rand.Rand, nodes []driver.GraphNode) []driver.GraphNode { return nodes[:min(len(nodes), 1)] },
		"random": func(r *rand.Rand, nodes []driver.GraphNode) (deps []driver.GraphNode) {
			if n := len(nodes); n > 1 {
				i := r.IntN(n - 1)
				deps = []driver.GraphNode{nodes[i], nodes[i+1+r.IntN(n-i-1)]}
			}
			return deps
		},
	}
	for shape, deps := range shapes {
		for _, n := range []int{10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", shape, n), func(b *testing.B) {
				g := newBenchGraph(b)
				for b.Loop() {
					g.round(n, deps)
				}
				for phase, t := range map[string]float64{"build": g.build, "instantiate": g.instantiate, "launch": g.launch, "update": g.update, "destroy": g.destroy} {
					b.ReportMetric(t/float64(n)/float64(b.N), phase+"-ns/node")
				}
			})
		}
	}
}

type benchGraph struct {
	*machine
	ctx    driver.Context
	s      driver.Stream
	random *rand.Rand

	build, instantiate, launch, update, destroy float64 // nanoseconds
}

func newBenchGraph(b *testing.B) *benchGraph {
	m := newMachine(Options{})
	m.Attach(driver.Upcalls{HostFunc: func(uint64) {}, Log: func(string, ...any) {}})
	b.Cleanup(m.Shut)
	g := &benchGraph{machine: m, random: rand.New(rand.NewPCG(5, 6))}
	g.ctx, _ = m.DevicePrimaryCtxRetain(0)
	g.s, _ = m.StreamCreateWithPriority(g.ctx, driver.StreamNonBlocking, 0)
	return g
}

// round builds a graph of n nodes and one behind all of them, and uses it.
func (g *benchGraph) round(n int, deps func(*rand.Rand, []driver.GraphNode) []driver.GraphNode) {
	took := func(sum *float64, do func()) {
		start := time.Now()
		do()
		*sum += float64(time.Since(start).Nanoseconds())
	}
	raw, _ := g.GraphCreate(g.ctx, 0)
	took(&g.build, func() {
		nodes := make([]driver.GraphNode, 0, n)
		for range n {
			p := emptyNode
			if len(nodes)%2 == 0 {
				p = hostNode(1)
			}
			node, _ := g.GraphAddNode(g.ctx, raw, deps(g.random, nodes), nil, p)
			nodes = append(nodes, node)
		}
		last, _ := g.GraphAddNode(g.ctx, raw, nil, nil, emptyNode)
		for i := range nodes {
			g.GraphAddDependencies(g.ctx, raw, nodes[i:i+1], []driver.GraphNode{last}, nil)
		}
		g.GraphGetNodes(g.ctx, raw)
		g.GraphGetEdges(g.ctx, raw)
	})
	var x driver.GraphExec
	took(&g.instantiate, func() { x, _ = g.GraphInstantiateWithParams(g.ctx, raw, &driver.Instantiation{}) })
	took(&g.launch, func() {
		g.GraphLaunch(g.ctx, x, g.s)
		g.StreamSynchronize(g.ctx, g.s)
	})
	took(&g.update, func() { g.GraphExecUpdate(g.ctx, x, raw, new(driver.ExecUpdate)) })
	took(&g.destroy, func() {
		g.GraphExecDestroy(g.ctx, x)
		g.GraphDestroy(g.ctx, raw)
	})
}
