//go:build linux && (amd64 || arm64)

package libcuda

import (
	"strings"
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

// GraphAddDependencies implements driver.Graphs.
func (nv *nvidia) GraphAddDependencies(ctx driver.Context, g driver.Graph, from, to []driver.GraphNode, edges []driver.EdgeData) driver.Result {
	if !sameLength(from, to, edges) {
		return driver.ErrorInvalidValue
	}
	return nv.graphAddDependencies(ctx, g, first(from), first(to), first(edges), len(from))
}

// GraphRemoveDependencies implements driver.Graphs.
func (nv *nvidia) GraphRemoveDependencies(ctx driver.Context, g driver.Graph, from, to []driver.GraphNode, edges []driver.EdgeData) driver.Result {
	if !sameLength(from, to, edges) {
		return driver.ErrorInvalidValue
	}
	return nv.graphRemoveDependencies(ctx, g, first(from), first(to), first(edges), len(from))
}

// sameLength reports whether the driver, which is told one length, may read all lists; edges may be left out.
func sameLength(from, to []driver.GraphNode, edges []driver.EdgeData) bool {
	return len(from) == len(to) && (len(edges) == 0 || len(edges) == len(from))
}

// GraphDebugDotPrint implements driver.Graphs.
func (nv *nvidia) GraphDebugDotPrint(ctx driver.Context, g driver.Graph, path string, flags uint32) driver.Result {
	if strings.IndexByte(path, 0) >= 0 { // no C string
		return driver.ErrorInvalidValue
	}
	return nv.graphDebugDotPrint(ctx, g, path, flags)
}
