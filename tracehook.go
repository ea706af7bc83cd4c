package cuda

import (
	"reflect"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
	"github.com/hostlaunch/cuda/internal/native"
)

// What follows is what the calls that queue ask. While nothing is traced it is one load and a branch.

// tracer is the tracer of s's Driver, or nil.
func (s *Stream) tracer() *Tracer { return s.ctx.drv.tracer.Load() }

// span begins the span of a device operation that is about to be queued on s, unless s captures. It and its like must be called by what a
// program calls, not much further in: see traceWhat.pcs.
func (s *Stream) span(kind TraceKind, op, name string, bytes int) opSpan {
	if t := s.tracer(); t != nil {
		return t.span(s, kind, op, name, bytes, !t.hostOnly)
	}
	return opSpan{}
}

// hostTimedSpan is span for an operation that is over when the call returns, which sees to the times by runs and ran.
func (s *Stream) hostTimedSpan(kind TraceKind, op string, bytes int) opSpan {
	if t := s.tracer(); t != nil {
		return t.span(s, kind, op, "", bytes, false)
	}
	return opSpan{}
}

//go:noinline
func (t *Tracer) span(s *Stream, kind TraceKind, op, name string, bytes int, device bool) opSpan {
	if s.isCapturing() {
		return opSpan{}
	}
	w := traceWhat{kind: kind, op: op, name: name, lane: t.lane(s), device: device}
	native.CallerPCs(w.pcs[:])
	return t.add(&w, bytes, 0)
}

// hostSpan is the span of a function that is about to be queued on s. o are its options, which may be nil. name is its name, if it is not
// that of fn, a function.
func (t *Tracer) hostSpan(s *Stream, kind TraceKind, op, name string, o *hostOptions, fn any, site uintptr) opSpan {
	w := traceWhat{kind: kind, op: op, name: name, lane: t.lane(s)}
	w.pcs[0] = site
	if o != nil && o.name != "" {
		w.name = o.name
	}
	if w.name == "" {
		w.fn = reflect.ValueOf(fn).Pointer()
	}
	return t.add(&w, 0, 0)
}

// launchTraced is launchFunc with a span. run is the program's function.
func (s *Stream) launchTraced(t *Tracer, kind TraceKind, op string, fn hostfn.Func, run any) error {
	o, _ := fn.More.(*hostOptions)
	sp := t.hostSpan(s, kind, op, "", o, run, fn.Site)
	switch {
	case sp.t == nil: // there is no room for it
	case o == nil:
		fn.More = sp.rec
	default:
		o.span = sp
	}
	err := s.launchFunc(op, fn)
	sp.queued(err)
	return err
}

// nativeSpan is span for a native function.
func (s *Stream) nativeSpan(l *nativeLaunch, o *hostOptions) opSpan {
	if t := s.tracer(); t != nil {
		return t.nativeSpan(s, l, o)
	}
	return opSpan{}
}

func (t *Tracer) nativeSpan(s *Stream, l *nativeLaunch, o *hostOptions) opSpan {
	w := traceWhat{kind: TraceNative, op: l.op, lane: t.lane(s), device: !t.hostOnly}
	w.pcs[0] = l.site
	bytes := 0
	if o != nil {
		w.name = o.name
	}
	if l.data.ends != nil {
		bytes = int(l.data.ends.dst.n)
	} else if w.name == "" {
		w.name = nativeName(l.fn)
	}
	return t.add(&w, bytes, 0)
}

// spanRef names a span, for who must not keep the trace: the tracer's serial and the span's id. 0: none.
type spanRef uint64

func (sp opSpan) ref() spanRef {
	if sp.t == nil {
		return 0
	}
	return spanRef(sp.t.serial)<<32 | spanRef(sp.rec.id)
}

// id is the id of a span, if it is one of t's.
func (t *Tracer) id(ref spanRef) int32 {
	if uint32(ref>>32) != t.serial {
		return 0
	}
	return int32(uint32(ref))
}

// waitSpan is span for the wait of s for e's latest record.
func (s *Stream) waitSpan(op string, e *Event) opSpan {
	if t := s.tracer(); t != nil && e.captured.Load() == nil {
		return t.waitSpan(s, op, t.id(spanRef(e.traced.Load())))
	}
	return opSpan{}
}

// waitStreamSpan is span for the wait of s for what is queued on other.
func (s *Stream) waitStreamSpan(op string, other *Stream) opSpan {
	if t := s.tracer(); t != nil && !other.isCapturing() {
		return t.waitSpan(s, op, t.lane(other).last.Load())
	}
	return opSpan{}
}

//go:noinline
func (t *Tracer) waitSpan(s *Stream, op string, after int32) opSpan {
	if s.isCapturing() {
		return opSpan{}
	}
	w := traceWhat{kind: TraceWait, op: op, lane: t.lane(s), device: !t.hostOnly}
	native.CallerPCs(w.pcs[:])
	return t.add(&w, 0, after)
}

// syncSpan is the span of the calling goroutine's wait for s; over must follow.
func (s *Stream) syncSpan(op string) opSpan {
	if t := s.tracer(); t != nil {
		l := t.lane(s)
		return t.syncSpan(op, l, l.last.Load())
	}
	return opSpan{}
}

// syncSpan is the span of the calling goroutine's wait for e; over must follow.
func (e *Event) syncSpan(op string) opSpan {
	t := e.ctx.drv.tracer.Load()
	if t == nil || !e.recorded.Load() {
		return opSpan{}
	}
	after := t.id(spanRef(e.traced.Load()))
	return t.syncSpan(op, t.laneOfRecord(e, after), after)
}

// syncSpan is the span of the calling goroutine's wait for t; over must follow.
func (t *Task) syncSpan(op string) opSpan {
	if tr := t.stream.tracer(); tr != nil {
		return tr.syncSpan(op, tr.lane(t.stream), tr.id(t.traced))
	}
	return opSpan{}
}

//go:noinline
func (t *Tracer) syncSpan(op string, l *traceLane, after int32) opSpan {
	w := traceWhat{kind: TraceSync, op: op, lane: l}
	native.CallerPCs(w.pcs[:])
	sp := t.add(&w, 0, after)
	if sp.t != nil {
		sp.rec.start.Store(sp.rec.enqueued)
	}
	return sp
}

// over is the end of a goroutine's wait.
func (sp opSpan) over(err error) {
	if sp.t != nil {
		sp.fails(err)
		sp.ran()
		sp.rec.returned.Store(sp.rec.end.Load())
	}
}

// laneOfRecord is the lane of e's latest record, whose span has id, or 0 if it has none.
func (t *Tracer) laneOfRecord(e *Event, id int32) *traceLane {
	if id != 0 {
		if rec, w := t.at(int(id - 1)); rec != nil {
			return w.lane
		}
	}
	return t.laneOn(e.ctx, driver.Stream(e.on.Load()))
}
