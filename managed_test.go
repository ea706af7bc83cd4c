package cuda_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

func TestBadManaged(t *testing.T) {
	k := newKit(t)
	m := must(k.dev.AllocManaged(64, cuda.AttachGlobal))(t)
	closed := must(k.dev.AllocManaged(64, cuda.AttachGlobal))(t)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	foreign := newKit(t)
	var (
		c       *cuda.Context
		s       *cuda.Stream
		nothing *cuda.ManagedBuffer
	)
	legacy := k.dev.DefaultStream()
	alloc := func(n int, mode cuda.AttachMode) func() error {
		return func() error { return second(k.dev.AllocManaged(n, mode)) }
	}
	attach := func(s *cuda.Stream, m *cuda.ManagedBuffer, mode cuda.AttachMode) func() error {
		return func() error { return s.Attach(m, mode) }
	}
	checkBad(t, []bad{
		{"no context", func() error { return second(c.AllocManaged(1, cuda.AttachGlobal)) }, cuda.ErrInvalidValue, "AllocManaged", "context is nil"},
		{"size 0", alloc(0, cuda.AttachGlobal), cuda.ErrInvalidValue, "AllocManaged", "size 0*at least one"},
		{"Single", alloc(1, cuda.AttachSingle), cuda.ErrInvalidValue, "AllocManaged", "initial 4*AttachGlobal*Stream.Attach"},
		{"no mode", alloc(1, 0), cuda.ErrInvalidValue, "AllocManaged", "initial 0"},
		{"too much", alloc(1<<40, cuda.AttachGlobal), cuda.ErrOutOfMemory, "AllocManaged", "bytes of managed memory on device 0"},
		{"no stream", attach(s, m, cuda.AttachGlobal), cuda.ErrInvalidValue, "Stream.Attach", "stream is nil"},
		{"no buffer", attach(k.s, nil, cuda.AttachGlobal), cuda.ErrInvalidValue, "Stream.Attach", "m is nil"},
		{"closed", attach(k.s, closed, cuda.AttachGlobal), cuda.ErrClosed, "Stream.Attach", "m is closed"},
		{"another driver", attach(foreign.s, m, cuda.AttachGlobal), cuda.ErrInvalidValue, "Stream.Attach", "m belongs*one Driver"},
		{"mode", attach(k.s, m, 3), cuda.ErrInvalidValue, "Stream.Attach", "mode 3*AttachSingle"},
		{"legacy", attach(legacy, m, cuda.AttachSingle), cuda.ErrInvalidValue, "Stream.Attach", "AttachSingle*legacy*another stream"},
		{"no host memory", func() error { return cuda.AttachHostMemory(k.s, []byte(nil), cuda.AttachHost) }, cuda.ErrInvalidValue, "AttachHostMemory", "mem is empty"},
		{"no pageable access", func() error { return cuda.AttachHostMemory(k.s, []byte{1}, cuda.AttachHost) }, cuda.ErrNotSupported, "AttachHostMemory", "ordinary*AllocManaged"},
		{"pointers", func() error { return cuda.AttachHostMemory(k.s, []string{""}, cuda.AttachHost) }, cuda.ErrInvalidValue, "AttachHostMemory", "string*Go pointers"},
		{"attach without a stream", func() error { return cuda.AttachHostMemory(s, []byte{1}, cuda.AttachHost) }, cuda.ErrInvalidValue, "AttachHostMemory", "stream is nil"},
		{"nil argument", func() error { return k.s.Launch(k.store, one, nothing, uint32(1)) }, cuda.ErrInvalidValue, "Stream.Launch", "argument 0*ManagedBuffer*DevicePtr(0)"},
		{"closed argument", func() error { return k.s.Launch(k.store, one, closed, uint32(1)) }, cuda.ErrClosed, "Stream.Launch", "argument 0*closed"},
		{"access of none", nothing.HostAccess, cuda.ErrInvalidValue, "ManagedBuffer.HostAccess", "buffer is nil"},
		{"access of a closed one", closed.HostAccess, cuda.ErrClosed, "ManagedBuffer.HostAccess", "buffer is closed"},
	})
	if nothing.Bytes() != nil || nothing.Len() != 0 || nothing.Context() != nil || nothing.Buffer() != nil || nothing.Close() != nil || closed.Bytes() != nil {
		t.Error("a nil or closed ManagedBuffer has something")
	}
	if len(cuda.ManagedSlice[[65]byte](m)) != 0 || len(cuda.ManagedSlice[uint32](nothing)) != 0 {
		t.Error("a slice of what does not fit")
	}
	defer func() {
		if v := recover(); v == nil || !strings.Contains(v.(string), "ManagedSlice") {
			t.Errorf("panicked with %v", v)
		}
	}()
	cuda.ManagedSlice[string](m)
}

// The checker's word names the stream and the way out.
func TestHostAccessMessage(t *testing.T) {
	d := softcuda.New(softcuda.Options{Kernels: testkernels.Twins(), NoConcurrentManagedAccess: true})
	defer d.Close()
	dev := must(d.Device(0))(t)
	s := must(dev.NewStream())(t)
	m := must(dev.AllocManaged(64, cuda.AttachGlobal))(t)
	if err := s.Memset(m.Buffer(), 1); err != nil {
		t.Fatal(err)
	}
	id := must(s.ID())(t)
	err := m.HostAccess()
	if !errors.Is(err, cuda.ErrHostAccess) || !strings.Contains(err.Error(), "stream 2 is active") || id != 2 || !strings.Contains(err.Error(), "Sync") {
		t.Errorf("stream %d: %v", id, err)
	}
	if st := d.Stats(); st.ManagedBuffers != 1 || st.ManagedBytes != 64 || st.Buffers != 0 {
		t.Errorf("stats %+v", st)
	}
	if err := errors.Join(s.Sync(), m.HostAccess()); err != nil {
		t.Error(err)
	}
}

