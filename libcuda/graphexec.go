//go:build linux && (amd64 || arm64)

package libcuda

import (
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// GraphInstantiateWithParams implements driver.Graphs. An Instantiation is laid out as the driver's.
func (nv *nvidia) GraphInstantiateWithParams(ctx driver.Context, g driver.Graph, i *driver.Instantiation) (driver.GraphExec, driver.Result) {
	return nv.graphInstantiateWithParams(ctx, g, unsafe.Pointer(i))
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

// GraphExecUpdate implements driver.Graphs. An ExecUpdate is laid out as the driver's.
func (nv *nvidia) GraphExecUpdate(ctx driver.Context, x driver.GraphExec, g driver.Graph, u *driver.ExecUpdate) driver.Result {
	return nv.graphExecUpdate(ctx, x, g, unsafe.Pointer(u))
}

// GraphExecNodeSetParams implements driver.Graphs.
func (nv *nvidia) GraphExecNodeSetParams(ctx driver.Context, x driver.GraphExec, n driver.GraphNode, p *driver.NodeParams) driver.Result {
	m, r := nv.nodeParams(ctx, p)
	defer m.free()
	if r != driver.Success {
		return r
	}
	return nv.graphExecNodeSetParams(ctx, x, n, unsafe.Pointer(m))
}

// GraphNodeSetEnabled implements driver.Graphs.
func (nv *nvidia) GraphNodeSetEnabled(ctx driver.Context, x driver.GraphExec, n driver.GraphNode, enabled bool) driver.Result {
	var is uint32
	if enabled {
		is = 1
	}
	return nv.graphNodeSetEnabled(ctx, x, n, is)
}

// GraphNodeGetEnabled implements driver.Graphs.
func (nv *nvidia) GraphNodeGetEnabled(ctx driver.Context, x driver.GraphExec, n driver.GraphNode) (bool, driver.Result) {
	is, r := nv.graphNodeGetEnabled(ctx, x, n)
	return is != 0, r
}
