package cudatest

import (
	"bytes"
	"errors"
	"time"

	"github.com/hostlaunch/cuda"
)

// managedCases: managed memory, and what it can be attached to.
var managedCases = []Case{
	{ID: "ST-10", Name: "managed memory", Run: managedMemory},
	{ID: "ST-10", Name: "as a Buffer", Run: managedAsBuffer},
	{ID: "ST-10", Name: "bad allocations", Run: managedRefused},
	{ID: "ST-10", Name: "Global lets every stream in", Run: attachGlobal},
	{ID: "ST-10", Name: "Host lets the host in", Run: attachHost},
	{ID: "ST-10", Name: "Single binds to one stream", Run: attachSingle},
	{ID: "ST-10", Name: "not Single on the legacy stream", Run: attachSingleLegacy},
	{ID: "ST-10", Name: "replaces in stream order", Run: attachReplaces},
	{ID: "ST-10", Name: "a destroyed stream's memory", Run: attachDestroyed},
	{ID: "ST-10", Name: "pageable memory", Run: attachPageable},
	{ID: "ST-10", Name: "bad arguments", Run: attachRefused},
	{ID: "HL-06", Name: "managed memory and green contexts inside", Run: managedInside},
}

// Managed allocates managed memory, a little of it: on hardware more of it takes time.
func (t *T) Managed(initial cuda.AttachMode) *cuda.ManagedBuffer {
	t.Helper()
	m, err := t.Device(0).AllocManaged(64, initial)
	t.OK(err)
	t.Cleanup(func() { m.Close() })
	return m
}

// Checked gives the case a driver that can tell whether the host may touch managed memory, where there is one.
func (t *T) Checked() {
	t.Helper()
	if t.cfg.OpenChecked != nil {
		t.cfg.Open = t.cfg.OpenChecked
		t.OpenDriver()
	}
}

// AttachHeld attaches m to s, which a gate holds. Nobody says whether that may wait for the stream; if so, the gate is opened.
func (t *T) AttachHeld(gate *Gate, s *cuda.Stream, m *cuda.ManagedBuffer) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.Attach(m, cuda.AttachSingle) }()
	select {
	case err := <-done:
		t.OK(err)
	case <-time.After(2 * time.Second):
		t.Unsure("Attach waits for the stream's work")
		gate.Open()
		t.OK(<-done)
	}
}

// Free wants the host to be allowed to touch m.
func (t *T) Free(what string, m *cuda.ManagedBuffer) {
	t.Helper()
	if err := m.HostAccess(); err != nil && !errors.Is(err, cuda.ErrNotSupported) {
		t.Fatalf("%s: %v; want the host to have access", what, err)
	}
}

// Taken wants the host to be forbidden to touch m, where the driver can tell.
func (t *T) Taken(what string, m *cuda.ManagedBuffer) {
	t.Helper()
	err := m.HostAccess()
	if t.cfg.OpenChecked == nil {
		return
	}
	if err == nil {
		t.Fatalf("%s: the host has access, want it to have none", what)
	}
	t.Is(err, cuda.ErrHostAccess)
}

func managedMemory(t *T) {
	s, m := t.Stream(), t.Managed(cuda.AttachGlobal)
	v := cuda.ManagedSlice[uint32](m)
	if m.Len() != 64 || len(m.Bytes()) != 64 || len(v) != 16 || m.Context() != t.Device(0).Context {
		t.Fatalf("%d bytes, view of %d, %d words, context %p", m.Len(), len(m.Bytes()), len(v), m.Context())
	}
	for i := range v {
		v[i] = uint32(i)
	}
	t.OK(s.Launch(t.Kernel("increment"), cuda.Grid1D(16, 16), m, uint32(16)))
	t.Sync(s)
	for i := range v {
		if v[i] != uint32(i)+1 {
			t.Fatalf("word %d is %d after the kernel, want %d", i, v[i], i+1)
		}
	}
}

