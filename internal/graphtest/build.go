package graphtest

import (
	"errors"

	"github.com/hostlaunch/cuda"
)

// cell is the device cell of node i.
func (r *rig) cell(i int) (*cuda.Buffer, error) { return r.device.Slice(4*i, 4) }

// inner is the graph of a child node.
func (v *run) inner(i int) (*cuda.Graph, error) {
	g, err := v.rig.dev.NewGraph()
	if err != nil {
		return nil, err
	}
	first, err := g.AddNode(cuda.EmptyParams())
	if err != nil {
		return nil, err
	}
	_, err = g.AddNode(cuda.HostParams(v.function(i)), first)
	return g, err
}

// params are those of node i. drop lets go of what they were made of once they have been used.
func (v *run) params(i int) (p cuda.NodeParams, drop func(), err error) {
	r, n := v.rig, v.plan.nodes[i]
	at, err := r.cell(i)
	drop = func() {}
	switch n.kind {
	case host:
		p = cuda.HostParams(v.function(i))
	case child:
		g, err := v.inner(i)
		return cuda.ChildGraphParams(g), func() { g.Close() }, err
	case counter:
		p = cuda.KernelParams(r.add, cuda.Grid1D(1, 1), at, uint32(1))
	case memset:
		p = cuda.Memset32Params(at, n.value)
	case copying:
		from, err := r.cell(n.from)
		return cuda.MemcpyToHostParams(r.cells[i:i+1], from), drop, err
	case write:
		p = cuda.BatchMemOpParams(cuda.Write32(r.pinned.Word(4*i), n.value))
	case record:
		p = cuda.EventRecordParams(r.marked)
	case wait:
		p = cuda.EventWaitParams(r.passed)
	default:
		p = cuda.EmptyParams()
	}
	return p, drop, err
}

// byHand builds the graph node by node.
func (v *run) byHand() (*cuda.Graph, []cuda.GraphNode, error) {
	g, err := v.rig.dev.NewGraph()
	if err != nil {
		return nil, nil, err
	}
	nodes := make([]cuda.GraphNode, len(v.plan.nodes))
	for i, n := range v.plan.nodes {
		var after []cuda.GraphNode
		for _, d := range n.deps {
			after = append(after, nodes[d])
		}
		p, drop, err := v.params(i)
		if err == nil {
			nodes[i], err = g.AddNode(p, after...)
			drop()
		}
		if err != nil {
			return g, nil, err
		}
	}
	return g, nodes, nil
}

// byCapture captures the graph, on one builder that is told what each node depends on.
func (v *run) byCapture() (*cuda.Graph, []cuda.CaptureDependency, error) {
	nodes := make([]cuda.CaptureDependency, len(v.plan.nodes))
	g, err := cuda.Capture(v.rig.s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		for i, n := range v.plan.nodes {
			var after []cuda.CaptureDependency
			for _, d := range n.deps {
				after = append(after, nodes[d])
			}
			if err := errors.Join(b.SetDependencies(after...), v.queue(b, i)); err != nil {
				return err
			}
			info, err := b.CaptureInfo()
			switch {
			case err != nil:
				return err
			case len(info.Dependencies) != 1:
				return errors.New("what was captured is not one node")
			}
			nodes[i] = info.Dependencies[0]
		}
		return nil
	})
	return g, nodes, err
}

// queue adds node i to what b captures.
func (v *run) queue(b *cuda.GraphBuilder, i int) error {
	r, n := v.rig, v.plan.nodes[i]
	at, err := r.cell(i)
	if err != nil {
		return err
	}
	switch n.kind {
	case host:
		return cuda.HostLaunch(b, v.function(i))
	case counter:
		return b.Launch(r.add, cuda.Grid1D(1, 1), at, uint32(1))
	case memset:
		return b.Memset32(at, n.value)
	case copying:
		from, err := r.cell(n.from)
		return errors.Join(err, cuda.CopyToHost(b, r.cells[i:i+1], from))
	case write:
		return b.WriteValue32(r.pinned.Word(4*i), n.value)
	case record:
		return b.RecordExternal(r.marked)
	case wait:
		return b.WaitEventExternal(r.passed)
	case child:
		g, err := v.inner(i)
		if err != nil {
			return err
		}
		return errors.Join(b.Embed(g), g.Close())
	}
	g, err := r.dev.NewGraph() // an empty node is not captured by any call; a graph of one is
	if err != nil {
		return err
	}
	_, err = g.AddNode(cuda.EmptyParams())
	return errors.Join(err, b.Embed(g), g.Close())
}
