package cudatest

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/hostlaunch/cuda"
)

// graphInnerCases are about the functions of graphs inside nodes, and of nodes that were set in several ways.
var graphInnerCases = []Case{
	{ID: "HL-03", Name: "clone of a graph whose node an executable has set", Run: cloneAfterSet},
	{ID: "HL-03", Name: "inner graph of an inner graph, cloned and embedded", Run: innerOfInner},
	{ID: "GR-01", Name: "things of another driver", Run: graphOtherDriver},
	{ID: "GR-01", Name: "things of another context", Run: graphOtherContext},
	{ID: "LI-01", Name: "Shutdown names the running host node", Run: shutdownNamesNode},
	{ID: "LI-01", Name: "host node runs in a lost context", Child: true, Run: closeAwaitsNode},
	{ID: "CP-08", Name: "comes to nothing", Run: captureIntoFails},
	{ID: "CP-08", Name: "body of a node", Run: captureIntoBody},
	{ID: "GR-06", Name: "node of a graph embedded in an embedded one", Run: updateNested},
	{ID: "GR-06", Name: "embedded graph after its node", Run: childAfterNode},
	{ID: "GR-06", Name: "node after the embedded graph", Run: nodeAfterChild},
	{ID: "GR-06", Name: "embedded graph from a graph that is closed", Run: childFromClosed},
	{ID: "GR-06", Name: "one of two embedded copies", Run: oneOfTwoCopies},
}

// Inside is the graph inside a child graph node, and its nodes.
func (t *T) Inside(g *cuda.Graph, n cuda.GraphNode) (*cuda.Graph, []cuda.GraphNode) {
	t.Helper()
	child, err := g.ChildGraph(n)
	t.OK(err)
	nodes, err := child.Nodes()
	t.OK(err)
	return child, nodes
}

// RunsWant wants one launch of x to run functions so often, and none to be expected afterwards.
func (t *T) RunsWant(x *cuda.GraphExec, s *cuda.Stream, runs []int, want ...int) {
	t.Helper()
	clear(runs)
	t.Run(x, s)
	if st := t.Driver.Stats(); !slices.Equal(runs, want) || st.Waiting != 0 {
		t.Errorf("runs %v, want %v; %d functions wait", runs, want, st.Waiting)
	}
}

// Counts are parameters of a host node that counts its runs.
func Counts(runs []int, i int) cuda.NodeParams { return cuda.HostParams(func() { runs[i]++ }) }

// GateNode adds a host node that holds each launch of g.
func (t *T) GateNode(g *cuda.Graph, opts ...cuda.HostOption) (cuda.GraphNode, *Gate) {
	t.Helper()
	gate := t.newGate()
	return t.Node(g, cuda.HostParams(gate.pass, append([]cuda.HostOption{cuda.Name("gate")}, opts...)...)), gate
}

// heldNode launches a graph whose host node runs until the gate is opened.
func (t *T) heldNode(opts ...cuda.HostOption) *Gate {
	t.Helper()
	g, s := t.Graph(), t.Stream()
	_, gate := t.GateNode(g, append([]cuda.HostOption{cuda.Name("held node")}, opts...)...)
	t.OK(t.Exec(g).Launch(s))
	Receive(t, "the node runs", gate.Entered)
	return gate
}

func shutdownNamesNode(t *T) {
	d := t.OpenDriver()
	gate := t.heldNode()
	t.Stuck(d, "held node", "graphinner.go:", "runs")
	gate.Open()
	t.OK(d.Close())
}

