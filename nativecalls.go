package cuda

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
	"github.com/hostlaunch/cuda/internal/native"
)

// nativeCalls are the native functions that the driver has been handed. For each there is a cell, which the driver gets (see
// native.Cell), and a nativeCall, which has what Go knows of it. The driver's thread runs a function without entering Go and
// puts the cell on the list of ended ones; an ordinary goroutine collects it from there: in the library's calls (observe,
// enter), or else a timer's, which exists while runs are outstanding.
//
// A run is resolved once: whoever takes it from the cell has it, be it the driver's thread or the sweep of a lost context. A
// cell whose run was swept is never used again and its memory never freed: a driver might call it all the same.
type nativeCalls struct {
	drv   *Driver
	ended *native.Ended
	runs  atomic.Int64 // expected, and neither taken back nor collected
	armed atomic.Bool  // the timer is set, or looks
	looks tally        // the timer's looks, set or in progress

	mu      sync.Mutex // guards what follows, and the calls; never held across a call of the driver's or the program's
	chunks  []*nativeChunk
	free    *nativeCall
	used    int
	nodes   map[uint64]hostfn.Handle // of host nodes, by their cells' addresses
	backlog int                      // number of the first of the ended calls that were taken off the list
	timer   *time.Timer
	pause   time.Duration // before it looks again
}

const nativeChunkSize = 128

// nativeChunk is memory for some calls. That of the cells is pinned while they are in use, for good if one was abandoned.
type nativeChunk struct {
	cells     *[nativeChunkSize]native.Cell
	calls     [nativeChunkSize]nativeCall
	pin       *native.Pin
	abandoned int
}

// nativeCall is a native function that waits to run, or a graph's host node.
type nativeCall struct {
	all       *nativeCalls
	cell      *native.Cell
	number    int
	next      *nativeCall // that is free
	inUse     bool
	abandoned bool

	fn   hostfn.Func // without Run
	addr NativeFunc
	pin  native.Pin   // Go memory
	held [2]*resource // what other memory belongs to

	kept      bool   // a host node's
	dropped   bool   // nothing will run it any more
	collected uint32 // runs of a host node, as the cell's Begun
	resolving int    // goroutines that tell of runs that they have collected
}

// prepare makes a call ready. Nothing is due yet.
func (t *nativeCalls) prepare(c *Context, l *nativeLaunch, o *hostOptions) (*nativeCall, error) {
	fn := hostfn.Func{Site: l.site, Group: &c.funcs}
	if o != nil {
		fn.More = o
	}
	n := t.get(fn, l.fn)
	data, err := n.setData(l)
	if err != nil {
		t.release(n, false)
		return nil, err
	}
	n.cell.SetCall(uintptr(l.fn), data)
	return n, nil
}

// get takes a free call.
func (t *nativeCalls) get(fn hostfn.Func, addr NativeFunc) *nativeCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free == nil {
		t.grow()
	}
	n := t.free
	t.free, n.next = n.next, nil
	n.inUse, n.fn, n.addr, n.kept, n.dropped = true, fn, addr, false, false
	n.collected = n.cell.Begun()
	t.used++
	return n
}

// grow adds a chunk. mu is held.
func (t *nativeCalls) grow() {
	k := &nativeChunk{cells: new([nativeChunkSize]native.Cell), pin: new(native.Pin)}
	k.pin.Add(unsafe.Pointer(k.cells))
	k.pin.Add(unsafe.Pointer(t.ended))
	base := len(t.chunks) * nativeChunkSize
	t.chunks = append(t.chunks, k)
	for i := range k.calls {
		n := &k.calls[i]
		n.all, n.cell, n.number = t, &k.cells[i], base+i+1
		n.cell.Init(t.ended, n.number)
	}
	t.relist(k)
}

// relist puts the calls of a chunk that are not abandoned on the free list. mu is held.
func (t *nativeCalls) relist(k *nativeChunk) {
	for i := range k.calls {
		if n := &k.calls[i]; !n.abandoned {
			n.next, t.free = t.free, n
		}
	}
}

// setData keeps what the function is called with, and returns that.
func (n *nativeCall) setData(l *nativeLaunch) (uintptr, error) {
	d := &l.data
	switch {
	case d.ends != nil:
		return n.setEnds(l.op, d.ends)
	case d.pointer != nil:
		return uintptr(d.pointer), n.hold(l.op, "data", 0, hostRange{d.pointer, 1}, nil)
	case len(d.bytes) > 0:
		return n.setBytes(d.bytes), nil
	}
	return d.address, nil
}