func TestBadGreen(t *testing.T) {
	k := newKit(t)
	var (
		d *cuda.Device
		g *cuda.GreenContext
		s *cuda.Stream
	)
	all := must(k.dev.SMResource())(t)
	foreign := must(newKit(t).dev.SMResource())(t)
	split := func(r cuda.SMResource, groups, least int, flags cuda.SplitFlags) func() error {
		return func() error { return third(r.Split(groups, least, flags)) }
	}
	parts, _, err := all.Split(1, 8, 0)
	if err != nil {
		t.Fatal(err)
	}
	own := must(k.dev.NewGreenContext(parts...))(t)
	checkBad(t, []bad{
		{"no device", func() error { return second(d.SMResource()) }, cuda.ErrInvalidValue, "Device.SMResource", "device is nil"},
		{"no resource", split(cuda.SMResource{}, 1, 1, 0), cuda.ErrInvalidValue, "SMResource.Split", "empty*Device.SMResource"},
		{"no groups", split(all, 0, 1, 0), cuda.ErrInvalidValue, "SMResource.Split", "groups 0*1 to 16"},
		{"too large", split(all, 1, 17, 0), cuda.ErrInvalidValue, "SMResource.Split", "minCount 17*16"},
		{"flags", split(all, 1, 1, 8), cuda.ErrInvalidValue, "SMResource.Split", "flags 0x8"},
		{"a part", split(parts[0], 1, 1, 0), cuda.ErrInvalidResourceConfiguration, "SMResource.Split", "8 multiprocessors*at least 8"},
		{"a context of no device", func() error { return second(d.NewGreenContext(all)) }, cuda.ErrInvalidValue, "Device.NewGreenContext", "device is nil"},
		{"no parts", func() error { return second(k.dev.NewGreenContext()) }, cuda.ErrInvalidValue, "Device.NewGreenContext", "no parts*Split"},
		{"an empty part", func() error { return second(k.dev.NewGreenContext(all, cuda.SMResource{})) }, cuda.ErrInvalidValue, "Device.NewGreenContext", "parts[1]*device 0"},
		{"another driver's", func() error { return second(k.dev.NewGreenContext(foreign)) }, cuda.ErrInvalidValue, "Device.NewGreenContext", "parts[0]"},
		{"different splits", func() error { return second(k.dev.NewGreenContext(parts[0], all)) }, cuda.ErrInvalidResourceConfiguration, "Device.NewGreenContext", "one Split"},
		{"no green context", func() error { return second(g.NewStream()) }, cuda.ErrInvalidValue, "GreenContext.NewStream", "green context is nil"},
		{"blocking", func() error { return second(own.NewStream(cuda.Blocking())) }, cuda.ErrInvalidValue, "GreenContext.NewStream", "NonBlocking"},
		{"resource of none", func() error { return second(g.SMResource()) }, cuda.ErrInvalidValue, "GreenContext.SMResource", "green context is nil"},
		{"contexts of none", func() error { return third(s.Contexts()) }, cuda.ErrInvalidValue, "Stream.Contexts", "stream is nil"},
		{"too new", func() error { return second(k.s.SMResource()) }, cuda.ErrNotSupported, "Stream.SMResource", "cuStreamGetDevResource came with CUDA 13.1*13.0"},
	})
	if g.Context() != nil || g.Close() != nil {
		t.Error("a nil GreenContext has something")
	}
}

// What is made in a green context keeps it: it goes when the last is closed, in whatever order they are.
func TestGreenOrderOfClosing(t *testing.T) {
	k := newKit(t)
	g := must(k.dev.NewGreenContext(must(k.dev.SMResource())(t)))(t)
	a, b := must(g.NewStream())(t), must(g.Context().NewStream())(t)
	if _, green, err := b.Contexts(); err != nil || green == nil || green.Context() != g.Context() || b.Context() != g.Context() {
		t.Errorf("a stream made in its context: %v, %v", green, err)
	}
	ran := make(chan struct{})
	if err := errors.Join(cuda.HostLaunch(b, func() { close(ran) }), g.Close(), a.Close()); err != nil {
		t.Fatal(err)
	}
	<-ran
	if st := k.d.Stats(); st.GreenContexts != 1 || st.Streams != 2 { // k.s, and b
		t.Errorf("while a stream is open: %+v", st)
	}
	if err := b.Sync(); !errors.Is(err, cuda.ErrClosed) || !strings.Contains(err.Error(), "green context is closed") {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if st := k.d.Stats(); st.GreenContexts != 0 || st.Streams != 1 {
		t.Errorf("after the last: %+v", st)
	}
}

// Driver.Close closes green contexts and their streams, whichever comes first.
func TestDriverClosesGreen(t *testing.T) {
	for range 20 {
		d := softcuda.New(softcuda.Options{})
		dev := must(d.Device(0))(t)
		g := must(dev.NewGreenContext(must(dev.SMResource())(t)))(t)
		for range 4 {
			must(g.NewStream())(t)
			must(g.Context().NewStream())(t)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if st := d.Stats(); st != (cuda.Stats{}) {
			t.Fatalf("left: %+v", st)
		}
	}
}