// closeAwaitsNode: the driver does not wait for what runs in a context that has failed; Close does.
func closeAwaitsNode(t *T) {
	lost(t)
	s, ended := t.Stream(), make(chan error, 2)
	gate := t.heldNode(cuda.OnDone(func(err error) { ended <- err }))
	t.Fault(s)
	t.Eventually("the context is lost", func() bool { _, err := s.Query(); return errors.Is(err, cuda.ErrDeviceLost) })
	t.Stuck(t.Driver, "held node")
	if len(ended) > 0 {
		t.Errorf("told %v before it ended", <-ended)
	}
	gate.Open()
	t.OK(t.Driver.Close())
	t.OK(Receive(t, "OnDone", ended))
	if len(ended) > 0 {
		t.Error("told twice")
	}
}

// captureIntoFails: a graph whose capture is spoiled or ends badly is lost, and what its nodes had is released; what was made of it
// before is not harmed. A capture that is given up while it is well leaves the graph as it is then.
func captureIntoFails(t *T) {
	s := t.Stream()
	for name, end := range map[string]func(*cuda.GraphBuilder) error{
		"spoiled": func(b *cuda.GraphBuilder) error {
			t.Device(0).Alloc(16)
			_, err := b.End()
			t.Is(err, cuda.ErrCaptureInvalidated)
			t.Contains(err, "is lost")
			return err
		},
		"unjoined": func(b *cuda.GraphBuilder) error {
			forks, err := b.Split(1)
			t.OK(err)
			defer forks[0].Close()
			t.Host(forks[0], func() { t.Error("ran") })
			_, err = b.End()
			t.Is(err, cuda.ErrCaptureUnjoined)
			return err
		},
		"given up": (*cuda.GraphBuilder).Close,
	} {
		var runs, other atomic.Int32
		b, g := t.Builder(), t.Graph()
		n, gone := t.trackedNode(g, &runs)
		x := t.Exec(g)
		t.Needs(b.BeginToGraph(g, nil, cuda.CaptureThreadLocal))
		t.Host(b, func() { other.Add(1) })
		if err := end(b); err == nil {
			y := t.Exec(g)
			t.Run(y, s)
			t.OK(y.Close())
		} else {
			_, list := g.Nodes()
			_, add := g.AddNode(cuda.EmptyParams())
			_, make := g.Instantiate()
			for _, err := range []error{list, add, make, g.RemoveNode(n), x.SetParams(n, cuda.HostParams(func() {}))} {
				t.Is(err, cuda.ErrClosed, cuda.ErrClosed)
			}
		}
		t.Run(x, s)
		t.OK(g.Close())
		t.OK(x.Close())
		t.Gone(gone)
		if want := map[bool]int32{true: 2, false: 1}[name == "given up"]; runs.Load() != want || other.Load() != want-1 {
			t.Errorf("%s: %d runs of the graph's own node and %d of the captured one, want %d and %d", name, runs.Load(), other.Load(), want, want-1)
		}
	}
}

// captureIntoBody: while the body of a conditional node is captured into, the graph that has the node can neither be made an
// executable of nor lose the node.
func captureIntoBody(t *T) {
	t.condKernels()
	b, g, v := t.Builder(), t.Graph(), t.Buffer(4)
	n, body, err := g.AddIf(t.Condition(g, cuda.AtLaunch(1)))
	t.OK(err)
	x := t.Exec(t.Graph())
	t.OK(b.BeginToGraph(body, nil, cuda.CaptureThreadLocal))
	_, err = g.Instantiate()
	refused := []error{err, x.Update(g), g.RemoveNode(n)}
	t.OK(b.Memset(v, 7))
	nodes, err := body.Nodes()
	t.OK(err)
	for _, err := range append(refused, body.RemoveNode(nodes[0])) {
		t.Is(err, cuda.ErrIllegalState)
		t.Contains(err, "captured into")
	}
	_, err = b.End()
	t.OK(err)
	s := t.Stream()
	t.Run(t.Exec(g), s)
	if got := t.Bytes(s, v)[0]; got != 7 {
		t.Errorf("the body gives %d", got)
	}
	t.OK(g.RemoveNode(n))
	t.Is(b.BeginToGraph(body, nil, cuda.CaptureThreadLocal), cuda.ErrClosed)
}

