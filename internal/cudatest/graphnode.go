package cudatest

import (
	"errors"
	"slices"
	"time"

	"github.com/hostlaunch/cuda"
)

var graphNodeCases = []Case{
	{ID: "GR-01", Name: "each kind by hand", Run: eachKindByHand},
	{ID: "GR-01", Name: "by hand and by capture", Run: byHandAndByCapture},
	{ID: "GR-01", Name: "edges", Run: graphEdges},
	{ID: "GR-01", Name: "order follows the edges", Run: orderFollowsEdges},
	{ID: "GR-01", Name: "cycles", Run: graphCycles},
	{ID: "GR-01", Name: "wrong nodes", Run: wrongNodes},
	{ID: "GR-01", Name: "wrong parameters", Run: wrongNodeParams},
	{ID: "GR-01", Name: "events", Run: graphEvents},
	{ID: "GR-01", Name: "embedded", Run: embeddedGraph},
	{ID: "GR-01", Name: "embedded in a capture", Run: embeddedInCapture},
	{ID: "GR-01", Name: "clone", Run: clonedGraph},
	{ID: "GR-01", Name: "instantiate options", Run: instantiateOptions},
	{ID: "GR-01", Name: "builder completes", Run: builderCompletes},
	{ID: "GR-02", Name: "host node by hand", Run: hostNodeByHand},
	{ID: "GR-02", Name: "diamond", Run: hostNodeDiamond},
}

// Graph makes a graph without nodes on device 0.
func (t *T) Graph() *cuda.Graph {
	t.Helper()
	g, err := t.Device(0).NewGraph()
	t.OK(err)
	t.Cleanup(func() { g.Close() })
	return g
}

// Node adds a node.
func (t *T) Node(g *cuda.Graph, p cuda.NodeParams, after ...cuda.GraphNode) cuda.GraphNode {
	t.Helper()
	n, err := g.AddNode(p, after...)
	t.OK(err)
	return n
}

// Run launches x once and waits for it.
func (t *T) Run(x *cuda.GraphExec, s *cuda.Stream) {
	t.Helper()
	t.OK(x.Launch(s))
	t.Sync(s)
}

func eachKindByHand(t *T) {
	g, s, host := t.Graph(), t.Stream(), t.Pinned(16)
	v, w, at := t.Buffer(16), t.Buffer(16), cuda.PinnedSlice[uint32](host)
	var seen []uint32
	in := []uint32{1, 2, 3, 4}
	e := t.Event()
	a := t.Node(g, cuda.MemcpyToDeviceParams(v, in))
	b := t.Node(g, cuda.KernelParams(t.Kernel("increment"), cuda.Grid1D(4, 4), v, uint32(4)), a)
	c := t.Node(g, cuda.MemcpyParams(w, v), b)
	d := t.Node(g, cuda.EmptyParams(), c)
	last, err := w.Slice(12, 4)
	t.OK(err)
	f := t.Node(g, cuda.Memset32Params(last, 70), d)
	h := t.Node(g, cuda.BatchMemOpParams(cuda.Write32(w.Word(8), 60)), f)
	i := t.Node(g, cuda.MemcpyToHostParams(at, w), h)
	j := t.Node(g, cuda.HostParams(func() { seen = append(seen, at...) }), i)
	k := t.Node(g, cuda.EventRecordParams(e), j)
	l := t.Node(g, cuda.EventWaitParams(e), k)
	child := t.Graph()
	t.Node(child, cuda.HostParams(func() { seen = append(seen, 99) }))
	t.Node(g, cuda.ChildGraphParams(child), l)
	want := map[cuda.GraphNode]cuda.GraphNodeType{a: cuda.MemcpyNode, b: cuda.KernelNode, d: cuda.EmptyNode, f: cuda.MemsetNode, h: cuda.BatchMemOpNode,
		j: cuda.HostNode, k: cuda.EventRecordNode, l: cuda.WaitEventNode}
	for n, kind := range want {
		if got, err := g.NodeType(n); err != nil || got != kind {
			t.Errorf("a %v node is a %v node (%v)", kind, got, err)
		}
	}
	x := t.Exec(g)
	for range 2 {
		t.Run(x, s)
	}
	if want := []uint32{2, 3, 60, 70, 99, 2, 3, 60, 70, 99}; !slices.Equal(seen, want) {
		t.Errorf("host functions saw %v, want %v", seen, want)
	}
	if done, err := e.Query(); err != nil || !done {
		t.Errorf("the event that a node records: %v, %v", done, err)
	}
}

