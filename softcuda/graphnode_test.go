package softcuda

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// A chain of one node of each kind does what each is to do, in order, at every launch.
func TestGraphNodesOfEachKind(t *testing.T) {
	g := newGraphRig(t)
	p, out := g.alloc(64), make([]byte, 16)
	child := g.graph()
	g.host(child, 5, g.host(child, 4))
	raw := g.graph()
	var nodes []driver.GraphNode
	for _, params := range []*driver.NodeParams{
		g.kernelNode("note", uint64(1)),
		{Type: driver.NodeMemset, Memset: &driver.Memset{Dst: p, Value: 0x01020304, ElementSize: 4, Width: 4, Height: 1}},
		{Type: driver.NodeBatchMemOp, Ops: []driver.MemOp{
			{Op: driver.MemOpWrite32, Address: p, Value: 7},
			{Op: driver.MemOpBarrier},
			{Op: driver.MemOpWait32, Address: p, Value: 7, Flags: driver.WaitValueEQ},
			{Op: driver.MemOpWrite32, Address: p, Value: 8},
		}},
		{Type: driver.NodeMemcpy, Copy: &driver.Memcpy3D{SrcType: driver.MemoryDevice, SrcDevice: p, DstType: driver.MemoryHost, DstHost: unsafe.Pointer(&out[0]), Width: 16, Height: 1, Depth: 1}},
		hostNode(2),
		emptyNode,
		{Type: driver.NodeEventRecord, Event: g.e},
		{Type: driver.NodeWaitEvent, Event: g.e},
		hostNode(3),
		{Type: driver.NodeGraph, Child: child},
		hostNode(6),
	} {
		n := g.add(raw, params, nodes[max(len(nodes)-1, 0):]...)
		if typ, r := g.GraphNodeGetType(g.ctx, n); typ != params.Type || r != 0 {
			t.Errorf("type %d, %d, want %d", typ, r, params.Type)
		}
		nodes = append(nodes, n)
	}
	x := g.instantiate(raw, 0, 0)
	for range 2 {
		clear(out)
		g.run(x)
		g.expect("launch", 1, 2, 3, 4, 5, 6)
		if want := []byte{8, 0, 0, 0, 4, 3, 2, 1, 4, 3, 2, 1, 4, 3, 2, 1}; !bytes.Equal(out, want) {
			t.Errorf("copied %v, want %v", out, want)
		}
		g.want("event", g.EventQuery(g.ctx, g.e), 0)
	}
	g.want("destroy", g.EventDestroy(g.ctx, g.e), 0)
	g.want("launch with an event that is gone", g.GraphLaunch(g.ctx, x, g.a), driver.ErrorInvalidValue)
}

func TestGraphNodesReadBack(t *testing.T) {
	g := newGraphRig(t)
	raw, p := g.graph(), g.kernelNode("note", uint64(1))
	k, h := g.add(raw, p), g.host(raw, 42)
	f, grid, block, r := g.GraphKernelNodeGetParams(g.ctx, k)
	if f != p.Func || grid != p.Launch.Grid || block != p.Launch.Block || r != 0 {
		t.Errorf("kernel %d %v %v, %d", f, grid, block, r)
	}
	_, _, _, r = g.GraphKernelNodeGetParams(g.ctx, h)
	g.want("kernel of a host node", r, driver.ErrorInvalidValue)
	if name, r := g.FuncGetName(g.ctx, f); name != "note" || r != 0 {
		t.Errorf("name %q, %d", name, r)
	}
	_, r = g.FuncGetName(g.ctx, 1)
	g.want("name of nothing", r, driver.ErrorInvalidHandle)
	if data, r := g.GraphHostNodeGetParams(g.ctx, h); data != 42 || r != 0 {
		t.Errorf("data %d, %d", data, r)
	}
	_, r = g.GraphHostNodeGetParams(g.ctx, k)
	g.want("data of a kernel", r, driver.ErrorInvalidValue)
	_, r = g.GraphChildGraphNodeGetGraph(g.ctx, k)
	g.want("child of a kernel", r, driver.ErrorInvalidValue)

	g.want("begin", g.StreamBeginCapture(g.ctx, g.a, driver.CaptureRelaxed), 0)
	_, r = g.LaunchKernel(g.ctx, p.Func, p.Launch, g.a)
	g.want("launch", r, 0)
	g.want("batch", g.StreamBatchMemOp(g.ctx, g.a, []driver.MemOp{{Op: driver.MemOpBarrier}, {Op: driver.MemOpBarrier}}, 0), 0)
	captured, _ := g.GraphGetNodes(g.ctx, g.end(g.a, 0))
	if f, grid, _, r := g.GraphKernelNodeGetParams(g.ctx, captured[0]); f != p.Func || grid != p.Launch.Grid || r != 0 {
		t.Errorf("captured kernel %d %v, %d", f, grid, r)
	}
	if typ, _ := g.GraphNodeGetType(g.ctx, captured[1]); len(captured) != 2 || typ != driver.NodeBatchMemOp {
		t.Errorf("a captured batch is %d nodes, the first of type %d", len(captured)-1, typ)
	}
}

