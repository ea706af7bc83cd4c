package cuda

import (
	"context"
	"runtime/pprof"
	"runtime/trace"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/hostfn"
)

// labelKey is the key of the profiler's label that says which function runs.
const labelKey = "cuda"

// labels are contexts with the label of a name, for names that come again and again: to make one takes longer than most functions.
type labels [64]atomic.Pointer[labelled]

type labelled struct {
	name string
	ctx  context.Context
}

// of is a context with the label of a name.
func (l *labels) of(name string) context.Context {
	h := uint(len(name))
	for i := range min(len(name), 16) {
		h = h*31 + uint(name[len(name)-1-i])
	}
	at := &l[h%uint(len(l))]
	if known := at.Load(); known != nil && known.name == name {
		return known.ctx
	}
	ctx := pprof.WithLabels(context.Background(), pprof.Labels(labelKey, name))
	at.Store(&labelled{name, ctx})
	return ctx
}

// shown gives run as it is to be called so that Go's own tools show it: in a region of runtime/trace while that is on, and for the
// profiler with a label if it has a name.
func (d *Driver) shown(kind string, fn hostfn.Func, run func()) func() {
	o, _ := fn.More.(*hostOptions)
	if o != nil && (o.task != nil || o.graph != nil) {
		return run // which has a task's goroutine do so
	}
	named := o != nil && o.name != ""
	if !named && !trace.IsEnabled() {
		return run
	}
	return func() {
		if named {
			pprof.SetGoroutineLabels(d.labels.of(o.name))
			defer pprof.SetGoroutineLabels(context.Background()) // it is a goroutine of a driver's, or of the library
		}
		if trace.IsEnabled() {
			defer trace.StartRegion(context.Background(), kind).End()
			trace.Log(context.Background(), kind, funcName(fn))
		}
		run()
	}
}

// show has Go's own tools show a task, on its goroutine: as a task of runtime/trace while that is on, and for the profiler with a label
// if it was given a name. end must be called when its function has ended.
func (t *Task) show(ctx context.Context) (shown context.Context, end func()) {
	if t.opts.name != "" {
		ctx = pprof.WithLabels(ctx, pprof.Labels(labelKey, t.opts.name))
		pprof.SetGoroutineLabels(ctx)
	}
	unlabel := func() {
		if t.opts.name != "" { // it may be a goroutine of the library
			pprof.SetGoroutineLabels(context.Background())
		}
	}
	if !trace.IsEnabled() {
		return ctx, unlabel
	}
	ctx, task := trace.NewTask(ctx, "cuda task "+t.name)
	region := trace.StartRegion(ctx, "cuda task")
	return ctx, func() {
		region.End()
		task.End()
		unlabel()
	}
}
