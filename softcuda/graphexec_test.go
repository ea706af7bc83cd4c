package softcuda

import (
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

func TestGraphClone(t *testing.T) {
	g := newGraphRig(t)
	child := g.graph()
	g.host(child, 1)
	raw := g.graph()
	n := g.add(raw, &driver.NodeParams{Type: driver.NodeGraph, Child: child})
	h := g.host(raw, 2, n)
	clone, r := g.GraphClone(g.ctx, raw)
	g.want("clone", r, 0)
	again, _ := g.GraphClone(g.ctx, clone)
	found, r := g.GraphNodeFindInClone(g.ctx, h, clone)
	g.want("find", r, 0)
	if data, _ := g.GraphHostNodeGetParams(g.ctx, found); data != 2 || found == h {
		t.Errorf("found node %d with data %d", found, data)
	}
	for what, c := range map[string]struct {
		n driver.GraphNode
		g driver.Graph
	}{"node of nothing": {1, clone}, "no graph": {h, 1}, "no clone": {h, raw}, "clone of the clone": {h, again}, "child's node": {g.nodesOf(child)[0], clone}} {
		_, r := g.GraphNodeFindInClone(g.ctx, c.n, c.g)
		g.want(what, r, driver.ErrorInvalidValue)
	}
	embedded, r := g.GraphChildGraphNodeGetGraph(g.ctx, n)
	g.want("child graph", r, 0)
	if f, r := g.GraphNodeFindInClone(g.ctx, g.nodesOf(child)[0], embedded); f != g.nodesOf(embedded)[0] || r != 0 {
		t.Errorf("in the child graph: %d, %d", f, r)
	}
	g.want("destroy what belongs to a node", g.GraphDestroy(g.ctx, embedded), driver.ErrorInvalidValue)

	g.want("change the clone", g.GraphNodeSetParams(g.ctx, found, hostNode(3)), 0)
	g.host(embedded, 9, g.nodesOf(embedded)[0])
	for _, each := range []struct {
		raw  driver.Graph
		want []uint64
	}{{raw, []uint64{1, 9, 2}}, {clone, []uint64{1, 3}}, {again, []uint64{1, 2}}} {
		g.run(g.instantiate(each.raw, 0, 0))
		g.expect("launch", each.want...)
	}
	g.want("destroy the copy's node", g.GraphDestroyNode(g.ctx, found), 0)
	_, r = g.GraphNodeFindInClone(g.ctx, h, clone)
	g.want("find it", r, driver.ErrorInvalidValue)
	g.want("destroy the original", g.GraphDestroyNode(g.ctx, h), 0)
	_, r = g.GraphNodeFindInClone(g.ctx, h, again)
	g.want("find it", r, driver.ErrorInvalidValue)

	g.want("begin", g.StreamBeginCaptureToGraph(g.ctx, g.a, clone, nil, nil, driver.CaptureRelaxed), 0)
	_, r = g.GraphClone(g.ctx, clone)
	g.want("clone what is captured into", r, driver.ErrorIllegalState)
	g.want("destroy a node of it", g.GraphDestroyNode(g.ctx, g.nodesOf(clone)[0]), driver.ErrorIllegalState)
	g.end(g.a, 0)
	for _, raw := range []driver.Graph{raw, clone, again, child} {
		g.want("destroy", g.GraphDestroy(g.ctx, raw), 0)
	}
	for x := range g.execs {
		g.want("destroy", g.GraphExecDestroy(g.ctx, x), 0)
	}
	g.empty()
}

func (g *graphRig) nodesOf(raw driver.Graph) []driver.GraphNode {
	nodes, r := g.GraphGetNodes(g.ctx, raw)
	g.want("nodes", r, 0)
	return nodes
}

// Flags and upload; what is destroyed is gone.
func TestGraphInstantiate(t *testing.T) {
	g := newGraphRig(t)
	raw := g.graph()
	g.host(raw, 1)
	for _, flags := range []uint64{0, driver.GraphAutoFreeOnLaunch, driver.GraphUseNodePriority} {
		g.run(g.instantiate(raw, flags, 0))
	}
	g.expect("all", 1, 1, 1)
	g.instantiate(raw, 16, driver.ErrorInvalidValue)
	g.instantiate(1, 0, driver.ErrorInvalidValue)
	i := driver.Instantiation{Flags: driver.GraphUpload, UploadStream: g.a}
	x, r := g.GraphInstantiateWithParams(g.ctx, raw, &i)
	g.want("upload", r, 0)
	i.UploadStream = 99
	_, r = g.GraphInstantiateWithParams(g.ctx, raw, &i)
	g.want("upload on no stream", r, driver.ErrorInvalidHandle)
	g.want("upload", g.GraphUpload(g.ctx, x, g.a), 0)
	g.want("upload of nothing", g.GraphUpload(g.ctx, 1, g.a), driver.ErrorInvalidValue)
	g.want("begin", g.StreamBeginCapture(g.ctx, g.a, driver.CaptureRelaxed), 0)
	g.want("upload on a capturing stream", g.GraphUpload(g.ctx, x, g.a), driver.ErrorStreamCaptureUnsupported)
	g.end(g.a, driver.ErrorStreamCaptureInvalidated)
	g.want("destroy", g.GraphExecDestroy(g.ctx, x), 0)
	g.want("destroy twice", g.GraphExecDestroy(g.ctx, x), driver.ErrorInvalidValue)
	g.want("launch", g.GraphLaunch(g.ctx, x, g.a), driver.ErrorInvalidValue)
}

// One executable never overlaps itself, whatever streams it is launched on (CONTRACT GR-05).
func TestGraphLaunchesDoNotOverlap(t *testing.T) {
	g := newGraphRig(t)
	raw := g.graph()
	started, release := g.gate(1)
	h := g.host(raw, 1)
	g.add(raw, g.kernelNode("note", uint64(2)))
	g.host(raw, 3, h)
	x := g.instantiate(raw, 0, 0)
	g.want("launch", g.GraphLaunch(g.ctx, x, g.a), 0)
	<-started
	g.eventually("the kernel", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return len(g.ran) == 1 })
	g.want("launch", g.GraphLaunch(g.ctx, x, g.b), 0)
	time.Sleep(10 * time.Millisecond) // in which the second launch's kernel would run
	close(release)
	g.want("synchronise", g.CtxSynchronize(g.ctx), 0)
	if ran := g.noted(); len(ran) != 6 || !slices.Equal(ran[:3], []uint64{2, 1, 3}) {
		t.Errorf("ran %v", ran)
	}
}

