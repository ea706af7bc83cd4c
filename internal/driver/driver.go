// Package driver is the seam between package cuda and what executes its work: the NVIDIA driver (package libcuda) or the
// software device (package softcuda).
//
// It speaks the CUDA driver API's terms: a method stands for the driver function of its name, takes its arguments in their
// order and returns its result code. Three things differ, the same way everywhere:
//
//   - A method of something that lives in a context takes that context first. The implementation makes it current for the
//     call and leaves the calling thread as it was found (DESIGN decision 5).
//   - Out parameters are results.
//   - Host memory is an unsafe.Pointer, which keeps Go memory alive for the call. Whoever has the driver copy asynchronously
//     to or from Go memory keeps that memory until the copy is done.
//
// Nothing of this module is imported here.
package driver

import "unsafe"

// Handles, as the driver gives them. Zero is "none", except for Stream, where it is the legacy default stream.
type (
	Device    int32
	Context   uintptr
	Stream    uintptr
	Event     uintptr
	Module    uintptr
	Function  uintptr
	DevicePtr uint64
)

// Special streams. They belong to no context: the context a call names is the one they are taken in.
const (
	StreamLegacy    Stream = 1
	StreamPerThread Stream = 2
)

// Flags of streams and events, and device attributes, by the driver's numbers.
const (
	StreamDefault     uint32 = 0
	StreamNonBlocking uint32 = 1

	EventDefault       uint32 = 0
	EventBlockingSync  uint32 = 1
	EventDisableTiming uint32 = 2

	MemHostAllocPortable uint32 = 1

	AttrMaxThreadsPerBlock      int32 = 1
	AttrMaxSharedMemoryPerBlock int32 = 8
	AttrMultiprocessorCount     int32 = 16
	AttrComputeCapabilityMajor  int32 = 75
	AttrComputeCapabilityMinor  int32 = 76
	AttrPageableMemoryAccess    int32 = 88
)

// Driver is one opened driver. All methods may be called from any goroutine.
type Driver interface {
	// Name says which driver this is: "nvidia" or "software".
	Name() string
	// DriverGetVersion is the CUDA version, 1000*major + 10*minor.
	DriverGetVersion() (int, Result)
	// Attach gives the driver its way back into the library. It is called once, before anything is queued.
	Attach(Upcalls)
	// InHostFunction reports whether the calling goroutine is inside a host function of this driver.
	InHostFunction() bool
	// GoexitContained reports whether the driver survives a host function that calls runtime.Goexit.
	GoexitContained() bool
	// Shut ends what serves this driver once nothing is queued any more, and waits for it. No method is called afterwards.
	Shut()

	Devices
	Streams
	Events
	Memory
	Modules
	HostFunctions
	Callbacks
	StreamAttributes
	OwnContexts
	MemoryOps
	ManagedMemory
	GreenContexts
	Captures
	Graphs
	MoreMemory
	HostCopies
	Holds
}

// Upcalls are what a driver calls in the library.
type Upcalls struct {
	// HostFunc runs the host function that was launched with data, on a thread (or goroutine) of the driver.
	HostFunc func(data uint64)
	// Lost says, on an ordinary goroutine, that ctx has failed for good with r. Saying it again does nothing.
	Lost func(ctx Context, r Result)
	// Log reports what the program should know and no error can carry.
	Log func(msg string, args ...any)
	// Pending reports how many host functions of ctx have yet to run, and how many staged copies there are in progress, so that
	// a driver that must look for failures knows when to look. A function counts before LaunchHostFunc is called for it, and a
	// copy before WatchContext.
	Pending func(ctx Context) int
	// Callback runs the callback that was added with data, like HostFunc, and tells it r: Success, or what the context has
	// failed with.
	Callback func(data uint64, r Result)
}

// Devices are the device and primary context management sections.
type Devices interface {
	DeviceGetCount() (int, Result)
	DeviceGetName(Device) (string, Result)
	DeviceGetAttribute(attr int32, d Device) (int, Result)
	DeviceTotalMem(Device) (uint64, Result)
	DevicePrimaryCtxRetain(Device) (Context, Result)
	DevicePrimaryCtxRelease(Device) Result
	CtxGetStreamPriorityRange(Context) (least, greatest int32, r Result)
	CtxSynchronize(Context) Result
}

// Streams is the stream management section.
type Streams interface {
	StreamCreateWithPriority(ctx Context, flags uint32, priority int32) (Stream, Result)
	StreamDestroy(Context, Stream) Result
	StreamQuery(Context, Stream) Result
	StreamSynchronize(Context, Stream) Result
	StreamWaitEvent(ctx Context, s Stream, e Event, flags uint32) Result
	StreamGetFlags(Context, Stream) (uint32, Result)
	StreamGetPriority(Context, Stream) (int32, Result)
	StreamGetID(Context, Stream) (uint64, Result)
	StreamGetCtx(Context, Stream) (Context, Result)
	StreamGetDevice(Context, Stream) (Device, Result)
}