// A copy with an end that is no memory is refused under a Check too.
func TestGraphCopyRefusedChecked(t *testing.T) {
	m, ctx, _ := seam(t, Options{Check: new(Check)})
	raw, r := m.GraphCreate(ctx, 0)
	want(t, "graph", r, driver.Success)
	p, r := m.MemAlloc(ctx, 64)
	want(t, "alloc", r, driver.Success)
	for _, c := range []driver.Memcpy3D{
		{SrcDevice: p, DstDevice: p + 60},
		{SrcDevice: p, DstDevice: 1},
		{SrcDevice: p, DstType: driver.MemoryHost},
		{SrcDevice: p + 60, DstDevice: p},
		{SrcType: driver.MemoryHost, DstDevice: p},
	} {
		c.Width, c.Height, c.Depth = 8, 1, 1
		for _, typ := range []*driver.MemoryType{&c.SrcType, &c.DstType} {
			if *typ == 0 {
				*typ = driver.MemoryDevice
			}
		}
		_, r := m.GraphAddNode(ctx, raw, nil, nil, &driver.NodeParams{Type: driver.NodeMemcpy, Copy: &c})
		want(t, "copy", r, driver.ErrorInvalidValue)
	}
}

// What a node cannot be made of is refused, and leaves the graph as it was.
func TestGraphNodesRefused(t *testing.T) {
	g := newGraphRig(t)
	raw, p := g.graph(), g.alloc(64)
	var b byte
	copyOf := func(change func(*driver.Memcpy3D)) *driver.NodeParams {
		c := driver.Memcpy3D{SrcType: driver.MemoryDevice, SrcDevice: p, DstType: driver.MemoryHost, DstHost: unsafe.Pointer(&b), Width: 1, Height: 1, Depth: 1}
		change(&c)
		return &driver.NodeParams{Type: driver.NodeMemcpy, Copy: &c}
	}
	memset := func(s driver.Memset) *driver.NodeParams {
		return &driver.NodeParams{Type: driver.NodeMemset, Memset: &s}
	}
	tooLarge := g.kernelNode("note", uint64(1))
	tooLarge.Launch.Block[0] = 2000
	many := make([]driver.MemOp, driver.MaxBatchMemOps+1)
	for i := range many {
		many[i].Op = driver.MemOpBarrier
	}
	for what, c := range map[string]struct {
		p    *driver.NodeParams
		want driver.Result
	}{
		"nothing":               {nil, driver.ErrorInvalidValue},
		"unknown type":          {&driver.NodeParams{Type: 99}, driver.ErrorInvalidValue},
		"kernel without launch": {&driver.NodeParams{Type: driver.NodeKernel}, driver.ErrorInvalidValue},
		"kernel of nothing":     {&driver.NodeParams{Type: driver.NodeKernel, Launch: tooLarge.Launch}, driver.ErrorInvalidHandle},
		"kernel too large":      {tooLarge, driver.ErrorInvalidValue},
		"kernel without twin":   {g.kernelNode("missing"), driver.ErrorNotFound},
		"host, mode":            {&driver.NodeParams{Type: driver.NodeHost, Mode: 2}, driver.ErrorInvalidValue},
		"event":                 {&driver.NodeParams{Type: driver.NodeEventRecord}, driver.ErrorInvalidValue},
		"wait":                  {&driver.NodeParams{Type: driver.NodeWaitEvent, Event: 1}, driver.ErrorInvalidValue},
		"child":                 {&driver.NodeParams{Type: driver.NodeGraph}, driver.ErrorInvalidValue},
		"itself as child":       {&driver.NodeParams{Type: driver.NodeGraph, Child: raw}, driver.ErrorInvalidValue},
		"no memory operations":  {&driver.NodeParams{Type: driver.NodeBatchMemOp}, driver.ErrorInvalidValue},
		"too many of them":      {&driver.NodeParams{Type: driver.NodeBatchMemOp, Ops: many}, driver.ErrorInvalidValue},
		"alloc of nothing":      {&driver.NodeParams{Type: driver.NodeMemAlloc, Alloc: &driver.MemAllocate{}}, driver.ErrorInvalidValue},
		"alloc of too much":     {&driver.NodeParams{Type: driver.NodeMemAlloc, Alloc: &driver.MemAllocate{Size: 1 << 25}}, driver.ErrorOutOfMemory},
		"free of what MemAlloc": {&driver.NodeParams{Type: driver.NodeMemFree, Free: p}, driver.ErrorInvalidValue},
		"no copy":               {&driver.NodeParams{Type: driver.NodeMemcpy}, driver.ErrorInvalidValue},
		"copy of no width":      {copyOf(func(c *driver.Memcpy3D) { c.Width = 0 }), driver.ErrorInvalidValue},
		"copy of no height":     {copyOf(func(c *driver.Memcpy3D) { c.Height = 0 }), driver.ErrorInvalidValue},
		"copy of no depth":      {copyOf(func(c *driver.Memcpy3D) { c.Depth = 0 }), driver.ErrorInvalidValue},
		"copy of no type":       {copyOf(func(c *driver.Memcpy3D) { c.SrcType = 0 }), driver.ErrorInvalidValue},
		"copy to nil":           {copyOf(func(c *driver.Memcpy3D) { c.DstHost = nil }), driver.ErrorInvalidValue},
		"copy past the end":     {copyOf(func(c *driver.Memcpy3D) { c.SrcX = 64 }), driver.ErrorInvalidValue},
		"copy of rows in one":   {copyOf(func(c *driver.Memcpy3D) { c.Height = 2 }), driver.ErrorInvalidValue},
		"copy of slices in one": {copyOf(func(c *driver.Memcpy3D) { c.Depth = 2 }), driver.ErrorInvalidValue},
		"copy of rows too near": {copyOf(func(c *driver.Memcpy3D) { c.Height, c.Width, c.SrcPitch, c.DstPitch = 2, 4, 3, 4 }), driver.ErrorInvalidValue},
		"copy of rows aside":    {copyOf(func(c *driver.Memcpy3D) { c.SrcX, c.Height, c.Width, c.SrcPitch, c.DstPitch = 2, 2, 2, 3, 2 }), driver.ErrorInvalidValue},
		"copy of slices aside": {copyOf(func(c *driver.Memcpy3D) {
			c.SrcY, c.Depth, c.SrcPitch, c.SrcHeight, c.DstPitch, c.DstHeight = 1, 2, 1, 1, 1, 1
		}), driver.ErrorInvalidValue},
		"copy that overflows":   {copyOf(func(c *driver.Memcpy3D) { c.SrcY, c.SrcPitch = 1<<63, 2 }), driver.ErrorInvalidValue},
		"copy far away":         {copyOf(func(c *driver.Memcpy3D) { c.SrcZ, c.SrcPitch, c.SrcHeight = 1, 1<<40, 1<<40 }), driver.ErrorInvalidValue},
		"no memset":             {&driver.NodeParams{Type: driver.NodeMemset}, driver.ErrorInvalidValue},
		"memset of 3 bytes":     {memset(driver.Memset{Dst: p, ElementSize: 3, Width: 1, Height: 1}), driver.ErrorInvalidValue},
		"memset of no width":    {memset(driver.Memset{Dst: p, ElementSize: 1, Height: 1}), driver.ErrorInvalidValue},
		"memset of no height":   {memset(driver.Memset{Dst: p, ElementSize: 1, Width: 1}), driver.ErrorInvalidValue},
		"memset of odd address": {memset(driver.Memset{Dst: p + 1, ElementSize: 2, Width: 1, Height: 1}), driver.ErrorInvalidValue},
		"memset of odd pitch":   {memset(driver.Memset{Dst: p, ElementSize: 2, Width: 1, Height: 2, Pitch: 3}), driver.ErrorInvalidValue},
		"memset past the end":   {memset(driver.Memset{Dst: p, ElementSize: 4, Width: 17, Height: 1}), driver.ErrorInvalidValue},
		"memset that overflows": {memset(driver.Memset{Dst: p, ElementSize: 4, Width: 1 << 62, Height: 1}), driver.ErrorInvalidValue},
	} {
		g.refused(what, c.want, raw, c.p)
	}
	if nodes, _ := g.GraphGetNodes(g.ctx, raw); len(nodes) != 0 {
		t.Errorf("%d nodes were added", len(nodes))
	}
	g.refused("no graph", driver.ErrorInvalidValue, 1, emptyNode)
}

