package seamtest

import (
	"runtime"
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

// refuses wants a call to be refused: with want by the software device, and by hardware with whatever it answers.
func (x *seam) refuses(t *testing.T, what string, r, want driver.Result) {
	t.Helper()
	if t.Logf("%s: %d", what, r); r == driver.Success || x.software() && r != want {
		t.Errorf("%s: %d, want %d", what, r, want)
	}
}

// wrongStreams: a handle that is no stream's. To the NVIDIA driver it is undefined, but for the default streams and for none.
func (x *seam) wrongStreams(t *testing.T) {
	x.refuses(t, "destroy the legacy stream", x.StreamDestroy(x.ctx, driver.StreamLegacy), driver.ErrorInvalidHandle)
	x.refuses(t, "destroy the per-thread stream", x.StreamDestroy(x.ctx, driver.StreamPerThread), driver.ErrorInvalidHandle)
	x.refuses(t, "wait for no event", x.StreamWaitEvent(x.ctx, x.s, 0, 0), driver.ErrorInvalidHandle)
	if !x.software() {
		return
	}
	const none driver.Stream = 0xdead0
	for what, call := range map[string]func() driver.Result{
		"destroy":      func() driver.Result { return x.StreamDestroy(x.ctx, none) },
		"attach":       func() driver.Result { return x.StreamAttachMemAsync(x.ctx, none, 0, 0, driver.MemAttachGlobal) },
		"query":        func() driver.Result { return x.StreamQuery(x.ctx, none) },
		"synchronize":  func() driver.Result { return x.StreamSynchronize(x.ctx, none) },
		"wait":         func() driver.Result { return x.StreamWaitEvent(x.ctx, none, 0, 0) },
		"flags":        func() driver.Result { _, r := x.StreamGetFlags(x.ctx, none); return r },
		"priority":     func() driver.Result { _, r := x.StreamGetPriority(x.ctx, none); return r },
		"id":           func() driver.Result { _, r := x.StreamGetID(x.ctx, none); return r },
		"device":       func() driver.Result { _, r := x.StreamGetDevice(x.ctx, none); return r },
		"context":      func() driver.Result { _, r := x.StreamGetCtx(x.ctx, none); return r },
		"contexts":     func() driver.Result { _, _, r := x.StreamGetCtxs(x.ctx, none); return r },
		"begin":        func() driver.Result { return x.StreamBeginCapture(x.ctx, none, driver.CaptureRelaxed) },
		"end":          func() driver.Result { _, r := x.StreamEndCapture(x.ctx, none); return r },
		"is capturing": func() driver.Result { _, r := x.StreamIsCapturing(x.ctx, none); return r },
	} {
		x.refuses(t, what, call(), driver.ErrorInvalidHandle)
	}
}

// wrongValues: flags and modes that do not exist.
func (x *seam) wrongValues(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, flags := range []uint32{2, 3, 1 << 31} {
		s, r := x.StreamCreateWithPriority(x.ctx, flags, 0)
		if x.refuses(t, "create with unknown flags", r, driver.ErrorInvalidValue); r == driver.Success {
			x.StreamDestroy(x.ctx, s)
		}
	}
	g, r := x.GraphCreate(x.ctx, 0)
	if r != driver.Success {
		t.Fatal(r)
	}
	defer x.GraphDestroy(x.ctx, g)
	for _, mode := range []driver.CaptureMode{-1, 3, 99} {
		x.refuses(t, "begin in an unknown mode", x.StreamBeginCapture(x.ctx, x.s, mode), driver.ErrorInvalidValue)
		x.refuses(t, "begin to a graph in an unknown mode", x.StreamBeginCaptureToGraph(x.ctx, x.s, g, nil, nil, mode), driver.ErrorInvalidValue)
		_, r := x.ThreadExchangeStreamCaptureMode(mode)
		x.refuses(t, "an unknown mode of the thread", r, driver.ErrorInvalidValue)
	}
	if m, r := x.ThreadExchangeStreamCaptureMode(driver.CaptureGlobal); m != driver.CaptureGlobal || r != driver.Success {
		t.Errorf("the thread's mode is %d afterwards, %d", m, r)
	}
}

// endings: captures that cannot be ended where it is tried.
func (x *seam) endings(t *testing.T) {
	_, r := x.StreamEndCapture(x.ctx, x.s)
	x.refuses(t, "end what does not capture", r, driver.ErrorIllegalState)
	fork, r := x.StreamCreateWithPriority(x.ctx, driver.StreamNonBlocking, 0)
	if r != driver.Success {
		t.Fatal(r)
	}
	defer x.StreamDestroy(x.ctx, fork)
	e, r := x.EventCreate(x.ctx, driver.EventDisableTiming)
	if r != driver.Success {
		t.Fatal(r)
	}
	defer x.EventDestroy(x.ctx, e)
	for what, r := range map[string]driver.Result{
		"begin": x.StreamBeginCapture(x.ctx, x.s, driver.CaptureRelaxed), "record": x.EventRecord(x.ctx, e, x.s),
		"fork": x.StreamWaitEvent(x.ctx, fork, e, 0), "record in the fork": x.EventRecord(x.ctx, e, fork), "join": x.StreamWaitEvent(x.ctx, x.s, e, 0),
	} {
		if r != driver.Success {
			t.Errorf("%s: %d", what, r)
		}
	}
	_, r = x.StreamEndCapture(x.ctx, fork)
	x.refuses(t, "end on a fork", r, driver.ErrorStreamCaptureUnmatched)
	g, r := x.StreamEndCapture(x.ctx, x.s)
	t.Logf("then the capture ends with %d", r)
	if r == driver.Success {
		x.GraphDestroy(x.ctx, g)
	}
	if st, r := x.StreamIsCapturing(x.ctx, x.s); st != driver.CaptureNone || r != driver.Success {
		t.Errorf("afterwards: status %d, %d", st, r)
	}
}

// perThreadGreen: the per-thread handle is no stream of a green context.
func (x *seam) perThreadGreen(t *testing.T) {
	whole, r := x.DeviceGetDevResource(0, driver.DevResourceSM)
	if r != driver.Success {
		t.Skipf("no multiprocessors to split: %d", r)
	}
	desc, r := x.DevResourceGenerateDesc([]driver.DevResource{whole})
	if r != driver.Success {
		t.Skipf("no description: %d", r)
	}
	green, r := x.GreenCtxCreate(desc, 0, driver.GreenCtxDefaultStream)
	if r != driver.Success {
		t.Skipf("no green context: %d", r)
	}
	defer x.GreenCtxDestroy(green)
	ctx, r := x.CtxFromGreenCtx(green)
	if r != driver.Success {
		t.Fatal(r)
	}
	_, _, r = x.StreamGetCtxs(ctx, driver.StreamPerThread)
	x.refuses(t, "contexts of the per-thread handle", r, driver.ErrorInvalidHandle)
}
