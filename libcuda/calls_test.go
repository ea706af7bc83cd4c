//go:build linux && (amd64 || arm64)

package libcuda

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/ffi"
	"github.com/hostlaunch/cuda/internal/nativetest"
)

const (
	ctx    = driver.Context(0xc0)
	stream = driver.Stream(0x5a)
	event  = driver.Event(0xe5)
	ptr    = driver.DevicePtr(0xd00000002000)
)

// methodCases has a case for every method of the seam that calls the driver: what the driver must be called with, and the
// results that it gives.
func methodCases() []methodCase {
	buf := []byte("hello")
	host := unsafe.Pointer(&buf[0])
	var pinned unsafe.Pointer
	launch := &driver.Launch{
		Grid: [3]uint32{1, 2, 3}, Block: [3]uint32{4, 5, 6}, SharedMem: 7,
		Params: []byte{9, 0, 0, 0, 0, 0, 0, 1, 8, 0, 0, 0}, Offsets: []uint32{0, 8},
	}
	return append([]methodCase{
		{"DriverGetVersion", func(d driver.Driver) any { return list(d.DriverGetVersion()) }, "", "13030 0"},
		{"DeviceGetCount", func(d driver.Driver) any { return list(d.DeviceGetCount()) }, "cuDeviceGetCount() in (nil)", "2 0"},
		{"DeviceGetName", func(d driver.Driver) any { return list(d.DeviceGetName(1)) }, "cuDeviceGetName(len=256, dev=1) in (nil)", "Fake 1 0"},
		{"DeviceGetAttribute", func(d driver.Driver) any { return list(d.DeviceGetAttribute(78, 1)) }, "cuDeviceGetAttribute(attrib=78, dev=1) in (nil)", "-78 0"},
		{"DeviceTotalMem", func(d driver.Driver) any { return list(d.DeviceTotalMem(1)) }, "cuDeviceTotalMem(dev=1) in (nil)", "151488268545 0"},
		{"DevicePrimaryCtxRetain", func(d driver.Driver) any { return list(d.DevicePrimaryCtxRetain(1)) },
			"cuDevicePrimaryCtxRetain(dev=1) in (nil)\ncuStreamCreateWithPriority(flags=1, priority=0) in 0xc1", "193 0"},
		{"DevicePrimaryCtxRelease", func(d driver.Driver) any { return d.DevicePrimaryCtxRelease(1) },
			"cuStreamDestroy(stream=0x51) in 0xc1\ncuDevicePrimaryCtxRelease(dev=1) in (nil)", "0"},
		{"CtxGetStreamPriorityRange", func(d driver.Driver) any { return list(d.CtxGetStreamPriorityRange(ctx)) }, "cuCtxGetStreamPriorityRange() in 0xc0", "0 -5 0"},
		{"CtxSynchronize", func(d driver.Driver) any { return d.CtxSynchronize(ctx) }, "cuCtxSynchronize() in 0xc0", "0"},

		{"StreamCreateWithPriority", func(d driver.Driver) any { return list(d.StreamCreateWithPriority(ctx, 1, -4)) },
			"cuStreamCreateWithPriority(flags=1, priority=-4) in 0xc0", "81 0"},
		{"StreamDestroy", func(d driver.Driver) any { return d.StreamDestroy(ctx, stream) }, "cuStreamDestroy(stream=0x5a) in 0xc0", "0"},
		{"StreamQuery", func(d driver.Driver) any { return d.StreamQuery(ctx, stream) }, "cuStreamQuery(stream=0x5a) in 0xc0", "0"},
		{"StreamSynchronize", func(d driver.Driver) any { return d.StreamSynchronize(ctx, driver.StreamLegacy) }, "cuStreamSynchronize(stream=0x1) in 0xc0", "0"},
		{"StreamWaitEvent", func(d driver.Driver) any { return d.StreamWaitEvent(ctx, stream, event, 1) },
			"cuStreamWaitEvent(stream=0x5a, event=0xe5, flags=1) in 0xc0", "0"},
		{"StreamGetFlags", func(d driver.Driver) any { return list(d.StreamGetFlags(ctx, stream)) }, "cuStreamGetFlags(stream=0x5a) in 0xc0", "2147483649 0"},
		{"StreamGetPriority", func(d driver.Driver) any { return list(d.StreamGetPriority(ctx, stream)) }, "cuStreamGetPriority(stream=0x5a) in 0xc0", "-3 0"},
		{"StreamGetID", func(d driver.Driver) any { return list(d.StreamGetID(ctx, stream)) }, "cuStreamGetId(stream=0x5a) in 0xc0", "18364758544493064720 0"},
		{"StreamGetCtx", func(d driver.Driver) any { return list(d.StreamGetCtx(ctx, stream)) }, "cuStreamGetCtx(stream=0x5a) in 0xc0", "193 0"},
		{"StreamGetDevice", func(d driver.Driver) any { return list(d.StreamGetDevice(ctx, stream)) }, "cuStreamGetDevice(stream=0x5a) in 0xc0", "1 0"},

		{"EventCreate", func(d driver.Driver) any { return list(d.EventCreate(ctx, 2)) }, "cuEventCreate(flags=2) in 0xc0", "225 0"},
		{"EventDestroy", func(d driver.Driver) any { return d.EventDestroy(ctx, event) }, "cuEventDestroy(event=0xe5) in 0xc0", "0"},
		{"EventRecord", func(d driver.Driver) any { return d.EventRecord(ctx, event, stream) }, "cuEventRecord(event=0xe5, stream=0x5a) in 0xc0", "0"},
		{"EventQuery", func(d driver.Driver) any { return d.EventQuery(ctx, event) }, "cuEventQuery(event=0xe5) in 0xc0", "0"},
		{"EventSynchronize", func(d driver.Driver) any { return d.EventSynchronize(ctx, event) }, "cuEventSynchronize(event=0xe5) in 0xc0", "0"},
		{"EventElapsedTime", func(d driver.Driver) any { return list(d.EventElapsedTime(ctx, event, 0xe6)) }, "cuEventElapsedTime(start=0xe5, end=0xe6) in 0xc0", "1.5 0"},

		{"MemAlloc", func(d driver.Driver) any { return list(d.MemAlloc(ctx, 1<<33)) }, "cuMemAlloc(bytes=8589934592) in 0xc0", "228698418581504 0"},
		{"MemFree", func(d driver.Driver) any { return d.MemFree(ctx, ptr) }, "cuMemFree(dptr=0xd00000002000) in 0xc0", "0"},
		{"MemHostAlloc", func(d driver.Driver) any {
			var r driver.Result
			pinned, r = d.MemHostAlloc(ctx, 1<<33, 1)
			return list(string(unsafe.Slice((*byte)(pinned), 6)), r)
		}, "cuMemHostAlloc(bytes=8589934592, flags=1) in 0xc0", "pinned 0"},
		{"MemFreeHost", func(d driver.Driver) any { return d.MemFreeHost(ctx, pinned) }, "cuMemFreeHost(\"pinned\") in 0xc0", "0"},
		{"MemcpyHtoD", func(d driver.Driver) any { return d.MemcpyHtoD(ctx, ptr, host, 4) }, "cuMemcpyHtoD(dst=0xd00000002000, src=\"hell\", n=4) in 0xc0", "0"},
		{"MemcpyDtoH", func(d driver.Driver) any { r := d.MemcpyDtoH(ctx, host, ptr, 3); return list(string(buf), r) },
			"cuMemcpyDtoH(src=0xd00000002000, n=3) in 0xc0", "xxxlo 0"},
		{"MemcpyHtoDAsync", func(d driver.Driver) any { return d.MemcpyHtoDAsync(ctx, ptr, host, 5, stream) },
			"cuMemcpyHtoDAsync(dst=0xd00000002000, src=\"xxxlo\", n=5, stream=0x5a) in 0xc0", "0"},
		{"MemcpyDtoHAsync", func(d driver.Driver) any {
			r := d.MemcpyDtoHAsync(ctx, host, ptr, 2, stream)
			return list(string(buf), r)
		},
			"cuMemcpyDtoHAsync(src=0xd00000002000, n=2, stream=0x5a) in 0xc0", "yyxlo 0"},
		{"MemcpyDtoDAsync", func(d driver.Driver) any { return d.MemcpyDtoDAsync(ctx, ptr, ptr+1, 5, stream) },
			"cuMemcpyDtoDAsync(dst=0xd00000002000, src=0xd00000002001, n=5, stream=0x5a) in 0xc0", "0"},
		{"MemHostRegister", func(d driver.Driver) any { return d.MemHostRegister(ctx, host, 5, 1) }, "cuMemHostRegister(\"yyxlo\", flags=1) in 0xc0", "0"},
		{"MemHostUnregister", func(d driver.Driver) any { return d.MemHostUnregister(ctx, host) }, "cuMemHostUnregister(1) in 0xc0", "0"},
		{"MemcpyPeerAsync", func(d driver.Driver) any { return d.MemcpyPeerAsync(ctx, ptr, 0xc1, ptr+1, 0xc2, 5, stream) },
			"cuMemcpyPeerAsync(dst=0xd00000002000 of 0xc1, src=0xd00000002001 of 0xc2, n=5, stream=0x5a) in 0xc0", "0"},
		{"Memcpy2DAsync", func(d driver.Driver) any {
			return d.Memcpy2DAsync(ctx, &driver.Copy2D{
				Src: driver.Copy2DEnd{X: 1, Y: 2, Type: driver.MemoryHost, Host: host, Pitch: 3}, Width: 8, Height: 9,
				Dst: driver.Copy2DEnd{X: 4, Y: 5, Type: driver.MemoryDevice, Device: ptr, Pitch: 6},
			}, stream)
		}, "cuMemcpy2DAsync(src=1 1 2 1 0 pitch 3, dst=2 4 5 0 0xd00000002000 pitch 6, 8 x 9, stream=0x5a) in 0xc0", "0"},
		{"MemsetD8Async", func(d driver.Driver) any { return d.MemsetD8Async(ctx, ptr, 1<<8-1, 6, stream) },
			"cuMemsetD8Async(dst=0xd00000002000, value=255, n=6, stream=0x5a) in 0xc0", "0"},
		{"MemsetD16Async", func(d driver.Driver) any { return d.MemsetD16Async(ctx, ptr, 1<<16-1, 6, stream) },
			"cuMemsetD16Async(dst=0xd00000002000, value=65535, n=6, stream=0x5a) in 0xc0", "0"},
		{"MemsetD32Async", func(d driver.Driver) any { return d.MemsetD32Async(ctx, ptr, 1<<32-1, 6, stream) },
			"cuMemsetD32Async(dst=0xd00000002000, value=4294967295, n=6, stream=0x5a) in 0xc0", "0"},

		{"ModuleLoadData", func(d driver.Driver) any { return list(d.ModuleLoadData(ctx, []byte("image and more")[:5])) },
			"cuModuleLoadDataEx(image=\"image\", options=2) in 0xc0", "49  0"},
		{"ModuleUnload", func(d driver.Driver) any { return d.ModuleUnload(ctx, 0x31) }, "cuModuleUnload(module=0x31) in 0xc0", "0"},
		{"ModuleGetFunction", func(d driver.Driver) any { return list(d.ModuleGetFunction(ctx, 0x31, "axpy")) },
			"cuModuleGetFunction(module=0x31, name=\"axpy\") in 0xc0", "241 0"},
		{"FuncGetParamInfo", func(d driver.Driver) any { return list(d.FuncGetParamInfo(ctx, 0xf1, 1)) }, "cuFuncGetParamInfo(func=0xf1, index=1) in 0xc0", "8 4 0"},
		{"LaunchKernel", func(d driver.Driver) any { return list(d.LaunchKernel(ctx, 0xf1, launch, stream)) },
			"cuLaunchKernel(f=0xf1, grid=1 2 3, block=4 5 6, shared=7, stream=0x5a, params=72057594037927945, 8, extra=(nil)) in 0xc0", " 0"},
		// A stream's handle is enough, whatever context is current.
		{"LaunchHostFunc", func(d driver.Driver) any { return d.LaunchHostFunc(ctx, stream, 0x123456789) },
			"cuLaunchHostFunc(stream=0x5a, data=0x123456789) in 0xabc", "0"},
		// A driver without sync modes.
		{"LaunchHostFuncMode", func(d driver.Driver) any { return d.LaunchHostFuncMode(ctx, stream, 0x12345678a, 1) },
			"cuLaunchHostFunc(stream=0x5a, data=0x12345678a, mode=1) in 0xc0", "0"},
		// A function of no effect, with data of its own: no tag.
		{"LaunchNativeHostFunc", func(d driver.Driver) any { return d.LaunchNativeHostFunc(ctx, stream, doesNothing, 0x12345678d, 0) },
			"cuLaunchHostFunc(stream=0x5a, data=0x12345678d) in 0xabc", "0"},
		{"LaunchNativeHostFunc", func(d driver.Driver) any { return d.LaunchNativeHostFunc(ctx, stream, doesNothing, 0x12345678e, 1) },
			"cuLaunchHostFunc(stream=0x5a, data=0x12345678e, mode=1) in 0xc0", "0"},
		{"StreamAddCallback", func(d driver.Driver) any { return d.StreamAddCallback(ctx, stream, 0x12345678b, 0) },
			"cuStreamAddCallback(stream=0x5a, data=0x12345678b, flags=0) in 0xc0", "0"},
		{"StreamAddCallback", func(d driver.Driver) any { return d.StreamAddCallback(ctx, stream, 0x12345678c, 4) },
			"cuStreamAddCallback(stream=0x5a, data=0x12345678c, flags=4) in 0xc0", "1"},

		{"StreamGetAttribute", func(d driver.Driver) any {
			v, r := d.StreamGetAttribute(ctx, stream, 9)
			return list(v[0], v[63], r)
		}, "cuStreamGetAttribute(stream=0x5a, attr=9) in 0xc0", "1 64 0"},
		{"StreamSetAttribute", func(d driver.Driver) any {
			return d.StreamSetAttribute(ctx, stream, 3, driver.AttrValue{0: 4, 63: 5})
		}, "cuStreamSetAttribute(stream=0x5a, attr=3, first=4, last=5) in 0xc0", "0"},
		{"StreamCopyAttributes", func(d driver.Driver) any { return d.StreamCopyAttributes(ctx, stream, stream+1) },
			"cuStreamCopyAttributes(dst=0x5a, src=0x5b) in 0xc0", "0"},

		{"CtxCreate", func(d driver.Driver) any { return list(d.CtxCreate(4, 1)) },
			"cuCtxCreate(flags=4, dev=1) in 0xabc\ncuCtxPopCurrent() in 0xcb\ncuStreamCreateWithPriority(flags=1, priority=0) in 0xcb", "203 0"},
		{"CtxDestroy", func(d driver.Driver) any { return d.CtxDestroy(0xcb) }, "cuStreamDestroy(stream=0x51) in 0xcb\ncuCtxDestroy(ctx=0xcb) in 0xabc", "0"},

		{"StreamWriteValue32", func(d driver.Driver) any { return d.StreamWriteValue32(ctx, stream, ptr, 1<<32-1, 1) },
			"cuStreamWriteValue32(stream=0x5a, addr=0xd00000002000, value=4294967295, flags=1) in 0xc0", "0"},
		{"StreamWriteValue64", func(d driver.Driver) any { return d.StreamWriteValue64(ctx, stream, ptr, 1<<64-1, 1) },
			"cuStreamWriteValue64(stream=0x5a, addr=0xd00000002000, value=18446744073709551615, flags=1) in 0xc0", "0"},
		{"StreamWaitValue32", func(d driver.Driver) any { return d.StreamWaitValue32(ctx, stream, ptr, 1<<32-1, 1<<30|2) },
			"cuStreamWaitValue32(stream=0x5a, addr=0xd00000002000, value=4294967295, flags=0x40000002) in 0xc0", "0"},
		{"StreamWaitValue64", func(d driver.Driver) any { return d.StreamWaitValue64(ctx, stream, ptr, 1<<64-1, 3) },
			"cuStreamWaitValue64(stream=0x5a, addr=0xd00000002000, value=18446744073709551615, flags=0x3) in 0xc0", "0"},
		{"StreamBatchMemOp", func(d driver.Driver) any {
			return d.StreamBatchMemOp(ctx, stream, []driver.MemOp{
				{Op: driver.MemOpWrite32, Address: ptr, Value: 7}, {Op: driver.MemOpBarrier, Plain: 1},
				{Op: driver.MemOpWait64, Address: ptr + 8, Value: 1 << 40, Flags: driver.WaitValueAND}, {Op: driver.MemOpFlushRemoteWrites},
			}, 0)
		}, "cuStreamBatchMemOp(stream=0x5a, op=2 0xd00000002000 value=7 flags=0 op=6 flags=1 op=4 0xd00000002008 value=1099511627776 flags=2 op=3 flags=0, flags=0) in 0xc0", "0"},

		{"MemAllocManaged", func(d driver.Driver) any { return list(d.MemAllocManaged(ctx, 1<<33, 2)) }, "cuMemAllocManaged(bytes=8589934592, flags=2) in 0xc0", "2684358656 0"},
		{"StreamAttachMemAsync", func(d driver.Driver) any { return d.StreamAttachMemAsync(ctx, stream, ptr, 1<<33, 4) },
			"cuStreamAttachMemAsync(stream=0x5a, dptr=0xd00000002000, n=8589934592, flags=4) in 0xc0", "0"},
		{"HostAccess", func(d driver.Driver) any { return list(d.HostAccess(ctx, ptr)) }, "", "0 801"},

		{"DeviceGetDevResource", func(d driver.Driver) any { res, r := d.DeviceGetDevResource(1, 1); return list(res.SM, r) },
			"cuDeviceGetDevResource(dev=1, type=1) in (nil)", "{132 8 4} 0"},
		{"DevSmResourceSplitByCount", splitByCount, "cuDeviceGetDevResource(dev=1, type=1) in 0xabc\n" +
			"cuDevSmResourceSplitByCount(groups=3, in=132 sound=1, flags=0, min=12) in 0xabc\n" +
			"cuDevSmResourceSplitByCount(groups=3, in=132 sound=1, flags=1, min=12) in 0xabc\n" +
			"cuDevResourceGenerateDesc(16 sound=1, 3 sound=1, n=3) in 0xabc", "2 16 24 3 222 0"},
		{"DevResourceGenerateDesc", func(d driver.Driver) any {
			res, _ := d.DeviceGetDevResource(0, 1)
			return list(d.DevResourceGenerateDesc([]driver.DevResource{res}))
		}, "cuDeviceGetDevResource(dev=0, type=1) in 0xabc\ncuDevResourceGenerateDesc(132 sound=1, 132 sound=1, n=1) in 0xabc", "222 0"},
		{"GreenCtxCreate", func(d driver.Driver) any { return list(d.GreenCtxCreate(0xde, 1, 1)) }, "cuGreenCtxCreate(desc=0xde, dev=1, flags=1) in 0xabc", "156 0"},
		{"GreenCtxDestroy", func(d driver.Driver) any { return d.GreenCtxDestroy(0x9c) }, "cuGreenCtxDestroy(green=0x9c) in 0xabc", "0"},
		{"GreenCtxGetDevResource", func(d driver.Driver) any { res, r := d.GreenCtxGetDevResource(0x9c, 1); return list(res.SM, r) },
			"cuGreenCtxGetDevResource(green=0x9c, type=1) in 0xabc", "{40 8 4} 0"},
		{"CtxFromGreenCtx", func(d driver.Driver) any { return list(d.CtxFromGreenCtx(0x9c)) }, "cuCtxFromGreenCtx(green=0x9c) in 0xabc", "201 0"},
		{"GreenCtxStreamCreate", func(d driver.Driver) any { return list(d.GreenCtxStreamCreate(0x9c, 1, -4)) },
			"cuGreenCtxStreamCreate(green=0x9c, flags=1, priority=-4) in 0xabc", "89 0"},
		{"StreamGetCtxs", func(d driver.Driver) any { return list(d.StreamGetCtxs(ctx, stream)) }, "cuStreamGetCtx_v2(stream=0x5a) in 0xc0", "193 156 0"},
		{"StreamGetGreenCtx", func(d driver.Driver) any { return list(d.StreamGetGreenCtx(ctx, stream)) }, "cuStreamGetGreenCtx(stream=0x5a) in 0xc0", "156 0"},
		{"StreamGetDevResource", func(d driver.Driver) any { res, r := d.StreamGetDevResource(ctx, stream, 1); return list(res.SM, r) },
			"cuStreamGetDevResource(stream=0x5a, type=1) in 0xc0", "{8 8 4} 0"},
	}, slices.Concat(captureMethodCases(), graphMethodCases())...)
}