func byHandAndByCapture(t *T) {
	v, s := t.Buffer(4), t.Stream()
	out := make([]uint32, 1)
	runs := 0
	captured := t.Capture(func(b *cuda.GraphBuilder) error {
		return errors.Join(b.Memset(v, 1), b.Launch(t.Kernel("increment"), one, v, uint32(1)), cuda.HostLaunch(b, func() { runs++ }))
	})
	built := t.Graph()
	a := t.Node(built, cuda.MemsetParams(v, 1))
	b := t.Node(built, cuda.KernelParams(t.Kernel("increment"), one, v, uint32(1)), a)
	t.Node(built, cuda.HostParams(func() { runs++ }), b)
	for _, g := range []*cuda.Graph{captured, built} {
		kinds := []cuda.GraphNodeType{}
		nodes, err := g.Nodes()
		t.OK(err)
		for _, n := range nodes {
			kind, err := g.NodeType(n)
			t.OK(err)
			kinds = append(kinds, kind)
		}
		slices.Sort(kinds)
		if !slices.Equal(kinds, []cuda.GraphNodeType{cuda.KernelNode, cuda.MemsetNode, cuda.HostNode}) {
			t.Errorf("nodes %v", kinds)
		}
		edges, err := g.Edges()
		t.OK(err)
		if len(edges) != 2 {
			t.Errorf("%d edges", len(edges))
		}
		t.Run(t.Exec(g), s)
		t.OK(cuda.CopyToHost(s, out, v))
		t.Sync(s)
		if out[0] != 0x01010102 {
			t.Errorf("the graph gives %#x", out[0])
		}
	}
	if runs != 2 {
		t.Errorf("%d runs", runs)
	}
}

func graphEdges(t *T) {
	g := t.Graph()
	a, b, c := t.Node(g, cuda.EmptyParams()), t.Node(g, cuda.EmptyParams()), t.Node(g, cuda.EmptyParams())
	has := func(want ...cuda.GraphEdge) {
		t.Helper()
		edges, err := g.Edges()
		t.OK(err)
		for _, e := range want {
			if !slices.Contains(edges, e) {
				t.Errorf("an edge is missing: %v", edges)
			}
		}
		if len(edges) != len(want) {
			t.Errorf("%d edges, want %d", len(edges), len(want))
		}
	}
	ab, bc, ac := cuda.GraphEdge{From: a, To: b}, cuda.GraphEdge{From: b, To: c}, cuda.GraphEdge{From: a, To: c}
	t.OK(g.AddEdges())
	t.OK(g.AddEdges(ab, bc))
	has(ab, bc)
	t.Is(g.AddEdges(ab), cuda.ErrInvalidValue)
	t.Is(g.AddEdges(cuda.GraphEdge{From: a, To: a}), cuda.ErrInvalidValue)
	t.Is(g.RemoveEdges(ac), cuda.ErrInvalidValue)
	has(ab, bc)
	t.OK(g.AddEdges(ac))
	t.OK(g.RemoveEdges(ab))
	has(bc, ac)
	t.OK(g.RemoveNode(c))
	has()
	nodes, err := g.Nodes()
	t.OK(err)
	if len(nodes) != 2 || !slices.Contains(nodes, a) || !slices.Contains(nodes, b) {
		t.Errorf("nodes %v, want two, a and b", nodes)
	}
	t.Run(t.Exec(g), t.Stream())
}