// A node of an executable is found by the node that it was made of, while that exists.
func TestGraphExecSetParams(t *testing.T) {
	g := newGraphRig(t)
	raw, other := g.graph(), g.graph()
	h, e := g.host(raw, 1), g.host(other, 9)
	k := g.add(raw, g.kernelNode("note", uint64(2)), h)
	v := g.add(raw, &driver.NodeParams{Type: driver.NodeEventRecord, Event: g.e}, k)
	x := g.instantiate(raw, 0, 0)
	set := func(what string, n driver.GraphNode, p *driver.NodeParams, want driver.Result) {
		t.Helper()
		g.want(what, g.GraphExecNodeSetParams(g.ctx, x, n, p), want)
	}
	_, release := g.gate(7)
	g.want("hold", g.LaunchHostFunc(g.ctx, g.a, 7), 0)
	g.want("launch", g.GraphLaunch(g.ctx, x, g.a), 0)
	set("host", h, hostNode(3), 0)
	set("kernel", k, g.kernelNode("note", uint64(4)), 0)
	set("event", v, &driver.NodeParams{Type: driver.NodeEventRecord, Event: g.e}, 0)
	close(release)
	g.run(x)
	g.expect("the queued launch, and the next", 7, 1, 2, 3, 4)
	if data, _ := g.GraphHostNodeGetParams(g.ctx, h); data != 1 {
		t.Errorf("the graph's node has data %d", data)
	}
	set("another type", k, hostNode(1), driver.ErrorInvalidValue)
	set("another graph's node", e, hostNode(1), driver.ErrorInvalidValue)
	set("no node", 1, hostNode(1), driver.ErrorInvalidValue)
	set("nothing", h, nil, driver.ErrorInvalidValue)
	g.want("no executable", g.GraphExecNodeSetParams(g.ctx, 1, h, hostNode(1)), driver.ErrorInvalidValue)
	g.want("destroy the node", g.GraphDestroyNode(g.ctx, h), 0)
	set("a node that is gone", h, hostNode(5), driver.ErrorInvalidValue)
	g.want("destroy the graph", g.GraphDestroy(g.ctx, raw), 0)
	set("a node of a graph that is gone", k, g.kernelNode("note", uint64(6)), driver.ErrorInvalidValue)
	g.run(x)
	g.expect("the last ones", 3, 4)
}

