//go:build linux && (amd64 || arm64)

package libcuda

import (
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/ffi"
)

// StreamBeginCaptureToGraph implements driver.Captures.
func (nv *nvidia) StreamBeginCaptureToGraph(ctx driver.Context, s driver.Stream, g driver.Graph, deps []driver.GraphNode, edges []driver.EdgeData, mode driver.CaptureMode) driver.Result {
	return nv.streamBeginCaptureToGraph(ctx, s, g, first(deps), first(edges), len(deps), mode)
}

// StreamBeginRecaptureToGraph implements driver.Captures. The driver calls back for each node whose parameters change, and
// takes 0 for consent. Whether it would do without a callback is not documented.
func (nv *nvidia) StreamBeginRecaptureToGraph(ctx driver.Context, s driver.Stream, g driver.Graph, mode driver.CaptureMode) driver.Result {
	return nv.streamBeginRecapture(ctx, s, mode, g, ffi.AcceptEntry(), 0)
}

// StreamUpdateCaptureDependencies implements driver.Captures.
func (nv *nvidia) StreamUpdateCaptureDependencies(ctx driver.Context, s driver.Stream, deps []driver.GraphNode, edges []driver.EdgeData, flags uint32) driver.Result {
	return nv.streamUpdateCaptureDeps(ctx, s, first(deps), first(edges), len(deps), flags)
}

// ThreadExchangeStreamCaptureMode implements driver.Captures.
func (nv *nvidia) ThreadExchangeStreamCaptureMode(mode driver.CaptureMode) (driver.CaptureMode, driver.Result) {
	former, r := nv.exchangeCaptureMode(uint64(mode))
	return driver.CaptureMode(former), r
}

// captureInfo is what the driver writes. The two addresses are of memory of the driver, good until the next call with the
// stream.
type captureInfo struct {
	status      int32
	id          uint64
	graph       driver.Graph
	deps, edges unsafe.Pointer
	n           uint64
}

// StreamGetCaptureInfo implements driver.Captures.
func (nv *nvidia) StreamGetCaptureInfo(ctx driver.Context, s driver.Stream) (driver.CaptureInfo, driver.Result) {
	c := ffi.NewCall()
	defer c.Free()
	i := new(captureInfo)
	c.Keep[0] = unsafe.Pointer(i) // on the heap now, where it stays
	c.Args[0] = uintptr(s)
	for n, p := range []unsafe.Pointer{
		unsafe.Pointer(&i.status), unsafe.Pointer(&i.id), unsafe.Pointer(&i.graph),
		unsafe.Pointer(&i.deps), unsafe.Pointer(&i.edges), unsafe.Pointer(&i.n),
	} {
		c.Args[1+n] = uintptr(p)
	}
	if r := nv.call(c, ctx, fnStreamGetCaptureInfo, 7); r != driver.Success {
		return driver.CaptureInfo{}, r
	}
	info := driver.CaptureInfo{Status: driver.CaptureStatus(i.status)}
	if info.Status != driver.CaptureActive {
		return info, driver.Success
	}
	info.ID, info.Graph = i.id, i.graph
	info.Deps = append(info.Deps, unsafe.Slice((*driver.GraphNode)(i.deps), i.n)...)
	if info.Edges = make([]driver.EdgeData, i.n); i.edges != nil {
		copy(info.Edges, unsafe.Slice((*driver.EdgeData)(i.edges), i.n))
	}
	return info, driver.Success
}

// first is the address of a list's elements; nil if there are none.
func first[T any](list []T) unsafe.Pointer {
	if len(list) == 0 {
		return nil
	}
	return unsafe.Pointer(&list[0])
}