func cloneAfterSet(t *T) {
	s, runs := t.Stream(), make([]int, 2)
	g := t.Capture(func(b *cuda.GraphBuilder) error { return cuda.HostLaunch(b, func() { runs[0]++ }) })
	nodes, err := g.Nodes()
	t.OK(err)
	t.OK(t.Exec(g).SetParams(nodes[0], Counts(runs, 1)))
	clone, err := g.Clone()
	t.OK(err)
	t.Cleanup(func() { clone.Close() })
	t.RunsWant(t.Exec(clone), s, runs, 1, 0)
	again, err := clone.Clone()
	t.OK(err)
	t.Cleanup(func() { again.Close() })
	t.RunsWant(t.Exec(again), s, runs, 1, 0)
}

// nested is a graph with a graph inside, that has a graph inside, that has a host node.
func nested(t *T, runs []int) (g *cuda.Graph, outer cuda.GraphNode) {
	g, middle, inner := t.Graph(), t.Graph(), t.Graph()
	t.Node(inner, Counts(runs, 0))
	t.Node(middle, cuda.ChildGraphParams(inner))
	return g, t.Node(g, cuda.ChildGraphParams(middle))
}

func innerOfInner(t *T) {
	s, runs := t.Stream(), make([]int, 1)
	g, n := nested(t, runs)
	middle, nodes := t.Inside(g, n)
	inner, _ := t.Inside(middle, nodes[0])
	clone, err := inner.Clone()
	t.OK(err)
	t.Cleanup(func() { clone.Close() })
	t.RunsWant(t.Exec(clone), s, runs, 1)
	other := t.Graph()
	_, err = other.AddNode(cuda.ChildGraphParams(inner))
	t.Is(err, cuda.ErrNotSupported)
	t.Node(other, cuda.ChildGraphParams(clone))
	t.RunsWant(t.Exec(other), s, runs, 1)
	whole, err := g.Clone()
	t.OK(err)
	t.Cleanup(func() { whole.Close() })
	t.RunsWant(t.Exec(whole), s, runs, 1)
	t.RunsWant(t.Exec(g), s, runs, 1)
}

func updateNested(t *T) {
	s, runs := t.Stream(), make([]int, 2)
	g, n := nested(t, runs)
	x := t.Exec(g)
	middle, nodes := t.Inside(g, n)
	_, deep := t.Inside(middle, nodes[0])
	t.OK(x.SetParams(deep[0], Counts(runs, 1)))
	t.RunsWant(x, s, runs, 0, 1)
	t.RunsWant(t.Exec(g), s, runs, 1, 0)
}

func childAfterNode(t *T) {
	s, runs := t.Stream(), make([]int, 3)
	g, inner, other := t.Graph(), t.Graph(), t.Graph()
	t.Node(inner, Counts(runs, 0))
	t.Node(other, Counts(runs, 2))
	n := t.Node(g, cuda.ChildGraphParams(inner))
	x := t.Exec(g)
	_, nodes := t.Inside(g, n)
	t.OK(x.SetParams(nodes[0], Counts(runs, 1)))
	t.OK(x.SetParams(n, cuda.ChildGraphParams(other)))
	t.RunsWant(x, s, runs, 0, 0, 1)
}

func nodeAfterChild(t *T) {
	s, runs := t.Stream(), make([]int, 3)
	g, inner, other := t.Graph(), t.Graph(), t.Graph()
	t.Node(inner, Counts(runs, 0))
	t.Node(other, Counts(runs, 2))
	n := t.Node(g, cuda.ChildGraphParams(inner))
	x := t.Exec(g)
	_, nodes := t.Inside(g, n)
	t.OK(x.SetParams(n, cuda.ChildGraphParams(other)))
	t.Is(x.SetParams(nodes[0], Counts(runs, 1)), cuda.ErrIllegalState)
	t.RunsWant(x, s, runs, 0, 0, 1)
}

