//go:build linux && (amd64 || arm64)

package libcuda

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// nodeParamsCases has a node of every type, and what the driver must be given.
func nodeParamsCases() []struct {
	p    driver.NodeParams
	want string
} {
	source := unsafe.Pointer(unsafe.StringData("source\x00"))
	return []struct {
		p    driver.NodeParams
		want string
	}{
		{driver.NodeParams{Type: driver.NodeKernel, Func: 0xf1, Launch: &driver.Launch{
			Grid: [3]uint32{1, 2, 3}, Block: [3]uint32{4, 5, 6}, SharedMem: 7,
			Params: []byte{9, 0, 0, 0, 0, 0, 0, 1, 8, 0, 0, 0}, Offsets: []uint32{0, 8},
		}}, "kernel f=0xf1 grid=1 2 3 block=4 5 6 shared=7 params=72057594037927945, 8 extra=(nil)"},
		{driver.NodeParams{Type: driver.NodeKernel, Func: 0xf2, Launch: &driver.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}},
			"kernel f=0xf2 grid=1 1 1 block=1 1 1 shared=0 params=none extra=(nil)"},
		{driver.NodeParams{Type: driver.NodeMemcpy, Copy: &driver.Memcpy3D{
			SrcX: 1, SrcY: 2, SrcZ: 3, SrcLOD: 4, SrcType: driver.MemoryHost, SrcHost: source, SrcDevice: ptr, SrcPitch: 5, SrcHeight: 6,
			DstX: 7, DstY: 8, DstZ: 9, DstLOD: 10, DstType: driver.MemoryDevice, DstDevice: ptr + 1, DstPitch: 11, DstHeight: 12,
			Width: 13, Height: 14, Depth: 15,
		}}, "memcpy ctx=0xc1 src=1 2 3 4 type=1 host=\"source\" device=0xd00000002000 pitch=5 height=6 " +
			"dst=7 8 9 10 type=2 host=(nil) device=0xd00000002001 pitch=11 height=12 size=13 14 15"},
		{driver.NodeParams{Type: driver.NodeMemset, Memset: &driver.Memset{Dst: ptr, Pitch: 64, Value: 1<<32 - 1, ElementSize: 4, Width: 16, Height: 2}},
			"memset ctx=0xc1 dst=0xd00000002000 pitch=64 value=4294967295 element=4 size=16 2"},
		{driver.NodeParams{Type: driver.NodeHost, Data: 0x123456789abcd, Mode: 1}, "host data=0x123456789abcd mode=1"},
		{driver.NodeParams{Type: driver.NodeGraph, Child: 0x62}, "child graph=0x62"},
		{driver.NodeParams{Type: driver.NodeEmpty}, "empty"},
		{driver.NodeParams{Type: driver.NodeEventRecord, Event: event}, "record event=0xe5"},
		{driver.NodeParams{Type: driver.NodeWaitEvent, Event: event}, "wait event=0xe5"},
		{driver.NodeParams{Type: driver.NodeMemAlloc, Alloc: &driver.MemAllocate{Size: 1 << 33}}, "alloc type=1 location=1 1 size=8589934592"},
		{driver.NodeParams{Type: driver.NodeMemFree, Free: ptr}, "free dptr=0xd00000002000"},
		{driver.NodeParams{Type: driver.NodeBatchMemOp, Ops: []driver.MemOp{
			{Op: driver.MemOpWrite32, Address: ptr, Value: 7}, {Op: driver.MemOpBarrier, Plain: 1},
		}}, "batch ctx=0xc1 n=2 op=2 0xd00000002000 value=7 flags=0 op=6 flags=1"},
		{driver.NodeParams{Type: driver.NodeConditional, Cond: &driver.Conditional{Handle: 1<<63 | 5, Kind: driver.CondSwitch, Size: 3}},
			"conditional handle=0x8000000000000005 type=2 size=3 ctx=0xc1"},
	}
}