// doesNothing is a native host function.
var doesNothing = nativetest.Func(nativetest.Note)

// splitByCount splits and describes, so that what came out is seen to go in again as it was.
func splitByCount(d driver.Driver) any {
	in, _ := d.DeviceGetDevResource(1, 1)
	if _, _, r := d.DevSmResourceSplitByCount(&in, 3, 0, 12); r != driver.ErrorInvalidResourceConfiguration {
		return r
	}
	parts, rest, r := d.DevSmResourceSplitByCount(&in, 3, 1, 12)
	if r != driver.Success {
		return r
	}
	desc, r := d.DevResourceGenerateDesc(append(parts, rest))
	return list(len(parts), parts[0].SM.Count, parts[1].SM.Count, rest.SM.Count, uint64(desc), r)
}

type methodCase struct {
	method string
	call   func(driver.Driver) any
	want   string // what the driver is called with
	result string
}

// list makes one value of a method's results.
func list(results ...any) any {
	var parts []string
	for _, r := range results {
		parts = append(parts, fmt.Sprint(number(r)))
	}
	return strings.Join(parts, " ")
}

// number strips a Result of its name, if it ever gets a String method.
func number(v any) any {
	if r, ok := v.(driver.Result); ok {
		return int32(r)
	}
	return v
}