// Events is the event management section.
type Events interface {
	EventCreate(ctx Context, flags uint32) (Event, Result)
	EventDestroy(Context, Event) Result
	EventRecord(Context, Event, Stream) Result
	EventQuery(Context, Event) Result
	EventSynchronize(Context, Event) Result
	EventElapsedTime(ctx Context, start, end Event) (milliseconds float32, r Result)
	// NotifyEvent has fn called once, when the work that e captured last has completed (Success) or can no longer (the
	// context's error), or when stop has been called (ErrorNotReady). e may be in use until fn is called. fn is called on a
	// goroutine of the driver or by stop, or before NotifyEvent returns; it must not block. No thread waits meanwhile.
	// If NotifyEvent returns anything but Success, fn is never called. stop may be called at any time and from anywhere.
	NotifyEvent(ctx Context, e Event, fn func(Result)) (stop func(), r Result)
}

// Memory is the memory management section.
type Memory interface {
	MemAlloc(ctx Context, size uintptr) (DevicePtr, Result)
	MemFree(Context, DevicePtr) Result
	MemHostAlloc(ctx Context, size uintptr, flags uint32) (unsafe.Pointer, Result)
	MemFreeHost(Context, unsafe.Pointer) Result

	MemcpyHtoD(ctx Context, dst DevicePtr, src unsafe.Pointer, size uintptr) Result
	MemcpyDtoH(ctx Context, dst unsafe.Pointer, src DevicePtr, size uintptr) Result

	MemcpyHtoDAsync(ctx Context, dst DevicePtr, src unsafe.Pointer, size uintptr, s Stream) Result
	MemcpyDtoHAsync(ctx Context, dst unsafe.Pointer, src DevicePtr, size uintptr, s Stream) Result
	MemcpyDtoDAsync(ctx Context, dst, src DevicePtr, size uintptr, s Stream) Result
	MemsetD8Async(ctx Context, dst DevicePtr, value uint8, n uintptr, s Stream) Result
	MemsetD16Async(ctx Context, dst DevicePtr, value uint16, n uintptr, s Stream) Result
	MemsetD32Async(ctx Context, dst DevicePtr, value uint32, n uintptr, s Stream) Result
}

// Modules is the module management section and kernel launch.
type Modules interface {
	// ModuleLoadData loads PTX text or a binary image. log says what was wrong with it, where the driver can tell.
	ModuleLoadData(ctx Context, image []byte) (m Module, log string, r Result)
	ModuleUnload(Context, Module) Result
	ModuleGetFunction(ctx Context, m Module, name string) (Function, Result)
	// FuncGetParamInfo gives a parameter's place in the parameter block; ErrorInvalidValue behind the last one.
	FuncGetParamInfo(ctx Context, f Function, index int) (offset, size uintptr, r Result)
	// LaunchKernel queues a launch. The parameters are copied before it returns. why explains a refusal, where it can.
	LaunchKernel(ctx Context, f Function, l *Launch, s Stream) (why string, r Result)
}

// Launch is what a kernel is launched with.
type Launch struct {
	Grid, Block [3]uint32
	SharedMem   uint32
	Params      []byte   // the values, each at its offset
	Offsets     []uint32 // where each parameter's value stands in Params
}

// HostFunctions are the host functions of the execution control section.
type HostFunctions interface {
	// LaunchHostFunc queues a call of Upcalls.HostFunc with data.
	LaunchHostFunc(ctx Context, s Stream, data uint64) Result
	// LaunchHostFuncMode is LaunchHostFunc with a sync mode (cuLaunchHostFunc of CUDA 13.2). A driver without it ignores the mode.
	LaunchHostFuncMode(ctx Context, s Stream, data uint64, mode uint32) Result
	// LaunchNativeHostFunc queues a call of the C function `void fn(void *data)`, with a sync mode or 0. The memory at data stays
	// as long as the driver may make the call. A driver that cannot call C in this program, and knows no twin of fn (package
	// native), gives ErrorNotSupported.
	LaunchNativeHostFunc(ctx Context, s Stream, fn, data uintptr, mode uint32) Result
}

// Checker is implemented by drivers that look after the program.
type Checker interface {
	// LeftOpen is called when the Driver is about to be closed, with the allocations that the program has not closed.
	LeftOpen([]DevicePtr)
	// NativeTold is called when the program is about to be told, by OnDone, that a native host function has run; data is what the
	// driver was given with it.
	NativeTold(data uintptr)
	// CopyQueued is called when all has been queued on s that a copy of ordinary memory needs of the device, and the program is to be told
	// of its end; told is called when it is about to be.
	CopyQueued(ctx Context, s Stream) (told func())
	// Reused is called when the library has seen to it that whatever uses n bytes of pinned memory from now on is behind all that has
	// used them.
	Reused(at DevicePtr, n uintptr)
}