// What an executable's copies, memsets and batches may become (facts J, M and N of the H200).
func TestGraphExecSetOperands(t *testing.T) {
	g := newGraphRig(t)
	raw, p, out := g.graph(), g.alloc(4096), make([]byte, 64)
	host := unsafe.Pointer(&out[0])
	box := driver.Memcpy3D{SrcType: driver.MemoryDevice, SrcDevice: p, DstType: driver.MemoryHost, DstHost: host, Width: 64, Height: 1, Depth: 1}
	set := driver.Memset{Dst: p, ElementSize: 1, Width: 16, Height: 1, Value: 7}
	flat := g.add(raw, &driver.NodeParams{Type: driver.NodeMemcpy, Copy: &box})
	rows := box
	rows.Height, rows.Width, rows.SrcPitch, rows.DstPitch = 2, 8, 8, 8
	deep := g.add(raw, &driver.NodeParams{Type: driver.NodeMemcpy, Copy: &rows}, flat) // one after another: all touch the same memory
	ms := g.add(raw, &driver.NodeParams{Type: driver.NodeMemset, Memset: &set}, deep)
	batch := g.add(raw, &driver.NodeParams{Type: driver.NodeBatchMemOp, Ops: []driver.MemOp{{Op: driver.MemOpWrite32, Address: p}, {Op: driver.MemOpBarrier}}}, ms)
	x := g.instantiate(raw, 0, 0)
	copied := func(from driver.Memcpy3D, change func(*driver.Memcpy3D)) *driver.NodeParams {
		change(&from)
		return &driver.NodeParams{Type: driver.NodeMemcpy, Copy: &from}
	}
	filled := func(change func(*driver.Memset)) *driver.NodeParams {
		s := set
		change(&s)
		return &driver.NodeParams{Type: driver.NodeMemset, Memset: &s}
	}
	ops := func(list ...driver.MemOp) *driver.NodeParams {
		return &driver.NodeParams{Type: driver.NodeBatchMemOp, Ops: list}
	}
	for what, c := range map[string]struct {
		n    driver.GraphNode
		p    *driver.NodeParams
		want driver.Result
	}{
		"copy of less":         {flat, copied(box, func(c *driver.Memcpy3D) { c.Width = 32 }), 0},
		"copy from elsewhere":  {flat, copied(box, func(c *driver.Memcpy3D) { c.SrcDevice += 100 }), 0},
		"copy of nothing":      {flat, copied(box, func(c *driver.Memcpy3D) { c.Width = 0 }), driver.ErrorInvalidValue},
		"copy the other way":   {flat, copied(box, func(c *driver.Memcpy3D) { c.DstType, c.DstDevice = driver.MemoryDevice, p }), driver.ErrorInvalidValue},
		"copy of rows":         {flat, copied(rows, func(*driver.Memcpy3D) {}), driver.ErrorInvalidValue},
		"rows as they are":     {deep, copied(rows, func(*driver.Memcpy3D) {}), 0},
		"rows elsewhere":       {deep, copied(rows, func(c *driver.Memcpy3D) { c.SrcDevice++ }), driver.ErrorInvalidValue},
		"rows as one":          {deep, copied(box, func(*driver.Memcpy3D) {}), driver.ErrorInvalidValue},
		"memset of more":       {ms, filled(func(s *driver.Memset) { s.Width = 32 }), 0},
		"memset of nothing":    {ms, filled(func(s *driver.Memset) { s.Width = 0 }), driver.ErrorInvalidValue},
		"memset of rows":       {ms, filled(func(s *driver.Memset) { s.Height, s.Pitch = 2, 64 }), driver.ErrorInvalidValue},
		"batch of other value": {batch, ops(driver.MemOp{Op: driver.MemOpWrite32, Address: p + 4, Value: 1}, driver.MemOp{Op: driver.MemOpBarrier}), 0},
		"batch of others":      {batch, ops(driver.MemOp{Op: driver.MemOpWait32, Address: p}, driver.MemOp{Op: driver.MemOpBarrier}), driver.ErrorInvalidValue},
		"batch of fewer":       {batch, ops(driver.MemOp{Op: driver.MemOpWrite32, Address: p}), driver.ErrorInvalidValue},
		"other barrier":        {batch, ops(driver.MemOp{Op: driver.MemOpWrite32, Address: p}, driver.MemOp{Op: driver.MemOpBarrier, Plain: 1}), driver.ErrorInvalidValue},
	} {
		g.want(what, g.GraphExecNodeSetParams(g.ctx, x, c.n, c.p), c.want)
	}
	g.run(x)
}