func managedAsBuffer(t *T) {
	s, m, b := t.Stream(), t.Managed(cuda.AttachGlobal), t.Buffer(64)
	t.OK(s.Memset(m.Buffer(), 7))
	t.OK(s.CopyBuffer(b, m.Buffer()))
	half, err := m.Buffer().Slice(32, 32)
	t.OK(err)
	t.OK(s.Memset32(half, 0x01010101))
	got := make([]byte, 64)
	t.OK(cuda.CopyToHost(s, got, b))
	t.Sync(s)
	if !bytes.Equal(got, bytes.Repeat([]byte{7}, 64)) {
		t.Errorf("copied as %v", got)
	}
	if want := append(bytes.Repeat([]byte{7}, 32), bytes.Repeat([]byte{1}, 32)...); !bytes.Equal(m.Bytes(), want) {
		t.Errorf("the host sees %v", m.Bytes())
	}
	t.OK(m.Close())
	t.OK(m.Close())
	if m.Bytes() != nil {
		t.Error("Bytes after Close")
	}
	t.Is(s.Memset(m.Buffer(), 1), cuda.ErrClosed)
	t.Is(s.Attach(m, cuda.AttachGlobal), cuda.ErrClosed)
	t.Is(s.Launch(t.Kernel("store"), one, m, uint32(1)), cuda.ErrClosed)
	t.Is(m.HostAccess(), cuda.ErrClosed)
}

func managedRefused(t *T) {
	dev := t.Device(0)
	for _, n := range []int{0, -1} {
		_, err := dev.AllocManaged(n, cuda.AttachGlobal)
		t.Is(err, cuda.ErrInvalidValue)
	}
	for _, mode := range []cuda.AttachMode{0, cuda.AttachSingle, cuda.AttachGlobal | cuda.AttachHost, 8} {
		_, err := dev.AllocManaged(64, mode)
		t.Is(err, cuda.ErrInvalidValue)
	}
}

// attachGlobal: memory attached globally is used by streams that it was not attached on, and each of them takes it from the host.
func attachGlobal(t *T) {
	t.Checked()
	a, b, m := t.Stream(), t.Stream(), t.Managed(cuda.AttachHost)
	t.OK(a.Attach(m, cuda.AttachGlobal))
	t.Sync(a)
	t.Free("no work", m)
	t.OK(b.Launch(t.Kernel("store"), one, m, uint32(5)))
	t.Taken("work on another stream", m)
	t.Sync(a)
	t.Taken("the wrong stream waited for", m)
	t.Sync(b)
	t.Free("waited for", m)
	if v := cuda.ManagedSlice[uint32](m)[0]; v != 5 {
		t.Errorf("the host sees %d, want 5", v)
	}
}

// attachHost: the program has promised not to use the memory on the device, so no stream takes it from the host.
func attachHost(t *T) {
	t.Checked()
	s, first, later := t.Stream(), t.Managed(cuda.AttachHost), t.Managed(cuda.AttachGlobal)
	t.OK(s.Attach(later, cuda.AttachHost))
	t.Sync(s)
	t.Spin(s, 5*time.Millisecond)
	for _, m := range []*cuda.ManagedBuffer{first, later} {
		t.Free("attached to the host", m)
		m.Bytes()[0] = 1
	}
	t.Sync(s)
}

// attachSingle: the host may touch the memory once that stream is done, whatever others do.
func attachSingle(t *T) {
	t.Checked()
	own, other, m := t.Stream(), t.Stream(), t.Managed(cuda.AttachGlobal)
	t.OK(own.Attach(m, cuda.AttachSingle))
	t.Sync(own)
	t.Spin(other, 5*time.Millisecond)
	t.Free("another stream is active", m)
	v := cuda.ManagedSlice[uint32](m)
	v[0] = 1
	t.OK(own.Launch(t.Kernel("increment"), one, m, uint32(1)))
	t.Taken("its stream is active", m)
	t.Sync(own)
	t.Free("its stream is done", m)
	if v[0] != 2 {
		t.Errorf("the host sees %d, want 2", v[0])
	}
	t.Sync(other)
}

func attachSingleLegacy(t *T) {
	m := t.Managed(cuda.AttachGlobal)
	err := t.Device(0).DefaultStream().Attach(m, cuda.AttachSingle)
	t.Is(err, cuda.ErrInvalidValue)
	t.Contains(err, "legacy")
	for _, mode := range []cuda.AttachMode{cuda.AttachHost, cuda.AttachGlobal} {
		t.OK(t.Device(0).DefaultStream().Attach(m, mode))
	}
	t.Sync(t.Device(0).DefaultStream())
	t.OK(t.Device(0).WithThreadStream(func(s *cuda.Stream) error {
		return errors.Join(s.Attach(m, cuda.AttachSingle), s.Attach(m, cuda.AttachGlobal), s.Sync())
	}))
}

