// Package cuda queues work on CUDA streams, and runs Go code at exact points of them.
//
// A stream is a queue of GPU work. A host function is CPU code with a place in that queue: it runs when everything queued
// before it has finished, and what is queued after it waits until it returns. [HostLaunch] queues one:
//
//	s, _ := dev.NewStream()
//	s.Launch(produce, cuda.Grid1D(n, 256), buf, uint32(n))
//	cuda.HostLaunch(s, func() { fmt.Println("produced") })
//	s.Launch(consume, cuda.Grid1D(n, 256), buf, uint32(n))
//	s.Sync()
//
// A [Driver] comes from one of three packages: libcuda (the NVIDIA driver, found at run time), softcuda (a software device
// that needs no GPU), or anycuda (the first of these that works). The rest of a program is the same on each.
//
// # Inside a host function
//
// A host function runs on a thread of the driver, where CUDA is forbidden: every call of this package that would reach the
// driver returns [ErrNotPermitted] at once. What needs no driver works (PinnedBuffer.Bytes, names, Stream.ID), Close is accepted and
// carried out later, and a goroutine that the function starts may do anything. Functions of one context run one at a time,
// so a slow one delays those of other streams. It must not wait for work that is not queued before it.
//
// A function, and all that it captured, stays alive until it has run, exactly once. If it panics, the panic is recovered and
// reported, and the stream goes on. If its context fails before it runs, it never runs, and that is reported as well. See
// [OnDone], [OnPanic] and [OnLost]. A callback ([AddCallback]) is the same but for this: it runs even then, and is told the error.
//
// # Compiled functions and copies of host memory
//
// [HostLaunchNative] queues a compiled function, `void f(void *)`, in place of a Go function: Go is not entered for it. [HostCopy]
// copies between any two ranges of host memory, ordinary slices among them, in the same way. What they work with is kept alive
// and where it is until they have run.
//
// # Graphs
//
// [Capture] records work instead of doing it: what a function queues on a [GraphBuilder], by the same calls as on a [Stream],
// becomes a [Graph], which is instantiated once and launched many times. A host function in a graph runs once for every launch.
// Say CaptureThreadLocal unless there is a reason for another [CaptureMode].
//
//	g, _ := cuda.Capture(s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
//		b.Launch(produce, cuda.Grid1D(n, 256), buf, uint32(n))
//		return cuda.HostLaunch(b, func() { fmt.Println("produced") })
//	})
//	x, _ := g.Instantiate()
//	x.Launch(s)
//
// # Threads and lifetimes
//
// All types may be used from any goroutine; there is no "current" context to care for. Close is idempotent and safe on nil.
// Closing a stream with work queued returns at once, and the work completes. An object that a program drops is closed by the
// library at some later call, except a [PinnedBuffer] and a [ManagedBuffer], whose memory lives until Close or the Driver's.
//
// # Errors
//
// Every error of a call is an [*Error] with the call's name, a [Code] and the way out. Compare with errors.Is:
// errors.Is(err, cuda.ErrInvalidValue). A wait whose context.Context ended first is ErrContextEnded and that context's error
// as well: errors.Is(err, context.Canceled). (Only WithThreadStream returns what it is given, its function's error.) The behaviour that this package promises is written down rule by rule, with the ids
// that the comments cite (as in "CONTRACT HL-06"), in docs/contract.md.
package cuda