func orderFollowsEdges(t *T) {
	var order Order
	g := t.Graph()
	nodes := make([]cuda.GraphNode, 6)
	for i := range nodes {
		nodes[i] = t.Node(g, cuda.HostParams(order.Add(i)))
	}
	for _, e := range [][2]int{{5, 4}, {4, 0}, {0, 3}, {3, 1}, {1, 2}} { // the other way than they were added
		t.OK(g.AddEdges(cuda.GraphEdge{From: nodes[e[0]], To: nodes[e[1]]}))
	}
	t.Run(t.Exec(g), t.Stream())
	order.Want(t, 5, 4, 0, 3, 1, 2)
}

func graphCycles(t *T) {
	g := t.Graph()
	a := t.Node(g, cuda.EmptyParams())
	b := t.Node(g, cuda.EmptyParams(), a)
	c := t.Node(g, cuda.EmptyParams(), b)
	back := cuda.GraphEdge{From: c, To: a}
	if err := g.AddEdges(back); err != nil {
		t.Is(err, cuda.ErrInvalidValue)
		return
	}
	_, err := g.Instantiate()
	t.Is(err, cuda.ErrInvalidValue)
	t.Contains(err, "cycle")
	t.OK(g.RemoveEdges(back))
	t.Run(t.Exec(g), t.Stream())
}

func wrongNodes(t *T) {
	g, other := t.Graph(), t.Graph()
	a, foreign := t.Node(g, cuda.EmptyParams()), t.Node(other, cuda.EmptyParams())
	removed := t.Node(g, cuda.EmptyParams())
	t.OK(g.RemoveNode(removed))
	x := t.Exec(g)
	for _, n := range map[string]cuda.GraphNode{"zero": {}, "another graph": foreign, "removed": removed} {
		_, typeErr := g.NodeType(n)
		_, addErr := g.AddNode(cuda.EmptyParams(), a, n)
		_, childErr := g.ChildGraph(n)
		for _, err := range []error{
			typeErr, addErr, childErr, g.RemoveNode(n), g.SetParams(n, cuda.EmptyParams()), g.AddEdges(cuda.GraphEdge{From: a, To: n}),
			g.RemoveEdges(cuda.GraphEdge{From: n, To: a}), x.SetParams(n, cuda.EmptyParams()), x.SetEnabled(n, false),
		} {
			t.Is(err, cuda.ErrInvalidValue)
		}
	}
	_, err := g.AddNode(cuda.EmptyParams(), a, a)
	t.Is(err, cuda.ErrInvalidValue)
	nodes, err := g.Nodes()
	t.OK(err)
	if len(nodes) != 1 {
		t.Errorf("%d nodes after what was refused, want 1", len(nodes))
	}
	t.OK(g.Close())
	_, err = g.AddNode(cuda.EmptyParams())
	t.Is(err, cuda.ErrClosed)
	t.Is(x.SetParams(a, cuda.EmptyParams()), cuda.ErrClosed)
	t.Run(x, t.Stream())
}

