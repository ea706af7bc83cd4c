package softcuda_test

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// chaos does at random what can be done with graphs that have host nodes. However it is done, a launch runs as many functions
// as the executable has host nodes, tells the end of each once, and none is expected to run afterwards.
type chaos struct {
	*testing.T
	*rand.Rand
	d          *cuda.Driver
	dev        *cuda.Device
	s          *cuda.Stream
	graphs     []*cuda.Graph
	execs      []*chaosExec
	ran, ended atomic.Int64
	log        []string
}

type chaosExec struct {
	*cuda.GraphExec
	of   *cuda.Graph
	runs int
}

func TestGraphChaos(t *testing.T) {
	for seed := range uint64(300) {
		runChaos(t, seed)
		if t.Failed() {
			return
		}
	}
}

func runChaos(t *testing.T, seed uint64) {
	d := softcuda.New(softcuda.Options{})
	defer d.Close()
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	c := &chaos{T: t, Rand: rand.New(rand.NewPCG(seed, 1)), d: d, dev: dev, s: s}
	for range 60 {
		c.step()
	}
	c.shut(d)
	if t.Failed() {
		t.Errorf("seed %d: %v", seed, c.log)
	}
}

// shut closes everything, which leaves nothing.
func (c *chaos) shut(d *cuda.Driver) {
	for _, x := range c.execs {
		c.check("close", x.Close())
	}
	for _, g := range c.graphs {
		c.check("close", g.Close())
	}
	deadline := time.Now().Add(5 * time.Second)
	for st := d.Stats(); st.HostNodes+st.UserObjects+st.Graphs+st.GraphExecs+st.Waiting+st.Running != 0; st = d.Stats() {
		if time.Now().After(deadline) {
			c.Errorf("left: %+v", st)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (c *chaos) check(what string, err error) {
	c.Helper()
	c.log = append(c.log, what)
	if err == nil {
		return
	}
	for _, ok := range []error{cuda.ErrIllegalState, cuda.ErrNotSupported, cuda.ErrNotPermitted, cuda.ErrInvalidValue, cuda.ErrClosed, cuda.ErrGraphExecUpdateFailure} {
		if errors.Is(err, ok) {
			c.log[len(c.log)-1] += " (" + err.Error() + ")"
			return
		}
	}
	c.Errorf("%s: %v", what, err)
}

func (c *chaos) host() cuda.NodeParams {
	return cuda.HostParams(func() { c.ran.Add(1) }, cuda.OnDone(func(error) { c.ended.Add(1) }))
}

func (c *chaos) params() cuda.NodeParams {
	if len(c.graphs) > 1 && c.IntN(3) == 0 {
		return cuda.ChildGraphParams(c.graph())
	}
	return c.host()
}

// graph is one of the graphs, or one inside its nodes.
func (c *chaos) graph() *cuda.Graph {
	g := c.graphs[c.IntN(len(c.graphs))]
	if c.IntN(3) == 0 {
		g, _ = c.somewhere(g)
	}
	return g
}

// somewhere is a node of g, or of a graph inside, and that graph. The node may be none.
func (c *chaos) somewhere(g *cuda.Graph) (*cuda.Graph, cuda.GraphNode) {
	nodes, err := g.Nodes()
	if err != nil || len(nodes) == 0 {
		return g, cuda.GraphNode{}
	}
	n := nodes[c.IntN(len(nodes))]
	if typ, _ := g.NodeType(n); typ == cuda.ChildGraphNode && c.IntN(2) == 0 {
		child, err := g.ChildGraph(n)
		if err != nil {
			c.Errorf("child: %v", err)
			return g, n
		}
		return c.somewhere(child)
	}
	return g, n
}

// count is how many host nodes a launch of g runs.
func (c *chaos) count(g *cuda.Graph) (hosts int) {
	nodes, err := g.Nodes()
	if err != nil && !errors.Is(err, cuda.ErrClosed) { // lost by a capture that came to nothing
		c.Errorf("nodes: %v", err)
	}
	for _, n := range nodes {
		switch typ, _ := g.NodeType(n); typ {
		case cuda.HostNode:
			hosts++
		case cuda.ChildGraphNode:
			if c.IntN(4) == 0 { // looking at it must not matter
				c.somewhere(g)
			}
			child, err := g.ChildGraph(n)
			if err != nil {
				c.Errorf("child: %v", err)
				continue
			}
			hosts += c.count(child)
		}
	}
	return hosts
}

func (c *chaos) step() {
	if len(c.graphs) == 0 || c.IntN(12) == 0 && len(c.graphs) < 6 {
		c.newGraph()
		return
	}
	at := c.IntN(len(c.graphs))
	g := c.graphs[at]
	switch c.IntN(10) {
	case 0, 1:
		_, err := g.AddNode(c.params())
		c.check("add", err)
	case 2:
		in, n := c.somewhere(g)
		c.check("set", in.SetParams(n, c.params()))
	case 3:
		in, n := c.somewhere(g)
		c.check("remove", in.RemoveNode(n))
	case 4:
		clone, err := c.graph().Clone()
		if c.check("clone", err); err == nil {
			c.graphs = append(c.graphs, clone)
		}
	case 5:
		if c.count(g) > 200 {
			c.check("close", g.Close())
			c.graphs = append(c.graphs[:at], c.graphs[at+1:]...)
			return
		}
		x, err := g.Instantiate()
		c.check("instantiate", err)
		c.execs = append(c.execs, &chaosExec{x, g, 0})
		c.execs[len(c.execs)-1].runs = c.count(g)
	case 6:
		c.captureInto(g)
	case 7:
		if c.IntN(4) == 0 {
			c.check("close", g.Close())
			c.graphs = append(c.graphs[:at], c.graphs[at+1:]...)
		}
	default:
		for range 5 {
			c.stepExec()
		}
	}
}

func (c *chaos) newGraph() {
	if c.IntN(2) == 0 {
		g, err := c.dev.NewGraph()
		c.check("new", err)
		c.graphs = append(c.graphs, g)
		return
	}
	g, err := cuda.Capture(c.s, cuda.CaptureRelaxed, func(b *cuda.GraphBuilder) error {
		return c.build(b)
	})
	c.check("capture", err)
	c.graphs = append(c.graphs, g)
}

func (c *chaos) build(b *cuda.GraphBuilder) error {
	for range c.IntN(3) {
		if err := cuda.HostLaunch(b, func() { c.ran.Add(1) }, cuda.OnDone(func(error) { c.ended.Add(1) })); err != nil {
			return err
		}
		if len(c.graphs) > 0 && c.IntN(2) == 0 {
			c.check("embed", b.Embed(c.graph()))
		}
	}
	return nil
}

// captureInto adds to g by a capture that is ended, abandoned or spoiled.
func (c *chaos) captureInto(g *cuda.Graph) {
	b, err := c.dev.NewGraphBuilder()
	c.check("builder", err)
	defer b.Close()
	err = b.BeginToGraph(g, nil, cuda.CaptureThreadLocal)
	c.check("begin", err)
	if err != nil {
		return
	}
	c.check("build", c.build(b))
	switch c.IntN(3) {
	case 0:
		c.check("abandon", b.Close())
	case 1:
		c.dev.Alloc(16)
		if _, err := b.End(); !errors.Is(err, cuda.ErrCaptureInvalidated) {
			c.Errorf("a capture that is spoiled: %v", err)
		}
	default:
		_, err := b.End()
		c.check("end", err)
	}
}

func (c *chaos) stepExec() {
	if len(c.execs) == 0 {
		return
	}
	at := c.IntN(len(c.execs))
	x := c.execs[at]
	switch c.IntN(6) {
	case 0, 1:
		c.setExec(x)
	case 2:
		c.check("update", x.Update(c.graph()))
	case 3:
		if c.IntN(4) == 0 {
			c.check("close executable", x.Close())
			c.execs = append(c.execs[:at], c.execs[at+1:]...)
		}
	default:
		c.launch(x)
	}
}

// setExec sets a node of x; one with a graph inside, to a copy of that, which fits.
func (c *chaos) setExec(x *chaosExec) {
	in, n := c.somewhere(x.of)
	child, err := in.ChildGraph(n)
	if err != nil {
		c.check("set in executable", x.SetParams(n, c.params()))
		return
	}
	clone, err := child.Clone()
	c.check("clone", err)
	defer clone.Close()
	c.check("set child in executable", x.SetParams(n, cuda.ChildGraphParams(clone)))
}

func (c *chaos) launch(x *chaosExec) {
	ran, ended, times := c.ran.Load(), c.ended.Load(), 1+c.IntN(2)
	for range times {
		c.check("launch", x.Launch(c.s))
	}
	c.check("sync", c.s.Sync())
	want := int64(times * x.runs)
	for deadline := time.Now().Add(time.Second); c.ended.Load()-ended < want && time.Now().Before(deadline); {
		time.Sleep(50 * time.Microsecond)
	}
	st := c.d.Stats()
	if got, told := c.ran.Load()-ran, c.ended.Load()-ended; got != want || told != want || st.Waiting != 0 {
		c.Errorf("%d functions ran and %d were told of in %d launches of an executable with %d host nodes; %d wait", got, told, times, x.runs, st.Waiting)
	}
}
