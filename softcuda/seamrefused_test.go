package softcuda

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
)

// attached is a machine with a context of device 0 and a stream there.
func attached(t *testing.T) (m *machine, c driver.Context, s driver.Stream) {
	t.Helper()
	m = newMachine(Options{})
	m.Attach(driver.Upcalls{
		HostFunc: func(uint64) {}, Callback: func(uint64, driver.Result) {},
		Lost: func(driver.Context, driver.Result) {}, Log: func(string, ...any) {},
	})
	t.Cleanup(m.Shut)
	c, r := m.DevicePrimaryCtxRetain(0)
	s, r2 := m.StreamCreateWithPriority(c, driver.StreamNonBlocking, 0)
	if r != driver.Success || r2 != driver.Success {
		t.Fatal(r, r2)
	}
	return m, c, s
}

func result[T any](_ T, r driver.Result) driver.Result { return r }

// TestSeamRefuses is what package cuda does not let a program pass, beside what seamtest has for both drivers.
func TestSeamRefuses(t *testing.T) {
	m, c, s := attached(t)
	const none = 0xdead0
	other, _ := m.CtxCreate(0, 0)
	foreign, _ := m.EventCreate(other, 0)
	event, _ := m.EventCreate(c, 0)
	g, _ := m.GraphCreate(c, 0)
	n, _ := m.GraphAddNode(c, g, nil, nil, &driver.NodeParams{Type: driver.NodeEmpty})
	mem, _ := m.MemAlloc(c, 64)
	pinned, _ := m.MemHostAlloc(c, 64, 0)
	mod, _, _ := m.ModuleLoadData(c, []byte(".version 8.0\n.target sm_90\n.entry k()"))
	_, timeless := m.EventElapsedTime(c, none, event)
	_, timeBetween := m.EventElapsedTime(c, foreign, event)
	_, _, paramless := m.FuncGetParamInfo(c, none, 0)
	for _, x := range []struct {
		what      string
		got, want driver.Result
	}{
		{"an event with unknown flags", result(m.EventCreate(c, 8)), driver.ErrorInvalidValue},
		{"an event for processes that is timed", result(m.EventCreate(c, 4)), driver.ErrorInvalidValue},
		{"a record of another context's event", m.EventRecord(c, foreign, s), driver.ErrorInvalidHandle},
		{"a record of no event", m.EventRecord(c, none, s), driver.ErrorInvalidHandle},
		{"the time since no event", timeless, driver.ErrorInvalidHandle},
		{"the time between two contexts", timeBetween, driver.ErrorInvalidHandle},
		{"a wait with unknown flags", m.StreamWaitEvent(c, s, event, 2), driver.ErrorInvalidValue},
		{"no memory", result(m.MemAlloc(c, 0)), driver.ErrorInvalidValue},
		{"pinned memory with unknown flags", result(m.MemHostAlloc(c, 8, 8)), driver.ErrorInvalidValue},
		{"pinned memory that is the middle of some", m.MemFreeHost(c, unsafe.Add(pinned, 8)), driver.ErrorInvalidValue},
		{"managed memory attached to nobody", result(m.MemAllocManaged(c, 8, 0)), driver.ErrorInvalidValue},
		{"a copy from no host memory", m.MemcpyHtoD(c, mem, nil, 8), driver.ErrorInvalidValue},
		{"a memset of words at an odd address", m.MemsetD32Async(c, mem+1, 1, 1, s), driver.ErrorInvalidValue},
		{"a graph with flags", result(m.GraphCreate(c, 1)), driver.ErrorInvalidValue},
		{"a clone of no graph", result(m.GraphClone(c, none)), driver.ErrorInvalidValue},
		{"edges from two nodes to one", m.GraphAddDependencies(c, g, []driver.GraphNode{n, n}, []driver.GraphNode{n}, nil),
			driver.ErrorInvalidValue},
		{"a capture to no graph", m.StreamBeginCaptureToGraph(c, s, none, nil, nil, 0), driver.ErrorInvalidValue},
		{"a capture behind no node", m.StreamBeginCaptureToGraph(c, s, g, []driver.GraphNode{none}, nil, 0), driver.ErrorInvalidValue},
		{"dependencies of what does not capture", m.StreamUpdateCaptureDependencies(c, s, nil, nil, 0), driver.ErrorIllegalState},
		{"unknown flags for dependencies", m.StreamUpdateCaptureDependencies(c, s, nil, nil, 2), driver.ErrorInvalidValue},
		{"no module to unload", m.ModuleUnload(c, none), driver.ErrorInvalidHandle},
		{"a kernel of no module", result(m.ModuleGetFunction(c, none, "k")), driver.ErrorInvalidHandle},
		{"a kernel without a name", result(m.ModuleGetFunction(c, mod, "")), driver.ErrorInvalidValue},
		{"the parameters of no kernel", paramless, driver.ErrorInvalidHandle},
		{"a native function at no address", m.LaunchNativeHostFunc(c, s, 0, 0, 0), driver.ErrorInvalidValue},
		{"an attribute of no device", result(m.DeviceGetAttribute(driver.AttrComputeCapabilityMajor, 9)), driver.ErrorInvalidDevice},
		{"the memory of no device", result(m.DeviceTotalMem(9)), driver.ErrorInvalidDevice},
		{"the context of no device", result(m.DevicePrimaryCtxRetain(9)), driver.ErrorInvalidDevice},
		{"to let go of no device", m.DevicePrimaryCtxRelease(9), driver.ErrorInvalidDevice},
	} {
		if x.got != x.want {
			t.Errorf("%s: %s, want %s", x.what, x.got.Name(), x.want.Name())
		}
	}
	for what, r := range map[string]driver.Result{"no pinned memory": result(m.MemHostAlloc(c, 0, 0)), "to free none": m.MemFreeHost(c, nil)} {
		if r != driver.Success {
			t.Errorf("%s: %s", what, r.Name())
		}
	}
}