// Kernels, copies and memsets can be disabled, and nothing else; a disabled node keeps its place in the order.
func TestGraphExecDisable(t *testing.T) {
	g := newGraphRig(t)
	raw, p := g.graph(), g.alloc(4096)
	first := g.host(raw, 1)
	k := g.add(raw, g.kernelNode("note", uint64(2)), first)
	ms := g.add(raw, &driver.NodeParams{Type: driver.NodeMemset, Memset: &driver.Memset{Dst: p, ElementSize: 1, Width: 16, Height: 1, Value: 7}}, k)
	e := g.add(raw, emptyNode, ms)
	g.host(raw, 3, e)
	x := g.instantiate(raw, 0, 0)
	for _, n := range []driver.GraphNode{first, e, 1} {
		g.want("disable", g.GraphNodeSetEnabled(g.ctx, x, n, false), driver.ErrorInvalidValue)
		_, r := g.GraphNodeGetEnabled(g.ctx, x, n)
		g.want("enabled", r, driver.ErrorInvalidValue)
	}
	for _, n := range []driver.GraphNode{k, ms} {
		if on, r := g.GraphNodeGetEnabled(g.ctx, x, n); !on || r != 0 {
			t.Errorf("node %d: enabled %v, %d", n, on, r)
		}
		g.want("disable", g.GraphNodeSetEnabled(g.ctx, x, n, false), 0)
		if on, r := g.GraphNodeGetEnabled(g.ctx, x, n); on || r != 0 {
			t.Errorf("node %d: enabled %v, %d", n, on, r)
		}
	}
	g.run(x)
	g.expect("disabled", 1, 3)
	if got := g.memory(p, 1); got[0] != 0 {
		t.Errorf("a disabled memset has set %d", got[0])
	}
	g.want("enable", g.GraphNodeSetEnabled(g.ctx, x, k, true), 0)
	g.run(x)
	g.expect("enabled", 1, 2, 3)
}

