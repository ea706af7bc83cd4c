package cuda

import (
	"context"
	"sync"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// PinnedPool is pinned host memory of a bounded size for blocks that come and go: what costs the driver milliseconds is done
// once. A block goes back in stream order: what is released behind work of a stream is handed out again only when that work is done
// (CONTRACT CY-07). A pool can also be what copies of ordinary memory go through (Staging), beside its blocks.
//
// It may be used from any goroutine. Like a PinnedBuffer it is never closed by the garbage collector, since slices of its
// memory may outlive it.
type PinnedPool struct {
	st  *staging
	n   int
	res *resource

	mu      sync.Mutex
	blocks  int // that have not been released
	closing bool
}

// PinnedBlock is a piece of a PinnedPool's memory. Of several goroutines that release it at once one does.
type PinnedBlock struct {
	pool *PinnedPool
	data []byte // nil once released; guarded by pool.mu
}

// NewPinnedPool makes a pool of limit bytes, limit > 0, which are allocated now. Pools and blocks take whole pages of 4096 bytes: limit is
// rounded up to that (Len tells), and so is what each block takes of it. cuMemHostAlloc.
//
// Errors: ErrInvalidValue, ErrOutOfMemory. CONTRACT CY-07.
func (c *Context) NewPinnedPool(limit int) (*PinnedPool, error) {
	const op = "NewPinnedPool"
	if err := c.enter(op); err != nil {
		return nil, err
	}
	defer c.leave()
	if limit <= 0 {
		return nil, failf(op, ErrInvalidValue, "limit %d: a pool has at least one byte", limit)
	}
	size := roundUp(uintptr(limit), arenaUnit)
	p := &PinnedPool{st: newStaging(c, newStagingTune(), size), n: int(size)}
	p.st.mem.segment = size
	at, r := p.st.mem.get(size)
	if r == driver.Success {
		r = p.st.open()
	}
	if r != driver.Success {
		newResource(c, "PinnedPool", 0, p.st.close).close() // when no stream is held (CONTRACT TK-03)
		return nil, c.resultf(op, r, "%d bytes of pinned memory", limit)
	}
	p.st.mem.put(at, size)
	st, pinned := p.st, &c.drv.pinned
	p.res = newResource(c, "PinnedPool", p.n, func() driver.Result {
		pinned.remove(at)
		return st.close()
	})
	st.pool = p.res
	pinned.add(at, p.n, p.res)
	c.stagings.add(st)
	return p, nil
}

// Get takes a block of n bytes, n > 0, when there is room for it, or returns an error that wraps ctx's when ctx ends first. Blocks
// larger than the pool are ErrInvalidValue. Its contents are undefined. It is ErrDeviceLost once the pool's context has failed, also for
// who waits already: what was to release a block may never run (see OnDone).
//
// What has to happen for a block to come back, the library does not know: a task that waits here for one that is released behind itself
// waits until ctx ends. Its goroutine should have taken it before, or use TryGet.
func (p *PinnedPool) Get(ctx context.Context, n int) (*PinnedBlock, error) {
	const op = "PinnedPool.Get"
	if ctx == nil {
		return nil, failf(op, ErrInvalidValue, "ctx is nil")
	}
	for {
		var changed <-chan struct{}
		if p != nil {
			changed = p.st.mem.changed()
		}
		b, err := p.get(op, n)
		if b != nil || err != nil {
			return b, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, endedError(op, ctx, "blocks that have not been released")
		}
	}
}

// TryGet is Get without waiting: ok is false if there is no room now.
func (p *PinnedPool) TryGet(n int) (b *PinnedBlock, ok bool, err error) {
	b, err = p.get("PinnedPool.TryGet", n)
	return b, b != nil, err
}

// get returns nil, nil if there is no room now.
func (p *PinnedPool) get(op string, n int) (*PinnedBlock, error) {
	if p == nil {
		return nil, failf(op, ErrInvalidValue, "the pool is nil")
	}
	c := p.st.ctx
	if err := c.enter(op); err != nil {
		return nil, err
	}
	defer c.leave()
	switch {
	case n <= 0:
		return nil, failf(op, ErrInvalidValue, "size %d: take at least one byte", n)
	case n > p.n:
		return nil, failf(op, ErrInvalidValue, "size %d: the pool has %d bytes", n, p.n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing || p.res.closed() {
		return nil, failf(op, ErrClosed, "the pool is closed")
	}
	if r := c.lost(); r != driver.Success { // what would have released a block may never run
		return nil, c.lostError(op, r)
	}
	at, _ := p.st.mem.get(uintptr(n))
	if at == nil {
		return nil, nil
	}
	p.blocks++
	p.st.reused(at, uintptr(n))
	return &PinnedBlock{pool: p, data: unsafe.Slice((*byte)(at), n)}, nil
}

// acquire takes p into use for a copy, unless it is closed; p.res.release must follow.
func (p *PinnedPool) acquire() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closing && p.res.acquire()
}

// Len is the size of the pool in bytes.
func (p *PinnedPool) Len() int {
	if p == nil {
		return 0
	}
	return p.n
}

// Context is the context that p was made in.
func (p *PinnedPool) Context() *Context {
	if p == nil {
		return nil
	}
	return p.st.ctx
}

// Close forbids taking blocks and further copies by way of the pool, and frees the memory once all have been released; then it waits
// until queued work that may use it is done. While a task holds a stream it returns at once, and the memory is freed later. The Driver's
// Close frees it in any case. cuMemFreeHost.
func (p *PinnedPool) Close() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	p.closing = true
	empty := p.blocks == 0
	p.mu.Unlock()
	defer p.st.mem.wake()
	if !empty {
		return nil
	}
	return closeHandle(p.res)
}

// returned takes a block back.
func (p *PinnedPool) returned(data []byte) {
	p.st.mem.put(unsafe.Pointer(unsafe.SliceData(data)), uintptr(len(data)))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.blocks--; p.blocks == 0 && p.closing && !p.res.closed() { // as it is when the Driver is
		d := p.st.ctx.drv
		d.retired.push(retired{p.res, false}) // freeing waits for the driver, which Release may not
		d.drainSoon()
	}
}

// Bytes is the memory, or nil once the block has been released: what it returned before must not be used any more. It needs no driver.
func (b *PinnedBlock) Bytes() []byte {
	if b == nil || b.pool == nil { // a zero value
		return nil
	}
	b.pool.mu.Lock()
	defer b.pool.mu.Unlock()
	return b.data
}

// swap sets b's memory and returns what it was. nil: b is released, or about to be.
func (b *PinnedBlock) swap(data []byte) (was []byte) {
	b.pool.mu.Lock()
	defer b.pool.mu.Unlock()
	was, b.data = b.data, data
	return was
}

// BlockSlice is b's memory as a slice of T, as many as fit. T must be free of Go pointers, or it panics.
func BlockSlice[T any](b *PinnedBlock) []T {
	mustBePlain[T]("BlockSlice")
	return sliceOf[T](b.Bytes())
}

// Release gives the block back at once: no work that uses it is queued. A second release does nothing. It needs no driver, so it
// works in host functions too.
func (b *PinnedBlock) Release() {
	if b == nil || b.pool == nil {
		return
	}
	if data := b.swap(nil); data != nil {
		b.pool.returned(data)
	}
}

// ReleaseAfter gives the block back when everything queued on s so far is done, and returns at once. If s's context has failed,
// or fails, the block is given back all the same; on any other error it is still the caller's. CONTRACT CY-07.
func (b *PinnedBlock) ReleaseAfter(s *Stream) error {
	const op = "PinnedBlock.ReleaseAfter"
	var data []byte
	if b != nil && b.pool != nil {
		data = b.swap(nil)
	}
	if data == nil {
		return failf(op, ErrInvalidValue, "the block is nil or released")
	}
	err := b.pool.returnedAfter(op, data, s)
	switch {
	case err == nil:
	case s != nil && s.ctx.drv == b.pool.st.ctx.drv && s.ctx.lost() != driver.Success:
		b.pool.returned(data)
	default:
		b.swap(data)
	}
	return err
}

// returnedAfter is returned once everything queued on s so far is done.
func (p *PinnedPool) returnedAfter(op string, data []byte, s *Stream) error {
	if err := s.begin(op); err != nil {
		return err
	}
	defer s.end()
	if err := s.refuseCapturing(op); err != nil {
		return err
	}
	c := s.ctx
	if c.drv != p.st.ctx.drv {
		where := p.st.ctx.describeBeside(c)
		return failf(op, ErrInvalidValue, "the stream belongs to %s and the pool to %s; use one Driver for both", c.describe(), where)
	}
	raw, err := s.behind(op)
	if err != nil {
		return err
	}
	if _, err = c.told(op, raw, func(driver.Result) {
		c.events.put(raw)
		p.returned(data)
	}); err != nil { // the work that uses the block goes on
		c.events.put(raw)
	}
	return err
}
