//go:build linux && (amd64 || arm64)

package libcuda

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

// graphMethodCases are the cases of graphs.
func graphMethodCases() []methodCase {
	return slices.Concat([]methodCase{
		{"GraphCreate", func(d driver.Driver) any { return list(d.GraphCreate(ctx, 0)) }, "cuGraphCreate(flags=0) in 0xc0", "98 0"},
		{"GraphDestroy", func(d driver.Driver) any { return d.GraphDestroy(ctx, 0x61) }, "cuGraphDestroy(graph=0x61) in 0xc0", "0"},
		{"GraphGetNodes", func(d driver.Driver) any { return list(d.GraphGetNodes(ctx, 0x61)) },
			"cuGraphGetNodes(graph=0x61, room=0) in 0xc0\ncuGraphGetNodes(graph=0x61, room=2) in 0xc0", "[113 114] 0"},
		{"GraphGetEdges", func(d driver.Driver) any { return list(d.GraphGetEdges(ctx, 0x61)) },
			"cuGraphGetEdges(graph=0x61, room=0) in 0xc0\ncuGraphGetEdges(graph=0x61, room=2) in 0xc0",
			"[{113 114 {0 0 0 [0 0 0 0 0]}} {115 116 {1 2 3 [0 0 0 0 0]}}] 0"},
		{"GraphNodeGetType", func(d driver.Driver) any { return list(d.GraphNodeGetType(ctx, 0x71)) }, "cuGraphNodeGetType(node=0x71) in 0xc0", "3 0"},
		{"GraphExecDestroy", func(d driver.Driver) any { return d.GraphExecDestroy(ctx, 0x81) }, "cuGraphExecDestroy(exec=0x81) in 0xc0", "0"},
		{"GraphLaunch", func(d driver.Driver) any { return d.GraphLaunch(ctx, 0x81, stream) }, "cuGraphLaunch(exec=0x81, stream=0x5a) in 0xc0", "0"},
		{"GraphClone", func(d driver.Driver) any { return list(d.GraphClone(ctx, 0x61)) }, "cuGraphClone(graph=0x61) in 0xc0", "102 0"},
		{"GraphNodeFindInClone", func(d driver.Driver) any { return list(d.GraphNodeFindInClone(ctx, 0x71, 0x66)) },
			"cuGraphNodeFindInClone(node=0x71, clone=0x66) in 0xc0", "118 0"},
		{"GraphDestroyNode", func(d driver.Driver) any { return d.GraphDestroyNode(ctx, 0x71) }, "cuGraphDestroyNode(node=0x71) in 0xc0", "0"},
		{"GraphAddDependencies", func(d driver.Driver) any {
			return d.GraphAddDependencies(ctx, 0x61, []driver.GraphNode{1, 2}, []driver.GraphNode{3, 4}, []driver.EdgeData{{}, {FromPort: 1, ToPort: 2, Type: 3}})
		}, "cuGraphAddDependencies(graph=0x61, from=2 0x1 0x2, to=2 0x3 0x4 0/0/0 1/2/3) in 0xc0", "0"},
		{"GraphRemoveDependencies", func(d driver.Driver) any {
			return d.GraphRemoveDependencies(ctx, 0x61, []driver.GraphNode{1, 2}, []driver.GraphNode{3, 4}, nil)
		}, "cuGraphRemoveDependencies(graph=0x61, from=2 0x1 0x2, to=2 0x3 0x4) in 0xc0", "0"},
		{"GraphChildGraphNodeGetGraph", func(d driver.Driver) any { return list(d.GraphChildGraphNodeGetGraph(ctx, 0x71)) },
			"cuGraphChildGraphNodeGetGraph(node=0x71) in 0xc0", "103 0"},
		{"GraphKernelNodeGetParams", func(d driver.Driver) any { return list(d.GraphKernelNodeGetParams(ctx, 0x71)) },
			"cuGraphKernelNodeGetParams(node=0x71) in 0xc0", "241 [1 2 3] [4 5 6] 0"},
		{"FuncGetName", func(d driver.Driver) any { return list(d.FuncGetName(ctx, 0xf1)) }, "cuFuncGetName(func=0xf1) in 0xc0", "axpy 0"},
		{"FuncGetName", func(d driver.Driver) any { return list(d.FuncGetName(ctx, 0)) }, "cuFuncGetName(func=(nil)) in 0xc0", " 1"},
		{"GraphConditionalHandleCreate", func(d driver.Driver) any {
			return list(d.GraphConditionalHandleCreate(ctx, 0x61, 7, driver.CondAssignDefault))
		},
			"cuGraphConditionalHandleCreate(graph=0x61, ctx=0xc0, value=7, flags=1) in 0xc0", "18364758544493064720 0"},
		{"GraphDebugDotPrint", func(d driver.Driver) any { return d.GraphDebugDotPrint(ctx, 0x61, "a/b.dot", 1) },
			"cuGraphDebugDotPrint(graph=0x61, path=\"a/b.dot\", flags=1) in 0xc0", "0"},
		{"GraphDebugDotPrint", func(d driver.Driver) any { return d.GraphDebugDotPrint(ctx, 0x61, "a\x00b", 1) }, "", "1"},
	}, nodeMethodCases(), execMethodCases(), ownerMethodCases())
}

