package softcuda

import (
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

func TestMemory(t *testing.T) {
	mem := newMemory(0, 4096)
	a, _ := mem.alloc(100)
	b, _ := mem.alloc(512)
	c, r := mem.alloc(1)
	if r != driver.Success || a%granularity != 0 || b%granularity != 0 || c%granularity != 0 {
		t.Fatalf("addresses %#x, %#x, %#x, %s", a, b, c, r.Name())
	}
	for _, at := range []struct {
		p    driver.DevicePtr
		want int // bytes from there to the end of the allocation
	}{
		{a, 100}, {a + 99, 1}, {a + 100, 0}, {a - 1, 0}, // behind and before an allocation is nothing, also right behind
		{b, 512}, {b + 511, 1}, {b + 512, 0}, {b - 1, 0},
		{c, 1}, {c + 1, 0}, {0, 0}, {16, 0}, {1<<64 - 1, 0},
	} {
		if n := len(mem.bytes(at.p)); n != at.want {
			t.Errorf("%#x (a is %#x, b %#x, c %#x): %d bytes, want %d", at.p, a, b, c, n, at.want)
		}
	}
	for _, p := range []driver.DevicePtr{a + 1, b - 1, 16, c + 1} {
		if r := mem.free(p); r != driver.ErrorInvalidValue {
			t.Errorf("free of %#x: %s", p, r.Name())
		}
	}
	if r := mem.free(0); r != driver.Success {
		t.Errorf("free of 0: %s", r.Name())
	}
	if r := mem.free(b); r != driver.Success || mem.bytes(b) != nil || mem.used != 101 {
		t.Errorf("free: %s, %d bytes left used", r.Name(), mem.used)
	}
	if r := mem.free(b); r != driver.ErrorInvalidValue {
		t.Errorf("free again: %s", r.Name())
	}
	if len(mem.bytes(a)) != 100 || len(mem.bytes(c)) != 1 {
		t.Error("a free took more than its allocation")
	}
	if _, r := mem.alloc(4096); r != driver.ErrorOutOfMemory {
		t.Errorf("alloc of more than is left: %s", r.Name())
	}
	if _, r := mem.alloc(1<<64 - 1); r != driver.ErrorOutOfMemory {
		t.Errorf("alloc of everything: %s", r.Name())
	}
	if p, r := mem.alloc(4096 - 101); r != driver.Success || p <= c {
		t.Errorf("alloc of the rest: %#x, %s; an address must not come again", p, r.Name())
	}
}

func TestReach(t *testing.T) {
	m := newMachine(Options{Devices: 2})
	ctx, _ := m.DevicePrimaryCtxRetain(1)
	p, _ := m.MemAlloc(ctx, 64)
	host, r := m.MemHostAlloc(ctx, 64, 0)
	if r != driver.Success {
		t.Fatal(r.Name())
	}
	pinned := driver.DevicePtr(uintptr(host))
	for _, at := range []struct {
		p    driver.DevicePtr
		want int
	}{
		{p, 64}, {p + 63, 1}, {p + 64, 0}, {p - deviceSpace, 0}, {p + deviceSpace, 0}, {0, 0}, {16, 0}, {1<<64 - 1, 0},
		{pinned, 64}, {pinned + 63, 1}, {pinned + 64, 0}, {pinned - 1, 0},
	} {
		if n := len(m.reach(at.p)); n != at.want {
			t.Errorf("%#x: %d bytes, want %d", at.p, n, at.want)
		}
	}
	for _, c := range []struct {
		p driver.DevicePtr
		n uintptr
		r driver.Result
	}{{p, 64, 0}, {p + 1, 63, 0}, {p + 64, 0, 0}, {p, 65, driver.ErrorInvalidValue}, {p + 1, 64, driver.ErrorInvalidValue}, {16, 1, driver.ErrorInvalidValue}} {
		if data, r := m.span(c.p, c.n); r != c.r || r == driver.Success && uintptr(len(data)) != c.n {
			t.Errorf("span of %d at %#x: %d, %s", c.n, c.p, len(data), r.Name())
		}
	}
}
