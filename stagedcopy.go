package cuda

import (
	"context"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
)

// stagedCopy is a copy through pinned memory, from the call to its end. It keeps the program's memory alive.
type stagedCopy struct {
	st     *staging
	toHost bool
	host   rows
	o      *copyOptions  // nil: nobody is to be told
	done   *atomic.Int64 // bytes, for who watches
	sure   uintptr       // bytes of which all is queued, whatever becomes of the rest; of the call that queues
	open   int           // chunks that are not done, and the call that queues them; guarded by staging.mu
	told   func()        // called when somebody is about to be told of the end; nil: nobody cares
}

// deviceSide moves n bytes of a copy, from off on, between the device and a slot.
type deviceSide func(slot unsafe.Pointer, off, n uintptr) driver.Result

// stage queues a copy through st. s is in use and does not capture.
func (s *Stream) stage(op string, st *staging, toHost bool, host rows, o *copyOptions, move deviceSide) error {
	if st.pool != nil {
		if !o.pool.acquire() {
			return failf(op, ErrClosed, "the pool of Staging is closed")
		}
		defer st.pool.release()
	}
	l, r, turns := st.lease(s, host.bytes())
	if r != driver.Success {
		return st.noRoom(op, r, turns)
	}
	shared, err := st.share(op, s, l)
	if err != nil {
		st.queued(l, false)
		return err
	}
	defer shared()
	job := st.begin(toHost, host, o)
	if toHost && host.n == 1 {
		s.driver().HostPrepare(host.ptr, host.width)
	}
	r = st.queue(s, l, job, move)
	if r == driver.Success {
		r = s.driver().EventRecord(s.ctx.raw, l.behind, s.raw)
		l.used, l.tasks = true, s.ctx.drv.tasks.behindStream(s)
	}
	err = s.ctx.result(op, r)
	if err != nil && (l.loose || !reached(l.pair.device, l.told)) {
		st.rescue(s, l)
	}
	st.queued(l, err != nil)
	st.finish(job, err)
	return err
}

// rescue has l wait for the end of what is queued on s, of which nothing else may tell: only then may others have its slots. If the driver
// refuses that too, nobody gets those of which nothing else tells.
func (st *staging) rescue(s *Stream, l *lease) {
	c := s.ctx
	if s.driver().EventRecord(c.raw, l.behind, s.raw) != driver.Success {
		return
	}
	l.rescued.Store(true)
	st.calm.add()
	over := func(r driver.Result) {
		defer st.calm.done()
		st.mu.Lock()
		defer st.mu.Unlock()
		l.loose = l.loose && r != driver.Success
		l.rescued.Store(false)
		st.settle(l)
		st.mem.wake()
	}
	if _, err := c.told("copy", l.behind, over); err != nil {
		over(driver.ErrorUnknown)
	}
}

// noRoom is the error of a copy that lease has no slots for.
func (st *staging) noRoom(op string, r driver.Result, turns bool) error {
	switch {
	case turns:
		why := fmt.Sprintf("called in a task (%s), when copies that wait for their turn in other streams, perhaps behind the task, have all the "+
			"memory to stage in; have a pool for tasks' copies (Staging), or copy from another goroutine", st.ctx.drv.tasks.current().describe())
		return &Error{Op: op, Code: Code(r), also: ErrDeadlock, Reason: why}
	case st.pool != nil:
		return st.ctx.resultf(op, r, "blocks have taken the room of the pool of Staging; release some, or have a pool for copies alone")
	}
	return st.ctx.resultf(op, r, "no pinned memory to stage the copy in; see Direct, and PinnedPool for memory set aside")
}

// share is called before a copy is queued on s that goes through l. If l's other copies are behind tasks, so is what is queued on s from
// now on: for that it takes its turn. They may be another stream's, also if l was made for s. done must be called when the copy is queued.
func (st *staging) share(op string, s *Stream, l *lease) (done func(), err error) {
	if !l.used || !s.ctx.drv.tasks.anyLeft(l.tasks) {
		return noWait, nil
	}
	st.setWaits(l, true)
	defer st.setWaits(l, false)
	t, err := s.takeTurn(op, context.Background(), turnFor{note: func(at *lane, _ *later) { at.join(l.tasks) }})
	if err != nil {
		return nil, err
	}
	return t.end, nil
}

