package softcuda

import (
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

func allocNode(n uintptr) *driver.NodeParams {
	return &driver.NodeParams{Type: driver.NodeMemAlloc, Alloc: &driver.MemAllocate{Size: n}}
}

func freeNode(p driver.DevicePtr) *driver.NodeParams {
	return &driver.NodeParams{Type: driver.NodeMemFree, Free: p}
}

// fillNode sets n bytes at p.
func fillNode(p driver.DevicePtr, n uintptr, value uint32) *driver.NodeParams {
	return &driver.NodeParams{Type: driver.NodeMemset, Memset: &driver.Memset{Dst: p, ElementSize: 1, Width: n, Height: 1, Value: value}}
}

// Memory that a graph allocates and the program frees: what an H200 answers (facts I).
func TestGraphMemoryFreedByTheProgram(t *testing.T) {
	g := newGraphRig(t)
	raw, alloc := g.graph(), allocNode(1<<16)
	a := g.add(raw, alloc)
	p := alloc.Alloc.Address
	g.add(raw, fillNode(p, 1<<16, 7), a)
	_, r := g.GraphClone(g.ctx, raw)
	g.want("clone", r, driver.ErrorNotSupported)
	g.refused("child", driver.ErrorNotSupported, g.graph(), &driver.NodeParams{Type: driver.NodeGraph, Child: raw})
	g.want("destroy node", g.GraphDestroyNode(g.ctx, a), driver.ErrorNotSupported)
	from, to := pairs(g.nodesOf(raw)...)
	g.want("remove edge", g.GraphRemoveDependencies(g.ctx, raw, from, to, nil), driver.ErrorNotSupported)
	g.want("free before a launch", g.MemFree(g.ctx, p), driver.ErrorInvalidValue)

	x := g.instantiate(raw, 0, 0)
	g.instantiate(raw, 0, driver.ErrorNotSupported)
	for range 2 {
		g.run(x)
		if got := g.memory(p, 1<<16); got[0] != 7 || got[1<<16-1] != 7 {
			t.Errorf("memory holds %d ... %d", got[0], got[1<<16-1])
		}
		g.want("launch again", g.GraphLaunch(g.ctx, x, g.a), driver.ErrorInvalidValue)
		g.want("free", g.MemFree(g.ctx, p), 0)
		g.want("free again", g.MemFree(g.ctx, p), driver.ErrorInvalidValue)
		if _, r := g.span(p, 1); r == driver.Success {
			t.Error("the memory is still there")
		}
	}
	g.run(x)
	g.want("destroy", g.GraphExecDestroy(g.ctx, x), 0)
	g.want("free afterwards", g.MemFree(g.ctx, p), 0)

	x = g.instantiate(raw, driver.GraphAutoFreeOnLaunch, 0)
	for range 3 {
		g.run(x)
	}
	var u driver.ExecUpdate
	g.want("update", g.GraphExecUpdate(g.ctx, x, raw, &u), 0)
	another := g.graph()
	g.add(another, fillNode(p, 1<<16, 8), g.add(another, allocNode(1<<16)))
	g.want("update to other memory", g.GraphExecUpdate(g.ctx, x, another, &u), driver.ErrorGraphExecUpdateFailure)
	if u.Result != driver.UpdateParametersChanged {
		t.Errorf("result %d", u.Result)
	}
	g.want("destroy", g.GraphExecDestroy(g.ctx, x), 0)
	g.refused("free in the graph, too late", driver.ErrorInvalidValue, raw, freeNode(p), a)
	x = g.instantiate(raw, 0, 0)
	g.want("launch, while it is allocated", g.GraphLaunch(g.ctx, x, g.a), driver.ErrorInvalidValue)
	g.want("free", g.MemFree(g.ctx, p), 0)
	g.want("destroy", g.GraphExecDestroy(g.ctx, x), 0)
	g.want("destroy graph", g.GraphDestroy(g.ctx, raw), 0)
	for raw := range g.graphs {
		g.want("destroy", g.GraphDestroy(g.ctx, raw), 0)
	}
	g.empty()
	if used := g.devices[0].mem.used; used != 0 {
		t.Errorf("%d bytes are in use", used)
	}
}

// Memory that the same graph frees is nobody else's.
func TestGraphMemoryFreedByTheGraph(t *testing.T) {
	g := newGraphRig(t)
	raw, alloc := g.graph(), allocNode(1<<16)
	a := g.add(raw, alloc)
	p := alloc.Alloc.Address
	f := g.add(raw, freeNode(p), g.add(raw, fillNode(p, 1<<16, 7), a))
	g.refused("twice", driver.ErrorInvalidValue, raw, freeNode(p), a)
	g.refused("in another graph", driver.ErrorInvalidValue, g.graph(), freeNode(p))
	g.want("set", g.GraphNodeSetParams(g.ctx, f, freeNode(p)), driver.ErrorNotSupported)
	x := g.instantiate(raw, 0, 0)
	for range 10 {
		g.want("launch", g.GraphLaunch(g.ctx, x, g.a), 0)
	}
	g.want("free", g.MemFree(g.ctx, p), driver.ErrorInvalidValue)
	g.want("synchronise", g.StreamSynchronize(g.ctx, g.a), 0)
	if used := g.devices[0].mem.used; used != 0 {
		t.Errorf("%d bytes are in use", used)
	}
}

// Memory that another graph frees; and the launch that finds no room for its memory.
func TestGraphMemoryFreedByAnotherGraph(t *testing.T) {
	g := newGraphRig(t)
	raw, other, alloc := g.graph(), g.graph(), allocNode(1<<23)
	g.add(raw, alloc)
	p := alloc.Alloc.Address
	g.add(other, freeNode(p))
	g.refused("no address", driver.ErrorInvalidValue, other, freeNode(12345))
	g.refused("in the graph, too late", driver.ErrorInvalidValue, raw, freeNode(p))
	x, y := g.instantiate(raw, 0, 0), g.instantiate(other, 0, 0)
	g.instantiate(other, 0, driver.ErrorNotSupported)
	g.want("free nothing", g.GraphLaunch(g.ctx, y, g.a), driver.ErrorInvalidValue)
	for range 3 {
		g.want("allocate", g.GraphLaunch(g.ctx, x, g.a), 0)
		g.want("free", g.GraphLaunch(g.ctx, y, g.a), 0)
	}
	g.want("synchronise", g.StreamSynchronize(g.ctx, g.a), 0)
	full := g.alloc(1<<23 + 1)
	g.want("launch without room", g.GraphLaunch(g.ctx, x, g.a), driver.ErrorOutOfMemory)
	g.want("free", g.MemFree(g.ctx, full), 0)
	g.run(x)

	child, parent := g.graph(), g.graph()
	n := g.add(parent, &driver.NodeParams{Type: driver.NodeGraph, Child: child})
	embedded, _ := g.GraphChildGraphNodeGetGraph(g.ctx, n)
	g.refused("alloc in a child graph", driver.ErrorNotSupported, embedded, allocNode(8))
	g.refused("free in a child graph", driver.ErrorNotSupported, embedded, freeNode(p))
}

// Memory that a graph allocates is device memory to the checker too: what a copy reads there is not watched for the program's writes.
func TestGraphMemoryIsNotWatched(t *testing.T) {
	m, ctx, s := seam(t, Options{Check: new(Check), Seed: 1})
	raw, r := m.GraphCreate(ctx, 0)
	want(t, "graph", r, driver.Success)
	alloc := driver.MemAllocate{Size: 64}
	_, r = m.GraphAddNode(ctx, raw, nil, nil, &driver.NodeParams{Type: driver.NodeMemAlloc, Alloc: &alloc})
	want(t, "node", r, driver.Success)
	x, r := m.GraphInstantiateWithParams(ctx, raw, new(driver.Instantiation))
	want(t, "instantiate", r, driver.Success)
	p, r := m.MemAlloc(ctx, 64)
	want(t, "alloc", r, driver.Success)
	h, r := m.MemHostAlloc(ctx, 64, 0)
	want(t, "alloc", r, driver.Success)
	want(t, "launch", m.GraphLaunch(ctx, x, s), driver.Success)
	want(t, "copy", m.MemcpyDtoDAsync(ctx, p, alloc.Address, 64, s), driver.Success)
	if n := m.checker.watches.n; n != 0 {
		t.Errorf("%d watches of device memory", n)
	}
	want(t, "copy", m.MemcpyDtoDAsync(ctx, p, driver.DevicePtr(uintptr(h)), 64, s), driver.Success)
	if n := m.checker.watches.n; n != 1 {
		t.Errorf("%d watches of pinned memory, want 1", n)
	}
	want(t, "sync", m.CtxSynchronize(ctx), driver.Success)
	m.Shut()
}