func wrongNodeParams(t *T) {
	g, b, closed := t.Graph(), t.Buffer(64), t.Buffer(64)
	t.OK(closed.Close())
	half, err := b.Slice(0, 32)
	t.OK(err)
	odd, err := b.Slice(1, 6)
	t.OK(err)
	var none []byte
	empty, err := b.Slice(0, 0)
	t.OK(err)
	for words, p := range map[string]cuda.NodeParams{
		"parameters are nil":     nil,
		"host function is nil":   cuda.HostParams(nil),
		"sync mode":              cuda.HostParams(func() {}, cuda.SyncMode(9)),
		"dst is nil":             cuda.MemcpyParams(nil, b),
		"src is closed":          cuda.MemcpyParams(b, closed),
		"must be equal":          cuda.MemcpyParams(b, half),
		"overlap":                cuda.MemcpyParams(b, b),
		"Go pointers":            cuda.MemcpyToHostParams(make([]*int, 8), b),
		"nothing to copy":        cuda.MemcpyToDeviceParams(empty, none),
		"multiples of 4":         cuda.Memset32Params(odd, 1),
		"nothing to fill":        cuda.MemsetParams(empty, 1),
		"the kernel is nil":      cuda.KernelParams(nil, one),
		"argument 0":             cuda.KernelParams(t.Kernel("increment"), one, 7, uint32(1)),
		"the event is nil":       cuda.EventRecordParams(nil),
		"the graph is nil":       cuda.ChildGraphParams(nil),
		"embedded in itself":     cuda.ChildGraphParams(g),
		"at least one":           cuda.BatchMemOpParams(),
		"at of Write32":          cuda.BatchMemOpParams(cuda.Write32(b.Word(62), 1)),
		"not what AddAlloc gave": cuda.MemFreeParams(b),
		"Block":                  cuda.KernelParams(t.Kernel("nothing"), cuda.LaunchConfig{Grid: cuda.Dim3{X: 1}}),
	} {
		_, err := g.AddNode(p)
		if err == nil {
			t.Fatalf("accepted: %s", words)
		}
		t.Contains(err, words)
	}
	if nodes, err := g.Nodes(); err != nil || len(nodes) != 0 {
		t.Errorf("%d nodes after what was refused (%v)", len(nodes), err)
	}
	if st := t.Driver.Stats(); st.HostNodes != 0 || st.UserObjects != 0 {
		t.Errorf("left: %+v", st)
	}
}

func graphEvents(t *T) {
	s, other := t.Stream(), t.Stream()
	e, before := t.Event(cuda.WithTiming()), t.Event()
	var order Order
	g := t.Graph()
	w := t.Node(g, cuda.EventWaitParams(before))
	h := t.Node(g, cuda.HostParams(order.Add(2)), w)
	t.Node(g, cuda.EventRecordParams(e), h)
	x := t.Exec(g)
	t.Spin(other, 20*time.Millisecond)
	t.Host(other, order.Add(1))
	t.OK(other.Record(before))
	t.OK(x.Launch(s))
	third := t.Stream()
	t.OK(third.WaitEvent(e))
	t.Sync(s)
	t.Host(third, order.Add(3))
	t.Sync(third)
	order.Want(t, 1, 2, 3)
}

func embeddedGraph(t *T) {
	var order Order
	inner, g, s := t.Graph(), t.Graph(), t.Stream()
	i := t.Node(inner, cuda.HostParams(order.Add(2)))
	t.Node(inner, cuda.HostParams(order.Add(3)), i)
	a := t.Node(g, cuda.HostParams(order.Add(1)))
	n := t.Node(g, cuda.ChildGraphParams(inner), a)
	m := t.Node(g, cuda.ChildGraphParams(inner), n) // twice
	t.Node(g, cuda.HostParams(order.Add(4)), m)
	child, err := g.ChildGraph(n)
	t.OK(err)
	if nodes, err := child.Nodes(); err != nil || len(nodes) != 2 {
		t.Errorf("the child has %d nodes (%v)", len(nodes), err)
	}
	_, err = child.AddNode(cuda.EmptyParams())
	t.Is(err, cuda.ErrNotPermitted)
	_, err = child.Instantiate()
	t.Is(err, cuda.ErrInvalidValue)
	t.OK(inner.Close())
	x := t.Exec(g)
	t.Run(x, s)
	order.Want(t, 1, 2, 3, 2, 3, 4)
	t.OK(g.RemoveNode(n))
	_, err = child.Nodes()
	t.Is(err, cuda.ErrClosed)
	t.Run(t.Exec(g), s)
	if got := order.Log(); len(got) != 10 {
		t.Errorf("after the child node was removed: %v", got)
	}
}