// Boxes of bytes are copied between host and device memory as a loop over bytes copies them, and rows are set likewise.
func TestGraphCopiesOfBoxes(t *testing.T) {
	g := newGraphRig(t)
	random := rand.New(rand.NewPCG(1, 2))
	const size = 4096
	memories := map[driver.MemoryType]*[2][]byte{driver.MemoryHost: {}, driver.MemoryDevice: {}}
	var at [2]driver.DevicePtr
	for i := range at {
		at[i] = g.alloc(size)
		memories[driver.MemoryHost][i] = make([]byte, size)
		g.machine.mu.Lock()
		memories[driver.MemoryDevice][i] = g.reach(at[i])
		g.machine.mu.Unlock()
	}
	types := []driver.MemoryType{driver.MemoryHost, driver.MemoryDevice}
	for range 300 {
		w, h, d := 1+random.UintN(9), 1+random.UintN(5), 1+random.UintN(4)
		c := driver.Memcpy3D{Width: uintptr(w), Height: uintptr(h), Depth: uintptr(d), SrcType: types[random.IntN(2)], DstType: types[random.IntN(2)]}
		where := func(x, y, z, pitch, height *uintptr) {
			*x, *y, *z = uintptr(random.IntN(4)), uintptr(random.IntN(4)), uintptr(random.IntN(3))
			*pitch, *height = *x+c.Width+uintptr(random.IntN(3)), *y+c.Height+uintptr(random.IntN(3))
		}
		where(&c.SrcX, &c.SrcY, &c.SrcZ, &c.SrcPitch, &c.SrcHeight)
		where(&c.DstX, &c.DstY, &c.DstZ, &c.DstPitch, &c.DstHeight)
		src, dst := memories[c.SrcType][0], memories[c.DstType][1]
		c.SrcHost, c.SrcDevice = unsafe.Pointer(&src[0]), at[0]
		c.DstHost, c.DstDevice = unsafe.Pointer(&dst[0]), at[1]
		for i := range src {
			src[i], dst[i] = byte(random.Uint32()), 0
		}
		want := make([]byte, size)
		for z := range c.Depth {
			for y := range c.Height {
				for x := range c.Width {
					want[((c.DstZ+z)*c.DstHeight+c.DstY+y)*c.DstPitch+c.DstX+x] = src[((c.SrcZ+z)*c.SrcHeight+c.SrcY+y)*c.SrcPitch+c.SrcX+x]
				}
			}
		}
		raw := g.graph()
		g.add(raw, &driver.NodeParams{Type: driver.NodeMemcpy, Copy: &c})
		g.run(g.instantiate(raw, 0, 0))
		if !bytes.Equal(dst, want) {
			t.Fatalf("%+v: differs", c)
		}
	}
	raw := g.graph()
	g.add(raw, &driver.NodeParams{Type: driver.NodeMemset, Memset: &driver.Memset{Dst: at[1], Pitch: 8, Value: 0x11112222, ElementSize: 2, Width: 2, Height: 3}})
	clear(memories[driver.MemoryDevice][1])
	g.run(g.instantiate(raw, 0, 0))
	row := []byte{0x22, 0x22, 0x22, 0x22, 0, 0, 0, 0}
	if got, want := memories[driver.MemoryDevice][1][:32], append(bytes.Repeat(row, 3), make([]byte, 8)...); !bytes.Equal(got, want) {
		t.Errorf("rows set: %v, want %v", got, want)
	}
}