// setWaits notes whether the call that queues on l waits for its turn. A task that waits for l asks again then whether it may.
func (st *staging) setWaits(l *lease, waits bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	l.waits = waits
	st.mem.wake()
}

// begin counts a copy as in progress before anything of it is queued.
func (st *staging) begin(toHost bool, host rows, o *copyOptions) *stagedCopy {
	job := &stagedCopy{st: st, toHost: toHost, host: host, o: o, done: o.progress(host.bytes()), open: 1}
	st.calm.add()
	if k := st.keeper(); k != nil {
		k.retain()
	}
	st.ctx.drv.copies.add()
	st.ctx.copies.Add(1)
	st.ctx.drv.drv.WatchContext(st.ctx.raw)
	if r := st.ctx.lost(); r != driver.Success { // perhaps before st was there to be told
		st.fail(st.ctx.lostError("copy", r))
	}
	return job
}

// finish is the end of the call that queued a copy. If the driver refused a part of it, nobody is told of its end, and what was
// queued before is done all the same.
func (st *staging) finish(job *stagedCopy, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if err != nil {
		job.o.takeBack(job.host.bytes() - job.sure)
		job.o = nil
	}
	st.end(job)
}

// end counts a chunk of a copy as done, or the call; with the last one the copy is done. mu is held.
func (st *staging) end(job *stagedCopy) {
	if job.open--; job.open > 0 {
		return
	}
	d := st.ctx.drv
	if o := job.o; o != nil && o.done != nil {
		err, told := st.failed, job.told
		d.report("CopyDone", o.about(), func() {
			if told != nil && err == nil {
				told()
			}
			o.done(err)
		})
	}
	job.host = rows{}
	st.ctx.copies.Add(-1)
	d.copies.done()
	if k := st.keeper(); k != nil {
		d.retired.push(retired{k, true})
		d.drainSoon()
	}
	st.calm.done()
}

// keeper is what has to stay open for st while a copy is in progress; nil: the context of the copies, which stays by itself.
func (st *staging) keeper() *resource {
	if st.pool != nil {
		return st.pool
	}
	return st.ctx.green
}

// queue queues all that the device does for a copy, chunk by chunk, and hands each chunk to the workers. Whatever the device is to wait
// for they have before: a call of the driver's that comes after a wait may be held up until that is over (seen of cuMemcpyHtoDAsync
// on an H200).
func (st *staging) queue(s *Stream, l *lease, job *stagedCopy, move deviceSide) (r driver.Result) {
	if l.used { // behind the lease's other copies, should they be another stream's
		if r := s.driver().StreamWaitEvent(s.ctx.raw, s.raw, l.behind, 0); r != driver.Success {
			return r
		}
	}
	if job.toHost {
		return st.queueDown(s, l, job, move)
	}
	return st.queueUp(s, l, job, move)
}

// queueUp queues a copy to the device. With a single slot the workers wait for all that the device does before.
func (st *staging) queueUp(s *Stream, l *lease, job *stagedCopy, move deviceSide) (r driver.Result) {
	var ops []driver.MemOp
	for off := uintptr(0); off < job.host.bytes(); {
		if len(l.slots) == 1 {
			if r = st.tell(s, l, ops); r != driver.Success {
				return r
			}
			ops, job.sure = nil, off
		}
		c := st.nextChunk(l, job, off)
		g := st.add(l, c)
		if off == 0 {
			st.hire(st.tune.workersFor(false, job.host.bytes()))
		}
		if r = st.tell(s, l, append(ops, l.waitHost(g))); r != driver.Success {
			return r
		}
		job.sure = off
		if r = move(l.slots[c.slot], off, c.n); r != driver.Success {
			return r
		}
		l.loose = true
		ops = []driver.MemOp{l.done(g)}
		off += c.n
	}
	if r = st.tell(s, l, ops); r == driver.Success {
		job.sure = job.host.bytes()
	}
	job.mark(s)
	return r
}

// mark tells a driver that looks after the program that the device's part of a copy is queued whose end the program is told of.
func (job *stagedCopy) mark(s *Stream) {
	if to, ok := s.driver().(driver.Checker); ok && job.o != nil && job.o.done != nil {
		job.told = to.CopyQueued(s.ctx.raw, s.raw)
	}
}