// setBytes copies b into the cell if there is room, and else to memory of its own.
func (n *nativeCall) setBytes(b []byte) uintptr {
	at := unsafe.Pointer(&n.cell.Room)
	if len(b) > len(n.cell.Room)*8 {
		at = unsafe.Pointer(unsafe.SliceData(make([][2]uint64, (len(b)+15)/16))) // a size whose memory lies at a multiple of 16
		n.pin.Add(at)
	}
	copy(unsafe.Slice((*byte)(at), len(b)), b)
	return uintptr(at)
}

// setEnds keeps the ends of a copy.
func (n *nativeCall) setEnds(op string, e *copyEnds) (uintptr, error) {
	if err := n.hold(op, "dst", 0, e.dst, e.by[0].owner()); err != nil {
		return 0, err
	}
	if err := n.hold(op, "src", 1, e.src, e.by[1].owner()); err != nil {
		return 0, err
	}
	at := unsafe.Pointer(&n.cell.Room)
	*(*native.CopyArgs)(at) = native.CopyArgs{Dst: uintptr(e.dst.ptr), Src: uintptr(e.src.ptr), N: e.dst.n}
	return uintptr(at), nil
}

// hold keeps the memory of op's argument name: by its owner, if it has one that is known or found by the address, and else as
// Go memory.
func (n *nativeCall) hold(op, name string, i int, memory hostRange, owner *resource) error {
	if owner == nil {
		owner = n.all.drv.pinned.find(memory)
	}
	switch {
	case owner == nil:
		n.pin.Add(memory.ptr)
		return nil
	case owner.ctx.drv != n.all.drv:
		return failf(op, ErrInvalidValue, "%s belongs to another Driver than the stream; use one Driver for both", name)
	case !owner.acquire():
		return failf(op, ErrClosed, "%s is closed", name)
	}
	n.held[i] = owner
	return nil
}

// expect makes the one run of n due. It reports false if the context has failed; then n is gone.
func (n *nativeCall) expect() bool {
	g := n.fn.Group
	n.all.drv.funcs.ExpectRun(g)
	n.Expect()
	if g.Failure() == nil || !n.Take() { // the sweep has it then
		return true
	}
	n.all.endOnce(n, false) // the driver has not seen it
	return false
}

// Expect implements hostfn.Runs, as do Take and Due.
func (n *nativeCall) Expect() {
	n.all.runs.Add(1)
	n.cell.Expect()
	if !n.all.armed.Load() && n.all.armed.CompareAndSwap(false, true) {
		n.all.arm(firstPause)
	}
}

// Take implements hostfn.Runs.
func (n *nativeCall) Take() bool {
	taken := n.cell.Take()
	if taken {
		n.all.runs.Add(-1)
	}
	return taken
}

// Due implements hostfn.Runs.
func (n *nativeCall) Due() int { return n.cell.Due() }

// endOnce is the end of a call whose one run was taken. unsure: the driver may call it all the same.
func (t *nativeCalls) endOnce(n *nativeCall, unsure bool) {
	t.drv.funcs.EndRuns(n.fn.Group, 1)
	t.release(n, unsure)
}

// keep makes n a host node's, which runs any number of times until the handle is dropped. It returns 0 if there are too many.
func (t *nativeCalls) keep(n *nativeCall) hostfn.Handle {
	n.kept = true
	h := t.drv.funcs.KeepRuns(n.fn, n, n.drop)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.nodes == nil {
		t.nodes = map[uint64]hostfn.Handle{}
	}
	if h != 0 {
		t.nodes[uint64(n.cell.Address())] = h
	}
	return h
}

// hostOf is the handle of a host node's function, of what the driver was given with it: the handle itself, or the address of a
// native function's cell; 0: neither.
func (d *Driver) hostOf(data uint64) hostfn.Handle {
	if h := hostfn.Handle(data); h.Kept() {
		return h
	}
	d.natives.mu.Lock()
	defer d.natives.mu.Unlock()
	return d.natives.nodes[data]
}

// drop says that nothing is due to run n any more, nor will be. A run may still be in progress, if the context has failed.
func (n *nativeCall) drop() {
	n.all.mu.Lock()
	n.dropped = true
	delete(n.all.nodes, uint64(n.cell.Address()))
	over := n.quiet()
	n.all.mu.Unlock()
	if over {
		n.all.release(n, n.fn.Group.Failure() != nil)
	}
}

// quiet reports whether all runs of n have been collected, and told of. mu is held.
func (n *nativeCall) quiet() bool {
	return n.resolving == 0 && n.cell.Due() == 0 && n.cell.Begun() == n.collected
}

