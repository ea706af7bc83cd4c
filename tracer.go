package cuda

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
)

// Tracer notes what a Driver does, from Driver.StartTrace to Stop. Its methods may be called from any goroutine.
type Tracer struct {
	drv      *Driver
	serial   uint32 // which of the Driver's tracers
	limit    int
	hostOnly bool
	stamper  driver.Stamper // what tells device times; nil: events do
	began    time.Time
	zero     time.Time // what times of spans count from: shortly before began, so that 0 is none

	count  atomic.Int64 // spans that were asked for
	chunks []atomic.Pointer[spanChunk]
	recent [256]atomic.Pointer[knownWhat] // by hash

	mu    sync.Mutex // guards what follows; never held across a driver call
	lanes map[traceKey]*traceLane
	order []*traceLane
	nodes map[hostfn.Handle]*nodeRuns

	clocks    map[*Context]*traceClock
	collector collector

	known    map[traceWhat]*knownWhat
	whats    []*knownWhat     // by number
	failures map[int32]string // by span

	closing  atomic.Bool   // nothing new is traced but the runs of graphs' functions
	stopping sync.Mutex    // held while somebody stops it
	done     chan struct{} // closed when it is stopped; trace and err are set then
	trace    *Trace
	err      error
}

// TraceOption configures StartTrace.
type TraceOption func(*Tracer)

// usualTraceLimit is how many spans are kept without TraceLimit.
const usualTraceLimit = 1 << 20

// TraceLimit is how many spans are kept, each of 64 bytes. Further ones only count, as Trace.Dropped. Without it they are 1<<20.
// StartTrace refuses n below 1.
func TraceLimit(n int) TraceOption { return func(t *Tracer) { t.limit = n } }

// TraceHostOnly has the trace be of the host alone: nothing is added to streams, and it is not known when their operations ran, but for
// host functions, callbacks and tasks.
func TraceHostOnly() TraceOption { return func(t *Tracer) { t.hostOnly = true } }

// StartTrace begins to note what d does: operations that are queued, when they run, host functions, callbacks and tasks, and goroutines
// that wait. It may be called at any time, also in mid-work: what was queued before is not in the trace. There is one Tracer at a time.
// While there is none, each call that queues looks at one word for it.
//
// An operation has a TraceSpan if the driver was asked to queue it; a call that is refused before leaves none, and one that the driver
// refused has its Error. What is captured, or added to a graph, is not traced; a launch of the graph is, and the runs of its Go functions
// and tasks in it. (Which launch a run belongs to is told by their order; if one function is in several executables that are launched at
// the same time, they may be mistaken for each other.)
//
// Device times are taken by the streams themselves: before and behind each operation the time is asked for, on the NVIDIA driver by
// a pair of events, of which a tracer has at most 32768 in a context; what is queued when none is left has no times. They are in stream
// order like everything else: on the legacy default stream, work of blocking streams that is queued on another goroutine at that moment
// comes before or behind them (CONTRACT ST-03). TraceHostOnly is without. Host functions, callbacks and tasks are timed by the host.
//
// Errors: ErrIllegalState if d is traced already; ErrInvalidValue for a limit below 1; ErrClosed.
func (d *Driver) StartTrace(opts ...TraceOption) (*Tracer, error) {
	const op = "Driver.StartTrace"
	if err := d.enter(op); err != nil {
		return nil, err
	}
	defer d.leave()
	t := &Tracer{drv: d, limit: usualTraceLimit, serial: d.tracers.Add(1), done: make(chan struct{})}
	t.collector = collector{many: make(chan struct{}, 1), stop: make(chan struct{})}
	for _, opt := range opts {
		if opt != nil {
			opt(t)
		}
	}
	if t.limit < 1 {
		return nil, failf(op, ErrInvalidValue, "limit %d: keep at least one span", t.limit)
	}
	t.limit = min(t.limit, 1<<31-1)
	t.chunks = make([]atomic.Pointer[spanChunk], (t.limit+spanChunkSize-1)/spanChunkSize)
	t.stamper, _ = d.drv.(driver.Stamper)
	t.began = time.Now()
	t.zero = t.began.Add(-1)
	if !d.tracer.CompareAndSwap(nil, t) {
		return nil, failf(op, ErrIllegalState, "the driver is traced already; stop that trace first (Tracer.Stop)")
	}
	d.log(slog.LevelDebug, "cuda: trace started", "limit", t.limit, "hostOnly", t.hostOnly)
	return t, nil
}