// queueDown queues a copy to the host. What a chunk waits for is queued with the end of the one before, unless it waits for that one.
//
// Until the device has filled a slot one worker is enough, whatever the driver waits for meanwhile; on a busy stream the others would
// only look at the queue that is being filled here, and slow that down.
func (st *staging) queueDown(s *Stream, l *lease, job *stagedCopy, move deviceSide) (r driver.Result) {
	total, first := job.host.bytes(), l.pair.next
	workers, hired := st.tune.workersFor(true, total), 0
	hire := func(n int) {
		if n > hired {
			st.hire(n)
		}
		hired = max(hired, n)
	}
	ops := l.waitsEmptied(first, nil)
	for off := uintptr(0); off < total; {
		if r = st.tell(s, l, ops); r != driver.Success {
			return r
		}
		c := st.nextChunk(l, job, off)
		if r = move(l.slots[c.slot], off, c.n); r != driver.Success {
			return r
		}
		l.loose = true
		off += c.n
		g := l.pair.next
		end, next := []driver.MemOp{l.done(g)}, []driver.MemOp(nil)
		switch {
		case off == total:
		case len(l.slots) > 1:
			end = l.waitsEmptied(g+1, end)
		default:
			next = l.waitsEmptied(g+1, nil)
		}
		if r = st.tell(s, l, end); r != driver.Success {
			return r
		}
		job.sure = off
		st.add(l, c)
		hire(1)
		if reached(l.pair.device, first+1) {
			hire(workers)
		}
		ops = next
	}
	hire(workers)
	job.mark(s)
	return st.tell(s, l, l.waitsAll(first, l.pair.next-1))
}

// nextChunk is the chunk of a copy that begins at off.
func (st *staging) nextChunk(l *lease, job *stagedCopy, off uintptr) *chunk {
	return &chunk{job: job, slot: l.slotOf(l.pair.next), off: off, n: st.cut(l, job, off)}
}

// slotOf is the slot of chunk g.
func (l *lease) slotOf(g uint32) int { return int(g-l.start) % len(l.slots) }

// waitHost waits until the workers are through with chunk g.
func (l *lease) waitHost(g uint32) driver.MemOp {
	return driver.MemOp{Op: driver.MemOpWait32, Address: place(&l.pair.host[l.slotOf(g)]), Value: uint64(g + 1), Flags: driver.WaitValueGEQ}
}

// done tells the workers that the device is through with chunk g.
func (l *lease) done(g uint32) driver.MemOp {
	return driver.MemOp{Op: driver.MemOpWrite32, Address: place(l.pair.device), Value: uint64(g + 1)}
}

// waitsEmptied adds to ops what the device waits for before it fills a slot with chunk g: that the slot has been emptied.
func (l *lease) waitsEmptied(g uint32, ops []driver.MemOp) []driver.MemOp {
	if before := g - uint32(len(l.slots)); int32(before-l.start) >= 0 {
		return append(ops, l.waitHost(before))
	}
	return ops
}

// waitsAll is what the device waits for at the end of a copy to the host: the last chunk of each slot, of chunks first to
// last.
func (l *lease) waitsAll(first, last uint32) (ops []driver.MemOp) {
	n := min(int(last-first)+1, len(l.slots))
	for g := last - uint32(n) + 1; ; g++ {
		ops = append(ops, l.waitHost(g))
		if g == last {
			return ops
		}
	}
}

// tell queues memory operations.
func (st *staging) tell(s *Stream, l *lease, ops []driver.MemOp) driver.Result {
	if len(ops) == 0 {
		return driver.Success
	}
	r := s.driver().StreamBatchMemOp(s.ctx.raw, s.raw, ops, 0)
	if first := ops[0]; r == driver.Success && first.Op == driver.MemOpWrite32 {
		l.told, l.loose = uint32(first.Value), false
	}
	return r
}

// cut is the size of the chunk that begins at off. While the first chunk to the device is copied, and the last one to the host,
// the link has nothing to do: so those are small, and sizes double from one to the next.
func (st *staging) cut(l *lease, job *stagedCopy, off uintptr) uintptr {
	left := job.host.bytes() - off
	ramp := off // to the device: as much as there has been
	if job.toHost {
		ramp = roundUp(left/2, arenaUnit)
	}
	return job.host.whole(off, min(left, l.size, max(ramp, st.tune.leastOf(job.host.bytes()))))
}

// about names a copy in reports of its CopyDone.
func (o *copyOptions) about() hostfn.Func {
	return hostfn.Func{Site: o.site, More: &hostOptions{name: o.op}}
}