// execMethodCases are the cases of executables.
func execMethodCases() []methodCase {
	return []methodCase{
		{"GraphInstantiateWithParams", func(d driver.Driver) any {
			i := &driver.Instantiation{Flags: driver.GraphUpload | 1<<40, UploadStream: stream, ErrorNode: 1, Result: 9}
			x, r := d.GraphInstantiateWithParams(ctx, 0x61, i)
			return list(x, r, i.ErrorNode, i.Result)
		}, "cuGraphInstantiateWithParams(graph=0x61, flags=1099511627778, stream=0x5a) in 0xc0", "129 0 0 0"},
		{"GraphInstantiateWithParams", func(d driver.Driver) any {
			i := &driver.Instantiation{}
			x, r := d.GraphInstantiateWithParams(ctx, 0x62, i)
			return list(x, r, i.ErrorNode, i.Result)
		}, "cuGraphInstantiateWithParams(graph=0x62, flags=0, stream=(nil)) in 0xc0", "0 1 113 3"},
		{"GraphUpload", func(d driver.Driver) any { return d.GraphUpload(ctx, 0x81, stream) }, "cuGraphUpload(exec=0x81, stream=0x5a) in 0xc0", "0"},
		{"GraphExecUpdate", func(d driver.Driver) any {
			u := &driver.ExecUpdate{}
			r := d.GraphExecUpdate(ctx, 0x81, 0x61, u)
			return list(r, u.Result, u.ErrorNode, u.ErrorFrom)
		}, "cuGraphExecUpdate(exec=0x81, graph=0x61) in 0xc0", "910 2 113 114"},
		{"GraphExecNodeSetParams", func(d driver.Driver) any {
			return d.GraphExecNodeSetParams(ctx, 0x81, 0x71, &driver.NodeParams{Type: driver.NodeHost, Data: 0x987654321, Mode: 1})
		}, "cuGraphExecNodeSetParams(exec=0x81, node=0x71, host data=0x987654321 mode=1) in 0xc0", "0"},
		{"GraphNodeSetEnabled", func(d driver.Driver) any { return d.GraphNodeSetEnabled(ctx, 0x81, 0x71, true) },
			"cuGraphNodeSetEnabled(exec=0x81, node=0x71, enabled=1) in 0xc0", "0"},
		{"GraphNodeSetEnabled", func(d driver.Driver) any { return d.GraphNodeSetEnabled(ctx, 0x81, 0x71, false) },
			"cuGraphNodeSetEnabled(exec=0x81, node=0x71, enabled=0) in 0xc0", "0"},
		{"GraphNodeGetEnabled", func(d driver.Driver) any { return list(d.GraphNodeGetEnabled(ctx, 0x81, 0x71)) },
			"cuGraphNodeGetEnabled(exec=0x81, node=0x71) in 0xc0", "true 0"},
		{"GraphNodeGetEnabled", func(d driver.Driver) any { return list(d.GraphNodeGetEnabled(ctx, 0x81, 0x72)) },
			"cuGraphNodeGetEnabled(exec=0x81, node=0x72) in 0xc0", "false 0"},
	}
}

