package cudatest

import (
	"bytes"
	"sync/atomic"

	"github.com/hostlaunch/cuda"
)

var graphChangeCases = []Case{
	{ID: "GR-06", Name: "whole update in mid-launch", Run: wholeUpdate},
	{ID: "GR-06", Name: "refused update", Run: refusedUpdate},
	{ID: "GR-06", Name: "one node in mid-launch", Run: oneNodeUpdate},
	{ID: "GR-06", Name: "many versions", Run: manyVersions},
	{ID: "GR-06", Name: "each kind", Run: updateEachKind},
	{ID: "GR-06", Name: "captured node", Run: updateCaptured},
	{ID: "GR-06", Name: "node of an embedded graph", Run: updateEmbedded},
	{ID: "GR-06", Name: "node of the graph", Run: setInGraph},
	{ID: "GR-06", Name: "child of the graph", Run: setChildInGraph},
	{ID: "GR-06", Name: "enabled", Run: enabledNodes},
	{ID: "GR-09", Name: "names and edges", Run: graphPrinted},
}

func wholeUpdate(t *T) {
	var old, now atomic.Int32
	s, g := t.Stream(), t.Graph()
	first, gate := t.GateNode(g)
	p, oldGone := t.Tracked(&old)
	_, err := g.AddNode(p, first)
	p = nil
	t.OK(err)
	x := t.Exec(g)
	t.OK(g.Close())
	t.OK(x.Launch(s))
	next := t.Graph()
	a := t.Node(next, cuda.HostParams(func() {}))
	p, newGone := t.Tracked(&now)
	_, err = next.AddNode(p, a)
	p = nil
	t.OK(err)
	t.OK(x.Update(next))
	t.OK(next.Close())
	t.Kept("a launch uses it", oldGone)
	t.Kept("the executable has it", newGone)
	gate.Open()
	t.Sync(s)
	if old.Load() != 1 || now.Load() != 0 {
		t.Errorf("the launch before the update ran the old function %d times and the new one %d", old.Load(), now.Load())
	}
	t.Run(x, s)
	if old.Load() != 1 || now.Load() != 1 {
		t.Errorf("the launch after the update: %d, %d", old.Load(), now.Load())
	}
	t.Gone(oldGone)
	t.OK(x.Close())
	t.Gone(newGone)
}

func refusedUpdate(t *T) {
	var runs, other atomic.Int32
	s, g := t.Stream(), t.Graph()
	_, gone := t.trackedNode(g, &runs)
	x := t.Exec(g)
	t.OK(g.Close())
	longer := t.Graph()
	n, otherGone := t.trackedNode(longer, &other)
	t.Node(longer, cuda.EmptyParams(), n)
	err := x.Update(longer)
	t.Is(err, cuda.ErrGraphExecUpdateFailure)
	t.Contains(err, "other nodes or edges")
	changed := t.Graph()
	t.Node(changed, cuda.EmptyParams())
	err = x.Update(changed)
	t.Is(err, cuda.ErrGraphExecUpdateFailure)
	t.Contains(err, "another type: empty node")
	t.Is(x.Update(nil), cuda.ErrInvalidValue)
	t.Is(x.Update(g), cuda.ErrClosed)
	t.OK(longer.Close())
	t.Gone(otherGone)
	t.Kept("the executable has it", gone)
	t.Run(x, s)
	if runs.Load() != 1 || other.Load() != 0 {
		t.Errorf("after refused updates: %d, %d", runs.Load(), other.Load())
	}
	t.OK(x.Close())
	t.Gone(gone)
	t.Is(x.Update(changed), cuda.ErrClosed)
}

func oneNodeUpdate(t *T) {
	var old, now atomic.Int32
	s, g := t.Stream(), t.Graph()
	first, gate := t.GateNode(g)
	p, oldGone := t.Tracked(&old)
	n, err := g.AddNode(p, first)
	t.OK(err)
	x := t.Exec(g)
	t.OK(x.Launch(s))
	p, newGone := t.Tracked(&now)
	t.OK(x.SetParams(n, p))
	p = nil
	t.OK(x.SetParams(first, cuda.HostParams(func() {})))
	t.Kept("a launch uses it", oldGone)
	gate.Open()
	t.Sync(s)
	t.Run(x, s)
	if old.Load() != 1 || now.Load() != 1 {
		t.Errorf("old ran %d times and new %d, want 1 and 1", old.Load(), now.Load())
	}
	t.Is(x.SetParams(n, cuda.EmptyParams()), cuda.ErrInvalidValue)
	t.Kept("the executable has it", newGone)
	t.OK(g.Close())
	t.OK(x.Close())
	t.Gone(oldGone)
	t.Gone(newGone)
}

