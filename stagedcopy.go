package cuda

import (
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
	open   int           // chunks that are not done, and the call that queues them; guarded by staging.mu
}

// deviceSide moves n bytes of a copy, from off on, between the device and a slot.
type deviceSide func(slot unsafe.Pointer, off, n uintptr) driver.Result

// stage queues a copy through st. s is in use and does not capture.
func (s *Stream) stage(op string, st *staging, toHost bool, host rows, o *copyOptions, move deviceSide) error {
	if st.pool != nil {
		if !st.pool.acquire() {
			return failf(op, ErrClosed, "the pool of Staging is closed")
		}
		defer st.pool.release()
	}
	l, r := st.lease(s, host.bytes())
	if r != driver.Success {
		return s.ctx.resultf(op, r, "no pinned memory to stage the copy in; see Direct, and PinnedPool for memory set aside")
	}
	job := st.begin(toHost, host, o)
	if toHost && host.n == 1 {
		s.driver().HostPrepare(host.ptr, host.width)
	}
	r = st.queue(s, l, job, move)
	if r == driver.Success {
		r = s.driver().EventRecord(s.ctx.raw, l.behind, s.raw)
		l.used = true
	}
	l.spoiled = l.spoiled || r != driver.Success
	err := s.ctx.result(op, r)
	st.queued(l)
	st.finish(job, err)
	return err
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
		err := st.failed
		d.report("CopyDone", o.about(), func() { o.done(err) })
	}
	job.host = rows{}
	st.ctx.copies.Add(-1)
	d.copies.done()
	if k := st.keeper(); k != nil {
		d.retired.push(retired{k, true, false})
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

// queue queues all that the device does for a copy, chunk by chunk, and hands each chunk to the workers.
func (st *staging) queue(s *Stream, l *lease, job *stagedCopy, move deviceSide) driver.Result {
	d, total := s.driver(), job.host.bytes()
	if l.used { // behind the lease's other copies, should they be another stream's
		if r := d.StreamWaitEvent(s.ctx.raw, s.raw, l.behind, 0); r != driver.Success {
			return r
		}
	}
	n := st.cut(l, job, 0)
	if r := st.tell(s, l.waits(job, l.pair.next, nil)); r != driver.Success {
		return r
	}
	first := l.pair.next
	for off := uintptr(0); off < total; {
		g := l.pair.next // which only this call changes
		c := &chunk{job: job, slot: l.slotOf(g), off: off, n: n}
		r := move(l.slots[c.slot], off, n)
		off += n
		var ops []driver.MemOp
		if r == driver.Success {
			ops = append(make([]driver.MemOp, 0, 2), driver.MemOp{Op: driver.MemOpWrite32, Address: place(l.pair.device), Value: uint64(g + 1)})
			if off < total {
				n = st.cut(l, job, off)
				ops = l.waits(job, g+1, ops)
			} else if job.toHost {
				ops = l.waitsAll(first, g, ops)
			}
			r = st.tell(s, ops)
		}
		if c.void = r != driver.Success; c.void && job.toHost {
			return r // the device waits for earlier chunks at most
		}
		st.add(l, c)
		if g == first {
			st.hire(total)
		}
		l.pair.next++
		if r != driver.Success {
			return r
		}
	}
	return driver.Success
}

// slotOf is the slot of chunk g.
func (l *lease) slotOf(g uint32) int { return int(g-l.start) % len(l.slots) }

// waitHost waits until the workers are through with chunk g.
func (l *lease) waitHost(g uint32) driver.MemOp {
	return driver.MemOp{Op: driver.MemOpWait32, Address: place(&l.pair.host[l.slotOf(g)]), Value: uint64(g + 1), Flags: driver.WaitValueGEQ}
}

// waits adds to ops what the device waits for before chunk g of a copy: to the host, that its slot has been emptied; to the
// device, that it has been filled.
func (l *lease) waits(job *stagedCopy, g uint32, ops []driver.MemOp) []driver.MemOp {
	before := g - uint32(len(l.slots)) // that had the slot
	switch {
	case !job.toHost:
		return append(ops, l.waitHost(g))
	case int32(before-l.start) >= 0:
		return append(ops, l.waitHost(before))
	}
	return ops
}

// waitsAll adds to ops what the device waits for at the end of a copy to the host: the last chunk of each slot, of chunks first to
// last.
func (l *lease) waitsAll(first, last uint32, ops []driver.MemOp) []driver.MemOp {
	n := min(int(last-first)+1, len(l.slots))
	for g := last - uint32(n) + 1; ; g++ {
		ops = append(ops, l.waitHost(g))
		if g == last {
			return ops
		}
	}
}

// tell queues memory operations.
func (st *staging) tell(s *Stream, ops []driver.MemOp) driver.Result {
	if len(ops) == 0 {
		return driver.Success
	}
	return s.driver().StreamBatchMemOp(s.ctx.raw, s.raw, ops, 0)
}

// cut is the size of the chunk that begins at off. While the first chunk to the device is copied, and the last one to the host,
// the link has nothing to do: so those are small, and sizes double from one to the next.
func (st *staging) cut(l *lease, job *stagedCopy, off uintptr) uintptr {
	left := job.host.bytes() - off
	ramp := off // to the device: as much as there has been
	if job.toHost {
		ramp = roundUp(left/2, arenaUnit)
	}
	return job.host.whole(off, min(left, l.size, max(ramp, st.tune.least)))
}

// about names a copy in reports of its CopyDone.
func (o *copyOptions) about() hostfn.Func {
	return hostfn.Func{Site: o.site, More: &hostOptions{name: o.op}}
}