// TestForeignContext borrows a stream of a context that another library has made: it works there, and that context is the stream's.
func TestForeignContext(t *testing.T) {
	m := newMachine(Options{})
	drv, err := cuda.NewDriver(m)
	if err != nil {
		t.Fatal(err)
	}
	defer drv.Close()
	dev, err := drv.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, _ := m.CtxCreate(0, 0)
	raw, r := m.StreamCreateWithPriority(ctx, driver.StreamNonBlocking, 0)
	if r != driver.Success {
		t.Fatal(r)
	}
	s, err := dev.BorrowStream(uintptr(raw))
	if err != nil {
		t.Fatal(err)
	}
	again, err := dev.BorrowStream(uintptr(raw))
	if err != nil || s.Context() == dev.Context || again.Context() != s.Context() {
		t.Errorf("context %p, then %p, %v; the device's is %p", s.Context(), again.Context(), err, dev.Context)
	}
	ran := false
	if err := errors.Join(cuda.HostLaunch(s, func() { ran = true }), s.Sync()); err != nil || !ran {
		t.Errorf("ran: %v, %v", ran, err)
	}
	if err := errors.Join(s.Close(), again.Close(), s.Context().Close()); err != nil {
		t.Error(err)
	}
	if r := m.StreamDestroy(ctx, raw); r != driver.Success {
		t.Errorf("the stream does not outlive what was borrowed: %s", r.Name())
	}
}

// TestForeignCapture asks about a capture that another library has begun, on a stream that it lends.
func TestForeignCapture(t *testing.T) {
	m := newMachine(Options{})
	drv, err := cuda.NewDriver(m)
	if err != nil {
		t.Fatal(err)
	}
	defer drv.Close()
	dev, err := drv.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	own, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	s, err := dev.BorrowStream(own.CUDAStream())
	if err != nil {
		t.Fatal(err)
	}
	ctx, raw := m.devices[0].ctx.raw, driver.Stream(own.CUDAStream())
	var ids []uint64
	for range 2 {
		if r := m.StreamBeginCapture(ctx, raw, driver.CaptureRelaxed); r != driver.Success {
			t.Fatal(r)
		}
		if r := m.LaunchHostFunc(ctx, raw, 0); r != driver.Success {
			t.Fatal(r)
		}
		info, err := s.CaptureInfo()
		if err != nil || info.Status != cuda.CaptureActive || info.Status.String() != "active" || len(info.Dependencies) != 1 {
			t.Errorf("%+v, %v", info, err)
		}
		twice, err := s.CaptureInfo()
		if err != nil || twice.Dependencies[0] != info.Dependencies[0] {
			t.Errorf("asked again: %+v, %v", twice, err)
		}
		if err := cuda.HostLaunch(s, func() {}); !errors.Is(err, cuda.ErrCapturing) {
			t.Errorf("a host function: %v", err)
		}
		ids = append(ids, info.ID)
		g, r := m.StreamEndCapture(ctx, raw)
		if r != driver.Success {
			t.Fatal(r)
		}
		m.GraphDestroy(ctx, g)
	}
	if info, err := s.CaptureInfo(); err != nil || info.Status.String() != "none" || ids[0] == ids[1] {
		t.Errorf("afterwards: %+v, %v; captures %v", info, err, ids)
	}
}