// manyVersions: versions that no launch can use any more do not pile up.
func manyVersions(t *T) {
	s, g := t.Stream(), t.Graph()
	n := t.Node(g, cuda.HostParams(func() {}))
	x := t.Exec(g)
	var runs [300]atomic.Int32
	for i := range runs {
		t.OK(x.SetParams(n, cuda.HostParams(func() { t.Error("was replaced before a launch") })))
		t.OK(x.SetParams(n, cuda.HostParams(func() { runs[i].Add(1) })))
		t.OK(x.Launch(s))
	}
	t.Sync(s)
	for i := range runs {
		if got := runs[i].Load(); got != 1 {
			t.Fatalf("version %d ran %d times", i, got)
		}
	}
	t.Run(x, s)
	t.Eventually("former versions are released", func() bool { return t.Driver.Stats().HostNodes <= 3 })
}

func updateEachKind(t *T) {
	s, g := t.Stream(), t.Graph()
	v, w := t.Buffer(8), t.Buffer(8)
	out := t.Pinned(8).Bytes()
	set := t.Node(g, cuda.MemsetParams(v, 1))
	in := t.Node(g, cuda.KernelParams(t.Kernel("nothing"), one), set)
	cp := t.Node(g, cuda.MemcpyToHostParams(out, v), in)
	mem := t.Node(g, cuda.BatchMemOpParams(cuda.Write32(w.Word(0), 1)), cp)
	inner := t.Graph()
	runs := 0
	t.Node(inner, cuda.HostParams(func() { runs++ }))
	child := t.Node(g, cuda.ChildGraphParams(inner), mem)
	x := t.Exec(g)
	t.OK(x.SetParams(set, cuda.MemsetParams(v, 2)))
	t.OK(x.SetParams(in, cuda.KernelParams(t.Kernel("nothing"), cuda.Grid1D(64, 32))))
	t.OK(x.SetParams(cp, cuda.MemcpyToHostParams(out, v)))
	t.OK(x.SetParams(mem, cuda.BatchMemOpParams(cuda.Write32(w.Word(0), 2))))
	other := t.Graph()
	t.Node(other, cuda.HostParams(func() { runs += 10 }))
	t.OK(x.SetParams(child, cuda.ChildGraphParams(other)))
	t.Run(x, s)
	got := make([]uint32, 2)
	t.OK(cuda.CopyToHost(s, got, w))
	t.Sync(s)
	if out[0] != 2 || got[0] != 2 || runs != 10 {
		t.Errorf("memset gives %d, memory operation %d, child %d; want 2, 2, 10", out[0], got[0], runs)
	}
}

func updateCaptured(t *T) {
	s := t.Stream()
	runs := [3]int{}
	g := t.Capture(func(b *cuda.GraphBuilder) error { return cuda.HostLaunch(b, func() { runs[0]++ }) })
	x := t.Exec(g)
	nodes, err := g.Nodes()
	t.OK(err)
	t.OK(g.SetParams(nodes[0], cuda.HostParams(func() { runs[1]++ })))
	t.Run(x, s)
	t.OK(x.SetParams(nodes[0], cuda.HostParams(func() { runs[2]++ })))
	t.Run(x, s)
	t.Run(t.Exec(g), s)
	if runs != [3]int{1, 1, 1} {
		t.Errorf("runs %v, want one of each", runs)
	}
	if st := t.Driver.Stats(); st.Waiting != 0 {
		t.Errorf("%d functions wait", st.Waiting)
	}
}

func updateEmbedded(t *T) {
	s, g, inner := t.Stream(), t.Graph(), t.Graph()
	runs := [2]int{}
	t.Node(inner, cuda.HostParams(func() { runs[0]++ }))
	n := t.Node(g, cuda.ChildGraphParams(inner))
	x := t.Exec(g)
	child, err := g.ChildGraph(n)
	t.OK(err)
	nodes, err := child.Nodes()
	t.OK(err)
	t.OK(x.SetParams(nodes[0], cuda.HostParams(func() { runs[1]++ })))
	t.Run(x, s)
	if st := t.Driver.Stats(); runs != [2]int{0, 1} || st.Waiting != 0 {
		t.Errorf("runs %v, want 0 and 1; %d functions wait", runs, st.Waiting)
	}
	other := t.Graph()
	t.Node(other, cuda.HostParams(func() { runs[0] += 10 }))
	t.OK(x.SetParams(n, cuda.ChildGraphParams(other)))
	t.Is(x.SetParams(nodes[0], cuda.HostParams(func() { runs[1] += 10 })), cuda.ErrIllegalState)
	t.Run(x, s)
	if st := t.Driver.Stats(); runs != [2]int{10, 1} || st.Waiting != 0 {
		t.Errorf("runs %v, want 10 and 1; %d functions wait", runs, st.Waiting)
	}
}

