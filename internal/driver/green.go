package driver

// Handles of green contexts.
type (
	GreenContext uintptr
	ResourceDesc uintptr
)

// Numbers of green contexts.
const (
	DevResourceSM uint32 = 1

	GreenCtxDefaultStream uint32 = 1

	SMSplitIgnoreCoscheduling uint32 = 1
	SMSplitMaxClusterSize     uint32 = 2
)

// DevResource is a CUdevResource, laid out as in cuda.h: 144 bytes. Internal is the implementation's.
type DevResource struct {
	Type     uint32
	Internal [92]byte
	SM       SMResource
	_        [36]byte
}

// SMResource is a CUdevSmResource.
type SMResource struct {
	Count              uint32
	MinPartitionSize   uint32
	CoscheduledAligned uint32
}

// GreenContexts are green contexts, which own some of a device's multiprocessors, and the streams made in them. Drivers
// before CUDA 12.4 have none of it.
type GreenContexts interface {
	DeviceGetDevResource(d Device, typ uint32) (DevResource, Result)
	// DevSmResourceSplitByCount splits in into at most groups parts of at least minCount multiprocessors each.
	DevSmResourceSplitByCount(in *DevResource, groups int, flags, minCount uint32) (parts []DevResource, rest DevResource, r Result)
	DevResourceGenerateDesc(resources []DevResource) (ResourceDesc, Result)

	GreenCtxCreate(desc ResourceDesc, d Device, flags uint32) (GreenContext, Result)
	GreenCtxDestroy(GreenContext) Result
	GreenCtxGetDevResource(g GreenContext, typ uint32) (DevResource, Result)
	// CtxFromGreenCtx is the context that stands for g wherever one is wanted.
	CtxFromGreenCtx(GreenContext) (Context, Result)

	// GreenCtxStreamCreate makes a stream in g; flags must have StreamNonBlocking. CUDA 12.5.
	GreenCtxStreamCreate(g GreenContext, flags uint32, priority int32) (Stream, Result)
	// StreamGetCtxs is the form of cuStreamGetCtx that CUDA 12.5 brought: for a stream of a green context the device's
	// primary context and the green one, for others their context and 0.
	StreamGetCtxs(Context, Stream) (primary Context, green GreenContext, r Result)
	StreamGetGreenCtx(Context, Stream) (GreenContext, Result)
	// StreamGetDevResource is of CUDA 13.1.
	StreamGetDevResource(ctx Context, s Stream, typ uint32) (DevResource, Result)
}

// Requirements is what a driver may have beside Driver: Needs says for a function that this driver lacks which CUDA version
// brought it, as CUDA counts; otherwise 0.
type Requirements interface{ Needs(function string) int }
