package cudatest

import (
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

var graphLifeCases = []Case{
	{ID: "GR-03", Name: "clone outlives", Run: cloneOutlives},
	{ID: "GR-03", Name: "embedding outlives", Run: embeddingOutlives},
	{ID: "GR-03", Name: "two executables", Run: twoExecutables},
	{ID: "GR-03", Name: "removed node", Run: removedNodeReleased},
	{ID: "GR-03", Name: "graph without executables", Run: unusedGraphReleased},
	{ID: "GR-03", Name: "a node of a graph that is dropped", Run: nodeOfDropped},
	{ID: "GR-03", Name: "finalizer may call CUDA", Run: finalizerCalls},
	{ID: "GR-03", Name: "exit with owners", Child: true, Run: exitWithOwners},
	{ID: "GR-04", Name: "source node deleted", Run: sourceNodeDeleted},
	{ID: "GR-04", Name: "clone, edit, launch the old", Run: cloneEditLaunchOld},
	{ID: "GR-04", Name: "executable closed in mid-launch", Run: execClosedMidLaunch},
	{ID: "GR-04", Name: "destroyed right after the launch", Run: destroyedAfterLaunch},
	{ID: "GR-08", Name: "operands by hand", Run: operandsByHand},
	{ID: "GR-13", Name: "many graphs", Run: manyGraphs},
}

// collectable is memory that says when it is collected.
func collectable() (data *[8]uint64, collected *atomic.Bool) {
	data, collected = new([8]uint64), new(atomic.Bool)
	runtime.AddCleanup(data, func(int) { collected.Store(true) }, 0)
	return data, collected
}

// Tracked are node parameters whose function says when it is collected.
func (t *T) Tracked(runs *atomic.Int32) (cuda.NodeParams, *atomic.Bool) {
	data, collected := collectable()
	return cuda.HostParams(func() { data[0]++; runs.Add(1) }), collected
}

// trackedNode adds a node with a function that says when it is collected.
func (t *T) trackedNode(g *cuda.Graph, runs *atomic.Int32) (cuda.GraphNode, *atomic.Bool) {
	t.Helper()
	p, collected := t.Tracked(runs)
	return t.Node(g, p), collected
}

// Kept wants what is tracked to be alive still.
func (t *T) Kept(when string, collected *atomic.Bool) {
	t.Helper()
	runtime.GC()
	time.Sleep(5 * time.Millisecond)
	runtime.GC()
	if collected.Load() {
		t.Errorf("%s, and the function is gone", when)
	}
}

// Gone wants what is tracked to be collected.
func (t *T) Gone(collected *atomic.Bool) {
	t.Helper()
	t.Eventually("the function is released", func() bool { runtime.GC(); return collected.Load() })
}

// noOwners wants nothing to be left of host nodes.
func (t *T) noOwners() {
	t.Helper()
	t.Eventually("nothing is left", func() bool { st := t.Driver.Stats(); return st.HostNodes == 0 && st.UserObjects == 0 })
}

func cloneOutlives(t *T) {
	var runs atomic.Int32
	g, s := t.Graph(), t.Stream()
	_, collected := t.trackedNode(g, &runs)
	clone, err := g.Clone()
	t.OK(err)
	t.OK(g.Close())
	t.Kept("the clone is there", collected)
	x := t.Exec(clone)
	t.OK(clone.Close())
	t.Kept("the clone's executable is there", collected)
	t.Run(x, s)
	t.OK(x.Close())
	t.Gone(collected)
	if runs.Load() != 1 {
		t.Errorf("%d runs", runs.Load())
	}
}

func embeddingOutlives(t *T) {
	var runs atomic.Int32
	g, inner, s := t.Graph(), t.Graph(), t.Stream()
	_, collected := t.trackedNode(inner, &runs)
	n := t.Node(g, cuda.ChildGraphParams(inner))
	t.OK(inner.Close())
	t.Kept("the embedding graph is there", collected)
	x := t.Exec(g)
	t.OK(g.RemoveNode(n))
	t.OK(g.Close())
	t.Kept("the embedding graph's executable is there", collected)
	t.Run(x, s)
	t.OK(x.Close())
	t.Gone(collected)
	if runs.Load() != 1 {
		t.Errorf("%d runs", runs.Load())
	}
}

// twoExecutables: the last one that goes frees what both use.
func twoExecutables(t *T) {
	var runs atomic.Int32
	g, s := t.Graph(), t.Stream()
	_, collected := t.trackedNode(g, &runs)
	x, y := t.Exec(g), t.Exec(g)
	t.OK(g.Close())
	t.Run(x, s)
	t.OK(x.Close())
	t.Kept("another executable is there", collected)
	t.Run(y, s)
	t.OK(y.Close())
	t.Gone(collected)
	if runs.Load() != 2 {
		t.Errorf("%d runs", runs.Load())
	}
}

func removedNodeReleased(t *T) {
	var runs atomic.Int32
	g := t.Graph()
	n, collected := t.trackedNode(g, &runs)
	t.Kept("the node is there", collected)
	t.OK(g.RemoveNode(n))
	t.Gone(collected)
}

// nodeOfDropped: the collector does not close a graph while the program has a node of it, and then it does.
func nodeOfDropped(t *T) {
	s, before := t.Stream(), t.Driver.Stats().Graphs
	func() {
		x, n := func() (*cuda.GraphExec, cuda.GraphNode) {
			g, err := t.Device(0).NewGraph()
			t.OK(err)
			n := t.Node(g, cuda.HostParams(func() { t.Error("the node's first function ran") }))
			x, err := g.Instantiate()
			t.OK(err)
			return x, n
		}()
		for range 5 {
			runtime.GC()
			time.Sleep(time.Millisecond)
			t.OK(second(s.Query())) // what is garbage is closed beside a call
		}
		ran := false
		t.OK(x.SetParams(n, cuda.HostParams(func() { ran = true })))
		t.Run(x, s)
		t.OK(x.Close())
		if !ran {
			t.Error("the node's new function did not run")
		}
	}()
	t.Eventually("the graph is closed", func() bool {
		runtime.GC()
		t.OK(second(s.Query()))
		return t.Driver.Stats().Graphs == before
	})
}

func unusedGraphReleased(t *T) {
	var runs atomic.Int32
	g := t.Graph()
	_, collected := t.trackedNode(g, &runs)
	t.OK(g.Close())
	t.Gone(collected)
	t.noOwners()
}

// finalizerCalls: what a host node's function had is released where CUDA is allowed.
func finalizerCalls(t *T) {
	s, g := t.Stream(), t.Graph()
	called := make(chan error, 1)
	func() {
		data := new([64]byte)
		runtime.AddCleanup(data, func(int) { called <- func() error { _, err := s.Query(); return err }() }, 0)
		t.Node(g, cuda.HostParams(func() { data[0]++ }))
	}()
	x := t.Exec(g)
	t.Run(x, s)
	t.OK(x.Close())
	t.OK(g.Close())
	for range 50 {
		runtime.GC()
		select {
		case err := <-called:
			t.OK(err)
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Error("the cleanup did not run")
}

func exitWithOwners(t *T) {
	t.OpenDriver()
	dev := t.Device(0)
	g, err := dev.NewGraph()
	t.OK(err)
	for range 100 {
		t.Node(g, cuda.HostParams(func() { time.Sleep(time.Millisecond) }))
	}
	x, err := g.Instantiate()
	t.OK(err)
	s, err := dev.NewStream()
	t.OK(err)
	t.OK(x.Launch(s))
	os.Exit(0) // with the launch under way, and everything open
}

func sourceNodeDeleted(t *T) {
	var runs atomic.Int32
	g, s := t.Graph(), t.Stream()
	n, collected := t.trackedNode(g, &runs)
	x := t.Exec(g)
	t.OK(g.RemoveNode(n))
	t.Kept("an executable is there", collected)
	for range 3 {
		t.Run(x, s)
	}
	t.OK(x.Close())
	t.Gone(collected)
	if runs.Load() != 3 {
		t.Errorf("%d runs", runs.Load())
	}
	t.Run(t.Exec(g), s) // which has no node any more
}

func cloneEditLaunchOld(t *T) {
	var old, edited atomic.Int32
	g, s := t.Graph(), t.Stream()
	n, collected := t.trackedNode(g, &old)
	x := t.Exec(g)
	clone, err := g.Clone()
	t.OK(err)
	t.Cleanup(func() { clone.Close() })
	c, err := g.FindInClone(n, clone)
	t.OK(err)
	t.OK(clone.SetParams(c, cuda.HostParams(func() { edited.Add(1) })))
	t.OK(g.SetParams(n, cuda.HostParams(func() { edited.Add(10) })))
	t.Kept("the executable is there", collected)
	t.Run(x, s)
	t.Run(t.Exec(clone), s)
	t.Run(t.Exec(g), s)
	if old.Load() != 1 || edited.Load() != 11 {
		t.Errorf("the old one ran %d times, the edited %d, want 1 and 11", old.Load(), edited.Load())
	}
	t.OK(x.Close())
	t.Gone(collected)
}

func execClosedMidLaunch(t *T) {
	var runs atomic.Int32
	g, s := t.Graph(), t.Stream()
	first, gate := t.GateNode(g)
	p, collected := t.Tracked(&runs)
	_, err := g.AddNode(p, first)
	p = nil
	t.OK(err)
	x := t.Exec(g)
	t.OK(g.Close())
	t.OK(x.Launch(s))
	Receive(t, "the first node runs", gate.Entered)
	t.OK(x.Close())
	t.Kept("a launch is in flight", collected)
	gate.Open()
	t.Sync(s)
	t.Gone(collected)
	if runs.Load() != 1 {
		t.Errorf("%d runs", runs.Load())
	}
	t.noOwners()
}

func destroyedAfterLaunch(t *T) {
	var runs atomic.Int32
	s := t.Stream()
	for range 100 {
		g := t.Graph()
		t.trackedNode(g, &runs)
		x, err := g.Instantiate()
		t.OK(err)
		t.OK(x.Launch(s))
		t.OK(x.Close())
		t.OK(g.Close())
		runtime.GC()
	}
	t.Sync(s)
	if runs.Load() != 100 {
		t.Errorf("%d runs of 100 launches", runs.Load())
	}
	t.noOwners()
}

func operandsByHand(t *T) {
	s, out := t.Stream(), t.Pinned(4)
	before := t.Driver.Stats()
	buf, err := t.Device(0).Alloc(4)
	t.OK(err)
	e, err := t.Device(0).NewEvent()
	t.OK(err)
	g, err := t.Device(0).NewGraph()
	t.OK(err)
	a := t.Node(g, cuda.MemcpyToDeviceParams(buf, []uint32{41}))
	b := t.Node(g, cuda.KernelParams(t.Kernel("increment"), one, buf, uint32(1)), a)
	c := t.Node(g, cuda.MemcpyToHostParams(cuda.PinnedSlice[uint32](out), buf), b)
	d := t.Node(g, cuda.EventRecordParams(e), c)
	t.Node(g, cuda.EventWaitParams(e), d)
	x, err := g.Instantiate()
	t.OK(err)
	t.OK(buf.Close())
	t.OK(e.Close())
	t.OK(g.Close())
	if st := t.Driver.Stats(); st.Buffers != before.Buffers+1 || st.Events != before.Events+1 {
		t.Errorf("closed while an executable uses them: %+v, before the case: %+v", st, before)
	}
	for range 3 {
		runtime.GC()
		t.Run(x, s)
		if got := cuda.PinnedSlice[uint32](out)[0]; got != 42 {
			t.Fatalf("the graph gives %d, want 42", got)
		}
	}
	t.OK(x.Close())
	t.Eventually("the operands are freed", func() bool { return t.Driver.Stats() == before })
}

// manyGraphs: graphs built, launched and closed leave nothing, neither in the library nor in the process's memory.
func manyGraphs(t *T) {
	const rounds, warm = 10_000, 3_000
	s, buf := t.Stream(), t.Buffer(4)
	var runs atomic.Int32
	before := t.Driver.Stats()
	var level int64
	for i := range rounds {
		g, err := t.Device(0).NewGraph()
		t.OK(err)
		a := t.Node(g, cuda.MemsetParams(buf, 1))
		b := t.Node(g, cuda.HostParams(func() { runs.Add(1) }), a)
		t.Node(g, cuda.EmptyParams(), b)
		x, err := g.Instantiate()
		t.OK(err)
		t.OK(x.Launch(s))
		t.OK(x.Close())
		t.OK(g.Close())
		if i%100 == 99 {
			t.Sync(s)
		}
		if i == warm {
			level = settledMemory()
		}
	}
	t.Sync(s)
	t.Eventually("nothing is left", func() bool { return t.Driver.Stats() == before })
	if runs.Load() != rounds {
		t.Errorf("%d runs of %d launches", runs.Load(), rounds)
	}
	if now := settledMemory(); level > 0 && now > level+level/20 {
		t.Errorf("the process has %d MiB, and had %d after %d graphs", now>>20, level>>20, warm)
	}
}
