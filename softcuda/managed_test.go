package softcuda

import (
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

// seam is a machine with a context, for what the public face cannot ask for.
func seam(t *testing.T, o Options) (*machine, driver.Context, driver.Stream) {
	t.Helper()
	m := newMachine(o)
	m.Attach(driver.Upcalls{HostFunc: func(uint64) {}, Lost: func(driver.Context, driver.Result) {}, Log: func(string, ...any) {}})
	ctx, r := m.DevicePrimaryCtxRetain(0)
	want(t, "retain", r, driver.Success)
	s, r := m.StreamCreateWithPriority(ctx, driver.StreamNonBlocking, 0)
	want(t, "stream", r, driver.Success)
	return m, ctx, s
}

func want(t *testing.T, what string, got, want driver.Result) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: %s (%d), want %s", what, got.Name(), got, want.Name())
	}
}

// CONTRACT ST-10, as the driver takes it: length 0 or all of it, one flag, an allocation's beginning.
func TestAttachArguments(t *testing.T) {
	m, ctx, s := seam(t, Options{})
	p, r := m.MemAllocManaged(ctx, 64, driver.MemAttachGlobal)
	want(t, "alloc", r, driver.Success)
	device, r := m.MemAlloc(ctx, 64)
	want(t, "alloc", r, driver.Success)
	for _, c := range []struct {
		what   string
		s      driver.Stream
		p      driver.DevicePtr
		length uintptr
		flags  uint32
		want   driver.Result
	}{
		{"length 0", s, p, 0, driver.MemAttachGlobal, driver.Success},
		{"all", s, p, 64, driver.MemAttachSingle, driver.Success},
		{"a part", s, p, 63, driver.MemAttachGlobal, driver.ErrorInvalidValue},
		{"more", s, p, 65, driver.MemAttachGlobal, driver.ErrorInvalidValue},
		{"inside", s, p + 8, 0, driver.MemAttachGlobal, driver.ErrorInvalidValue},
		{"device memory", s, device, 64, driver.MemAttachGlobal, driver.ErrorInvalidValue},
		{"no flag", s, p, 0, 0, driver.ErrorInvalidValue},
		{"two flags", s, p, 0, 3, driver.ErrorInvalidValue},
		{"Single on 0", 0, p, 0, driver.MemAttachSingle, driver.ErrorInvalidValue},
		{"Single on legacy", driver.StreamLegacy, p, 0, driver.MemAttachSingle, driver.ErrorInvalidValue},
		{"Host on legacy", driver.StreamLegacy, p, 0, driver.MemAttachHost, driver.Success},
		{"Single on the thread's", driver.StreamPerThread, p, 0, driver.MemAttachSingle, driver.Success},
		{"no stream", 99, p, 0, driver.MemAttachGlobal, driver.ErrorInvalidHandle},
	} {
		want(t, c.what, m.StreamAttachMemAsync(ctx, c.s, c.p, c.length, c.flags), c.want)
	}
	want(t, "free", m.MemFree(ctx, p), driver.Success)
	want(t, "free again", m.MemFree(ctx, p), driver.ErrorInvalidValue)
	want(t, "attach what is freed", m.StreamAttachMemAsync(ctx, s, p, 0, driver.MemAttachGlobal), driver.ErrorInvalidValue)
	_, r = m.HostAccess(ctx, p)
	want(t, "access to what is freed", r, driver.ErrorInvalidValue)
}

// Managed memory counts as the device's.
func TestManagedIsLimited(t *testing.T) {
	m, ctx, _ := seam(t, Options{Memory: 100})
	p, r := m.MemAllocManaged(ctx, 60, driver.MemAttachHost)
	want(t, "60 of 100", r, driver.Success)
	if p%8 != 0 {
		t.Errorf("at %#x: not aligned", p)
	}
	_, r = m.MemAllocManaged(ctx, 60, driver.MemAttachHost)
	want(t, "60 more", r, driver.ErrorOutOfMemory)
	want(t, "free", m.MemFree(ctx, p), driver.Success)
	_, r = m.MemAllocManaged(ctx, 100, driver.MemAttachHost)
	want(t, "all 100", r, driver.Success)
}

// A host function, or a callback, that begins is the host seeing what is before it, with a Seed or without.
func TestHostSeesWhatIsBefore(t *testing.T) {
	for _, seed := range []uint64{0, 1} {
		m, ctx, s := seam(t, Options{NoConcurrentManagedAccess: true, Seed: seed})
		p, r := m.MemAllocManaged(ctx, 8, driver.MemAttachGlobal)
		want(t, "alloc", r, driver.Success)
		b, r := m.MemAlloc(ctx, 8)
		want(t, "alloc", r, driver.Success)
		seen := make(chan driver.Result)
		look := func() { _, r := m.HostAccess(ctx, p); seen <- r }
		m.up.HostFunc, m.up.Callback = func(uint64) { look() }, func(uint64, driver.Result) { look() }
		want(t, "memset", m.MemsetD8Async(ctx, b, 1, 8, s), driver.Success)
		want(t, "function", m.LaunchHostFunc(ctx, s, 0), driver.Success)
		want(t, "access inside a function", <-seen, driver.Success)
		want(t, "memset", m.MemsetD8Async(ctx, b, 1, 8, s), driver.Success)
		want(t, "callback", m.StreamAddCallback(ctx, s, 0, 0), driver.Success)
		want(t, "access inside a callback", <-seen, driver.Success)
		want(t, "sync", m.CtxSynchronize(ctx), driver.Success)
		m.Shut()
	}
}

// What is known of closed streams goes: a program that makes and closes streams forever stays as small as it was.
func TestHistoryGoes(t *testing.T) {
	m, ctx, main := seam(t, Options{NoConcurrentManagedAccess: true})
	p, r := m.MemAlloc(ctx, 4)
	want(t, "alloc", r, driver.Success)
	p2, r := m.MemAlloc(ctx, 4)
	want(t, "alloc", r, driver.Success)
	for range 100 {
		s, r := m.StreamCreateWithPriority(ctx, driver.StreamDefault, 0)
		want(t, "stream", r, driver.Success)
		want(t, "memset", m.MemsetD8Async(ctx, p, 1, 4, s), driver.Success)
		want(t, "memset", m.MemsetD8Async(ctx, p2, 1, 4, main), driver.Success)
		want(t, "function", m.LaunchHostFunc(ctx, s, 0), driver.Success)
		want(t, "destroy", m.StreamDestroy(ctx, s), driver.Success)
		want(t, "legacy", m.MemsetD8Async(ctx, p, 1, 4, driver.StreamLegacy), driver.Success)
		want(t, "sync", m.StreamSynchronize(ctx, driver.StreamLegacy), driver.Success)
	}
	want(t, "sync", m.CtxSynchronize(ctx), driver.Success)
	want(t, "sync", m.StreamSynchronize(ctx, driver.StreamLegacy), driver.Success)
	c := m.contexts[ctx]
	if len(c.known) > 2 || len(m.unseen) != 0 || len(c.legacy.history.clock) > 2 || len(c.legacy.history.held) != 0 {
		t.Errorf("left: %d streams known, %d unseen, a clock of %d", len(c.known), len(m.unseen), len(c.legacy.history.clock))
	}
}