func setInGraph(t *T) {
	var old atomic.Int32
	s, g := t.Stream(), t.Graph()
	runs := 0
	n, gone := t.trackedNode(g, &old)
	t.Is(g.SetParams(n, cuda.EmptyParams()), cuda.ErrInvalidValue)
	t.Is(g.SetParams(n, cuda.HostParams(nil)), cuda.ErrInvalidValue)
	empty := t.Node(g, cuda.EmptyParams())
	t.OK(g.SetParams(empty, cuda.EmptyParams()))
	t.Kept("the node has it", gone)
	t.OK(g.SetParams(n, cuda.HostParams(func() { runs++ })))
	t.Gone(gone)
	t.Run(t.Exec(g), s)
	if runs != 1 || old.Load() != 0 {
		t.Errorf("new ran %d times, old %d", runs, old.Load())
	}
}

// setChildInGraph: a child graph node gets another graph, before and after executables are made.
func setChildInGraph(t *T) {
	var runs [2]atomic.Int32
	var gone [2]*atomic.Bool
	var inner [2]*cuda.Graph
	s, g := t.Stream(), t.Graph()
	for i := range inner {
		inner[i] = t.Graph()
		_, gone[i] = t.trackedNode(inner[i], &runs[i])
	}
	n := t.Node(g, cuda.ChildGraphParams(inner[0]))
	former, err := g.ChildGraph(n)
	t.OK(err)
	x := t.Exec(g)
	t.OK(g.SetParams(n, cuda.ChildGraphParams(inner[1])))
	_, err = former.Nodes()
	t.Is(err, cuda.ErrClosed)
	for _, child := range inner {
		t.OK(child.Close())
	}
	t.Run(x, s)
	t.Run(t.Exec(g), s)
	if runs[0].Load() != 1 || runs[1].Load() != 1 {
		t.Errorf("runs %d and %d, want one of each", runs[0].Load(), runs[1].Load())
	}
	t.Kept("an executable has it", gone[0])
	t.OK(x.Close())
	t.Gone(gone[0])
	t.Kept("the graph has it", gone[1])
}

func enabledNodes(t *T) {
	s, g, v := t.Stream(), t.Graph(), t.Buffer(4)
	var order Order
	h := t.Node(g, cuda.HostParams(order.Add(1)))
	set := t.Node(g, cuda.MemsetParams(v, 7), h)
	t.Node(g, cuda.HostParams(order.Add(2)), set)
	x := t.Exec(g)
	t.OK(s.Memset(v, 1))
	t.Is(x.SetEnabled(h, false), cuda.ErrInvalidValue)
	_, err := x.Enabled(h)
	t.Is(err, cuda.ErrInvalidValue)
	out := make([]byte, 4)
	for _, on := range []bool{false, true} {
		t.OK(x.SetEnabled(set, on))
		got, err := x.Enabled(set)
		t.OK(err)
		t.Run(x, s)
		t.OK(cuda.CopyToHost(s, out, v))
		t.Sync(s)
		if want := map[bool]byte{false: 1, true: 7}[on]; got != on || out[0] != want {
			t.Errorf("enabled %v reads %v, and the memory has %d, want %d", on, got, out[0], want)
		}
	}
	order.Want(t, 1, 2, 1, 2)
}

func graphPrinted(t *T) {
	g, inner := t.Graph(), t.Graph()
	t.Node(inner, cuda.HostParams(func() {}, cuda.Name("inner one")))
	a := t.Node(g, cuda.HostParams(func() {}, cuda.Name(`decode "x"`)))
	b := t.Node(g, cuda.KernelParams(t.Kernel("increment"), cuda.Grid1D(64, 32), t.Buffer(256), uint32(1)), a)
	t.Node(g, cuda.ChildGraphParams(inner), b)
	var out bytes.Buffer
	t.OK(g.DOT(&out))
	text := out.String()
	for _, want := range []string{"digraph", `host\ndecode \"x\"\ngraphchange.go:`, `kernel\nincrement\n2x1x1 blocks of 32x1x1`, "inner one", "n0 -> n1", "subgraph cluster_", "child graph"} {
		if !bytes.Contains(out.Bytes(), []byte(want)) {
			t.Errorf("the picture does not have %q:\n%s", want, text)
		}
	}
	t.Is(g.DOT(nil), cuda.ErrInvalidValue)
	path := t.TempDir() + "/g.dot"
	t.OK(g.DebugDOT(path, true))
	t.Is(g.DebugDOT("", false), cuda.ErrInvalidValue)
	if err := g.DebugDOT(t.TempDir()+"/no/such/folder", false); err == nil {
		t.Error("written to a folder that is not there")
	}
}
