package cuda

import (
	"reflect"

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
		return t.span(s, kind, op, name, bytes)
	}
	return opSpan{}
}

//go:noinline
func (t *Tracer) span(s *Stream, kind TraceKind, op, name string, bytes int) opSpan {
	if s.isCapturing() {
		return opSpan{}
	}
	w := traceWhat{kind: kind, op: op, name: name, lane: t.lane(s), device: !t.hostOnly}
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
