package softcuda

import (
	"runtime"
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

// conditional adds a conditional node with a new handle.
func (g *graphRig) conditional(raw driver.Graph, kind int32, size int, value, flags uint32, deps ...driver.GraphNode) (n driver.GraphNode, h driver.ConditionalHandle, bodies []driver.Graph) {
	g.t.Helper()
	h, r := g.GraphConditionalHandleCreate(g.ctx, raw, value, flags)
	g.want("handle", r, 0)
	c := driver.Conditional{Handle: h, Kind: kind, Size: size}
	n = g.add(raw, &driver.NodeParams{Type: driver.NodeConditional, Cond: &c}, deps...)
	if len(c.Bodies) != size {
		g.t.Fatalf("%d bodies, want %d", len(c.Bodies), size)
	}
	return n, h, c.Bodies
}

func (g *graphRig) setcond(h driver.ConditionalHandle, v uint32) *driver.NodeParams {
	return g.kernelNode("setcond", uint64(h), v)
}

// Which body runs, by kind and value: set by a kernel before the node, or by default. The node's dependents run behind it.
func TestConditionalPicksABody(t *testing.T) {
	g := newGraphRig(t)
	const none = 99
	for _, c := range []struct {
		kind        int32
		size        int
		value, body uint32
	}{
		{driver.CondIf, 1, 0, none}, {driver.CondIf, 1, 1, 0}, {driver.CondIf, 1, 7, 0},
		{driver.CondIf, 2, 0, 1}, {driver.CondIf, 2, 1, 0},
		{driver.CondSwitch, 3, 0, 0}, {driver.CondSwitch, 3, 1, 1}, {driver.CondSwitch, 3, 2, 2}, {driver.CondSwitch, 3, 3, none}, {driver.CondSwitch, 3, 1<<32 - 1, none},
		{driver.CondWhile, 1, 0, none},
	} {
		for _, byKernel := range []bool{false, true} {
			raw := g.graph()
			value, flags := c.value, driver.CondAssignDefault
			if byKernel {
				value, flags = 50, 0
			}
			n, h, bodies := g.conditional(raw, c.kind, c.size, value, flags)
			for i, body := range bodies {
				g.add(body, g.kernelNode("note", uint64(10+i)))
			}
			if byKernel {
				set := g.add(raw, g.setcond(h, c.value))
				g.want("add", g.GraphAddDependencies(g.ctx, raw, []driver.GraphNode{set}, []driver.GraphNode{n}, nil), 0)
			}
			g.host(raw, 1, n)
			x := g.instantiate(raw, 0, 0)
			for range 2 {
				g.run(x)
				want := []uint64{uint64(10 + c.body), 1}
				if c.body == none {
					want = want[1:]
				}
				g.expect("launch", want...)
			}
			g.want("destroy", g.GraphExecDestroy(g.ctx, x), 0)
			g.want("destroy", g.GraphDestroy(g.ctx, raw), 0)
		}
	}
	g.empty()
}

// A loop asks anew after each run of its body; however long it is, it takes no more memory. The value is set anew by each launch.
func TestConditionalLoops(t *testing.T) {
	g := newGraphRig(t)
	const rounds = 20000
	raw, n := g.graph(), g.alloc(8)
	set := g.add(raw, &driver.NodeParams{Type: driver.NodeMemset, Memset: &driver.Memset{Dst: n, ElementSize: 4, Width: 1, Height: 1, Value: rounds}})
	loop, h, bodies := g.conditional(raw, driver.CondWhile, 1, 1, driver.CondAssignDefault, set)
	k := g.add(bodies[0], g.kernelNode("countdown", uint64(h), uint64(n)))
	g.add(bodies[0], fillNode(n+4, 1, 1), k)
	g.host(raw, 1, loop)
	x := g.instantiate(raw, 0, 0)
	heap := func() int64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	before := heap()
	for range 2 {
		g.run(x)
		g.expect("launch", 1)
		if got := g.memory(n, 4); got[0]|got[1]|got[2]|got[3] != 0 {
			t.Errorf("left to count: %v", got)
		}
	}
	if more := heap() - before; more > rounds*8 {
		t.Errorf("%d bytes more after %d rounds", more, 2*rounds)
	}
}

// Conditionals in bodies, with handles of their own graph or of one above; in a child graph in a body; filled by capture.
func TestConditionalNested(t *testing.T) {
	g := newGraphRig(t)
	raw, n := g.graph(), g.alloc(4)
	set := g.add(raw, &driver.NodeParams{Type: driver.NodeMemset, Memset: &driver.Memset{Dst: n, ElementSize: 4, Width: 1, Height: 1, Value: 3}})
	loop, h, bodies := g.conditional(raw, driver.CondWhile, 1, 1, driver.CondAssignDefault, set)
	body := bodies[0]
	above, r := g.GraphConditionalHandleCreate(g.ctx, raw, 0, 0)
	g.want("handle", r, 0)
	pick := driver.Conditional{Handle: above, Kind: driver.CondSwitch, Size: 2}
	choose := g.add(body, g.setcond(above, 1))
	inner := g.add(body, &driver.NodeParams{Type: driver.NodeConditional, Cond: &pick}, choose)
	g.add(pick.Bodies[0], g.kernelNode("note", uint64(1)))
	child := g.graph()
	first := g.add(child, g.kernelNode("note", uint64(2)))
	g.add(child, g.kernelNode("note", uint64(3)), first)
	g.add(pick.Bodies[1], &driver.NodeParams{Type: driver.NodeGraph, Child: child})

	g.want("begin", g.StreamBeginCaptureToGraph(g.ctx, g.a, body, []driver.GraphNode{inner}, nil, driver.CaptureRelaxed), 0)
	_, r = g.GraphInstantiateWithParams(g.ctx, raw, &driver.Instantiation{})
	g.want("instantiate while captured into", r, driver.ErrorIllegalState)
	g.want("destroy while captured into", g.GraphDestroy(g.ctx, raw), driver.ErrorIllegalState)
	p := g.kernelNode("countdown", uint64(h), uint64(n))
	_, r = g.LaunchKernel(g.ctx, p.Func, p.Launch, g.a)
	g.want("capture", r, 0)
	g.want("capture", g.MemsetD8Async(g.ctx, g.alloc(4), 1, 4, g.b), 0)
	g.end(g.a, 0)
	g.host(raw, 4, loop)
	x := g.instantiate(raw, 0, 0)
	g.run(x)
	g.expect("three rounds", 2, 3, 2, 3, 2, 3, 4)
	g.want("destroy a body", g.GraphDestroy(g.ctx, body), driver.ErrorInvalidValue)
	g.instantiate(body, 0, driver.ErrorInvalidValue)
}

func TestConditionalRefused(t *testing.T) {
	g := newGraphRig(t)
	raw, other := g.graph(), g.graph()
	handle := func(of driver.Graph) driver.ConditionalHandle {
		t.Helper()
		h, r := g.GraphConditionalHandleCreate(g.ctx, of, 0, 0)
		g.want("handle", r, 0)
		return h
	}
	_, r := g.GraphConditionalHandleCreate(g.ctx, 1, 0, 0)
	g.want("handle of no graph", r, driver.ErrorInvalidValue)
	_, r = g.GraphConditionalHandleCreate(g.ctx, raw, 0, 2)
	g.want("unknown flag", r, driver.ErrorInvalidValue)

	h := handle(raw)
	i := driver.Instantiation{}
	_, r = g.GraphInstantiateWithParams(g.ctx, raw, &i)
	g.want("instantiate with an unused handle", r, driver.ErrorInvalidValue)
	if i.Result != driver.InstantiateConditionalUnused {
		t.Errorf("result %d", i.Result)
	}
	for what, c := range map[string]*driver.Conditional{
		"nothing":        nil,
		"no handle":      {Kind: driver.CondIf, Size: 1},
		"if of none":     {Handle: h, Kind: driver.CondIf},
		"if of 3":        {Handle: h, Kind: driver.CondIf, Size: 3},
		"while of 2":     {Handle: h, Kind: driver.CondWhile, Size: 2},
		"switch of none": {Handle: h, Kind: driver.CondSwitch},
		"unknown kind":   {Handle: h, Kind: 3, Size: 1},
		"another's":      {Handle: handle(other), Kind: driver.CondIf, Size: 1},
	} {
		g.refused(what, driver.ErrorInvalidValue, raw, &driver.NodeParams{Type: driver.NodeConditional, Cond: c})
	}
	cond := driver.Conditional{Handle: h, Kind: driver.CondIf, Size: 1}
	n := g.add(raw, &driver.NodeParams{Type: driver.NodeConditional, Cond: &cond})
	g.refused("a used handle", driver.ErrorInvalidValue, raw, &driver.NodeParams{Type: driver.NodeConditional, Cond: &cond})
	_, r = g.GraphClone(g.ctx, raw)
	g.want("clone", r, driver.ErrorNotSupported)
	g.refused("child", driver.ErrorNotSupported, g.graph(), &driver.NodeParams{Type: driver.NodeGraph, Child: raw})
	g.want("set", g.GraphNodeSetParams(g.ctx, n, &driver.NodeParams{Type: driver.NodeConditional, Cond: &cond}), driver.ErrorNotSupported)
	x := g.instantiate(raw, 0, 0)
	var u driver.ExecUpdate
	g.want("update", g.GraphExecUpdate(g.ctx, x, raw, &u), driver.ErrorNotSupported)
	g.want("update", g.GraphExecUpdate(g.ctx, g.instantiate(g.graph(), 0, 0), raw, &u), driver.ErrorNotSupported)
	g.want("update from a plain graph", g.GraphExecUpdate(g.ctx, x, g.graph(), &u), driver.ErrorNotSupported)
	if u.Result != driver.UpdateNotSupported {
		t.Errorf("result %d", u.Result)
	}
	g.want("disable", g.GraphNodeSetEnabled(g.ctx, x, n, false), driver.ErrorInvalidValue)
	child := g.graph()
	g.host(child, 1)
	for what, p := range map[string]*driver.NodeParams{
		"host":            hostNode(1),
		"event record":    {Type: driver.NodeEventRecord, Event: g.e},
		"event wait":      {Type: driver.NodeWaitEvent, Event: g.e},
		"batch":           {Type: driver.NodeBatchMemOp, Ops: []driver.MemOp{{Op: driver.MemOpBarrier}}},
		"host in a child": {Type: driver.NodeGraph, Child: child},
	} {
		bad := g.add(cond.Bodies[0], p)
		_, r := g.GraphInstantiateWithParams(g.ctx, raw, &i)
		g.want(what+" in a body", r, driver.ErrorInvalidValue)
		if i.Result != 0 || i.ErrorNode != 0 {
			t.Errorf("%s in a body: result %d, node %d", what, i.Result, i.ErrorNode)
		}
		g.want("destroy", g.GraphDestroyNode(g.ctx, bad), 0)
	}
	g.instantiate(raw, 0, 0)
	g.add(cond.Bodies[0], allocNode(8))
	g.instantiate(raw, 0, driver.ErrorInvalidValue)
}

// A launch in flight keeps the parameters of what is in a body too, also if it reaches the body later.
func TestConditionalKeepsParameters(t *testing.T) {
	g := newGraphRig(t)
	raw := g.graph()
	_, _, bodies := g.conditional(raw, driver.CondIf, 1, 1, driver.CondAssignDefault)
	k := g.add(bodies[0], g.kernelNode("note", uint64(1)))
	x := g.instantiate(raw, 0, 0)
	_, release := g.gate(7)
	g.want("hold", g.LaunchHostFunc(g.ctx, g.a, 7), 0)
	for i := range uint64(3) {
		g.want("launch", g.GraphLaunch(g.ctx, x, g.a), 0)
		g.want("set", g.GraphExecNodeSetParams(g.ctx, x, k, g.kernelNode("note", 2+i)), 0)
	}
	g.want("destroy", g.GraphExecDestroy(g.ctx, x), 0)
	close(release)
	g.want("synchronise", g.StreamSynchronize(g.ctx, g.a), 0)
	g.expect("launches", 7, 1, 2, 3)
}

// A loop that never ends keeps nobody from the driver, and goes with its context.
func TestConditionalEndlessLoop(t *testing.T) {
	g := newGraphRig(t)
	raw := g.graph()
	n, _, _ := g.conditional(raw, driver.CondWhile, 1, 1, driver.CondAssignDefault)
	g.host(raw, 1, n)
	g.own(raw, owned)
	x := g.instantiate(raw, 0, 0)
	g.want("launch", g.GraphLaunch(g.ctx, x, g.a), 0)
	g.want("query", g.StreamQuery(g.ctx, g.a), driver.ErrorNotReady)
	p := g.kernelNode("fault")
	g.LaunchKernel(g.ctx, p.Func, p.Launch, g.b)
	g.want("synchronise", g.StreamSynchronize(g.ctx, g.a), driver.ErrorLaunchFailed)
	g.want("destroy", g.GraphExecDestroy(g.ctx, x), 0)
	g.want("destroy", g.GraphDestroy(g.ctx, raw), 0)
	g.expect("all", owned)
}

// A value given without the flag that assigns it is no value: the first launch finds 0, later ones what the former one left.
func TestConditionalWithoutDefault(t *testing.T) {
	g := newGraphRig(t)
	raw := g.graph()
	n, h, bodies := g.conditional(raw, driver.CondIf, 1, 1, 0)
	g.add(bodies[0], g.kernelNode("note", uint64(1)))
	g.add(raw, g.setcond(h, 1), n)
	x := g.instantiate(raw, 0, 0)
	g.run(x)
	g.expect("first")
	g.run(x)
	g.expect("second", 1)
}

// A context may be lost while a body of any kind runs.
func TestConditionalLostInABody(t *testing.T) {
	for range 20 {
		for kind, value := range map[int32]uint32{driver.CondIf: 1, driver.CondWhile: 1, driver.CondSwitch: 0} {
			g := newGraphRig(t)
			raw := g.graph()
			n, _, bodies := g.conditional(raw, kind, 1, value, driver.CondAssignDefault)
			g.add(bodies[0], g.kernelNode("fault"))
			g.host(raw, 1, n)
			g.own(raw, owned)
			x := g.instantiate(raw, 0, 0)
			g.want("destroy", g.GraphDestroy(g.ctx, raw), 0)
			g.want("launch", g.GraphLaunch(g.ctx, x, g.a), 0)
			g.want("synchronise", g.StreamSynchronize(g.ctx, g.a), driver.ErrorLaunchFailed)
			g.want("destroy", g.GraphExecDestroy(g.ctx, x), 0)
			g.expect("only the object", owned)
		}
	}
}

// A kernel that sets a value outside of the graph that the handle is of loses the device.
func TestConditionalSetFromOutside(t *testing.T) {
	g := newGraphRig(t)
	_, h, _ := g.conditional(g.graph(), driver.CondIf, 1, 1, 0)
	p := g.setcond(h, 1)
	_, r := g.LaunchKernel(g.ctx, p.Func, p.Launch, g.a)
	g.want("launch", r, 0)
	g.want("synchronise", g.StreamSynchronize(g.ctx, g.a), driver.ErrorLaunchFailed)
}

// On a device that tracks activity, a conditional counts as device work until the host has seen the launch, and not longer.
func TestConditionalActivity(t *testing.T) {
	m := newMachine(Options{NoConcurrentManagedAccess: true})
	m.Attach(driver.Upcalls{HostFunc: func(uint64) {}, Lost: func(driver.Context, driver.Result) {}, Log: func(string, ...any) {}})
	g := &graphRig{captureRig: &captureRig{machine: m, t: t}}
	t.Cleanup(m.Shut)
	g.ctx, _ = m.DevicePrimaryCtxRetain(0)
	g.a, _ = m.StreamCreateWithPriority(g.ctx, driver.StreamNonBlocking, 0)
	p, _ := m.MemAllocManaged(g.ctx, 8, driver.MemAttachGlobal)
	raw := g.graph()
	_, _, bodies := g.conditional(raw, driver.CondIf, 1, 1, driver.CondAssignDefault)
	g.add(bodies[0], fillNode(g.alloc(8), 8, 1))
	x := g.instantiate(raw, 0, 0)
	for range 3 {
		g.want("launch", g.GraphLaunch(g.ctx, x, g.a), 0)
		g.want("access", second(m.HostAccess(g.ctx, p)), driver.ErrorNotReady)
		g.want("synchronise", g.StreamSynchronize(g.ctx, g.a), 0)
		g.want("access", second(m.HostAccess(g.ctx, p)), 0)
	}
}