// ownerMethodCases are the cases of user objects.
func ownerMethodCases() []methodCase {
	return []methodCase{
		{"UserObjectCreate", func(d driver.Driver) any { return list(d.UserObjectCreate(0x123456789)) },
			"cuUserObjectCreate(data=0x123456789, count=1, flags=1) in 0xabc", "176 0"},
		{"GraphRetainUserObject", func(d driver.Driver) any { return d.GraphRetainUserObject(ctx, 0x61, 0xb0, 3, 0) },
			"cuGraphRetainUserObject(graph=0x61, object=0xb0, count=3, flags=0) in 0xc0", "0"},
		{"GraphReleaseUserObject", func(d driver.Driver) any { return d.GraphReleaseUserObject(ctx, 0x61, 0xb0, 2) },
			"cuGraphReleaseUserObject(graph=0x61, object=0xb0, count=2) in 0xc0", "0"},
		{"UserObjectRelease", func(d driver.Driver) any { return d.UserObjectRelease(0xb0, 1) },
			"cuUserObjectRelease(object=0xb0, count=1) in 0xabc", "0"},
	}
}

// A user object's destructor runs where the last reference is dropped, with the data, once.
func TestUserObject(t *testing.T) {
	var gone []uint64
	inside := false
	var nv *nvidia
	nv = newFake(t).open(driver.Upcalls{HostFunc: func(data uint64) { gone, inside = append(gone, data), nv.InHostFunction() }})
	for _, data := range []uint64{5, 1<<56 - 1} {
		gone = nil
		o, r := nv.UserObjectCreate(data)
		if r != driver.Success {
			t.Fatal(r)
		}
		nv.GraphRetainUserObject(ctx, 0x61, o, 1, driver.UserObjectMove)
		nv.GraphRetainUserObject(ctx, 0x62, o, 1, 0)
		nv.UserObjectRelease(o, 1)
		if gone != nil {
			t.Errorf("%#x: gone while a graph holds it", data)
		}
		nv.GraphReleaseUserObject(ctx, 0x61, o, 1)
		if len(gone) != 1 || gone[0] != data || !inside {
			t.Errorf("%#x: destructor called with %#x, in a host function: %v", data, gone, inside)
		}
	}
}

