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

// launchable is a graph of two memsets side by side, with a host function behind one of them.
func launchable(t *testing.T, m *machine, ctx driver.Context, a, b driver.DevicePtr) driver.GraphExec {
	t.Helper()
	raw, r := m.GraphCreate(ctx, 0)
	want(t, "graph", r, driver.Success)
	var last []driver.GraphNode
	for _, p := range []driver.DevicePtr{a, b} {
		set := driver.Memset{Dst: p, Value: 1, ElementSize: 1, Width: 4, Height: 1}
		n, r := m.GraphAddNode(ctx, raw, nil, nil, &driver.NodeParams{Type: driver.NodeMemset, Memset: &set})
		want(t, "memset", r, driver.Success)
		last = []driver.GraphNode{n}
	}
	_, r = m.GraphAddNode(ctx, raw, last, nil, &driver.NodeParams{Type: driver.NodeHost})
	want(t, "function", r, driver.Success)
	x, r := m.GraphInstantiateWithParams(ctx, raw, new(driver.Instantiation))
	want(t, "instantiate", r, driver.Success)
	return x
}

// The streams of a graph's launch go too, however the program waits for it: also if it never asks for the stream itself.
func TestHistoryOfGraphsGoes(t *testing.T) {
	for what, wait := range map[string]func(*machine, driver.Context, driver.Stream, driver.Event) driver.Result{
		"stream": func(m *machine, ctx driver.Context, s driver.Stream, _ driver.Event) driver.Result {
			return m.StreamSynchronize(ctx, s)
		},
		"event": func(m *machine, ctx driver.Context, s driver.Stream, e driver.Event) driver.Result {
			return max(m.EventRecord(ctx, e, s), m.EventSynchronize(ctx, e))
		},
		"context": func(m *machine, ctx driver.Context, _ driver.Stream, _ driver.Event) driver.Result {
			return m.CtxSynchronize(ctx)
		},
	} {
		for _, o := range []Options{{NoConcurrentManagedAccess: true}, {Check: new(Check)}, {NoConcurrentManagedAccess: true, Seed: 1}} {
			m, ctx, s := seam(t, o)
			a, r := m.MemAlloc(ctx, 4)
			want(t, "alloc", r, driver.Success)
			b, r := m.MemAlloc(ctx, 4)
			want(t, "alloc", r, driver.Success)
			e, r := m.EventCreate(ctx, 0)
			want(t, "event", r, driver.Success)
			x := launchable(t, m, ctx, a, b)
			for range 200 {
				want(t, "launch", m.GraphLaunch(ctx, x, s), driver.Success)
				want(t, what, wait(m, ctx, s, e), driver.Success)
			}
			want(t, "sync", m.CtxSynchronize(ctx), driver.Success)
			m.Shut()
			c := m.contexts[ctx]
			if known, clock := len(c.known), len(m.streams[s].history.clock); known > 40 || clock > 40 || len(m.unseen) != 0 {
				t.Errorf("%s, %+v: left: %d streams known, %d unseen, a clock of %d", what, o, known, len(m.unseen), clock)
			}
		}
	}
}

// A graph's work counts as that of the stream that it was launched on.
func TestHostAccessNamesLaunchingStream(t *testing.T) {
	for _, seed := range []uint64{0, 1} {
		m, ctx, s := seam(t, Options{NoConcurrentManagedAccess: true, Seed: seed})
		a, r := m.MemAlloc(ctx, 4)
		want(t, "alloc", r, driver.Success)
		b, r := m.MemAlloc(ctx, 4)
		want(t, "alloc", r, driver.Success)
		p, r := m.MemAllocManaged(ctx, 4, driver.MemAttachGlobal)
		want(t, "alloc", r, driver.Success)
		want(t, "launch", m.GraphLaunch(ctx, launchable(t, m, ctx, a, b), s), driver.Success)
		if busy, r := m.HostAccess(ctx, p); r != driver.ErrorNotReady || busy != m.streams[s].id {
			t.Errorf("seed %d: stream %d, %s; want stream %d, not ready", seed, busy, r.Name(), m.streams[s].id)
		}
		want(t, "sync", m.CtxSynchronize(ctx), driver.Success)
		m.Shut()
	}
}
