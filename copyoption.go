package cuda

import (
	"runtime"
	"sync/atomic"
)

// CopyOption configures a copy between a device and host memory.
type CopyOption func(*copyOptions)

type copyOptions struct {
	pool   *PinnedPool
	direct bool
	done   func(error)
	watch  *CopyProgress

	op   string
	site uintptr
}

// Staging has the copy go through pool's memory rather than through the context's own ring. pool must belong to the queue's
// context. It concerns ordinary memory alone: pinned memory needs no staging. Copies share what room blocks have left, and wait
// for one another there: a copy that finds no room of its own is behind another stream's, and so behind all that is before that one. In
// a task that could be the task itself: then waiting for the copy is ErrDeadlock, and so may be the copy, beside ErrOutOfMemory. If
// blocks have left less than 64 KiB, or a smaller pool not whole, it is ErrOutOfMemory. nil is the context's own ring; of Staging
// and Direct the last counts.
func Staging(pool *PinnedPool) CopyOption {
	return func(o *copyOptions) { o.pool, o.direct = pool, false }
}

// Direct has the driver copy, whatever the memory is. For memory that another library has pinned that is the fastest way. Of
// ordinary memory the driver makes the caller wait: to the host until the copy is done, and so until all the stream's earlier
// work is; to the device until the driver has read src. For a small copy on an idle stream that may be the quickest way.
func Direct() CopyOption { return func(o *copyOptions) { o.direct, o.pool = true, nil } }

// CopyDone has done told, exactly once, how the copy ended: nil, or the error that its context failed with. done runs on a
// goroutine of its own, where CUDA is allowed. If the call that queues the copy returns an error, done is not called. It is not
// for a GraphBuilder: there, HostLaunch behind the copy tells at each launch.
func CopyDone(done func(error)) CopyOption { return func(o *copyOptions) { o.done = done } }

// Progress has p tell how far the copy is. It is not for a GraphBuilder.
func Progress(p *CopyProgress) CopyOption { return func(o *copyOptions) { o.watch = p } }

// CopyProgress tells how far copies are that were queued with it, for progress bars. A copy that needs no staging counts when
// it is done. The zero CopyProgress is ready, and may be used from any goroutine.
type CopyProgress struct{ done, total atomic.Int64 }

// BytesDone is how many bytes have been copied.
func (p *CopyProgress) BytesDone() int64 { return p.done.Load() }

// BytesTotal is how many bytes are to be copied: those of all copies queued with p.
func (p *CopyProgress) BytesTotal() int64 { return p.total.Load() }

// newCopyOptions is called by the function that the program calls. nil: there are none.
func newCopyOptions(op string, opts []CopyOption) *copyOptions {
	if len(opts) == 0 {
		return nil
	}
	o := &copyOptions{op: op}
	for _, opt := range opts {
		if opt != nil {
			opt(o)
		}
	}
	if o.done != nil {
		var pcs [1]uintptr
		runtime.Callers(3, pcs[:])
		o.site = pcs[0]
	}
	return o
}

// progress is where a copy of n bytes counts what it has done.
func (o *copyOptions) progress(n uintptr) *atomic.Int64 {
	if o == nil || o.watch == nil {
		return new(atomic.Int64)
	}
	o.watch.total.Add(int64(n))
	return &o.watch.done
}

// takeBack says that n bytes of what progress was told of will not be copied, since the driver has refused them.
func (o *copyOptions) takeBack(n uintptr) {
	if o != nil && o.watch != nil {
		o.watch.total.Add(-int64(n))
	}
}

// told reports whether somebody is to be told of the copy's end.
func (o *copyOptions) told() bool { return o != nil && (o.done != nil || o.watch != nil) }

// check refuses options that do not go with s.
func (o *copyOptions) check(op string, s *Stream) error {
	switch {
	case o == nil:
	case o.pool != nil && o.pool.st.ctx != s.ctx:
		of := o.pool.st.ctx
		return failf(op, ErrInvalidValue, "pool belongs to %s and the queue to %s; make a pool in the queue's context",
			of.describe(), s.ctx.describeBeside(of))
	case o.told() && s.isCapturing():
		return failf(op, ErrNotSupported, "CopyDone and Progress are for one run, and a graph's copy runs at each launch; "+
			"add a host function behind it (HostLaunch)")
	}
	return nil
}
