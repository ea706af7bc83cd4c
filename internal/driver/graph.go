package driver

// Handles of graphs. Zero is "none".
type (
	Graph             uintptr
	GraphNode         uintptr
	GraphExec         uintptr
	UserObject        uintptr
	ConditionalHandle uint64
)

// NodeType is what a node of a graph does.
type NodeType int32

// Node types, by the driver's numbers.
const (
	NodeKernel      NodeType = 0
	NodeMemcpy      NodeType = 1
	NodeMemset      NodeType = 2
	NodeHost        NodeType = 3
	NodeGraph       NodeType = 4
	NodeEmpty       NodeType = 5
	NodeWaitEvent   NodeType = 6
	NodeEventRecord NodeType = 7
	NodeMemAlloc    NodeType = 10
	NodeMemFree     NodeType = 11
	NodeBatchMemOp  NodeType = 12
	NodeConditional NodeType = 13
)

// Flags and kinds of graphs, by the driver's numbers.
const (
	GraphAutoFreeOnLaunch uint64 = 1
	GraphUpload           uint64 = 2
	GraphUseNodePriority  uint64 = 8

	UserObjectMove uint32 = 1

	CondIf     int32 = 0
	CondWhile  int32 = 1
	CondSwitch int32 = 2

	CondAssignDefault uint32 = 1
)

// EdgeData says how an edge of a graph orders its nodes; the zero EdgeData is a whole dependency. It is laid out as a
// CUgraphEdgeData.
type EdgeData struct {
	FromPort, ToPort, Type uint8
	_                      [5]uint8
}

// GraphEdge is an edge of a graph.
type GraphEdge struct {
	From, To GraphNode
	Data     EdgeData
}

// NodeParams are the parameters of a node: its type, and what that type needs, as a CUgraphNodeParams has them. What they
// point to is copied by the call, but for host memory of a copy, which must stay as long as anything can run the node.
type NodeParams struct {
	Type   NodeType
	Func   Function     // NodeKernel
	Launch *Launch      // NodeKernel
	Copy   *Memcpy3D    // NodeMemcpy
	Memset *Memset      // NodeMemset
	Entry  uintptr      // NodeHost: a compiled function that is called with Data; 0: Upcalls.HostFunc is
	Data   uint64       // NodeHost
	Mode   uint32       // NodeHost: the sync mode; drivers before CUDA 13.2 ignore it
	Child  Graph        // NodeGraph
	Event  Event        // NodeEventRecord, NodeWaitEvent
	Alloc  *MemAllocate // NodeMemAlloc
	Free   DevicePtr    // NodeMemFree
	Ops    []MemOp      // NodeBatchMemOp
	Cond   *Conditional // NodeConditional
}

// Memset is what a memset node does: Height rows of Width elements of ElementSize bytes each, Pitch bytes apart.
type Memset struct {
	Dst         DevicePtr
	Pitch       uintptr
	Value       uint32
	ElementSize uint32
	Width       uintptr
	Height      uintptr
}

// MemAllocate is what a memory allocation node allocates, in the device of the call's context.
type MemAllocate struct {
	Size    uintptr
	Address DevicePtr // set by GraphAddNode
}

// Conditional is what a conditional node has.
type Conditional struct {
	Handle ConditionalHandle
	Kind   int32
	Size   int     // how many bodies
	Bodies []Graph // set by GraphAddNode; they belong to the node
}

// ExecUpdate says why an update of an executable graph was refused: a CUgraphExecUpdateResultInfo.
type ExecUpdate struct {
	Result    int32
	_         int32
	ErrorNode GraphNode // of the graph updated from
	ErrorFrom GraphNode // the dependent node, if an edge is at fault
}

// Why an update was refused, by the driver's numbers (CUgraphExecUpdateResult).
const (
	UpdateSuccess                   int32 = 0
	UpdateError                     int32 = 1
	UpdateTopologyChanged           int32 = 2
	UpdateNodeTypeChanged           int32 = 3
	UpdateFunctionChanged           int32 = 4
	UpdateParametersChanged         int32 = 5
	UpdateNotSupported              int32 = 6
	UpdateUnsupportedFunctionChange int32 = 7
	UpdateAttributesChanged         int32 = 8
)

// Instantiation is what making an executable graph came to: a CUDA_GRAPH_INSTANTIATE_PARAMS.
type Instantiation struct {
	Flags        uint64
	UploadStream Stream
	ErrorNode    GraphNode // set by GraphInstantiateWithParams, if it knows
	Result       int32     // set by it: a CUgraphInstantiateResult
	_            int32
}

