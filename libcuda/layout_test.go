//go:build linux && (amd64 || arm64)

package libcuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// layout is what a C expression over cuda.h must be.
type layout struct {
	expression string
	want       uintptr
}

// TestLayouts checks the structs and numbers of graphs against cuda.h, which is NVIDIA's and not part of this repository: the
// test needs HOSTLAUNCH_CUDA_INCLUDE, the directory that holds it, and a C compiler.
func TestLayouts(t *testing.T) {
	dir := os.Getenv("HOSTLAUNCH_CUDA_INCLUDE")
	if dir == "" {
		t.Skip("set HOSTLAUNCH_CUDA_INCLUDE to the directory of cuda.h (CUDA 13.0 or newer)")
	}
	var source strings.Builder
	source.WriteString("#include <cuda.h>\n#include <stddef.h>\n#include <stdio.h>\n" +
		"#if CUDA_VERSION < 13020\n#define SYNC_MODE sizeof(CUDA_HOST_NODE_PARAMS_v2)\n" + // behind all that there is
		"#else\n#define SYNC_MODE offsetof(CUDA_HOST_NODE_PARAMS_v2, syncMode)\n#endif\nint main(void) {\n")
	checks := append(layouts(), numbers()...)
	for i, c := range checks {
		fmt.Fprintf(&source, "\tif ((%s) != %d) printf(\"%d is %%zu\\n\", (size_t)(%s));\n", c.expression, c.want, i, c.expression)
	}
	source.WriteString("\treturn 0;\n}\n")
	program := filepath.Join(t.TempDir(), "layouts")
	if err := os.WriteFile(program+".c", []byte(source.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-I", dir, "-o", program, program+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		var i int
		var is uintptr
		if _, err := fmt.Sscanf(line, "%d is %d", &i, &is); err != nil {
			t.Fatal(line, err)
		}
		t.Errorf("%s is %d, here %d", checks[i].expression, is, checks[i].want)
	}
}

// layouts are the places of what the wrappers write and read.
func layouts() []layout {
	var (
		p  nodeParams
		k  kernelParams
		m  memcpyParams
		s  memsetParams
		h  hostParams
		c  childParams
		a  allocParams
		b  batchParams
		w  condParams
		i  driver.Instantiation
		u  driver.ExecUpdate
		e  driver.EdgeData
		op driver.MemOp
		d  driver.Memcpy3D
	)
	const union = unsafe.Offsetof(p.union)
	var list []layout
	within := func(c string, base uintptr, members ...layout) {
		for _, m := range members {
			list = append(list, layout{fmt.Sprintf("offsetof(%s, %s)", c, m.expression), base + m.want})
		}
	}
	within("CUgraphNodeParams", 0, layout{"type", unsafe.Offsetof(p.typ)}, layout{"reserved1", union}, layout{"reserved2", union + unsafe.Sizeof(p.union)})
	within("CUgraphNodeParams", union,
		layout{"kernel.func", unsafe.Offsetof(k.fn)}, layout{"kernel.gridDimX", unsafe.Offsetof(k.grid)}, layout{"kernel.blockDimX", unsafe.Offsetof(k.block)},
		layout{"kernel.sharedMemBytes", unsafe.Offsetof(k.shared)}, layout{"kernel.kernelParams", unsafe.Offsetof(k.params)},
		layout{"kernel.extra", unsafe.Offsetof(k.extra)}, layout{"kernel.kern", unsafe.Offsetof(k.kern)}, layout{"kernel.ctx", unsafe.Offsetof(k.ctx)},
		layout{"memcpy.flags", unsafe.Offsetof(m.flags)}, layout{"memcpy.copyCtx", unsafe.Offsetof(m.ctx)}, layout{"memcpy.copyParams", unsafe.Offsetof(m.copy)},
		layout{"memset.dst", unsafe.Offsetof(s.memset.Dst)}, layout{"memset.pitch", unsafe.Offsetof(s.memset.Pitch)}, layout{"memset.value", unsafe.Offsetof(s.memset.Value)},
		layout{"memset.elementSize", unsafe.Offsetof(s.memset.ElementSize)}, layout{"memset.width", unsafe.Offsetof(s.memset.Width)},
		layout{"memset.height", unsafe.Offsetof(s.memset.Height)}, layout{"memset.ctx", unsafe.Offsetof(s.ctx)},
		layout{"host.fn", unsafe.Offsetof(h.fn)}, layout{"host.userData", unsafe.Offsetof(h.data)},
		layout{"graph.graph", unsafe.Offsetof(c.graph)}, layout{"graph.ownership", unsafe.Offsetof(c.ownership)},
		layout{"eventRecord.event", 0}, layout{"eventWait.event", 0}, layout{"free.dptr", 0},
		layout{"alloc.poolProps.allocType", unsafe.Offsetof(a.pool.allocType)}, layout{"alloc.poolProps.handleTypes", unsafe.Offsetof(a.pool.handleTypes)},
		layout{"alloc.poolProps.location.type", unsafe.Offsetof(a.pool.locationType)}, layout{"alloc.poolProps.location.id", unsafe.Offsetof(a.pool.location)},
		layout{"alloc.accessDescs", unsafe.Offsetof(a.access)}, layout{"alloc.accessDescCount", unsafe.Offsetof(a.n)},
		layout{"alloc.bytesize", unsafe.Offsetof(a.size)}, layout{"alloc.dptr", unsafe.Offsetof(a.ptr)},
		layout{"memOp.ctx", unsafe.Offsetof(b.ctx)}, layout{"memOp.count", unsafe.Offsetof(b.count)}, layout{"memOp.paramArray", unsafe.Offsetof(b.ops)},
		layout{"memOp.flags", unsafe.Offsetof(b.flags)},
		layout{"conditional.handle", unsafe.Offsetof(w.handle)}, layout{"conditional.type", unsafe.Offsetof(w.kind)},
		layout{"conditional.size", unsafe.Offsetof(w.size)}, layout{"conditional.phGraph_out", unsafe.Offsetof(w.bodies)}, layout{"conditional.ctx", unsafe.Offsetof(w.ctx)})
	within("CUDA_GRAPH_INSTANTIATE_PARAMS", 0, layout{"flags", unsafe.Offsetof(i.Flags)}, layout{"hUploadStream", unsafe.Offsetof(i.UploadStream)},
		layout{"hErrNode_out", unsafe.Offsetof(i.ErrorNode)}, layout{"result_out", unsafe.Offsetof(i.Result)})
	within("CUgraphExecUpdateResultInfo", 0, layout{"result", unsafe.Offsetof(u.Result)}, layout{"errorNode", unsafe.Offsetof(u.ErrorNode)},
		layout{"errorFromNode", unsafe.Offsetof(u.ErrorFrom)})
	within("CUDA_HOST_NODE_PARAMS_v1", 0, layout{"fn", 0}, layout{"userData", 8})
	within("CUDA_KERNEL_NODE_PARAMS_v2", 0, layout{"func", unsafe.Offsetof(k.fn)}, layout{"gridDimX", unsafe.Offsetof(k.grid)}, layout{"blockDimX", unsafe.Offsetof(k.block)})
	within("CUgraphEdgeData", 0, layout{"from_port", unsafe.Offsetof(e.FromPort)}, layout{"to_port", unsafe.Offsetof(e.ToPort)}, layout{"type", unsafe.Offsetof(e.Type)})
	within("CUstreamBatchMemOpParams", 0, layout{"waitValue.address", unsafe.Offsetof(op.Address)}, layout{"waitValue.value64", unsafe.Offsetof(op.Value)},
		layout{"waitValue.flags", unsafe.Offsetof(op.Flags)}, layout{"memoryBarrier.flags", unsafe.Offsetof(op.Plain)})
	within("CUDA_MEMCPY3D", 0,
		layout{"srcXInBytes", unsafe.Offsetof(d.SrcX)}, layout{"srcY", unsafe.Offsetof(d.SrcY)}, layout{"srcZ", unsafe.Offsetof(d.SrcZ)}, layout{"srcLOD", unsafe.Offsetof(d.SrcLOD)},
		layout{"srcMemoryType", unsafe.Offsetof(d.SrcType)}, layout{"srcHost", unsafe.Offsetof(d.SrcHost)}, layout{"srcDevice", unsafe.Offsetof(d.SrcDevice)},
		layout{"srcArray", unsafe.Offsetof(d.SrcArray)}, layout{"srcPitch", unsafe.Offsetof(d.SrcPitch)}, layout{"srcHeight", unsafe.Offsetof(d.SrcHeight)},
		layout{"dstXInBytes", unsafe.Offsetof(d.DstX)}, layout{"dstY", unsafe.Offsetof(d.DstY)}, layout{"dstZ", unsafe.Offsetof(d.DstZ)}, layout{"dstLOD", unsafe.Offsetof(d.DstLOD)},
		layout{"dstMemoryType", unsafe.Offsetof(d.DstType)}, layout{"dstHost", unsafe.Offsetof(d.DstHost)}, layout{"dstDevice", unsafe.Offsetof(d.DstDevice)},
		layout{"dstArray", unsafe.Offsetof(d.DstArray)}, layout{"dstPitch", unsafe.Offsetof(d.DstPitch)}, layout{"dstHeight", unsafe.Offsetof(d.DstHeight)},
		layout{"WidthInBytes", unsafe.Offsetof(d.Width)}, layout{"Height", unsafe.Offsetof(d.Height)}, layout{"Depth", unsafe.Offsetof(d.Depth)})
	return append(list,
		layout{"sizeof(CUgraphNodeParams)", unsafe.Offsetof(p.params)}, layout{"sizeof(CUDA_KERNEL_NODE_PARAMS_v2)", unsafe.Sizeof(k)},
		layout{"sizeof(CUDA_KERNEL_NODE_PARAMS_v3)", unsafe.Sizeof(k)}, layout{"sizeof(CUDA_MEMCPY_NODE_PARAMS)", unsafe.Sizeof(m)},
		layout{"sizeof(CUDA_MEMSET_NODE_PARAMS_v2)", unsafe.Sizeof(s)}, layout{"sizeof(CUDA_HOST_NODE_PARAMS_v1)", 16},
		layout{"sizeof(CUDA_CHILD_GRAPH_NODE_PARAMS)", unsafe.Sizeof(c)}, layout{"sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2)", unsafe.Sizeof(a)},
		layout{"sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2)", unsafe.Sizeof(b)}, layout{"sizeof(CUDA_CONDITIONAL_NODE_PARAMS)", unsafe.Sizeof(w)},
		layout{"sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS)", unsafe.Sizeof(i)}, layout{"sizeof(CUgraphExecUpdateResultInfo)", unsafe.Sizeof(u)},
		layout{"sizeof(CUgraphEdgeData)", unsafe.Sizeof(e)}, layout{"sizeof(CUstreamBatchMemOpParams)", unsafe.Sizeof(op)}, layout{"sizeof(CUDA_MEMCPY3D)", unsafe.Sizeof(d)},
		layout{"SYNC_MODE", unsafe.Offsetof(h.mode)})
}

// numbers are the enumerators of graphs that the seam has.
func numbers() []layout {
	return []layout{
		{"CU_GRAPH_NODE_TYPE_KERNEL", uintptr(driver.NodeKernel)}, {"CU_GRAPH_NODE_TYPE_MEMCPY", uintptr(driver.NodeMemcpy)},
		{"CU_GRAPH_NODE_TYPE_MEMSET", uintptr(driver.NodeMemset)}, {"CU_GRAPH_NODE_TYPE_HOST", uintptr(driver.NodeHost)},
		{"CU_GRAPH_NODE_TYPE_GRAPH", uintptr(driver.NodeGraph)}, {"CU_GRAPH_NODE_TYPE_EMPTY", uintptr(driver.NodeEmpty)},
		{"CU_GRAPH_NODE_TYPE_WAIT_EVENT", uintptr(driver.NodeWaitEvent)}, {"CU_GRAPH_NODE_TYPE_EVENT_RECORD", uintptr(driver.NodeEventRecord)},
		{"CU_GRAPH_NODE_TYPE_MEM_ALLOC", uintptr(driver.NodeMemAlloc)}, {"CU_GRAPH_NODE_TYPE_MEM_FREE", uintptr(driver.NodeMemFree)},
		{"CU_GRAPH_NODE_TYPE_BATCH_MEM_OP", uintptr(driver.NodeBatchMemOp)}, {"CU_GRAPH_NODE_TYPE_CONDITIONAL", uintptr(driver.NodeConditional)},
		{"CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH", uintptr(driver.GraphAutoFreeOnLaunch)},
		{"CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD", uintptr(driver.GraphUpload)},
		{"CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY", uintptr(driver.GraphUseNodePriority)},
		{"CU_GRAPH_USER_OBJECT_MOVE", uintptr(driver.UserObjectMove)}, {"CU_USER_OBJECT_NO_DESTRUCTOR_SYNC", noDestructorSync},
		{"CU_GRAPH_COND_TYPE_IF", uintptr(driver.CondIf)}, {"CU_GRAPH_COND_TYPE_WHILE", uintptr(driver.CondWhile)},
		{"CU_GRAPH_COND_TYPE_SWITCH", uintptr(driver.CondSwitch)}, {"CU_GRAPH_COND_ASSIGN_DEFAULT", uintptr(driver.CondAssignDefault)},
		{"CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE", 0},
		{"CU_MEM_ALLOCATION_TYPE_PINNED", allocationPinned}, {"CU_MEM_LOCATION_TYPE_DEVICE", locationDevice},
		{"CU_MEMORYTYPE_HOST", uintptr(driver.MemoryHost)}, {"CU_MEMORYTYPE_DEVICE", uintptr(driver.MemoryDevice)},
		{"CU_GRAPH_EXEC_UPDATE_SUCCESS", uintptr(driver.UpdateSuccess)}, {"CU_GRAPH_EXEC_UPDATE_ERROR", uintptr(driver.UpdateError)},
		{"CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED", uintptr(driver.UpdateTopologyChanged)},
		{"CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED", uintptr(driver.UpdateNodeTypeChanged)},
		{"CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED", uintptr(driver.UpdateFunctionChanged)},
		{"CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED", uintptr(driver.UpdateParametersChanged)},
		{"CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED", uintptr(driver.UpdateNotSupported)},
		{"CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE", uintptr(driver.UpdateUnsupportedFunctionChange)},
		{"CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED", uintptr(driver.UpdateAttributesChanged)},
		{"CUDA_GRAPH_INSTANTIATE_SUCCESS", uintptr(driver.InstantiateSuccess)}, {"CUDA_GRAPH_INSTANTIATE_ERROR", uintptr(driver.InstantiateError)},
		{"CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE", uintptr(driver.InstantiateInvalidStructure)},
		{"CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED", uintptr(driver.InstantiateNodeNotSupported)},
		{"CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED", uintptr(driver.InstantiateMultipleContexts)},
		{"CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED", uintptr(driver.InstantiateConditionalUnused)},
	}
}
