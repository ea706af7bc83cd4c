package cudatest

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda"
)

// nativeGraphCases: compiled functions as nodes of graphs.
var nativeGraphCases = []Case{
	{ID: "HL-11", Name: "in a graph", Run: nativeInGraph},
	{ID: "HL-11", Name: "data of a graph", Run: nativeGraphData},
	{ID: "HL-11", Name: "nodes changed, removed, cloned", Run: nativeNodeChanged},
	{ID: "HL-11", Name: "nodes by hand", Run: nativeNodeByHand},
	{ID: "HL-11", Name: "nodes by hand refused", Run: nativeNodeRefused},
	{ID: "GR-09", Name: "native functions by name", Run: nativeNodeNamed},
}

func nativeInGraph(t *T) {
	const launches = 100
	log := t.Pinned(8 * (3*launches + 1))
	words := cuda.PinnedSlice[uint64](log)
	clear(words)
	var told atomic.Int64
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		return errors.Join(
			b.Launch(t.Kernel("append"), one, log, uint64(0)),
			cuda.HostLaunchNative(b, t.native("append"), appending(log, 1), cuda.OnDone(func(err error) {
				if err == nil {
					told.Add(1)
				}
			})),
			cuda.HostLaunch(b, func() { words[1+words[0]] = 2; words[0]++ }))
	})
	s, x := t.Stream(), t.Exec(g)
	for range launches {
		t.OK(x.Launch(s))
	}
	t.Sync(s)
	if words[0] != 3*launches {
		t.Fatalf("%d marks, want %d", words[0], 3*launches)
	}
	for i, v := range words[1:] {
		if v != uint64(i%3) {
			t.Fatalf("mark %d is %d, want %d", i, v, i%3)
		}
	}
	t.Eventually("OnDone is told for each launch", func() bool { return told.Load() == launches })
	time.Sleep(2 * time.Millisecond)
	if st := t.Driver.Stats(); told.Load() != launches || st.Waiting != 0 || st.Running != 0 || st.HostNodes != 2 {
		t.Errorf("told %d times; afterwards %+v", told.Load(), st)
	}
}

// nativeGraphData: bytes and memory of a node live as long as anything can run it, and go then.
func nativeGraphData(t *T) {
	s := t.Stream()
	out := cuda.PinnedSlice[uint64](t.Pinned(16))
	var gone *atomic.Bool
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		var data *[8]uint64
		data, gone = collectable()
		body := summing(&out[0], bytes.Repeat([]byte{5}, 10_000))
		defer clear(body)
		return errors.Join(
			cuda.HostLaunchNative(b, t.native("sum"), cuda.NativeBytes(body)),
			cuda.HostLaunchNative(b, t.native("add"), cuda.NativePointer(unsafe.Pointer(data))))
	})
	t.OK(err)
	x, err := g.Instantiate()
	t.OK(err)
	t.OK(g.Close())
	for range 3 {
		out[0] = 0
		runtime.GC()
		t.OK(x.Launch(s))
		t.Sync(s)
		if out[0] != 50_000 {
			t.Fatalf("sum %d, want 50000", out[0])
		}
	}
	t.Spin(s, 20*time.Millisecond)
	t.OK(x.Launch(s))
	t.OK(x.Close()) // with a launch in flight
	runtime.GC()
	if gone.Load() {
		t.Error("a node's data went while a launch was in flight")
	}
	t.Sync(s)
	t.Gone(gone)
	t.noOwners()
}

// nativeNodeChanged: a node of a native function is changed, removed, cloned and embedded as others are; what does not run any
// more is not waited for.
func nativeNodeChanged(t *T) {
	s := t.Stream()
	count := &cuda.PinnedSlice[atomic.Uint64](t.Pinned(8))[0]
	ran := 0
	capture := func() (*cuda.Graph, cuda.GraphNode) {
		g := t.Capture(func(b *cuda.GraphBuilder) error {
			t.Native(b, "add", cuda.NativePointer(unsafe.Pointer(count)))
			return nil
		})
		nodes, err := g.Nodes()
		t.OK(err)
		return g, nodes[0]
	}
	check := func(what string, g *cuda.Graph, native, closures int) {
		t.Helper()
		count.Store(0)
		ran = 0
		x := t.Exec(g)
		t.OK(x.Launch(s))
		t.OK(x.Launch(s))
		t.Sync(s)
		if int(count.Load()) != native || ran != closures {
			t.Errorf("%s: two launches ran it %d times, and the Go function %d times; want %d and %d", what, count.Load(), ran, native, closures)
		}
		if st := t.Driver.Stats(); st.Waiting != 0 || st.Running != 0 {
			t.Errorf("%s: %d wait and %d run", what, st.Waiting, st.Running)
		}
	}
	g, n := capture()
	clone, err := g.Clone()
	t.OK(err)
	t.Cleanup(func() { clone.Close() })
	parent, err := t.Device(0).NewGraph()
	t.OK(err)
	t.Cleanup(func() { parent.Close() })
	t.Node(parent, cuda.ChildGraphParams(g))
	t.Node(parent, cuda.ChildGraphParams(g))
	check("as captured", g, 2, 0)
	t.OK(g.SetParams(n, cuda.HostParams(func() { ran++ })))
	check("changed", g, 0, 2)
	check("cloned before", clone, 2, 0)
	check("embedded twice before", parent, 4, 0)
	removed, n := capture()
	t.OK(removed.RemoveNode(n))
	check("removed", removed, 0, 0)
	updated, n := capture()
	x := t.Exec(updated)
	t.OK(x.SetParams(n, cuda.HostParams(func() { ran++ })))
	count.Store(0)
	ran = 0
	t.OK(x.Launch(s))
	t.Sync(s)
	if st := t.Driver.Stats(); count.Load() != 0 || ran != 1 || st.Waiting != 0 {
		t.Errorf("an executable's node changed: ran %d times, the Go function %d times; %d wait", count.Load(), ran, st.Waiting)
	}
}