// release lets go of what n keeps, and of n. unsure: the driver may still call it.
func (t *nativeCalls) release(n *nativeCall, unsure bool) {
	n.pin.Unpin()
	for i, r := range n.held {
		if r != nil {
			r.releaseSoon()
			n.held[i] = nil
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n.inUse, n.fn, n.abandoned = false, hostfn.Func{}, unsure
	t.used--
	if unsure {
		t.chunks[(n.number-1)/nativeChunkSize].abandoned++
	} else {
		n.next, t.free = t.free, n
	}
	if t.used == 0 && len(t.chunks) > 1 {
		t.trim(1)
	}
}

// trim gives the memory of a burst back, but for some chunks. None is in use; but a call that has been swept may be in the hands still of
// who is queueing it, who then asks its cell. mu is held.
func (t *nativeCalls) trim(chunks int) {
	for _, k := range t.chunks[chunks:] {
		if k.abandoned == 0 {
			k.pin.Unpin()
		}
	}
	t.chunks = t.chunks[:chunks:chunks]
	t.free = nil
	for _, k := range t.chunks {
		t.relist(k)
	}
}

// collect resolves functions that have run, at most so many cells.
func (t *nativeCalls) collect(most int) (found int) {
	for ; found < most; found++ {
		n, runs := t.nextEnded()
		if n == nil {
			break
		}
		t.resolve(n, runs)
	}
	return found
}

// nextEnded takes a cell off the list and says how many of its runs have ended. resolve must follow.
func (t *nativeCalls) nextEnded() (n *nativeCall, runs int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.backlog == 0 {
		t.backlog = t.ended.Take()
	}
	if t.backlog == 0 {
		return nil, 0
	}
	n = t.call(t.backlog)
	t.backlog = n.cell.Next()
	runs = n.cell.Collect()
	n.collected += uint32(runs)
	n.resolving++
	t.runs.Add(int64(-runs))
	t.drv.funcs.EndRuns(n.fn.Group, runs)
	return n, runs
}

func (t *nativeCalls) call(number int) *nativeCall {
	return &t.chunks[(number-1)/nativeChunkSize].calls[(number-1)%nativeChunkSize]
}

// resolve tells that some runs of n have ended.
func (t *nativeCalls) resolve(n *nativeCall, runs int) {
	about := n.fn
	t.tell(n)
	for range runs {
		t.drv.resolve(about, nil)
	}
	t.mu.Lock()
	n.resolving-- // who drops a host node meanwhile leaves it to the last one here
	over := !n.kept || n.dropped && n.quiet()
	t.mu.Unlock()
	if over {
		t.release(n, n.kept && about.Group.Failure() != nil)
	}
}

// tell tells a driver that wants to know that the program is told of a run of n.
func (t *nativeCalls) tell(n *nativeCall) {
	if o, _ := n.fn.More.(*hostOptions); o == nil || o.done == nil {
		return
	}
	if to, ok := t.drv.drv.(driver.Checker); ok {
		to.NativeTold(n.cell.Address())
	}
}

// sweep takes the functions of g that have not started, other than host nodes'; g has failed. endSwept must follow for each.
func (t *nativeCalls) sweep(g *hostfn.Group) (taken []*nativeCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.each(func(n *nativeCall) {
		if !n.kept && n.fn.Group == g && n.Take() {
			taken = append(taken, n)
		}
	})
	return taken
}

// endSwept resolves a function that sweep took.
func (t *nativeCalls) endSwept(n *nativeCall, why error) {
	about := n.about()
	t.drv.resolve(about, neverRan(about, why))
	t.endOnce(n, true)
}

// each visits the calls in use. mu is held.
func (t *nativeCalls) each(visit func(*nativeCall)) {
	if t.used == 0 {
		return
	}
	for _, k := range t.chunks {
		for i := range k.calls {
			if k.calls[i].inUse {
				visit(&k.calls[i])
			}
		}
	}
}

// about is n for reports, which want its name.
func (n *nativeCall) about() hostfn.Func {
	fn := n.fn
	if fn.More == nil {
		fn.More = &hostOptions{native: n.addr}
	}
	return fn
}

// begun counts the runs that have begun and were not collected, and those of them that have not ended.
func (t *nativeCalls) begun() (begun, running int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.each(func(n *nativeCall) {
		ended := n.cell.Uncollected()
		some := int(n.cell.Begun() - n.collected)
		begun += some
		running += max(some-ended, 0)
	})
	return begun, running
}
