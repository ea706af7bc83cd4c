package main

import (
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/bench/rig"
)

// graphMeasurements are those of graphs with host nodes.
func (b *bench) graphMeasurements() []measurement {
	return []measurement{
		{"graph1", "graph of one host node, launch and sync", func() (float64, error) { return b.graphLaunch(1, 500) }},
		{"graph20", "graph of ten kernels and ten host nodes in a chain, launch and sync", func() (float64, error) { return b.graphLaunch(20, 200) }},
		{"graphkernels", "graph of twenty kernels in a chain, launch and sync", func() (float64, error) { return b.graphLaunch(-20, 500) }},
		{"graphadd", "add a host node to a chain of 2,000; C++: no owner", func() (float64, error) { return repeated(func() (float64, error) { return b.graphBuild(2000, false) }) }},
		{"graphown", "the same; C++: each with a user object", func() (float64, error) { return repeated(func() (float64, error) { return b.graphBuild(2000, false) }) }},
		{"graphmake", "the same, with instantiating and destroying, per node", func() (float64, error) { return repeated(func() (float64, error) { return b.graphBuild(2000, true) }) }},
		{"graphcapture", "capture a host node, 2,000 in a chain", func() (float64, error) { return repeated(func() (float64, error) { return b.graphCapture(2000) }) }},
	}
}

// repeated is the median of some runs, one right after another, as a program builds graphs; the floor does the same.
func repeated(measure func() (float64, error)) (float64, error) {
	times := make([]float64, 9)
	for i := range times {
		var err error
		if times[i], err = measure(); err != nil {
			return 0, err
		}
	}
	return rig.Median(times), nil
}

// chain builds a graph of n nodes in a chain: host nodes and kernels in turn, or, for n < 0, kernels alone.
func (b *bench) chain(n int) (*cuda.Graph, error) {
	g, err := b.Dev.NewGraph()
	if err != nil {
		return nil, err
	}
	onlyKernels := n < 0
	var after []cuda.GraphNode
	for i := range max(n, -n) {
		p := cuda.HostParams(b.Fn)
		if i%2 == 1 || onlyKernels {
			p = cuda.KernelParams(b.nothing, cuda.Grid1D(1, 1))
		}
		node, err := g.AddNode(p, after...)
		if err != nil {
			return nil, err
		}
		after = []cuda.GraphNode{node}
	}
	return g, nil
}

// graphLaunch is the median time of a launch and the wait for it.
func (b *bench) graphLaunch(nodes, n int) (float64, error) {
	g, err := b.chain(nodes)
	if err != nil {
		return 0, err
	}
	defer g.Close()
	x, err := g.Instantiate()
	if err != nil {
		return 0, err
	}
	defer x.Close()
	return rig.Each(n, func() error {
		if err := x.Launch(b.S); err != nil {
			return err
		}
		return b.S.Sync()
	})
}

// graphBuild is the time to add a host node, or to make and destroy graph and executable as well.
func (b *bench) graphBuild(n int, whole bool) (float64, error) {
	start := time.Now()
	g, err := b.Dev.NewGraph()
	if err != nil {
		return 0, err
	}
	var last cuda.GraphNode
	for i := range n {
		if i == 0 {
			last, err = g.AddNode(cuda.HostParams(b.Fn))
		} else {
			last, err = g.AddNode(cuda.HostParams(b.Fn), last)
		}
		if err != nil {
			return 0, err
		}
	}
	took := time.Since(start)
	if whole {
		x, err := g.Instantiate()
		if err != nil {
			return 0, err
		}
		x.Close()
	}
	err = g.Close()
	if whole {
		took = time.Since(start)
	}
	return rig.Nanoseconds(took, n), err
}

// graphCapture is the time to capture a host node.
func (b *bench) graphCapture(n int) (float64, error) {
	var took time.Duration
	g, err := cuda.Capture(b.S, cuda.CaptureThreadLocal, func(c *cuda.GraphBuilder) error {
		start := time.Now()
		for range n {
			if err := cuda.HostLaunch(c, b.Fn); err != nil {
				return err
			}
		}
		took = time.Since(start)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return rig.Nanoseconds(took, n), g.Close()
}