// Where no context is current, what needs none is called so; and again in one, by a driver that asks for it.
func TestUnbound(t *testing.T) {
	f := newFake(t)
	nv := f.open(driver.Upcalls{HostFunc: func(uint64) {}})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	add := func(p driver.NodeParams) func() driver.Result {
		return func() driver.Result { _, r := nv.GraphAddNode(ctx, 0x61, nil, nil, &p); return r }
	}
	nodes := []driver.GraphNode{0x71}
	for name, call := range map[string]func() driver.Result{
		"host":           add(driver.NodeParams{Type: driver.NodeHost, Data: 1}),
		"empty":          add(driver.NodeParams{Type: driver.NodeEmpty}),
		"record":         add(driver.NodeParams{Type: driver.NodeEventRecord, Event: event}),
		"wait":           add(driver.NodeParams{Type: driver.NodeWaitEvent, Event: event}),
		"child":          add(driver.NodeParams{Type: driver.NodeGraph, Child: 0x62}),
		"add edge":       func() driver.Result { return nv.GraphAddDependencies(ctx, 0x61, nodes, nodes, nil) },
		"remove edge":    func() driver.Result { return nv.GraphRemoveDependencies(ctx, 0x61, nodes, nodes, nil) },
		"find":           func() driver.Result { _, r := nv.GraphNodeFindInClone(ctx, 0x71, 0x66); return r },
		"retain object":  func() driver.Result { return nv.GraphRetainUserObject(ctx, 0x61, 0xb0, 2, 0) },
		"release object": func() driver.Result { return nv.GraphReleaseUserObject(ctx, 0x61, 0xb0, 1) },
	} {
		for strict, want := range []string{"(nil)", "(nil) 0xc0"} {
			f.set(knobStrict, int64(strict))
			f.log()
			r := call()
			var in []string
			for _, line := range f.log() {
				in = append(in, line[strings.LastIndex(line, " ")+1:])
			}
			if r != driver.Success || strings.Join(in, " ") != want {
				t.Errorf("%s: %d, called in %v, want %s", name, r, in, want)
			}
		}
	}
	f.set(knobStrict, 0)
	// What works in a context is added in it.
	f.log()
	nv.GraphAddNode(ctx, 0x61, nil, nil, &driver.NodeParams{Type: driver.NodeMemset, Memset: &driver.Memset{}})
	if got := f.log()[0]; !strings.HasSuffix(got, " in 0xc0") {
		t.Errorf("memset node: %s", got)
	}
}

// On a driver of CUDA 12.0, what came later is not supported, and the error text can say since when it is.
func TestGraphOnOldDriver(t *testing.T) {
	f := newFake(t)
	f.set(knobVersion, 12000)
	nv := f.open(driver.Upcalls{})
	p := &driver.NodeParams{Type: driver.NodeEmpty}
	_, add := nv.GraphAddNode(ctx, 0x61, nil, nil, p)
	_, name := nv.FuncGetName(ctx, 0xf1)
	_, cond := nv.GraphConditionalHandleCreate(ctx, 0x61, 0, 0)
	for what, r := range map[string]driver.Result{
		"cuGraphAddNode": add, "cuFuncGetName": name, "cuGraphConditionalHandleCreate": cond,
		"cuGraphNodeSetParams":      nv.GraphNodeSetParams(ctx, 0x71, p),
		"cuGraphExecNodeSetParams":  nv.GraphExecNodeSetParams(ctx, 0x81, 0x71, p),
		"cuGraphAddDependencies":    nv.GraphAddDependencies(ctx, 0x61, nil, nil, nil),
		"cuGraphRemoveDependencies": nv.GraphRemoveDependencies(ctx, 0x61, nil, nil, nil),
	} {
		since := 12030
		if strings.HasSuffix(what, "SetParams") {
			since = 12020
		}
		if r != driver.ErrorNotSupported || nv.Needs(what) != since {
			t.Errorf("%s: %d, needs %d", what, r, nv.Needs(what))
		}
	}
}

// Lists that do not fit each other never reach the driver, which would read behind the shorter one.
func TestGraphListsOfDifferentLength(t *testing.T) {
	f := newFake(t)
	nv := f.open(driver.Upcalls{})
	one, two, edge := make([]driver.GraphNode, 1), make([]driver.GraphNode, 2), make([]driver.EdgeData, 1)
	f.log()
	_, add := nv.GraphAddNode(ctx, 0x61, two, edge, &driver.NodeParams{Type: driver.NodeEmpty})
	for i, r := range []driver.Result{
		add, nv.GraphAddDependencies(ctx, 0x61, one, two, nil), nv.GraphAddDependencies(ctx, 0x61, two, one, nil),
		nv.GraphAddDependencies(ctx, 0x61, two, two, edge), nv.GraphRemoveDependencies(ctx, 0x61, one, two, nil),
	} {
		if r != driver.ErrorInvalidValue {
			t.Errorf("call %d answers %d", i, r)
		}
	}
	if calls := f.log(); len(calls) != 0 {
		t.Errorf("called %v", calls)
	}
}