// TestMethods drives every method of the seam, on a thread where a context of somebody else is current.
func TestMethods(t *testing.T) {
	f := newFake(t)
	f.set(knobVersion, 13030)
	nv := f.open(driver.Upcalls{
		HostFunc: func(uint64) {}, Callback: func(uint64, driver.Result) {}, Pending: func(driver.Context) int { return 0 },
	})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f.log()
	driven, called := map[string]bool{}, ""
	for _, c := range methodCases() {
		// Devices are asked without a context; everything else with somebody else's current.
		var foreign uintptr
		if !strings.HasPrefix(c.method, "Device") {
			foreign = 0xabc
		}
		f.call("cuCtxSetCurrent", foreign)
		got := c.call(nv)
		if fmt.Sprint(number(got)) != c.result {
			t.Errorf("%s: result %v, want %s", c.method, number(got), c.result)
		}
		lines := strings.Join(f.log(), "\n")
		if lines != c.want {
			t.Errorf("%s called\n%s\nwant\n%s", c.method, lines, c.want)
		}
		if now := currentContext(f); now != foreign {
			t.Errorf("%s left context %#x current, found %#x", c.method, now, foreign)
		}
		driven[c.method], called = true, called+lines+"\n"
	}
	f.call("cuCtxSetCurrent", 0)
	checkAllDriven(t, driven)
	checkAllCalled(t, called)
}

