package cuda

// Queue is what work can be queued on: a *Stream, where it runs in order, or a *GraphBuilder, where it becomes a graph. What can be queued on one Queue can be queued on
// every other by the same call (DESIGN decision 13). The interface is sealed: only this package implements it.
//
// Methods and functions that queue return when the work is queued, not when it is done. On an error nothing was queued.
type Queue interface {
	// Launch queues a kernel. Stream.Launch says what may be an argument and how it is passed.
	Launch(k *Kernel, cfg LaunchConfig, args ...any) error
	// Memset queues filling b with value, byte by byte.
	Memset(b *Buffer, value byte) error
	// Memset16 and Memset32 queue filling b with a value of 2 or 4 bytes; b's address and length must be a multiple of that.
	Memset16(b *Buffer, value uint16) error
	Memset32(b *Buffer, value uint32) error
	// CopyBuffer queues a copy from src to dst, which must be of one length, and may be of different devices. Overlapping ranges
	// are refused.
	CopyBuffer(dst, src *Buffer) error
	// CopyRows queues a copy of rows from src to dst, which have pitches of their own.
	CopyRows(dst, src *Buffer, r Rows) error
	// Record queues the recording of e: e is complete when everything queued before is.
	Record(e *Event) error
	// WaitEvent has later work wait for what e's latest record captured.
	WaitEvent(e *Event) error
	// WaitStream has later work wait for everything queued on other so far.
	WaitStream(other *Stream) error
	// WriteValue32 and WriteValue64 queue writing value to a place in memory, which must be a multiple of 4 or 8. Everything
	// queued before is done when the value is seen (CONTRACT ST-12).
	WriteValue32(at Word, value uint32) error
	WriteValue64(at Word, value uint64) error
	// WaitValue32 and WaitValue64 have later work wait until the memory at at meets a condition: by the work of another stream,
	// or by the program's writing to pinned memory, with sync/atomic. CUDA does not know of that order: what does the writing must
	// not wait for something queued later, and while a stream waits, calls that free memory, load modules or make streams may
	// wait too (CONTRACT ST-12).
	WaitValue32(at Word, cond WaitCondition, value uint32) error
	WaitValue64(at Word, cond WaitCondition, value uint64) error
	// Batch queues memory operations in their order, all or none.
	Batch(ops ...MemOp) error

	hostLaunch(fn func(), site uintptr, opts []HostOption) error
	hostLaunchNative(l nativeLaunch, opts []HostOption) error
	copyToHost(op string, dst hostRange, src *Buffer, o *copyOptions) error
	copyToDevice(op string, dst *Buffer, src hostRange, o *copyOptions) error
	copyRowsHost(op string, toHost bool, host hostRange, b *Buffer, r Rows, o *copyOptions) error
}
