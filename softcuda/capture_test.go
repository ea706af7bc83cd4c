package softcuda

import (
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

// captureRig is a machine with a context and streams, used through the seam: what package cuda keeps its users from.
type captureRig struct {
	*machine
	t    *testing.T
	ctx  driver.Context
	a, b driver.Stream
	e    driver.Event
}

func newCaptureRig(t *testing.T) *captureRig {
	m := newMachine(Options{})
	m.Attach(driver.Upcalls{HostFunc: func(uint64) {}, Lost: func(driver.Context, driver.Result) {}, Log: func(string, ...any) {}})
	t.Cleanup(m.Shut)
	g := &captureRig{machine: m, t: t}
	g.ctx, _ = m.DevicePrimaryCtxRetain(0)
	g.a, _ = m.StreamCreateWithPriority(g.ctx, driver.StreamNonBlocking, 0)
	g.b, _ = m.StreamCreateWithPriority(g.ctx, driver.StreamNonBlocking, 0)
	g.e, _ = m.EventCreate(g.ctx, driver.EventDisableTiming)
	return g
}

func (g *captureRig) want(what string, r, want driver.Result) {
	g.t.Helper()
	if r != want {
		g.t.Errorf("%s: %d, want %d", what, r, want)
	}
}

func (g *captureRig) end(s driver.Stream, want driver.Result) driver.Graph {
	g.t.Helper()
	raw, r := g.StreamEndCapture(g.ctx, s)
	g.want("end", r, want)
	return raw
}

// fork begins a capture on a and takes b in.
func (g *captureRig) fork(mode driver.CaptureMode) {
	g.t.Helper()
	g.want("begin", g.StreamBeginCapture(g.ctx, g.a, mode), 0)
	g.want("host function", g.LaunchHostFunc(g.ctx, g.a, 1), 0)
	g.want("record", g.EventRecord(g.ctx, g.e, g.a), 0)
	g.want("wait", g.StreamWaitEvent(g.ctx, g.b, g.e, 0), 0)
}

func TestCaptureUnmatched(t *testing.T) {
	g := newCaptureRig(t)
	g.end(g.a, driver.ErrorIllegalState)
	g.fork(driver.CaptureRelaxed)
	g.end(g.b, driver.ErrorStreamCaptureUnmatched)
	raw := g.end(g.a, driver.Success) // nothing was captured on b, so nothing is missing
	if nodes, _ := g.GraphGetNodes(g.ctx, raw); len(nodes) != 1 {
		t.Errorf("nodes %v", nodes)
	}
	g.want("destroy", g.GraphDestroy(g.ctx, raw), 0)
	g.want("destroy twice", g.GraphDestroy(g.ctx, raw), driver.ErrorInvalidValue)
}

// A capture that ends on another thread is gone (facts/h200.md).
func TestCaptureWrongThread(t *testing.T) {
	g := newCaptureRig(t)
	g.fork(driver.CaptureThreadLocal)
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.end(g.a, driver.ErrorStreamCaptureWrongThread)
	}()
	<-done
	for _, s := range []driver.Stream{g.a, g.b} {
		if st, r := g.StreamIsCapturing(g.ctx, s); st != driver.CaptureNone || r != 0 {
			t.Errorf("status %d, %d", st, r)
		}
	}
	g.end(g.a, driver.ErrorIllegalState)
	if len(g.graphs) != 0 || len(g.nodes) != 0 || len(g.captures) != 0 {
		t.Errorf("left: %d graphs, %d nodes, %d captures", len(g.graphs), len(g.nodes), len(g.captures))
	}
}

// Synchronising the context spoils a capture in every mode; destroying a stream of it ends it.
func TestCaptureSpoilt(t *testing.T) {
	g := newCaptureRig(t)
	for _, mode := range []driver.CaptureMode{driver.CaptureGlobal, driver.CaptureThreadLocal, driver.CaptureRelaxed} {
		g.fork(mode)
		g.want("synchronise", g.CtxSynchronize(g.ctx), driver.ErrorStreamCaptureUnsupported)
		g.want("queue on the fork", g.LaunchHostFunc(g.ctx, g.b, 1), driver.ErrorStreamCaptureInvalidated)
		g.want("update", g.StreamUpdateCaptureDependencies(g.ctx, g.a, nil, nil, 0), driver.ErrorStreamCaptureInvalidated)
		g.end(g.a, driver.ErrorStreamCaptureInvalidated)
	}
	g.fork(driver.CaptureRelaxed)
	g.want("destroy the fork", g.StreamDestroy(g.ctx, g.b), 0)
	g.end(g.a, driver.ErrorIllegalState)
	g.want("synchronise", g.CtxSynchronize(g.ctx), 0)
}

func TestCaptureExternalOutside(t *testing.T) {
	g := newCaptureRig(t)
	g.want("record", g.EventRecordWithFlags(g.ctx, g.e, g.a, driver.EventRecordExternal), driver.ErrorIllegalState)
	g.want("record", g.EventRecordWithFlags(g.ctx, g.e, g.a, 2), driver.ErrorInvalidValue)
	g.want("wait", g.StreamWaitEvent(g.ctx, g.a, g.e, driver.EventWaitExternal), driver.ErrorIllegalState)
	_, r := g.ThreadExchangeStreamCaptureMode(3)
	g.want("exchange", r, driver.ErrorInvalidValue)
}

// The wait of an event of a capture that has ended makes no dependency.
func TestCapturedEventAfterwards(t *testing.T) {
	g := newCaptureRig(t)
	g.fork(driver.CaptureRelaxed)
	g.want("destroy", g.GraphDestroy(g.ctx, g.end(g.a, 0)), 0)
	g.want("wait", g.StreamWaitEvent(g.ctx, g.b, g.e, 0), driver.ErrorCapturedEvent)
	g.want("begin", g.StreamBeginCapture(g.ctx, g.b, driver.CaptureRelaxed), 0)
	g.want("wait in another capture", g.StreamWaitEvent(g.ctx, g.b, g.e, 0), driver.ErrorStreamCaptureIsolation)
	g.end(g.b, driver.ErrorStreamCaptureInvalidated)
}

// Branches of a graph run beside each other: each of two functions of work waits for the other.
func TestGraphParallel(t *testing.T) {
	g := newCaptureRig(t)
	meet := make(chan struct{})
	g.fork(driver.CaptureRelaxed)
	g.mu.Lock()
	for i, raw := range []driver.Stream{g.a, g.b} {
		g.enqueue(g.streams[raw], &op{kind: opWork, work: func() driver.Result {
			if i == 0 {
				meet <- struct{}{}
			} else {
				<-meet
			}
			return driver.Success
		}})
	}
	g.unlock()
	g.want("record", g.EventRecord(g.ctx, g.e, g.b), 0)
	g.want("join", g.StreamWaitEvent(g.ctx, g.a, g.e, 0), 0)
	x, r := g.GraphInstantiateWithParams(g.ctx, g.end(g.a, 0), &driver.Instantiation{})
	g.want("instantiate", r, 0)
	for range 3 {
		g.want("launch", g.GraphLaunch(g.ctx, x, g.a), 0)
	}
	g.want("destroy in flight", g.GraphExecDestroy(g.ctx, x), 0)
	g.want("synchronise", g.StreamSynchronize(g.ctx, g.a), 0)
}