func embeddedInCapture(t *T) {
	var order Order
	inner, s := t.Graph(), t.Stream()
	t.Node(inner, cuda.HostParams(order.Add(2)))
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		t.Host(b, order.Add(1))
		t.OK(b.Embed(inner))
		t.Is(b.Embed(nil), cuda.ErrInvalidValue)
		t.Host(b, order.Add(3))
		return nil
	})
	t.OK(inner.Close())
	x := t.Exec(g)
	for range 2 {
		t.Run(x, s)
	}
	order.Want(t, 1, 2, 3, 1, 2, 3)
}

func clonedGraph(t *T) {
	var order Order
	g, s := t.Graph(), t.Stream()
	a := t.Node(g, cuda.HostParams(order.Add(1)))
	b := t.Node(g, cuda.HostParams(order.Add(2)), a)
	clone, err := g.Clone()
	t.OK(err)
	t.Cleanup(func() { clone.Close() })
	ca, err := g.FindInClone(a, clone)
	t.OK(err)
	cb, err := g.FindInClone(b, clone)
	t.OK(err)
	edges, err := clone.Edges()
	t.OK(err)
	if !slices.Equal(edges, []cuda.GraphEdge{{From: ca, To: cb}}) || ca == a {
		t.Errorf("edges of the clone: %v", edges)
	}
	_, err = g.FindInClone(a, t.Graph())
	t.Is(err, cuda.ErrInvalidValue)
	t.OK(clone.SetParams(ca, cuda.HostParams(order.Add(3))))
	t.Run(t.Exec(g), s)
	t.Run(t.Exec(clone), s)
	order.Want(t, 1, 2, 3, 2)
}

func instantiateOptions(t *T) {
	runs := 0
	g := t.Graph()
	t.Node(g, cuda.HostParams(func() { runs++ }))
	s := t.Stream()
	x, err := g.Instantiate(cuda.UploadOn(s), cuda.UseNodePriority(), nil)
	t.OK(err)
	t.Cleanup(func() { x.Close() })
	t.OK(x.Upload(s))
	t.Run(x, s)
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
	_, err = g.Instantiate(cuda.UploadOn(nil))
	t.Is(err, cuda.ErrInvalidValue)
}

func builderCompletes(t *T) {
	runs := 0
	b, err := t.Device(0).NewGraphBuilder()
	t.OK(err)
	t.Cleanup(func() { b.Close() })
	t.OK(b.Begin(cuda.CaptureRelaxed))
	t.Host(b, func() { runs++ })
	x, err := b.Complete()
	t.OK(err)
	t.Cleanup(func() { x.Close() })
	t.Run(x, t.Stream())
	_, err = b.Complete()
	t.Is(err, cuda.ErrNotBuilding)
	if st := t.Driver.Stats(); runs != 1 || st.Graphs != 0 {
		t.Errorf("%d runs, %d graphs", runs, st.Graphs)
	}
}

func hostNodeByHand(t *T) {
	const launches = 100
	runs, told := 0, make(chan error, launches+1)
	g := t.Graph()
	t.Node(g, cuda.HostParams(func() { runs++ }, cuda.OnDone(func(err error) { told <- err })))
	s, x := t.Stream(), t.Exec(g)
	t.OK(g.Close())
	for range launches {
		t.OK(x.Launch(s))
	}
	t.Sync(s)
	for range launches {
		t.OK(Receive(t, "OnDone", told))
	}
	if runs != launches {
		t.Errorf("%d runs of %d launches", runs, launches)
	}
}

func hostNodeDiamond(t *T) {
	var order Order
	g := t.Graph()
	top := t.Node(g, cuda.HostParams(order.Add(1)))
	var sides []cuda.GraphNode
	for range 3 {
		spun := t.Node(g, cuda.KernelParams(t.Kernel("spin"), one, uint64(2*time.Millisecond)), top)
		sides = append(sides, t.Node(g, cuda.HostParams(order.Add(2)), spun))
	}
	t.Node(g, cuda.HostParams(order.Add(3)), sides...)
	t.Run(t.Exec(g), t.Stream())
	order.Want(t, 1, 2, 2, 2, 3)
}
