package cuda

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// reaching is a driver whose device reaches pageable memory and has no concurrent managed access, of which it says nothing: a
// GPU as softcuda has none. It is too old for green contexts.
type reaching struct {
	refusing
	attached   []string
	concurrent int
}

func (r *reaching) DeviceGetAttribute(attr int32, _ driver.Device) (int, driver.Result) {
	if attr == driver.AttrPageableMemoryAccess {
		return 1, driver.Success
	}
	return r.concurrent, driver.Success
}

func (r *reaching) StreamAttachMemAsync(_ driver.Context, s driver.Stream, p driver.DevicePtr, n uintptr, flags uint32) driver.Result {
	r.attached = append(r.attached, fmt.Sprintf("%d %#x %d %d", s, uint64(p), n, flags))
	return r.result
}

func (*reaching) MemAllocManaged(driver.Context, uintptr, uint32) (driver.DevicePtr, driver.Result) {
	return driver.DevicePtr(uintptr(unsafe.Pointer(unsafe.SliceData(somewhere)))), driver.Success
}

func (*reaching) MemFree(driver.Context, driver.DevicePtr) driver.Result { return driver.Success }

func (*reaching) HostAccess(driver.Context, driver.DevicePtr) (uint64, driver.Result) {
	return 0, driver.ErrorNotSupported
}

func (*reaching) DeviceGetDevResource(driver.Device, uint32) (driver.DevResource, driver.Result) {
	return driver.DevResource{}, driver.ErrorNotSupported
}

func (*reaching) StreamGetCtxs(driver.Context, driver.Stream) (driver.Context, driver.GreenContext, driver.Result) {
	return 0, 0, driver.ErrorNotSupported
}

func (*reaching) Needs(function string) int {
	return map[string]int{"cuDeviceGetDevResource": 12040, "cuStreamGetCtx": 12050}[function]
}

func (*reaching) CtxFromGreenCtx(driver.GreenContext) (driver.Context, driver.Result) {
	return 9, driver.Success
}

func (*reaching) GreenCtxDestroy(driver.GreenContext) driver.Result { return driver.Success }

var somewhere = make([]byte, 64)

func reachingDevice(t *testing.T, impl *reaching) *Device {
	t.Helper()
	return deviceOf(t, impl)
}

// ST-10: pageable memory is attached by its own address and length, managed memory as a whole.
func TestAttachReachesDriver(t *testing.T) {
	impl := new(reaching)
	dev := reachingDevice(t, impl)
	s, mem := dev.DefaultStream(), make([]uint32, 10)
	m, err := dev.AllocManaged(len(somewhere), AttachHost)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(AttachHostMemory(s, mem[2:], AttachHost), s.Attach(m, AttachGlobal)); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("[1 %#x 32 2 1 %#x 0 1]", uintptr(unsafe.Pointer(&mem[2])), uintptr(unsafe.Pointer(&somewhere[0])))
	if got := fmt.Sprint(impl.attached); got != want {
		t.Errorf("attached %s, want %s", got, want)
	}
	if err := AttachHostMemory(s, mem, AttachSingle); !errors.Is(err, ErrInvalidValue) {
		t.Errorf("Single on the legacy stream: %v", err)
	}
	impl.result = driver.ErrorInvalidValue
	if err := s.Attach(m, AttachHost); !errors.Is(err, ErrInvalidValue) {
		t.Errorf("what the driver refuses: %v", err)
	}
}

// Where nobody can tell, HostAccess says so rather than yes.
func TestHostAccessUnknown(t *testing.T) {
	m, err := reachingDevice(t, new(reaching)).AllocManaged(len(somewhere), AttachGlobal)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.HostAccess(); !errors.Is(err, ErrNotSupported) || !strings.Contains(err.Error(), "does not tell") {
		t.Errorf("HostAccess = %v", err)
	}
	m, err = reachingDevice(t, &reaching{concurrent: 1}).AllocManaged(len(somewhere), AttachGlobal)
	if err := errors.Join(err, m.HostAccess()); err != nil {
		t.Errorf("with concurrent managed access: %v", err)
	}
}

// A handle that the driver may give out again means nothing once its green context is gone.
func TestGreenIsForgotten(t *testing.T) {
	dev := reachingDevice(t, new(reaching))
	g, err := dev.greenContext("NewGreenContext", 5)
	if err != nil || dev.drv.context(9) != g.Context() {
		t.Fatalf("the driver's context 9 is %p (%v), want %p", dev.drv.context(9), err, g.Context())
	}
	if err := g.Close(); err != nil || dev.drv.context(9) != nil {
		t.Errorf("after Close (%v) context 9 is %p, want none", err, dev.drv.context(9))
	}
}

// What a driver is too old for is an error that names the function and the CUDA version.
func TestGreenNeedsNewerDriver(t *testing.T) {
	dev := reachingDevice(t, new(reaching))
	_, err := dev.SMResource()
	if !errors.Is(err, ErrNotSupported) || !strings.Contains(err.Error(), "cuDeviceGetDevResource came with CUDA 12.4; this driver is for 12.0") {
		t.Errorf("SMResource: %v", err)
	}
	_, _, err = dev.DefaultStream().Contexts()
	if !errors.Is(err, ErrNotSupported) || !strings.Contains(err.Error(), "cuStreamGetCtx came with CUDA 12.5") {
		t.Errorf("Contexts: %v", err)
	}
}
