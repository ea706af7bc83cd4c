//go:build linux && (amd64 || arm64)

package libcuda

import (
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/ffi"
)

// GraphAddNode implements driver.Graphs.
func (nv *nvidia) GraphAddNode(ctx driver.Context, g driver.Graph, deps []driver.GraphNode, edges []driver.EdgeData, p *driver.NodeParams) (driver.GraphNode, driver.Result) {
	if !sameLength(deps, deps, edges) {
		return 0, driver.ErrorInvalidValue
	}
	m, r := nv.nodeParams(ctx, p)
	defer m.free()
	if r != driver.Success {
		return 0, r
	}
	c := ffi.NewCall()
	defer c.Free()
	c.Keep = [3]unsafe.Pointer{first(deps), first(edges), unsafe.Pointer(m)}
	c.Args[0], c.Args[1], c.Args[2] = c.Ref(0), uintptr(g), uintptr(c.Keep[0])
	c.Args[3], c.Args[4], c.Args[5] = uintptr(c.Keep[1]), uintptr(len(deps)), uintptr(c.Keep[2])
	switch p.Type {
	case driver.NodeHost, driver.NodeEmpty, driver.NodeEventRecord, driver.NodeWaitEvent, driver.NodeGraph:
		r = nv.callUnbound(c, ctx, fnGraphAddNode, 6)
	default:
		r = nv.call(c, ctx, fnGraphAddNode, 6)
	}
	if r != driver.Success {
		return 0, r
	}
	m.readBack(p)
	return driver.GraphNode(c.Out[0]), r
}

// GraphNodeSetParams implements driver.Graphs.
func (nv *nvidia) GraphNodeSetParams(ctx driver.Context, n driver.GraphNode, p *driver.NodeParams) driver.Result {
	m, r := nv.nodeParams(ctx, p)
	defer m.free()
	if r != driver.Success {
		return r
	}
	return nv.graphNodeSetParams(ctx, n, unsafe.Pointer(m))
}

// GraphHostNodeGetParams implements driver.Graphs.
func (nv *nvidia) GraphHostNodeGetParams(ctx driver.Context, n driver.GraphNode) (uint64, driver.Result) {
	c := ffi.NewCall()
	defer c.Free()
	c.Args[0], c.Args[1] = uintptr(n), c.Ref(0) // a CUDA_HOST_NODE_PARAMS is two words: function and data
	r := nv.call(c, ctx, fnGraphHostNodeGetParams, 2)
	if r == driver.Success && c.Out[0] == uint64(ffi.CellEntry()) {
		return c.Out[1], r
	}
	if fn, data := c.Out[0], c.Out[1]^nv.tag; r == driver.Success && fn == uint64(ffi.HostEntry()) && data < lowestTag {
		return data, r
	}
	return 0, r
}

// lowestTag is the smallest tag that data can have beside it; see ffi.Receive.
const lowestTag = 1 << 56

// GraphKernelNodeGetParams implements driver.Graphs.
func (nv *nvidia) GraphKernelNodeGetParams(ctx driver.Context, n driver.GraphNode) (f driver.Function, grid, block [3]uint32, r driver.Result) {
	k := new(kernelParams)
	r = nv.graphKernelNodeGetParams(ctx, n, unsafe.Pointer(k))
	return k.fn, k.grid, k.block, r
}

// FuncGetName implements driver.Graphs.
func (nv *nvidia) FuncGetName(ctx driver.Context, f driver.Function) (string, driver.Result) {
	name, r := nv.funcGetName(ctx, f)
	if r != driver.Success {
		return "", r
	}
	return ctext(name), r
}

// ctext is the C string at p.
func ctext(p unsafe.Pointer) string {
	var n uintptr
	for p != nil && *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}

// GraphConditionalHandleCreate implements driver.Graphs.
func (nv *nvidia) GraphConditionalHandleCreate(ctx driver.Context, g driver.Graph, value, flags uint32) (driver.ConditionalHandle, driver.Result) {
	return nv.graphConditionalHandleCreate(ctx, g, ctx, value, flags)
}