// Why an instantiation was refused, by the driver's numbers (CUgraphInstantiateResult).
const (
	InstantiateSuccess           int32 = 0
	InstantiateError             int32 = 1
	InstantiateInvalidStructure  int32 = 2
	InstantiateNodeNotSupported  int32 = 3
	InstantiateMultipleContexts  int32 = 4
	InstantiateConditionalUnused int32 = 5
)

// Graphs is the graph management section. A node handle must be one that exists: drivers do not check that.
type Graphs interface {
	GraphCreate(ctx Context, flags uint32) (Graph, Result)
	GraphDestroy(Context, Graph) Result
	// GraphClone copies g with all that is attached to it.
	GraphClone(ctx Context, g Graph) (Graph, Result)
	GraphNodeFindInClone(ctx Context, original GraphNode, clone Graph) (GraphNode, Result)

	// GraphAddNode needs CUDA 12.3. edges may be nil. The node works in ctx, where that matters.
	GraphAddNode(ctx Context, g Graph, deps []GraphNode, edges []EdgeData, p *NodeParams) (GraphNode, Result)
	// GraphNodeSetParams needs CUDA 12.2. p must be of the node's type.
	GraphNodeSetParams(ctx Context, n GraphNode, p *NodeParams) Result
	GraphDestroyNode(Context, GraphNode) Result
	GraphGetNodes(Context, Graph) ([]GraphNode, Result)
	GraphNodeGetType(Context, GraphNode) (NodeType, Result)
	// GraphGetEdges, GraphAddDependencies and GraphRemoveDependencies need CUDA 12.3. An edge is from[i] to to[i].
	GraphGetEdges(Context, Graph) ([]GraphEdge, Result)
	GraphAddDependencies(ctx Context, g Graph, from, to []GraphNode, edges []EdgeData) Result
	GraphRemoveDependencies(ctx Context, g Graph, from, to []GraphNode, edges []EdgeData) Result
	GraphChildGraphNodeGetGraph(Context, GraphNode) (Graph, Result)
	// GraphHostNodeGetParams gives the data of a host node of this library's, be its function Upcalls.HostFunc or
	// native.CellEntry; 0 for any other.
	GraphHostNodeGetParams(Context, GraphNode) (data uint64, r Result)
	GraphKernelNodeGetParams(Context, GraphNode) (f Function, grid, block [3]uint32, r Result)
	// FuncGetName needs CUDA 12.3.
	FuncGetName(Context, Function) (string, Result)
	// GraphConditionalHandleCreate needs CUDA 12.3.
	GraphConditionalHandleCreate(ctx Context, g Graph, value, flags uint32) (ConditionalHandle, Result)
	// GraphDebugDotPrint writes the driver's own picture of g to a file.
	GraphDebugDotPrint(ctx Context, g Graph, path string, flags uint32) Result

	// GraphInstantiateWithParams makes an executable of g. It fills what i says it sets.
	GraphInstantiateWithParams(ctx Context, g Graph, i *Instantiation) (GraphExec, Result)
	GraphExecDestroy(Context, GraphExec) Result
	GraphUpload(Context, GraphExec, Stream) Result
	GraphLaunch(Context, GraphExec, Stream) Result
	// GraphExecUpdate changes x to what g is now. It fills u.
	GraphExecUpdate(ctx Context, x GraphExec, g Graph, u *ExecUpdate) Result
	// GraphExecNodeSetParams changes what later launches of x do for n, a node of the graph that x was made of. CUDA 12.2.
	GraphExecNodeSetParams(ctx Context, x GraphExec, n GraphNode, p *NodeParams) Result
	GraphNodeSetEnabled(ctx Context, x GraphExec, n GraphNode, enabled bool) Result
	GraphNodeGetEnabled(ctx Context, x GraphExec, n GraphNode) (bool, Result)

	// UserObjectCreate makes an object with one reference, which is the caller's. When the last is gone, Upcalls.HostFunc is
	// called with data, once, on a thread of the driver or by the call that let go of it. Graphs hold references, and so do
	// clones, graphs that embed them, and executables, until no launch can run any more; a copy or an update of one copies them.
	UserObjectCreate(data uint64) (UserObject, Result)
	UserObjectRelease(o UserObject, count uint32) Result
	// GraphRetainUserObject gives g references; with UserObjectMove, the caller's own.
	GraphRetainUserObject(ctx Context, g Graph, o UserObject, count, flags uint32) Result
	GraphReleaseUserObject(ctx Context, g Graph, o UserObject, count uint32) Result
}