func currentContext(f *fake) uintptr {
	c := ffi.NewCall()
	defer c.Free()
	c.Args[0] = c.Ref(0)
	c.Do(nil, 0, f.lib.Symbol("cuCtxGetCurrent"), 1)
	return uintptr(c.Out[0])
}

// checkAllDriven reports the methods of the seam that have no case.
func checkAllDriven(t *testing.T, driven map[string]bool) {
	// These call nothing, or are tested on their own.
	for _, name := range []string{"Name", "Attach", "InHostFunction", "GoexitContained", "Shut", "NotifyEvent", "HostCall",
		"HostPrepare", "HostPause", "WatchContext", "HardwareQueues", "EmulateSpin", "MemoryWritten"} {
		driven[name] = true
	}
	seam := reflect.TypeFor[driver.Driver]()
	for i := range seam.NumMethod() {
		if name := seam.Method(i).Name; !driven[name] {
			t.Errorf("no case for %s", name)
		}
	}
}

// checkAllCalled reports the functions of the table that no method has called.
func checkAllCalled(t *testing.T, called string) {
	silent := map[string]bool{ // not written down by the fake, or the fallback of another
		"cuDriverGetVersion": true, "cuCtxGetCurrent": true, "cuCtxSetCurrent": true, "cuThreadExchangeStreamCaptureMode": true,
		"cuCtxGetDevice": true,
	}
	for _, s := range symbols {
		if !silent[s.name] && !strings.Contains(called, s.name+"(") {
			t.Errorf("nothing calls %s", s.name)
		}
	}
}