// New parameters are for executables made later, and must be of the node's type.
func TestGraphNodeSetParams(t *testing.T) {
	g := newGraphRig(t)
	raw := g.graph()
	h := g.host(raw, 1)
	old := g.instantiate(raw, 0, 0)
	g.want("set", g.GraphNodeSetParams(g.ctx, h, hostNode(2)), 0)
	g.run(old)
	g.run(g.instantiate(raw, 0, 0))
	g.expect("both", 1, 2)
	g.want("another type", g.GraphNodeSetParams(g.ctx, h, g.kernelNode("note", uint64(1))), driver.ErrorInvalidValue)
	g.want("nothing", g.GraphNodeSetParams(g.ctx, h, nil), driver.ErrorInvalidValue)
	g.want("of an empty node", g.GraphNodeSetParams(g.ctx, g.add(raw, emptyNode), emptyNode), driver.Success)
	g.want("of no node", g.GraphNodeSetParams(g.ctx, 1, hostNode(1)), driver.ErrorInvalidValue)
}

func TestGraphDot(t *testing.T) {
	g := newGraphRig(t)
	child, raw := g.graph(), g.graph()
	g.add(child, g.kernelNode("note", uint64(1)))
	g.add(raw, &driver.NodeParams{Type: driver.NodeGraph, Child: child}, g.host(raw, 0xabc))
	path := filepath.Join(t.TempDir(), "g.dot")
	for flags, also := range map[uint32]string{0: "", 1: "userData: 0x0000000000000abc"} {
		g.want("print", g.GraphDebugDotPrint(g.ctx, raw, path, flags), 0)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"digraph dot {", "HOST", "CHILD_GRAPH", "cluster_2", `KERNEL\nnote`, `"graph_1_node_0" -> "graph_1_node_1";`, also} {
			if !strings.Contains(string(text), part) {
				t.Errorf("flags %d: no %q in\n%s", flags, part, text)
			}
		}
	}
	g.want("no graph", g.GraphDebugDotPrint(g.ctx, 1, path, 0), driver.ErrorInvalidValue)
	g.want("no file", g.GraphDebugDotPrint(g.ctx, raw, filepath.Join(path, "x"), 0), driver.ErrorOperatingSystem)
}
