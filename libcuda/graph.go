//go:build linux && (amd64 || arm64)

package libcuda

import (
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/ffi"
)

// GraphGetNodes implements driver.Graphs. The driver is asked for the number first.
func (nv *nvidia) GraphGetNodes(ctx driver.Context, g driver.Graph) ([]driver.GraphNode, driver.Result) {
	n := new(uint64)
	if r := nv.graphGetNodes(ctx, g, nil, unsafe.Pointer(n)); r != driver.Success || *n == 0 {
		return nil, r
	}
	nodes := make([]driver.GraphNode, *n)
	r := nv.graphGetNodes(ctx, g, first(nodes), unsafe.Pointer(n))
	return nodes[:min(*n, uint64(len(nodes)))], r
}

// GraphGetEdges implements driver.Graphs.
func (nv *nvidia) GraphGetEdges(ctx driver.Context, g driver.Graph) ([]driver.GraphEdge, driver.Result) {
	n, r := nv.edges(ctx, g, nil)
	if r != driver.Success || n == 0 {
		return nil, r
	}
	// One block for what the driver writes: n nodes, n nodes, and n times the data of an edge, which has a word's size.
	block := make([]uint64, 3*n)
	n, r = nv.edges(ctx, g, block)
	size := len(block) / 3
	list := make([]driver.GraphEdge, min(n, size))
	for i := range list {
		data := *(*driver.EdgeData)(unsafe.Pointer(&block[2*size+i]))
		list[i] = driver.GraphEdge{From: driver.GraphNode(block[i]), To: driver.GraphNode(block[size+i]), Data: data}
	}
	return list, r
}

// edges has the driver write the edges of g into block, or only count them if that is nil.
func (nv *nvidia) edges(ctx driver.Context, g driver.Graph, block []uint64) (int, driver.Result) {
	c := ffi.NewCall()
	defer c.Free()
	c.Args = [12]uintptr{uintptr(g), 0, 0, 0, c.Ref(0)}
	if size := len(block) / 3; size > 0 {
		c.Keep[0], c.Out[0] = unsafe.Pointer(&block[0]), uint64(size)
		for i := range 3 {
			c.Args[1+i] = uintptr(unsafe.Pointer(&block[i*size]))
		}
	}
	r := nv.call(c, ctx, fnGraphGetEdges, 5)
	return int(c.Out[0]), r
}

// GraphLaunch implements driver.Graphs. The host functions of the graph count in Upcalls.Pending before it is launched; see
// LaunchHostFunc.
func (nv *nvidia) GraphLaunch(ctx driver.Context, x driver.GraphExec, s driver.Stream) driver.Result {
	r := nv.graphLaunch(ctx, x, s)
	if r == driver.Success {
		nv.watch(ctx)
	}
	return r
}
