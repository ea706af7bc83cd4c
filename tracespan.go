package cuda

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/hostfn"
)

// opSpan is one operation of a trace, for who queues or runs it. The zero opSpan stands for what is not traced: its methods do nothing.
type opSpan struct {
	t   *Tracer
	rec *spanRecord
}

// spanRecord is what a tracer keeps of an operation. It holds no pointers, so that the collector need not look at any, however many
// there are, and is a cache line. Fields that are not atomic are set before state is. Times count from Tracer.zero; 0: none.
type spanRecord struct {
	returned, start, end atomic.Int64
	enqueued             int64
	bytes                int64
	what                 int32 // in Tracer.whats
	id                   int32 // from 1
	parent, after        int32 // 0: none
	pair                 int32 // of events around it, counted from 1; 0: none
	state                atomic.Uint32
}

// States of a record.
const (
	spanReady   = 1 << iota // it may be read
	spanFailed              // Tracer.failures says how
	spanUntimed             // the device's times will not be known
)

var _ [64 - unsafe.Sizeof(spanRecord{})]byte

const spanChunkSize = 512

type spanChunk [spanChunkSize]spanRecord

// traceWhat is what many operations have in common.
type traceWhat struct {
	kind     TraceKind
	op, name string     // an empty name: that of fn, or else op
	fn       uintptr    // where the function begins whose name it is
	pcs      [8]uintptr // return addresses from the call on outwards; 0: none
	lane     *traceLane
	device   bool // times are to be taken by the stream
}

// knownWhat is a traceWhat that has a number.
type knownWhat struct {
	traceWhat
	number int32
}

// len is how many places for records are in use.
func (t *Tracer) len() int { return int(min(t.count.Load(), int64(t.limit))) }

// at is the record of a place, from 0, and what it is of, if it is ready.
func (t *Tracer) at(i int) (*spanRecord, *traceWhat) {
	c := t.chunks[i/spanChunkSize].Load()
	if c == nil || c[i%spanChunkSize].state.Load() == 0 {
		return nil, nil
	}
	rec := &c[i%spanChunkSize]
	t.mu.Lock()
	defer t.mu.Unlock()
	return rec, &t.whats[rec.what].traceWhat
}

// place is the record of a place, to be written.
func (t *Tracer) place(i int) *spanRecord {
	at := &t.chunks[i/spanChunkSize]
	c := at.Load()
	if c == nil {
		at.CompareAndSwap(nil, new(spanChunk))
		c = at.Load()
	}
	return &c[i%spanChunkSize]
}

// now is the time.
func (t *Tracer) now() int64 { return int64(time.Since(t.zero)) }

// number is the number of w.
func (t *Tracer) number(w *traceWhat) int32 {
	at := &t.recent[w.hash()%uintptr(len(t.recent))]
	if k := at.Load(); k != nil && k.traceWhat == *w {
		return k.number
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.known[*w]
	if k == nil {
		k = &knownWhat{*w, int32(len(t.whats))}
		if t.known == nil {
			t.known = map[traceWhat]*knownWhat{}
		}
		t.known[*w] = k
		t.whats = append(t.whats, k)
	}
	at.Store(k)
	return k.number
}

func (w *traceWhat) hash() uintptr {
	h := uintptr(unsafe.Pointer(unsafe.StringData(w.op))) ^ uintptr(unsafe.Pointer(unsafe.StringData(w.name))) ^ w.fn ^ uintptr(w.lane.index)
	for _, pc := range w.pcs {
		h = h*31 + pc
	}
	return h ^ h>>12
}

// add makes a span. after is the span of another stream that it waits for; 0: none.
func (t *Tracer) add(w *traceWhat, bytes int, after int32) opSpan {
	return t.addIn(w, bytes, after, t.currentTask())
}

func (t *Tracer) addIn(w *traceWhat, bytes int, after, parent int32) opSpan {
	if t.closing.Load() && w.kind != TraceNode {
		return opSpan{}
	}
	n := t.count.Add(1)
	if n > int64(t.limit) {
		return opSpan{}
	}
	rec := t.place(int(n - 1))
	rec.id, rec.what, rec.bytes, rec.after, rec.parent = int32(n), t.number(w), int64(bytes), after, parent
	if w.kind != TraceSync && w.kind != TraceNode {
		w.lane.last.Store(rec.id)
	}
	rec.enqueued = t.now()
	rec.state.Store(spanReady)
	return opSpan{t, rec}
}

// currentTask is the span of the task that the calling goroutine is the function of.
func (t *Tracer) currentTask() int32 {
	if t.drv.tasks.running.Load() == 0 {
		return 0
	}
	if task := t.drv.tasks.current(); task != nil && task.opts.span.t == t {
		return task.opts.span.rec.id
	}
	return 0
}

// begins is called right before a device operation is queued on s.
func (sp opSpan) begins(s *Stream) {
	if sp.t == nil || sp.t.hostOnly {
		return
	}
	if sp.t.stamper != nil {
		sp.t.stamper.StreamStamp(s.ctx.raw, s.raw, sp.t.zero, &sp.rec.start)
	} else if c := sp.t.lane(s).clock.Load(); c != nil {
		c.begins(s, sp.rec)
	}
}

// ends is called right behind that, with the error that the call is about to return.
func (sp opSpan) ends(s *Stream, err error) {
	if sp.t == nil {
		return
	}
	switch {
	case sp.t.hostOnly:
	case sp.t.stamper == nil:
		if sp.rec.pair != 0 {
			sp.t.clockOf(s.ctx).ends(s, sp.t.lane(s), sp.rec, err == nil)
		}
	case err == nil:
		sp.t.stamper.StreamStamp(s.ctx.raw, s.raw, sp.t.zero, &sp.rec.end)
	}
	sp.queued(err)
}

// queued is ends for what takes no time of the stream's: the call is about to return.
func (sp opSpan) queued(err error) {
	if sp.t == nil {
		return
	}
	sp.fails(err)
	sp.rec.returned.CompareAndSwap(0, sp.t.now())
}

// fails notes how it failed, if err is not nil.
func (sp opSpan) fails(err error) {
	if sp.t != nil && err != nil && sp.rec.state.Or(spanFailed)&spanFailed == 0 {
		sp.t.mu.Lock()
		defer sp.t.mu.Unlock()
		if sp.t.failures == nil {
			sp.t.failures = map[int32]string{}
		}
		sp.t.failures[sp.rec.id] = err.Error()
	}
}

// runs is called when a function begins, and ran when it has ended.
func (sp opSpan) runs() {
	if sp.t != nil {
		sp.rec.start.Store(sp.t.now())
	}
}

func (sp opSpan) ran() {
	if sp.t != nil {
		sp.rec.end.Store(sp.t.now())
	}
}

// spanOf is the span of a function that is about to run. What begins a task has none of its own.
func (d *Driver) spanOf(fn hostfn.Func) opSpan {
	switch o := fn.More.(type) {
	case *hostOptions:
		if o.task == nil {
			return o.span
		}
	case *spanRecord:
		if t := d.tracer.Load(); t != nil { // if it is another by now, nobody looks at the record any more
			return opSpan{t, o}
		}
	}
	return opSpan{}
}
