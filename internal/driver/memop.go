package driver

// Device attributes that say which memory operations there are.
const (
	AttrCanFlushRemoteWrites     int32  = 98
	AttrCanUse64BitStreamMemOps  int32  = 122
	AttrCanUseStreamWaitValueNOR int32  = 123
	MaxBatchMemOps                      = 255 // of one batch
	WaitValueFlush               uint32 = 1 << 30
)

// Conditions of a wait-value, as its flags.
const (
	WaitValueGEQ uint32 = iota
	WaitValueEQ
	WaitValueAND
	WaitValueNOR
)

// Operations of a batch (CUstreamBatchMemOpType).
const (
	MemOpWait32            uint32 = 1
	MemOpWrite32           uint32 = 2
	MemOpFlushRemoteWrites uint32 = 3
	MemOpWait64            uint32 = 4
	MemOpWrite64           uint32 = 5
	MemOpBarrier           uint32 = 6
)

// MemOp is a CUstreamBatchMemOpParams, laid out as the driver wants it: 48 bytes.
type MemOp struct {
	Op      uint32
	Plain   uint32 // the flags of what has no address: MemOpBarrier, MemOpFlushRemoteWrites
	Address DevicePtr
	Value   uint64
	Flags   uint32 // of a wait or write
	_       uint32
	Alias   uint64 // the driver's own
	_       uint64
}

// MemoryOps is the stream memory operations section.
type MemoryOps interface {
	StreamWriteValue32(ctx Context, s Stream, at DevicePtr, value, flags uint32) Result
	StreamWriteValue64(ctx Context, s Stream, at DevicePtr, value uint64, flags uint32) Result
	StreamWaitValue32(ctx Context, s Stream, at DevicePtr, value, flags uint32) Result
	StreamWaitValue64(ctx Context, s Stream, at DevicePtr, value uint64, flags uint32) Result
	// StreamBatchMemOp queues ops in their order. flags must be 0.
	StreamBatchMemOp(ctx Context, s Stream, ops []MemOp, flags uint32) Result
}