// TestSymbols: each function is asked for once, at its own version, in its legacy default stream form.
func TestSymbols(t *testing.T) {
	f := newFake(t)
	f.log()
	f.open(driver.Upcalls{})
	var want []string
	for _, s := range symbols {
		want = append(want, fmt.Sprintf("%s@%d flags=1", s.name, s.version))
	}
	if got := f.log(); !reflect.DeepEqual(got, want) {
		t.Errorf("asked for\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestOptional: on a CUDA 12.0 driver, what came later is not supported, and the error text can say since when it is.
func TestOptional(t *testing.T) {
	f := newFake(t)
	f.set(knobVersion, 12000)
	nv := f.open(driver.Upcalls{})
	if _, _, r := nv.FuncGetParamInfo(ctx, 0xf1, 0); r != driver.ErrorNotSupported {
		t.Errorf("FuncGetParamInfo: %d", r)
	}
	if v := nv.Needs("cuFuncGetParamInfo"); v != 12040 {
		t.Errorf("Needs: %d", v)
	}
	if v := nv.Needs("cuStreamQuery"); v != 0 {
		t.Errorf("Needs of what is there: %d", v)
	}
	for function, since := range map[string]int{"cuStreamGetCtx": 12050, "cuGreenCtxCreate": 12040, "cuStreamGetDevResource": 13010} {
		if v := nv.Needs(function); v != since {
			t.Errorf("Needs(%s): %d", function, v)
		}
	}
	res, r := nv.DeviceGetDevResource(0, 1)
	if _, _, split := nv.DevSmResourceSplitByCount(&res, 1, 0, 1); r != driver.ErrorNotSupported || split != driver.ErrorNotSupported {
		t.Errorf("DeviceGetDevResource: %d, DevSmResourceSplitByCount: %d", r, split)
	}
	f.log()
	d, r := nv.StreamGetDevice(ctx, stream)
	if got := strings.Join(f.log(), "\n"); d != 1 || r != 0 || got != "cuStreamGetCtx(stream=0x5a) in 0xc0\ncuCtxGetDevice() in 0xc1" {
		t.Errorf("StreamGetDevice: %d, %d by\n%s", d, r, got)
	}
}

func TestModuleLoadFailure(t *testing.T) {
	nv := newFake(t).open(driver.Upcalls{})
	if m, log, r := nv.ModuleLoadData(ctx, []byte("bad")); m != 0 || log != "ptxas: line 1: bad" || r != driver.ErrorInvalidPTX {
		t.Errorf("%d, %q, %d", m, log, r)
	}
	if _, log, r := nv.ModuleLoadData(ctx, nil); log == "" || r != driver.ErrorInvalidImage {
		t.Errorf("empty image: %q, %d", log, r)
	}
	if _, r := nv.ModuleGetFunction(ctx, 0x31, "a\x00b"); r != driver.ErrorInvalidValue {
		t.Errorf("name with a zero byte: %d", r)
	}
}

func TestLaunchRefusal(t *testing.T) {
	nv := newFake(t).open(driver.Upcalls{})
	one := [3]uint32{1, 1, 1}
	for _, c := range []struct {
		l    driver.Launch
		want string
	}{
		{driver.Launch{Grid: [3]uint32{0, 1, 1}, Block: one}, "grid [0 1 1], block [1 1 1]: no dimension may be 0; use 1"},
		{driver.Launch{Grid: one, Block: [3]uint32{2000, 1, 1}}, "2000 block.x: the device allows 1024"},
		{driver.Launch{Grid: one, Block: one, Params: make([]byte, 4), Offsets: []uint32{0, 8}}, "parameter 1 is at offset 8 of 4 bytes"},
	} {
		if why, r := nv.LaunchKernel(ctx, 0xf1, &c.l, stream); why != c.want || r != driver.ErrorInvalidValue {
			t.Errorf("%q, %d; want %q", why, r, c.want)
		}
	}
	if why, r := nv.LaunchKernel(ctx, 0xf1, &driver.Launch{Grid: one, Block: one}, stream); why != "" || r != driver.Success {
		t.Errorf("no parameters: %q, %d", why, r)
	}
}