// Stop ends the tracing and returns what was noted. It waits for operations that are queued or run still, until ctx ends: then it returns the
// trace as far as it is known, and an error that wraps ctx's. What has not ended by then has End -1. Stop does not wait for goroutines
// that wait (TraceSync), nor for what the failure of its context has ended.
//
// Stopping again returns the same. Driver.Close stops a tracer too, once all work is done; its Stop works afterwards. A task must not
// wait for itself: in one, ctx should end soon.
//
// Errors: ErrInvalidValue for a nil ctx; ErrNotPermitted inside a host function; ErrContextEnded.
func (t *Tracer) Stop(ctx context.Context) (*Trace, error) {
	const op = "Tracer.Stop"
	if t == nil {
		return nil, failf(op, ErrInvalidValue, "the tracer is nil")
	}
	if ctx == nil {
		return nil, failf(op, ErrInvalidValue, "ctx is nil")
	}
	err := t.drv.enter(op)
	switch {
	case err == nil:
		defer t.drv.leave()
		t.stop(op, ctx)
	case errors.Is(err, ErrClosed): // then Close stops it
		select {
		case <-t.done:
		case <-ctx.Done():
			return nil, endedError(op, ctx, "Driver.Close")
		}
	default:
		return nil, err
	}
	return t.trace, t.err
}

// stop stops t, unless that is done.
func (t *Tracer) stop(op string, ctx context.Context) {
	t.stopping.Lock()
	defer t.stopping.Unlock()
	if t.trace != nil {
		return
	}
	defer close(t.done)
	t.closing.Store(true)
	over := time.Since(t.began)
	if left := t.await(ctx); left != nil {
		t.err = endedError(op, ctx, left.describe())
		over = time.Since(t.began)
	}
	t.drv.tracer.Store(nil)
	accuracy := t.shutClocks()
	if t.stamper != nil && !t.hostOnly {
		accuracy = 1 // the times are of the host's clock
	}
	t.trace = t.result(over, accuracy)
	for i := range t.trace.Spans { // which Stop has waited for
		t.trace.Duration = max(t.trace.Duration, t.trace.Spans[i].End, t.trace.Spans[i].Start)
	}
	t.drv.log(slog.LevelDebug, "cuda: trace stopped", "spans", len(t.trace.Spans), "dropped", t.trace.Dropped, "duration", over)
	t.forget()
}

// forget lets go of what is in the trace.
func (t *Tracer) forget() {
	for i := range t.chunks {
		t.chunks[i].Store(nil)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.order {
		l.clock.Store(nil)
	}
	t.lanes, t.order, t.nodes, t.known, t.failures = nil, nil, nil, nil, nil
}

// await waits for what runs still, until ctx ends. It returns something that does then.
func (t *Tracer) await(ctx context.Context) (left *traceWhat) {
	pause := 20 * time.Microsecond
	for from := 0; ; {
		t.collect()
		if left, from = t.unfinished(from); left == nil || ctx.Err() != nil {
			return left
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, 5*time.Millisecond)
	}
}

// unfinished finds an operation that has not ended, from number from on.
func (t *Tracer) unfinished(from int) (*traceWhat, int) {
	for ; from < t.len(); from++ {
		if rec, w := t.at(from); rec != nil && rec.open(w) {
			return w, from
		}
	}
	return nil, from
}

// open reports whether the operation is queued or runs, and its end is to be known.
func (rec *spanRecord) open(w *traceWhat) bool {
	switch w.kind {
	case TraceSync:
		return false
	case TraceHost, TraceCallback, TraceTask, TraceNode:
	default:
		if !w.device {
			return false
		}
	}
	return rec.end.Load() == 0 && rec.state.Load()&(spanFailed|spanUntimed) == 0 && w.lane.ctx.lost() == driver.Success
}

// stopTrace is the end of a tracer with its Driver, which has no work any more: what has not ended will not.
func (d *Driver) stopTrace() {
	if t := d.tracer.Load(); t != nil {
		ctx, cancel := context.WithTimeout(context.Background(), lastEnds)
		defer cancel()
		t.stop("Driver.Close", ctx)
	}
}

// lastEnds is how long the end of a Driver waits for the times of what has ended.
const lastEnds = time.Second