// attachReplaces: an association is replaced when the stream gets there, and not before.
func attachReplaces(t *T) {
	t.Checked()
	a, b, m := t.Stream(), t.Stream(), t.Managed(cuda.AttachGlobal)
	t.OK(a.Attach(m, cuda.AttachSingle))
	t.Sync(a)
	gate := t.Gate(b)
	t.AttachHeld(gate, b, m)
	t.Spin(a, time.Millisecond)
	t.Taken("still the first stream's", m)
	t.Sync(a)
	t.Free("the first stream is done", m)
	gate.Open()
	t.Sync(b)
	t.Spin(a, time.Millisecond)
	t.Free("the second stream's now", m)
	t.Spin(b, time.Millisecond)
	t.Taken("the second stream is active", m)
	t.Sync(a)
	t.Sync(b)
	t.OK(a.Attach(m, cuda.AttachGlobal))
	t.Sync(a)
	t.Spin(a, time.Millisecond)
	t.Taken("every stream's again", m)
	t.Sync(a)
}

// attachDestroyed: the memory returns to its first association, once the work of the stream is done.
func attachDestroyed(t *T) {
	t.Checked()
	for _, initial := range []cuda.AttachMode{cuda.AttachGlobal, cuda.AttachHost} {
		s, err := t.Device(0).NewStream()
		t.OK(err)
		other, m, e := t.Stream(), t.Managed(initial), t.Event()
		gate := t.Gate(s)
		t.AttachHeld(gate, s, m)
		t.OK(s.Launch(t.Kernel("store"), one, m, uint32(9)))
		t.OK(s.Record(e))
		t.OK(s.Close())
		gate.Open()
		t.OK(e.Sync())
		t.Free("the stream's work is done", m)
		if v := cuda.ManagedSlice[uint32](m)[0]; v != 9 {
			t.Errorf("the host sees %d, want 9", v)
		}
		t.Spin(other, time.Millisecond)
		if initial == cuda.AttachHost {
			t.Free("the host's again", m)
		} else {
			t.Taken("every stream's again", m)
		}
		t.Sync(other)
	}
}

// attachPageable: ordinary memory, on devices that reach it.
func attachPageable(t *T) {
	s, mem := t.Stream(), make([]uint32, 1024)
	switch err := cuda.AttachHostMemory(s, mem, cuda.AttachGlobal); {
	case errors.Is(err, cuda.ErrNotSupported):
		t.Is(err, cuda.ErrNotSupported)
		t.Logf("this device does not reach pageable memory: %v", err)
	default:
		t.OK(err)
	}
	t.Sync(s)
	t.Is(cuda.AttachHostMemory(s, mem[:0], cuda.AttachGlobal), cuda.ErrInvalidValue)
	t.Is(cuda.AttachHostMemory(s, []string{"x"}, cuda.AttachGlobal), cuda.ErrInvalidValue)
}

func attachRefused(t *T) {
	s, m := t.Stream(), t.Managed(cuda.AttachGlobal)
	for _, mode := range []cuda.AttachMode{0, 3, 5, 8, 1 << 31} {
		t.Is(s.Attach(m, mode), cuda.ErrInvalidValue)
	}
	t.Is(s.Attach(nil, cuda.AttachGlobal), cuda.ErrInvalidValue)
	t.OK(s.Close())
	t.Is(s.Attach(m, cuda.AttachGlobal), cuda.ErrClosed)
}

// managedInside: what reaches the driver is refused inside a host function; touching memory, and asking whether one may, is not.
func managedInside(t *T) {
	s, other, m, dev := t.Stream(), t.Stream(), t.Managed(cuda.AttachGlobal), t.Device(0)
	t.refusedInside(s, map[string]func() error{
		"AttachHostMemory":       func() error { return cuda.AttachHostMemory(other, m.Bytes(), cuda.AttachHost) },
		"Device.NewGreenContext": func() error { _, err := dev.NewGreenContext(); return err },
	})
	var access error
	t.Host(s, func() {
		access = m.HostAccess()
		m.Bytes()[0] = 1
	})
	t.Sync(s)
	if access != nil && !errors.Is(access, cuda.ErrNotSupported) {
		t.Errorf("HostAccess inside: %v", access)
	}
}
