package driver

// CaptureMode says which calls a capture, or a thread, refuses while something is captured.
type CaptureMode int32

// Capture modes, by the driver's numbers.
const (
	CaptureGlobal      CaptureMode = 0
	CaptureThreadLocal CaptureMode = 1
	CaptureRelaxed     CaptureMode = 2
)

// CaptureStatus is whether a stream is capturing.
type CaptureStatus int32

// Capture states, by the driver's numbers.
const (
	CaptureNone        CaptureStatus = 0
	CaptureActive      CaptureStatus = 1
	CaptureInvalidated CaptureStatus = 2
)

// Flags of captures, event records and event waits, by the driver's numbers.
const (
	CaptureAddDependencies uint32 = 0
	CaptureSetDependencies uint32 = 1

	EventRecordExternal uint32 = 1
	EventWaitExternal   uint32 = 1
)

// CaptureInfo is what StreamGetCaptureInfo tells. Only Status is valid unless that is CaptureActive.
type CaptureInfo struct {
	Status CaptureStatus
	ID     uint64
	Graph  Graph // borrowed from the capture
	Deps   []GraphNode
	Edges  []EdgeData // one for each of Deps
}

// Captures are what the stream and event management sections have for capture.
type Captures interface {
	StreamBeginCapture(Context, Stream, CaptureMode) Result
	// StreamBeginCaptureToGraph needs CUDA 12.3. edges may be nil.
	StreamBeginCaptureToGraph(ctx Context, s Stream, g Graph, deps []GraphNode, edges []EdgeData, mode CaptureMode) Result
	// StreamBeginRecaptureToGraph needs CUDA 13.3. Every change of a node's parameters is accepted.
	StreamBeginRecaptureToGraph(ctx Context, s Stream, g Graph, mode CaptureMode) Result
	StreamEndCapture(Context, Stream) (Graph, Result)
	StreamIsCapturing(Context, Stream) (CaptureStatus, Result)
	// StreamGetCaptureInfo needs CUDA 12.3.
	StreamGetCaptureInfo(Context, Stream) (CaptureInfo, Result)
	// StreamUpdateCaptureDependencies needs CUDA 12.3. edges may be nil.
	StreamUpdateCaptureDependencies(ctx Context, s Stream, deps []GraphNode, edges []EdgeData, flags uint32) Result
	// ThreadExchangeStreamCaptureMode sets the calling thread's mode and gives the former one.
	ThreadExchangeStreamCaptureMode(CaptureMode) (CaptureMode, Result)
	EventRecordWithFlags(ctx Context, e Event, s Stream, flags uint32) Result
}
