package cuda

import "github.com/hostlaunch/cuda/internal/driver"

// Embed adds a copy of g as one node, a child graph node: see ChildGraphParams. Needs CUDA 12.3.
//
// Errors: ErrNotBuilding; ErrNotSupported for a graph with memory allocation, memory free or conditional nodes.
// cuGraphAddNode, cuStreamUpdateCaptureDependencies.
func (b *GraphBuilder) Embed(g *Graph) error {
	const op = "GraphBuilder.Embed"
	c, err := b.building(op)
	if err != nil {
		return err
	}
	s := b.stream
	if err := s.begin(op); err != nil {
		return err
	}
	defer s.end()
	l, err := c.nodes.lower(op, s.ctx, ChildGraphParams(g))
	if err != nil {
		return err
	}
	defer l.end()
	info, err := s.activeCapture(op)
	if err != nil {
		return err
	}
	raw, r := s.driver().GraphAddNode(s.ctx.raw, info.Graph, info.Deps, info.Edges, &l.params)
	if r != driver.Success {
		return s.ctx.resultf(op, r, "%s", l.addReason(r))
	}
	c.nodes.add(l.node(raw))
	return s.continueBehind(op, []driver.GraphNode{raw}, nil, driver.CaptureSetDependencies)
}

// Complete ends the capture and makes an executable of what it built, for a program that needs no Graph. Errors: as End's and
// Graph.Instantiate's.
func (b *GraphBuilder) Complete(opts ...InstantiateOption) (*GraphExec, error) {
	g, err := b.End()
	if err != nil {
		return nil, err
	}
	x, err := g.Instantiate(opts...)
	if b.into() == nil {
		g.Close()
	}
	return x, err
}

// into is the graph that b's latest capture adds to, if it was begun by BeginToGraph.
func (b *GraphBuilder) into() *Graph { return b.now.Load().into }
