package cuda

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"time"
)

// result is the trace, as far as it is known. Spans that were being made when the tracer was stopped are left out.
func (t *Tracer) result(over, accuracy time.Duration) *Trace {
	n := t.len()
	trace := &Trace{
		Driver: t.drv.Name(), Version: t.drv.version.String(), Began: t.began, Duration: over, Accuracy: accuracy,
		Dropped: int(t.count.Load()) - n, Streams: []TraceStream{}, Spans: make([]TraceSpan, 0, n),
	}
	t.mu.Lock()
	for _, l := range t.order {
		trace.Streams = append(trace.Streams, TraceStream{Device: l.ctx.ordinal, Name: l.name})
	}
	t.mu.Unlock()
	numbers := make([]int, n+1) // what spans are called in the trace; 0: they are not in it
	for i := range n {
		if rec, w := t.at(i); rec != nil && w.lane.index < len(trace.Streams) {
			trace.Spans = append(trace.Spans, TraceSpan{})
			numbers[rec.id] = len(trace.Spans)
		}
	}
	names := traceNames{}
	for i := range n {
		if rec, w := t.at(i); rec != nil && numbers[rec.id] != 0 {
			trace.Spans[numbers[rec.id]-1] = t.spanResult(rec, w, numbers, names)
		}
	}
	return trace
}

func (t *Tracer) spanResult(rec *spanRecord, w *traceWhat, numbers []int, names traceNames) TraceSpan {
	r := TraceSpan{
		ID: numbers[rec.id], Kind: w.kind, Name: names.name(w), Op: w.op, Site: names.site(w.pcs), Stream: w.lane.index, Bytes: rec.bytes,
		Enqueued: time.Duration(rec.enqueued - 1), Returned: time.Duration(rec.returned.Load() - 1),
		Start: time.Duration(rec.start.Load() - 1), End: time.Duration(rec.end.Load() - 1),
		Parent: numbers[rec.parent],
	}
	if w.device && r.End < 0 && rec.state.Load()&spanFailed != 0 { // the driver refused what was to begin then
		r.Start = -1
	}
	r.Device = w.device && r.Start >= 0
	if w.kind == TraceNode {
		r.Enqueued = -1
	}
	if after := numbers[rec.after]; after != 0 {
		r.After = []int{after}
	}
	if rec.state.Load()&spanFailed != 0 {
		t.mu.Lock()
		r.Error = t.failures[rec.id]
		t.mu.Unlock()
	}
	return r
}

// describe names an operation that has not ended.
func (w *traceWhat) describe() string {
	names := traceNames{}
	return fmt.Sprintf("%s (%s) on %s, queued at %s", w.kind, names.name(w), w.lane.name, names.site(w.pcs))
}

// traceNames are the names of places, as far as they have been looked up.
type traceNames map[[8]uintptr]string

// name is what a trace calls an operation.
func (traceNames) name(w *traceWhat) string {
	if w.name != "" {
		return w.name
	}
	if f := runtime.FuncForPC(w.fn); w.fn != 0 && f != nil {
		return f.Name()
	}
	return w.op
}

// site is the place of the first call from outside this package.
func (n traceNames) site(pcs [8]uintptr) string {
	if name, known := n[pcs]; known {
		return name
	}
	used := 0
	for used < len(pcs) && pcs[used] != 0 {
		used++
	}
	name := ""
	if used > 0 {
		frames := runtime.CallersFrames(pcs[:used])
		for more := true; more && name == ""; {
			var f runtime.Frame
			if f, more = frames.Next(); f.File != "" && !strings.HasPrefix(f.Function, inThisPackage) {
				name = fmt.Sprintf("%s:%d", f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)
			}
		}
	}
	n[pcs] = name
	return name
}

// inThisPackage is what the names of this package's functions begin with.
var inThisPackage = reflect.TypeFor[Tracer]().PkgPath() + "."