// nodeMethodCases are the cases of nodes.
func nodeMethodCases() (cases []methodCase) {
	deps, edges := []driver.GraphNode{0x71, 0x72}, []driver.EdgeData{{}, {FromPort: 1, ToPort: 2, Type: 3}}
	const c = driver.Context(0xc1)
	for _, n := range nodeParamsCases() {
		device, calls := "", "cuGraphAddNode(graph=0x61, deps=2 0x71 0x72 0/0/0 1/2/3, "+n.want+") in 0xc1"
		if n.p.Type == driver.NodeMemAlloc {
			device = "cuCtxGetDevice() in 0xc1\n"
		}
		cases = append(cases, methodCase{"GraphAddNode",
			func(d driver.Driver) any { return list(d.GraphAddNode(c, 0x61, deps, edges, &n.p)) }, device + calls, "117 0"},
			methodCase{"GraphNodeSetParams", func(d driver.Driver) any { return d.GraphNodeSetParams(c, 0x71, &n.p) },
				device + "cuGraphNodeSetParams(node=0x71, " + n.want + ") in 0xc1", "0"})
	}
	return append(cases,
		methodCase{"GraphAddNode", func(d driver.Driver) any {
			p := &driver.NodeParams{Type: driver.NodeMemAlloc, Alloc: &driver.MemAllocate{Size: 8}}
			n, r := d.GraphAddNode(c, 0x61, nil, nil, p)
			return list(n, r, fmt.Sprintf("%#x", p.Alloc.Address))
		}, "cuCtxGetDevice() in 0xc1\ncuGraphAddNode(graph=0x61, deps=0, alloc type=1 location=1 1 size=8) in 0xc1", "117 0 0x302000000"},
		methodCase{"GraphAddNode", func(d driver.Driver) any {
			p := &driver.NodeParams{Type: driver.NodeConditional, Cond: &driver.Conditional{Handle: 1, Kind: driver.CondIf, Size: 2}}
			n, r := d.GraphAddNode(c, 0x61, nil, nil, p)
			return list(n, r, p.Cond.Bodies)
		}, "cuGraphAddNode(graph=0x61, deps=0, conditional handle=0x1 type=0 size=2 ctx=0xc1) in 0xc1", "117 0 [99 100]"},
		methodCase{"GraphAddNode", func(d driver.Driver) any {
			p := &driver.NodeParams{Type: driver.NodeConditional, Cond: &driver.Conditional{Size: 2}}
			n, r := d.GraphAddNode(c, 0x60, nil, nil, p)
			return list(n, r, p.Cond.Bodies)
		}, "cuGraphAddNode(graph=0x60, deps=0, conditional handle=0 type=0 size=2 ctx=0xc1) in 0xc1", "0 1 []"},
		methodCase{"GraphAddNode", func(d driver.Driver) any {
			bad := &driver.Launch{Params: make([]byte, 4), Offsets: []uint32{0, 4}}
			return list(d.GraphAddNode(c, 0x61, nil, nil, &driver.NodeParams{Type: driver.NodeKernel, Launch: bad}))
		}, "", "0 1"},
		methodCase{"GraphHostNodeGetParams", func(d driver.Driver) any {
			d.GraphAddNode(c, 0x61, nil, nil, &driver.NodeParams{Type: driver.NodeHost, Data: 1<<56 - 1})
			return list(d.GraphHostNodeGetParams(c, 0x75))
		}, "cuGraphAddNode(graph=0x61, deps=0, host data=0xffffffffffffff mode=0) in 0xc1\ncuGraphHostNodeGetParams(node=0x75) in 0xc1",
			"72057594037927935 0"},
		methodCase{"GraphHostNodeGetParams", func(d driver.Driver) any { return list(d.GraphHostNodeGetParams(c, 0x76)) },
			"cuGraphHostNodeGetParams(node=0x76) in 0xc1", "0 0"}, // a function of somebody else's
		methodCase{"GraphHostNodeGetParams", func(d driver.Driver) any { return list(d.GraphHostNodeGetParams(c, 0x77)) },
			"cuGraphHostNodeGetParams(node=0x77) in 0xc1", "0 0"}, // another driver's
		methodCase{"GraphHostNodeGetParams", func(d driver.Driver) any { return list(d.GraphHostNodeGetParams(c, 0x78)) },
			"cuGraphHostNodeGetParams(node=0x78) in 0xc1", "0 1"}) // no host node
}