// nativeNodeByHand: nodes of compiled functions and of host copies are added, changed and own their data as those of capture.
func nativeNodeByHand(t *T) {
	s, g := t.Stream(), t.Graph()
	out := cuda.PinnedSlice[uint64](t.Pinned(16))
	data, gone := collectable()
	body := summing(&out[0], bytes.Repeat([]byte{5}, 10_000))
	src, dst, other := noise(5000, 1), make([]byte, 5000), make([]byte, 5000)
	var told atomic.Int64
	sum := t.Node(g, cuda.NativeParams(t.native("sum"), cuda.NativeBytes(body)))
	clear(body) // it has been copied when the node is added
	add := t.Node(g, cuda.NativeParams(t.native("add"), cuda.NativePointer(unsafe.Pointer(data)), cuda.OnDone(func(error) { told.Add(1) })), sum)
	cp := t.Node(g, cuda.HostCopyParams(cuda.HostSlice(dst), cuda.HostSlice(src)), sum)
	x := t.Exec(g)
	runtime.GC()
	t.Run(x, s)
	t.Run(x, s)
	if out[0] != 50_000 || data[0] != 2 || !bytes.Equal(dst, src) {
		t.Errorf("two launches: sum %d, want 50000; added %d times; copied %v", out[0], data[0], bytes.Equal(dst, src))
	}
	t.Eventually("OnDone is told for each launch", func() bool { return told.Load() == 2 })
	t.OK(x.SetParams(cp, cuda.HostCopyParams(cuda.HostSlice(other), cuda.HostSlice(src))))
	t.OK(g.SetParams(add, cuda.HostParams(func() { out[1]++ })))
	data = nil
	t.Run(x, s)
	if !bytes.Equal(other, src) || out[1] != 0 {
		t.Errorf("the executable's copy changed: %v; the graph's function ran %d times", bytes.Equal(other, src), out[1])
	}
	t.OK(x.Close())
	t.Gone(gone)
	out[0] = 0
	t.Run(t.Exec(g), s)
	if out[1] != 1 || out[0] != 50_000 {
		t.Errorf("a new executable: the function ran %d times, sum %d, want 1 and 50000", out[1], out[0])
	}
}

func nativeNodeRefused(t *T) {
	g := t.Graph()
	small, large := cuda.HostSlice(make([]byte, 10)), cuda.HostSlice(make([]byte, 11))
	for want, p := range map[string]cuda.NodeParams{
		"fn is 0":        cuda.NativeParams(0, cuda.NativeData{}),
		"sync mode 9":    cuda.NativeParams(t.native("add"), cuda.NativeData{}, cuda.SyncMode(9)),
		"dst has 10":     cuda.HostCopyParams(small, large),
		"src is nil":     cuda.HostCopyParams(small, nil),
		"use Go":         cuda.NativeParams(t.native("add"), cuda.NativeData{}, cuda.StopOnError()),
		"dst is nil":     cuda.HostCopyParams(nil, large),
		"Graph.AddNode:": cuda.HostCopyParams(large, small),
	} {
		_, err := g.AddNode(p)
		t.Is(err, cuda.ErrInvalidValue)
		t.Contains(err, want)
	}
	if nodes, err := g.Nodes(); err != nil || len(nodes) != 0 {
		t.Errorf("%d nodes, %v, after nothing but refusals", len(nodes), err)
	}
}

func nativeNodeNamed(t *T) {
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		t.Native(b, "note", cuda.NativeData{}, cuda.Name("the decoder"))
		t.Native(b, "note", cuda.NativeData{})
		return cuda.HostCopy(b, cuda.HostSlice(make([]byte, 8)), cuda.HostSlice(make([]byte, 8)))
	})
	var dot strings.Builder
	err := g.DOT(&dot)
	if errors.Is(err, cuda.ErrNotSupported) {
		t.Skip("needs a driver of CUDA 12.3")
	}
	t.OK(err)
	for _, name := range []string{"the decoder", "native function 0x", "HostCopy", "nativegraph.go:"} {
		if !strings.Contains(dot.String(), name) {
			t.Errorf("the picture has no %q:\n%s", name, dot.String())
		}
	}
}
