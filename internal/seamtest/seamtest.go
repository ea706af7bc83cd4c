// Package seamtest checks what of the contract only the seam can show: what package cuda does not let a program do. Both drivers
// run it.
package seamtest

import (
	"runtime"
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

// Run runs the checks on d, which is newly opened and attached, and has a device.
func Run(t *testing.T, d driver.Driver) {
	ctx, r := d.DevicePrimaryCtxRetain(0)
	if r != driver.Success {
		t.Fatal(r)
	}
	defer d.DevicePrimaryCtxRelease(0)
	s, r := d.StreamCreateWithPriority(ctx, driver.StreamNonBlocking, 0)
	if r != driver.Success {
		t.Fatal(r)
	}
	defer d.StreamDestroy(ctx, s)
	x := &seam{d, ctx, s}
	t.Run("ST-09/special handles", x.specialHandles)
	t.Run("ST-09/contexts", x.contexts)
	t.Run("CB-03/flags", x.callbackFlags)
	t.Run("ST-07/unknown attributes", x.unknownAttributes)
	t.Run("ST-07/copy between contexts", x.copyAcross)
	t.Run("ST-12/flags", x.memOpFlags)
	t.Run("ST-09/no context and no stream", x.nowhere)
	t.Run("ST-08/wrong streams", x.wrongStreams)
	t.Run("ST-01/wrong flags and modes", x.wrongValues)
	t.Run("CP-02/wrong endings", x.endings)
	t.Run("ST-09/per-thread handle of a green context", x.perThreadGreen)
	t.Run("CY-07/registering", x.registering)
	t.Run("CY-01/rows refused", x.rowsRefused)
}

type seam struct {
	driver.Driver
	ctx driver.Context
	s   driver.Stream
}

// software reports whether an answer that CUDA's documents leave open can be relied on.
func (x *seam) software() bool { return x.Name() == "software" }

// specialHandles: the context that the call names, or else the thread's, answers for them.
func (x *seam) specialHandles(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, s := range []driver.Stream{0, driver.StreamLegacy, driver.StreamPerThread} {
		if c, r := x.StreamGetCtx(x.ctx, s); c != x.ctx || r != driver.Success {
			t.Errorf("stream %d: context %#x, %d; want %#x", s, c, r, x.ctx)
		}
		if _, r := x.StreamGetCtx(0, s); r != driver.ErrorInvalidContext {
			t.Errorf("stream %d without a context: %d, want %d", s, r, driver.ErrorInvalidContext)
		}
		if dev, r := x.StreamGetDevice(x.ctx, s); dev != 0 || r != driver.Success {
			t.Errorf("stream %d: device %d, %d", s, dev, r)
		}
	}
	if c, r := x.StreamGetCtx(0, x.s); c != x.ctx || r != driver.Success {
		t.Errorf("a stream of its own, without a context: %#x, %d", c, r)
	}
}

// contexts: what is current stays current, and the context that a call names counts.
func (x *seam) contexts(t *testing.T) {
	other, r := x.CtxCreate(driver.CtxSchedBlockingSync, 0)
	if r != driver.Success {
		t.Fatal(r)
	}
	if c, r := x.StreamGetCtx(other, driver.StreamLegacy); c != other || r != driver.Success {
		t.Errorf("the new context's legacy stream: %#x, %d; want %#x", c, r, other)
	}
	if _, r := x.StreamGetCtx(0, driver.StreamLegacy); r != driver.ErrorInvalidContext {
		t.Errorf("making a context leaves one current: %d", r)
	}
	if r := x.CtxDestroy(other); r != driver.Success {
		t.Error(r)
	}
	for _, flags := range []uint32{3, 7, 1 << 20} {
		if c, r := x.CtxCreate(flags, 0); r == driver.Success {
			t.Errorf("flags %#x: accepted", flags)
			x.CtxDestroy(c)
		} else if r != driver.ErrorInvalidValue {
			t.Errorf("flags %#x: %d, want %d", flags, r, driver.ErrorInvalidValue)
		}
	}
	if _, r := x.CtxCreate(0, 1000); r != driver.ErrorInvalidDevice {
		t.Errorf("device 1000: %d, want %d", r, driver.ErrorInvalidDevice)
	}
	if x.software() { // undefined on hardware
		if r := x.CtxDestroy(other); r != driver.ErrorInvalidContext {
			t.Errorf("destroyed twice: %d", r)
		}
		if r := x.CtxDestroy(x.ctx); r != driver.ErrorInvalidContext {
			t.Errorf("the primary context: %d", r)
		}
	}
}

func (x *seam) callbackFlags(t *testing.T) {
	for _, flags := range []uint32{1, 2, 1 << 31} {
		if r := x.StreamAddCallback(x.ctx, x.s, 1, flags); r != driver.ErrorInvalidValue {
			t.Errorf("flags %#x: %d, want %d", flags, r, driver.ErrorInvalidValue)
		}
	}
}

func (x *seam) unknownAttributes(t *testing.T) {
	for _, attr := range []int32{0, 2, 4, 7, 13, 99, -1} {
		_, get := x.StreamGetAttribute(x.ctx, x.s, attr)
		set := x.StreamSetAttribute(x.ctx, x.s, attr, driver.AttrValue{})
		t.Logf("attribute %d: get %d, set %d", attr, get, set)
		if x.software() && (get != driver.ErrorInvalidValue || set != driver.ErrorInvalidValue) {
			t.Errorf("attribute %d: get %d, set %d; want %d", attr, get, set, driver.ErrorInvalidValue)
		}
	}
	for attr, v := range map[int32]driver.AttrValue{
		driver.StreamAttrSynchronizationPolicy: {0: 9}, driver.StreamAttrMemSyncDomain: {0: 9}, driver.StreamAttrMemSyncDomainMap: {0: 200},
		driver.StreamAttrAccessPolicyWindow: {24: 2}, driver.StreamAttrPriority: {0: 99},
	} {
		r := x.StreamSetAttribute(x.ctx, x.s, attr, v)
		t.Logf("attribute %d, value out of range: %d", attr, r)
		if x.software() && r != driver.ErrorInvalidValue {
			t.Errorf("attribute %d takes a value out of range: %d", attr, r)
		}
	}
}

func (x *seam) copyAcross(t *testing.T) {
	other, r := x.CtxCreate(0, 0)
	if r != driver.Success {
		t.Fatal(r)
	}
	defer x.CtxDestroy(other)
	far, r := x.StreamCreateWithPriority(other, driver.StreamNonBlocking, 0)
	if r != driver.Success {
		t.Fatal(r)
	}
	defer x.StreamDestroy(other, far)
	r = x.StreamCopyAttributes(x.ctx, x.s, far)
	t.Logf("copy of attributes between contexts: %d", r)
	if x.software() && r != driver.ErrorInvalidContext {
		t.Errorf("want %d", driver.ErrorInvalidContext)
	}
}

func (x *seam) memOpFlags(t *testing.T) {
	at, r := x.MemAlloc(x.ctx, 64)
	if r != driver.Success {
		t.Fatal(r)
	}
	defer x.MemFree(x.ctx, at)
	ops := []driver.MemOp{{Op: driver.MemOpWrite32, Address: at}}
	if x.software() { // hardware could lose the device over it
		for what, r := range map[string]driver.Result{
			"unaligned write": x.StreamWriteValue32(x.ctx, x.s, at+2, 0, 0), "unaligned 64": x.StreamWriteValue64(x.ctx, x.s, at+4, 0, 0),
			"no memory": x.StreamWriteValue32(x.ctx, x.s, 16, 0, 0), "end of memory": x.StreamWaitValue64(x.ctx, x.s, at+64, 0, 0),
		} {
			if r != driver.ErrorInvalidValue {
				t.Errorf("%s: %d, want %d", what, r, driver.ErrorInvalidValue)
			}
		}
	}
	for what, r := range map[string]driver.Result{
		"write without a barrier": x.StreamWriteValue32(x.ctx, x.s, at, 0, 1),
		"unknown condition":       x.StreamWaitValue32(x.ctx, x.s, at, 0, 8), "flags of a batch": x.StreamBatchMemOp(x.ctx, x.s, ops, 1),
		"unknown operation": x.StreamBatchMemOp(x.ctx, x.s, []driver.MemOp{{Op: 77, Address: at}}, 0),
		"unknown barrier":   x.StreamBatchMemOp(x.ctx, x.s, []driver.MemOp{{Op: driver.MemOpBarrier, Plain: 5}}, 0),
	} {
		t.Logf("%s: %d", what, r)
		if x.software() && r != driver.ErrorInvalidValue {
			t.Errorf("%s: %d, want %d", what, r, driver.ErrorInvalidValue)
		}
	}
	t.Logf("sync afterwards: %d", x.StreamSynchronize(x.ctx, x.s))
}

// nowhere has every function called without a context, and with a handle that is no stream's.
func (x *seam) nowhere(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const none driver.Stream = 0xdead0
	for what, call := range map[string]func(driver.Context, driver.Stream) driver.Result{
		"launch":   func(c driver.Context, s driver.Stream) driver.Result { return x.LaunchHostFunc(c, s, 1) },
		"mode":     func(c driver.Context, s driver.Stream) driver.Result { return x.LaunchHostFuncMode(c, s, 1, 1) },
		"callback": func(c driver.Context, s driver.Stream) driver.Result { return x.StreamAddCallback(c, s, 1, 0) },
		"get":      func(c driver.Context, s driver.Stream) driver.Result { _, r := x.StreamGetAttribute(c, s, 3); return r },
		"set": func(c driver.Context, s driver.Stream) driver.Result {
			return x.StreamSetAttribute(c, s, driver.StreamAttrSynchronizationPolicy, driver.AttrValue{0: 1})
		},
		"copy":  func(c driver.Context, s driver.Stream) driver.Result { return x.StreamCopyAttributes(c, s, s) },
		"write": func(c driver.Context, s driver.Stream) driver.Result { return x.StreamWriteValue32(c, s, 0, 0, 0) },
		"wait":  func(c driver.Context, s driver.Stream) driver.Result { return x.StreamWaitValue64(c, s, 0, 0, 0) },
		"batch": func(c driver.Context, s driver.Stream) driver.Result { return x.StreamBatchMemOp(c, s, nil, 0) },
	} {
		r := call(0, driver.StreamLegacy)
		t.Logf("%s without a context: %d", what, r)
		if x.software() && r != driver.ErrorInvalidContext {
			t.Errorf("%s without a context: %d, want %d", what, r, driver.ErrorInvalidContext)
		}
		if x.software() { // undefined on hardware
			if r := call(x.ctx, none); r != driver.ErrorInvalidHandle {
				t.Errorf("%s on no stream: %d, want %d", what, r, driver.ErrorInvalidHandle)
			}
		}
	}
	if x.software() {
		if r := x.StreamCopyAttributes(x.ctx, x.s, none); r != driver.ErrorInvalidHandle {
			t.Errorf("copy from no stream: %d", r)
		}
	}
}
