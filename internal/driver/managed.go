package driver

// Flags of managed memory and its attachment (CUmemAttach_flags), and what a device can do with memory of the host.
const (
	MemAttachGlobal uint32 = 1
	MemAttachHost   uint32 = 2
	MemAttachSingle uint32 = 4

	AttrManagedMemory           int32 = 83
	AttrConcurrentManagedAccess int32 = 89
)

// ManagedMemory is managed memory: cuMemAllocManaged (freed by MemFree) and the attachment of the stream management section.
type ManagedMemory interface {
	// MemAllocManaged allocates memory that has one address on the host and on devices.
	MemAllocManaged(ctx Context, size uintptr, flags uint32) (DevicePtr, Result)
	// StreamAttachMemAsync changes, in stream order, which stream the memory at p is associated with. length is 0 or the
	// whole size for managed memory; for pageable memory of the host it is that memory's size.
	StreamAttachMemAsync(ctx Context, s Stream, p DevicePtr, length uintptr, flags uint32) Result
	// HostAccess is not the driver's: it says whether the host may touch the managed memory at p now, on a device without
	// concurrent managed access. ErrorNotReady: it may not, because of the stream with the id busy. ErrorNotSupported: the
	// driver cannot tell. It may be called in a host function.
	HostAccess(ctx Context, p DevicePtr) (busy uint64, r Result)
}