// An update that does not fit changes nothing and says why.
func TestGraphExecUpdate(t *testing.T) {
	g := newGraphRig(t)
	p, q := g.alloc(64), g.alloc(64)
	memset := func(dst driver.DevicePtr, height uintptr) *driver.NodeParams {
		return &driver.NodeParams{Type: driver.NodeMemset, Memset: &driver.Memset{Dst: dst, ElementSize: 1, Width: 1, Height: height, Pitch: 8}}
	}
	// build makes the graph that the executable is made of, or one that differs in something.
	build := func(data uint64, change func(raw driver.Graph, a, b, c driver.GraphNode)) driver.Graph {
		child := g.graph()
		g.host(child, data)
		raw := g.graph()
		a := g.host(raw, data+1)
		b := g.add(raw, memset(p, 1), a)
		c := g.add(raw, &driver.NodeParams{Type: driver.NodeGraph, Child: child}, a, b)
		if change != nil {
			change(raw, a, b, c)
		}
		return raw
	}
	x := g.instantiate(build(10, nil), 0, 0)
	for what, c := range map[string]struct {
		want   int32
		node   int // of the graph's, from 1: the one at fault
		from   int
		change func(raw driver.Graph, a, b, c driver.GraphNode)
	}{
		"one more node": {driver.UpdateTopologyChanged, 0, 0, func(raw driver.Graph, _, _, _ driver.GraphNode) { g.add(raw, emptyNode) }},
		"two ends": {driver.UpdateTopologyChanged, 2, 0, func(raw driver.Graph, _, b, c driver.GraphNode) {
			g.GraphRemoveDependencies(g.ctx, raw, []driver.GraphNode{b}, []driver.GraphNode{c}, nil)
		}},
		"an edge less": {driver.UpdateTopologyChanged, 3, 0, func(raw driver.Graph, a, _, c driver.GraphNode) {
			g.GraphRemoveDependencies(g.ctx, raw, []driver.GraphNode{a}, []driver.GraphNode{c}, nil)
		}},
		"edges in another order": {driver.UpdateTopologyChanged, 1, 0, func(raw driver.Graph, a, _, c driver.GraphNode) {
			from, to := []driver.GraphNode{a}, []driver.GraphNode{c}
			g.GraphRemoveDependencies(g.ctx, raw, from, to, nil)
			g.GraphAddDependencies(g.ctx, raw, from, to, nil)
		}},
		"another type": {driver.UpdateNodeTypeChanged, 3, 0, func(raw driver.Graph, a, b, c driver.GraphNode) {
			g.GraphDestroyNode(g.ctx, c)
			g.add(raw, emptyNode, a, b)
		}},
		"rows instead of one": {driver.UpdateParametersChanged, 2, 0, func(_ driver.Graph, _, b, _ driver.GraphNode) {
			g.want("set", g.GraphNodeSetParams(g.ctx, b, memset(p, 2)), 0)
		}},
		"a node more in the child": {driver.UpdateTopologyChanged, 0, 0, func(_ driver.Graph, _, _, c driver.GraphNode) {
			child, _ := g.GraphChildGraphNodeGetGraph(g.ctx, c)
			g.add(child, emptyNode)
		}},
	} {
		raw := build(20, c.change)
		var u driver.ExecUpdate
		g.want(what, g.GraphExecUpdate(g.ctx, x, raw, &u), driver.ErrorGraphExecUpdateFailure)
		nodes := append([]driver.GraphNode{0}, g.nodesOf(raw)...)
		if u.Result != c.want || u.ErrorNode != nodes[c.node] || u.ErrorFrom != nodes[c.from] {
			t.Errorf("%s: result %d, node %d, from %d of %v", what, u.Result, u.ErrorNode, u.ErrorFrom, nodes)
		}
		g.run(x)
		g.expect(what, 11, 10)
	}
	u := driver.ExecUpdate{Result: 9}
	_, release := g.gate(7)
	g.want("hold", g.LaunchHostFunc(g.ctx, g.a, 7), 0)
	g.want("launch", g.GraphLaunch(g.ctx, x, g.a), 0)
	g.want("update", g.GraphExecUpdate(g.ctx, x, build(30, func(_ driver.Graph, _, b, _ driver.GraphNode) {
		g.want("set", g.GraphNodeSetParams(g.ctx, b, memset(q, 1)), 0)
	}), &u), 0)
	if u != (driver.ExecUpdate{}) {
		t.Errorf("%+v", u)
	}
	close(release)
	g.run(x)
	g.expect("the queued launch, and the next", 7, 11, 10, 31, 30)
	g.want("no executable", g.GraphExecUpdate(g.ctx, 1, g.graph(), &u), driver.ErrorInvalidValue)
	g.want("no graph", g.GraphExecUpdate(g.ctx, x, 1, &u), driver.ErrorInvalidValue)
	g.want("empty", g.GraphExecUpdate(g.ctx, g.instantiate(g.graph(), 0, 0), g.graph(), &u), 0)
}

