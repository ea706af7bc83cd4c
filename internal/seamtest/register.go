package seamtest

import (
	"testing"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// registering: what package cuda would refuse first, or cannot do.
func (x *seam) registering(t *testing.T) {
	const page = 4 << 10
	mem := make([]byte, 8*page) // and so on the heap
	at := func(off int) unsafe.Pointer { return unsafe.Pointer(&mem[off]) }
	want := func(what string, r driver.Result, results ...driver.Result) {
		t.Helper()
		for _, ok := range results {
			if r == ok {
				return
			}
		}
		t.Errorf("%s: %d, want one of %d", what, r, results)
	}
	want("unregistering what is not registered", x.MemHostUnregister(x.ctx, at(0)), driver.ErrorHostMemoryNotRegistered, driver.ErrorInvalidValue)
	want("nothing", x.MemHostRegister(x.ctx, at(0), 0, 0), driver.ErrorInvalidValue)
	want("unknown flags", x.MemHostRegister(x.ctx, at(0), page, 1<<20), driver.ErrorInvalidValue)
	want("registering", x.MemHostRegister(x.ctx, at(page), 2*page, driver.MemHostRegisterPortable), driver.Success)
	want("the same again", x.MemHostRegister(x.ctx, at(page), 2*page, driver.MemHostRegisterPortable), driver.ErrorHostMemoryAlreadyRegistered)
	want("what overlaps", x.MemHostRegister(x.ctx, at(2*page), 4*page, driver.MemHostRegisterPortable), driver.ErrorHostMemoryAlreadyRegistered)
	want("a copy from it", x.copyFrom(at(page), 2*page), driver.Success)
	want("unregistering", x.MemHostUnregister(x.ctx, at(page)), driver.Success)
	want("unregistering again", x.MemHostUnregister(x.ctx, at(page)), driver.ErrorHostMemoryNotRegistered, driver.ErrorInvalidValue)
}

func (x *seam) copyFrom(p unsafe.Pointer, n uintptr) driver.Result {
	dev, r := x.MemAlloc(x.ctx, n)
	if r != driver.Success {
		return r
	}
	defer x.MemFree(x.ctx, dev)
	if r := x.MemcpyHtoDAsync(x.ctx, dev, p, n, x.s); r != driver.Success {
		return r
	}
	return x.StreamSynchronize(x.ctx, x.s)
}

// rowsRefused: pitches that are less than a row, and ends that are none.
func (x *seam) rowsRefused(t *testing.T) {
	dev, r := x.MemAlloc(x.ctx, 4096)
	if r != driver.Success {
		t.Fatal(r)
	}
	defer x.MemFree(x.ctx, dev)
	end := driver.Copy2DEnd{Type: driver.MemoryDevice, Device: dev, Pitch: 64}
	narrow, none := end, end
	narrow.Pitch = 7
	none.Type = 77
	far := end
	far.Y = 2
	for what, c := range map[string]driver.Copy2D{
		"a narrow pitch": {Src: narrow, Dst: far, Width: 8, Height: 2},
		"no memory":      {Src: none, Dst: far, Width: 8, Height: 2},
	} {
		if r := x.Memcpy2DAsync(x.ctx, &c, x.s); r != driver.ErrorInvalidValue {
			t.Errorf("%s: %d", what, r)
		}
	}
	if r := x.Memcpy2DAsync(x.ctx, &driver.Copy2D{Src: end, Dst: far, Width: 8, Height: 2}, x.s); r != driver.Success {
		t.Errorf("rows that are well: %d", r)
	}
	if r := x.StreamSynchronize(x.ctx, x.s); r != driver.Success {
		t.Error(r)
	}
}