// childFromClosed: an executable keeps what the graph had that one of its child graph nodes was set from.
func childFromClosed(t *T) {
	var old, now atomic.Int32
	s, g, inner, other := t.Stream(), t.Graph(), t.Graph(), t.Graph()
	_, oldGone := t.trackedNode(inner, &old)
	n := t.Node(g, cuda.ChildGraphParams(inner))
	x := t.Exec(g)
	_, nowGone := t.trackedNode(other, &now)
	t.OK(x.SetParams(n, cuda.ChildGraphParams(other)))
	t.OK(other.Close())
	t.OK(inner.Close())
	t.Kept("the executable has it", nowGone)
	t.Run(x, s)
	if old.Load() != 0 || now.Load() != 1 {
		t.Errorf("old ran %d times and new %d, want 0 and 1", old.Load(), now.Load())
	}
	t.OK(g.Close())
	t.OK(x.Close())
	t.Gone(oldGone)
	t.Gone(nowGone)
}

func oneOfTwoCopies(t *T) {
	s, runs := t.Stream(), make([]int, 3)
	g, inner, other := t.Graph(), t.Graph(), t.Graph()
	t.Node(inner, Counts(runs, 0))
	t.Node(other, Counts(runs, 2))
	n := t.Node(g, cuda.ChildGraphParams(inner))
	t.Node(g, cuda.ChildGraphParams(inner), n)
	x := t.Exec(g)
	_, nodes := t.Inside(g, n)
	t.OK(x.SetParams(nodes[0], Counts(runs, 1)))
	t.RunsWant(x, s, runs, 1, 1, 0)
	t.OK(x.SetParams(n, cuda.ChildGraphParams(other)))
	t.RunsWant(x, s, runs, 1, 0, 1)
}

func graphOtherDriver(t *T) {
	d, err := t.cfg.Open()
	t.OK(err)
	t.Cleanup(func() { d.Close() })
	dev, err := d.Device(0)
	t.OK(err)
	theirs, err := dev.NewGraph()
	t.OK(err)
	_, err = theirs.AddNode(cuda.EmptyParams())
	t.OK(err)
	clone, err := theirs.Clone()
	t.OK(err)
	s, err := dev.NewStream()
	t.OK(err)
	e, err := dev.NewEvent()
	t.OK(err)
	g := t.Graph()
	n := t.Node(g, cuda.EmptyParams())
	_, find := g.FindInClone(n, clone)
	_, upload := g.Instantiate(cuda.UploadOn(s))
	_, embed := g.AddNode(cuda.ChildGraphParams(theirs))
	_, wait := g.AddNode(cuda.EventWaitParams(e))
	x := t.Exec(g)
	for _, err := range []error{find, upload, embed, wait, x.Update(theirs), x.Launch(s), x.Upload(s), t.Builder().BeginToGraph(theirs, nil, cuda.CaptureRelaxed)} {
		t.Is(err, cuda.ErrInvalidValue)
		t.Contains(err, "use one Driver for both")
	}
}

// graphOtherContext: what a launch runs is lost with the launch's context, and told then; so it must all be of that context.
func graphOtherContext(t *T) {
	c := t.NewContext()
	theirs, err := c.NewGraph()
	t.OK(err)
	t.Cleanup(func() { theirs.Close() })
	t.Node(theirs, cuda.HostParams(func() {}))
	g := t.Graph()
	t.Node(g, cuda.HostParams(func() {}))
	_, upload := g.Instantiate(cuda.UploadOn(t.ContextStream(c)))
	_, embed := g.AddNode(cuda.ChildGraphParams(theirs))
	for _, err := range []error{upload, embed, t.Exec(g).Update(theirs), t.Builder().BeginToGraph(theirs, nil, cuda.CaptureRelaxed)} {
		t.Is(err, cuda.ErrInvalidContext)
	}
}