// Nodes are paired by order, so a dependency that leads to a node paired otherwise is at fault.
func TestGraphExecUpdateMismatch(t *testing.T) {
	g := newGraphRig(t)
	build := func(crossed bool) driver.Graph {
		raw := g.graph()
		a, b := g.host(raw, 1), g.host(raw, 2)
		c, d := g.host(raw, 3, a), g.host(raw, 4, a)
		second := a
		if crossed {
			second = b
		}
		g.host(raw, 5, c, d, b)
		g.want("remove", g.GraphRemoveDependencies(g.ctx, raw, []driver.GraphNode{a}, []driver.GraphNode{d}, nil), 0)
		g.want("add", g.GraphAddDependencies(g.ctx, raw, []driver.GraphNode{second}, []driver.GraphNode{d}, nil), 0)
		return raw
	}
	x, other := g.instantiate(build(false), 0, 0), build(true)
	var u driver.ExecUpdate
	g.want("update", g.GraphExecUpdate(g.ctx, x, other, &u), driver.ErrorGraphExecUpdateFailure)
	if nodes := g.nodesOf(other); u.Result != driver.UpdateTopologyChanged || u.ErrorNode == 0 || u.ErrorFrom == 0 {
		t.Errorf("%+v of %v", u, nodes)
	}
}

// A child graph node of an executable takes the parameters of another graph of the same shape; its nodes are found through the
// child graph.
func TestGraphExecSetChild(t *testing.T) {
	g := newGraphRig(t)
	child, wrong, right, raw := g.graph(), g.graph(), g.graph(), g.graph()
	g.host(child, 1)
	g.host(right, 2)
	g.add(wrong, emptyNode)
	n := g.add(raw, &driver.NodeParams{Type: driver.NodeGraph, Child: child})
	x := g.instantiate(raw, 0, 0)
	set := func(from driver.Graph) driver.Result {
		return g.GraphExecNodeSetParams(g.ctx, x, n, &driver.NodeParams{Type: driver.NodeGraph, Child: from})
	}
	g.want("no graph", set(0), driver.ErrorInvalidValue)
	g.want("another shape", set(wrong), driver.ErrorInvalidValue)
	g.run(x)
	g.want("the same shape", set(right), 0)
	g.run(x)
	embedded, _ := g.GraphChildGraphNodeGetGraph(g.ctx, n)
	g.want("a node in it", g.GraphExecNodeSetParams(g.ctx, x, g.nodesOf(embedded)[0], hostNode(3)), 0)
	g.run(x)
	g.expect("launches", 1, 2, 3)
	g.want("in the graph itself", g.GraphNodeSetParams(g.ctx, n, &driver.NodeParams{Type: driver.NodeGraph, Child: right}), driver.Success)
	g.want("itself", g.GraphNodeSetParams(g.ctx, n, &driver.NodeParams{Type: driver.NodeGraph, Child: raw}), driver.ErrorInvalidValue)
}
