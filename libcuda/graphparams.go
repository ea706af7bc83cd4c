//go:build linux && (amd64 || arm64)

package libcuda

import (
	"sync"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/ffi"
)

// nodeParams is a CUgraphNodeParams, and what it has addresses of. It is Go memory that the driver reads during one call.
type nodeParams struct {
	typ   driver.NodeType
	_     [3]int32
	union [29]uint64
	_     int64

	params, ops unsafe.Pointer // kept alive and on the heap
	addresses   []uintptr      // of a kernel's parameters
}

// The members of the union, as in cuda.h. Each is laid over nodeParams.union.
type (
	kernelParams struct { // CUDA_KERNEL_NODE_PARAMS_v2 and _v3
		fn          driver.Function
		grid, block [3]uint32
		shared      uint32
		params      uintptr
		extra       uintptr
		kern        uintptr
		ctx         driver.Context
	}
	memcpyParams struct { // CUDA_MEMCPY_NODE_PARAMS
		flags, _ int32
		ctx      driver.Context
		copy     [25]uint64 // a CUDA_MEMCPY3D
	}
	memsetParams struct { // CUDA_MEMSET_NODE_PARAMS_v2
		memset driver.Memset
		ctx    driver.Context
	}
	hostParams struct { // CUDA_HOST_NODE_PARAMS_v2, with the sync mode of CUDA 13.2
		fn, data uintptr
		mode, _  uint32
	}
	childParams struct { // CUDA_CHILD_GRAPH_NODE_PARAMS
		graph     driver.Graph
		ownership int32 // 0: the node has a clone
	}
	eventParams struct{ event driver.Event }   // CUDA_EVENT_RECORD_NODE_PARAMS, CUDA_EVENT_WAIT_NODE_PARAMS
	freeParams  struct{ ptr driver.DevicePtr } // CUDA_MEM_FREE_NODE_PARAMS
	allocParams struct {                       // CUDA_MEM_ALLOC_NODE_PARAMS_v2
		pool      poolProps
		access, n uintptr
		size      uintptr
		ptr       driver.DevicePtr
	}
	poolProps struct { // CUmemPoolProps
		allocType, handleTypes int32
		locationType, location int32
		_                      [9]uint64
	}
	batchParams struct { // CUDA_BATCH_MEM_OP_NODE_PARAMS_v2
		ctx   driver.Context
		count uint32
		ops   uintptr
		flags uint32
	}
	condParams struct { // CUDA_CONDITIONAL_NODE_PARAMS
		handle     driver.ConditionalHandle
		kind, size int32
		bodies     uintptr // an array of the driver's
		ctx        driver.Context
	}
)

const (
	allocationPinned = 1 // CU_MEM_ALLOCATION_TYPE_PINNED, which is any memory of a device
	locationDevice   = 1 // CU_MEM_LOCATION_TYPE_DEVICE
)

var paramsPool = sync.Pool{New: func() any { return new(nodeParams) }}

// nodeParams returns p as the driver wants it, for a node in ctx. It must be freed.
func (nv *nvidia) nodeParams(ctx driver.Context, p *driver.NodeParams) (*nodeParams, driver.Result) {
	m := paramsPool.Get().(*nodeParams)
	m.typ = p.Type
	u, r := unsafe.Pointer(&m.union), driver.Success
	switch p.Type {
	case driver.NodeHost:
		h := (*hostParams)(u)
		if h.fn, h.data = ffi.HostEntry(), uintptr(nv.tag|p.Data); p.Entry != 0 {
			h.fn, h.data = p.Entry, uintptr(p.Data)
		}
		if nv.fns[fnLaunchHostFunc_v2] != 0 { // an older driver wants a zero here
			h.mode = p.Mode
		}
	case driver.NodeKernel:
		r = m.setKernel((*kernelParams)(u), p.Func, p.Launch)
	case driver.NodeMemcpy:
		*(*memcpyParams)(u) = memcpyParams{ctx: ctx, copy: *(*[25]uint64)(unsafe.Pointer(p.Copy))}
	case driver.NodeMemset:
		*(*memsetParams)(u) = memsetParams{*p.Memset, ctx}
	case driver.NodeGraph:
		(*childParams)(u).graph = p.Child
	case driver.NodeEventRecord, driver.NodeWaitEvent:
		(*eventParams)(u).event = p.Event
	case driver.NodeMemAlloc:
		r = nv.setAlloc(ctx, (*allocParams)(u), p.Alloc)
	case driver.NodeMemFree:
		(*freeParams)(u).ptr = p.Free
	case driver.NodeBatchMemOp:
		m.ops = first(p.Ops)
		*(*batchParams)(u) = batchParams{ctx: ctx, count: uint32(len(p.Ops)), ops: uintptr(m.ops)}
	case driver.NodeConditional:
		*(*condParams)(u) = condParams{handle: p.Cond.Handle, kind: p.Cond.Kind, size: int32(p.Cond.Size), ctx: ctx}
	}
	return m, r
}

// setKernel has params be an array of the addresses of l's parameters.
func (m *nodeParams) setKernel(k *kernelParams, f driver.Function, l *driver.Launch) driver.Result {
	k.fn, k.grid, k.block, k.shared = f, l.Grid, l.Block, l.SharedMem
	if len(l.Offsets) == 0 {
		return driver.Success
	}
	m.params = unsafe.Pointer(unsafe.SliceData(l.Params))
	for _, at := range l.Offsets {
		if int(at) >= len(l.Params) {
			return driver.ErrorInvalidValue
		}
		m.addresses = append(m.addresses, uintptr(m.params)+uintptr(at))
	}
	k.params = uintptr(first(m.addresses))
	return driver.Success
}

// setAlloc allocates on the device of ctx.
func (nv *nvidia) setAlloc(ctx driver.Context, a *allocParams, p *driver.MemAllocate) driver.Result {
	d, r := nv.ctxGetDevice(ctx)
	a.pool.allocType, a.pool.locationType, a.pool.location = allocationPinned, locationDevice, int32(d)
	a.size = p.Size
	return r
}

// readBack copies what the driver has set.
func (m *nodeParams) readBack(p *driver.NodeParams) {
	u := unsafe.Pointer(&m.union)
	switch p.Type {
	case driver.NodeMemAlloc:
		p.Alloc.Address = (*allocParams)(u).ptr
	case driver.NodeConditional:
		c := (*condParams)(u)
		bodies := *(*unsafe.Pointer)(unsafe.Pointer(&c.bodies)) // of the driver, as long as the node
		p.Cond.Bodies = append([]driver.Graph(nil), unsafe.Slice((*driver.Graph)(bodies), c.size)...)
	}
}

// free zeroes m, since the driver wants zeros wherever a node's type has nothing, and gives it back.
func (m *nodeParams) free() {
	clear(m.union[:])
	m.params, m.ops, m.addresses = nil, nil, m.addresses[:0]
	paramsPool.Put(m)
}