// A host node's function is this driver's: a launch calls it with the data. Where the driver has sync modes, it has one.
func TestHostNode(t *testing.T) {
	old := newFake(t)
	old.set(knobVersion, 13010)
	older := old.open(driver.Upcalls{})
	old.log()
	older.GraphAddNode(ctx, 0x61, nil, nil, &driver.NodeParams{Type: driver.NodeHost, Data: 5, Mode: 1})
	if got := old.log()[0]; !strings.Contains(got, "host data=0x5 mode=0)") {
		t.Errorf("before CUDA 13.2 called %s", got)
	}
	f := newFake(t)
	f.set(knobVersion, 13020)
	ran := make(chan uint64, 1)
	nv := f.open(driver.Upcalls{HostFunc: func(data uint64) { ran <- data }, Pending: func(driver.Context) int { return 0 }})
	f.log()
	nv.GraphAddNode(ctx, 0x61, nil, nil, &driver.NodeParams{Type: driver.NodeHost, Data: 0x123456789, Mode: 1})
	if got := f.log()[0]; !strings.Contains(got, "host data=0x123456789 mode=1)") {
		t.Errorf("called %s", got)
	}
	if r := nv.GraphLaunch(ctx, 0x82, stream); r != driver.Success {
		t.Fatal(r)
	}
	select {
	case data := <-ran:
		if data != 0x123456789 {
			t.Errorf("called with %#x", data)
		}
	case <-time.After(10 * time.Second):
		t.Error("not called")
	}
}

// What a node's parameters point to is Go memory, which the collector must leave alone; and a node leaves nothing behind in
// the parameters of the next.
func TestNodeParamsUnderGC(t *testing.T) {
	f := newFake(t)
	f.set(knobVersion, 13020)
	nv := f.open(driver.Upcalls{})
	for range 50 {
		f.log()
		for _, n := range nodeParamsCases() {
			runtime.GC()
			nv.GraphAddNode(0xc1, 0x61, []driver.GraphNode{0x71}, nil, &n.p)
			if log := f.log(); !strings.Contains(log[len(log)-1], "deps=1 0x71, "+n.want+")") {
				t.Fatalf("called %s, want %s", log, n.want)
			}
		}
	}
}

// Graphs are built of many nodes: adding one allocates nothing.
func TestAddingNodesDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool drop some of what it is given")
	}
	f := newFake(t)
	nv := f.open(driver.Upcalls{})
	deps, edges := []driver.GraphNode{0x71}, make([]driver.EdgeData, 1)
	for _, n := range nodeParamsCases() {
		if n.p.Type == driver.NodeConditional { // whose bodies are read
			continue
		}
		allocs := testing.AllocsPerRun(100, func() { nv.GraphAddNode(ctx, 0x61, deps, edges, &n.p) })
		if allocs != 0 {
			t.Errorf("type %d: %v allocations", n.p.Type, allocs)
		}
	}
	for name, call := range map[string]func(){
		"edge":   func() { nv.GraphAddDependencies(ctx, 0x61, deps, deps, edges) },
		"object": func() { nv.UserObjectCreate(1) },
		"retain": func() { nv.GraphRetainUserObject(ctx, 0x61, 0xb0, 1, driver.UserObjectMove) },
	} {
		if allocs := testing.AllocsPerRun(100, call); allocs != 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

// BenchmarkAddHostNode is what the library adds to the driver's own time for a host node: the node, and its owner.
func BenchmarkAddHostNode(b *testing.B) {
	f := newFake(b)
	nv := f.open(driver.Upcalls{})
	for _, fn := range []function{fnGraphAddNode, fnUserObjectCreate, fnGraphRetainUserObject} {
		nv.fns[fn] = f.lib.Symbol("fake_nothing")
	}
	b.Run("node", func(b *testing.B) {
		b.ReportAllocs()
		p, deps := &driver.NodeParams{Type: driver.NodeHost, Data: 1}, []driver.GraphNode{0x71}
		for b.Loop() {
			nv.GraphAddNode(ctx, 0x61, deps, nil, p)
		}
	})
	b.Run("owner", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			o, _ := nv.UserObjectCreate(1)
			nv.GraphRetainUserObject(ctx, 0x61, o, 1, driver.UserObjectMove)
		}
	})
}
