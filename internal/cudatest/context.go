package cudatest

import (
	"time"

	"github.com/hostlaunch/cuda"
)

// contextCases: contexts beside the primary one. They are made while no stream is held.
var contextCases = []Case{
	{ID: "ST-09", Name: "what is made in a context is of it", Run: contextConstructors},
	{ID: "ST-09", Name: "a kernel in a further context", Run: contextKernel},
	{ID: "ST-09", Name: "what mixes and what does not", Run: contextsMix},
	{ID: "ST-09", Name: "default streams", Run: contextDefaultStreams},
	{ID: "ST-09", Name: "borrowed stream", Run: contextOfBorrowed},
	{ID: "ST-13", Name: "Close is refused while something is open", Run: contextCloseRefused},
	{ID: "ST-13", Name: "Close is refused beside a call", Run: contextCloseBesideCall},
	{ID: "ST-13", Name: "Close waits for work", Run: contextCloseWaits},
	{ID: "ST-13", Name: "closed", Run: contextClosed},
	{ID: "ST-13", Name: "Close inside a host function", Run: contextCloseInside},
	{ID: "ST-13", Name: "Close of the primary does nothing", Run: contextClosePrimary},
	{ID: "ST-13", Name: "the Driver closes them", Run: contextsClosedByDriver},
	{ID: "ST-13", Name: "policies", Run: contextPolicies},
}

// NewContext makes a context on device 0.
func (t *T) NewContext(opts ...cuda.ContextOption) *cuda.Context {
	t.Helper()
	c, err := t.Device(0).NewContext(opts...)
	t.OK(err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// ContextStream makes a stream in a context.
func (t *T) ContextStream(c *cuda.Context, opts ...cuda.StreamOption) *cuda.Stream {
	t.Helper()
	s, err := c.NewStream(opts...)
	t.OK(err)
	t.Cleanup(func() { s.Sync(); s.Close() })
	return s
}

func contextConstructors(t *T) {
	c := t.NewContext()
	s := t.ContextStream(c)
	e, err := c.NewEvent()
	t.OK(err)
	defer e.Close()
	b, err := c.Alloc(4)
	t.OK(err)
	defer b.Close()
	p, err := c.AllocPinned(4)
	t.OK(err)
	defer p.Close()
	if s.Context() != c || b.Context() != c || p.Context() != c || c == t.Device(0).Context {
		t.Error("what was made there is of another context")
	}
	if n, err := s.DeviceOrdinal(); n != 0 || err != nil {
		t.Errorf("the stream is of device %d, %v", n, err)
	}
	ran := false
	t.OK(s.Memset32(b, 7))
	t.OK(cuda.CopyToHost(s, cuda.PinnedSlice[uint32](p), b))
	t.Host(s, func() { ran = true })
	t.OK(s.Record(e))
	t.OK(e.Sync())
	t.OK(s.Wait(t.Context()))
	if v := cuda.PinnedSlice[uint32](p)[0]; v != 7 || !ran {
		t.Errorf("copied %d, want 7; the function ran: %v", v, ran)
	}
	if _, _, err := c.StreamPriorities(); err != nil {
		t.Error(err)
	}
}

func contextKernel(t *T) {
	c := t.NewContext()
	s := t.ContextStream(c)
	m, err := c.LoadModule(t.cfg.PTX)
	t.OK(err)
	defer m.Close()
	k, err := m.Kernel("store")
	t.OK(err)
	p := t.Pinned(4)
	t.OK(s.Launch(k, one, p, uint32(9)))
	t.Sync(s)
	if v := cuda.PinnedSlice[uint32](p)[0]; v != 9 {
		t.Errorf("stored %d, want 9", v)
	}
	t.Is(t.Stream().Launch(k, one, p, uint32(1)), cuda.ErrInvalidHandle)
	t.Is(s.Launch(t.Kernel("nothing"), one), cuda.ErrInvalidHandle)
}

func contextsMix(t *T) {
	c := t.NewContext()
	mine, primary, b := t.ContextStream(c), t.Stream(), t.Buffer(4)
	e, err := c.NewEvent()
	t.OK(err)
	defer e.Close()
	err = primary.Record(e)
	t.Is(err, cuda.ErrInvalidHandle)
	t.Contains(err, "context 0x") // which tells the contexts apart
	out := cuda.PinnedSlice[uint32](t.Pinned(4))
	t.Spin(primary, 5*time.Millisecond)
	t.OK(primary.Memset32(b, 5))
	t.OK(mine.WaitStream(primary)) // waits cross, and so does memory
	t.OK(cuda.CopyToHost(mine, out, b))
	t.Sync(mine)
	if out[0] != 5 {
		t.Errorf("copied %d, want 5", out[0])
	}
	t.OK(mine.Record(e))
	t.OK(primary.WaitEvent(e))
	t.Sync(primary)
}

// contextDefaultStreams: each context has a legacy and a per-thread stream of its own.
func contextDefaultStreams(t *T) {
	c := t.NewContext()
	runs := 0
	g := t.Gate(t.Device(0).DefaultStream())
	<-g.Entered
	legacy := c.DefaultStream()
	done, err := legacy.Query()
	t.OK(err)
	if !done {
		t.Error("the context's legacy stream waits for the primary context's")
	}
	g.Open()
	t.Host(legacy, func() { runs++ })
	t.Sync(legacy)
	t.OK(c.WithThreadStream(func(s *cuda.Stream) error {
		if s.Context() != c {
			t.Error("the per-thread stream is of another context")
		}
		t.Host(s, func() { runs++ })
		return s.Sync()
	}))
	if runs != 2 {
		t.Errorf("%d of 2 functions ran", runs)
	}
}

func contextOfBorrowed(t *T) {
	c := t.NewContext()
	s := t.ContextStream(c)
	borrowed, err := t.Device(0).BorrowStream(s.CUDAStream())
	t.OK(err)
	defer borrowed.Close()
	if borrowed.Context() != c {
		t.Error("the borrowed stream is of another context")
	}
	ran := false
	t.Host(borrowed, func() { ran = true })
	t.Sync(borrowed)
	if !ran {
		t.Error("the function did not run")
	}
}

func contextCloseRefused(t *T) {
	c := t.NewContext()
	s, err := c.NewStream()
	t.OK(err)
	b, err := c.Alloc(64)
	t.OK(err)
	err = c.Close()
	t.Is(err, cuda.ErrIllegalState)
	t.Contains(err, "1 of Buffer", "1 of Stream", "close them")
	t.OK(s.Memset(b, 1)) // it is as good as before
	t.Sync(s)
	t.OK(b.Close())
	t.OK(s.Close())
	t.OK(c.Close())
}

func contextCloseBesideCall(t *T) {
	c := t.NewContext()
	legacy := c.DefaultStream()
	g := t.Gate(legacy)
	synced := make(chan error, 1)
	go func() { synced <- legacy.Sync() }()
	time.Sleep(50 * time.Millisecond)                  // and so it has begun
	defer time.AfterFunc(5*time.Second, g.Open).Stop() // if not, Close waits for the function
	t.Is(c.Close(), cuda.ErrIllegalState)
	g.Open()
	t.OK(Receive(t, "Sync", synced))
}

func contextCloseWaits(t *T) {
	c := t.NewContext()
	ran := false
	t.Host(c.DefaultStream(), func() { time.Sleep(20 * time.Millisecond); ran = true })
	t.OK(c.Close())
	if !ran {
		t.Error("Close did not wait for the function")
	}
}

func contextClosed(t *T) {
	c := t.NewContext()
	legacy := c.DefaultStream()
	t.OK(c.Close())
	t.OK(c.Close())
	for name, call := range map[string]func() error{
		"NewStream":        func() error { _, err := c.NewStream(); return err },
		"NewEvent":         func() error { _, err := c.NewEvent(); return err },
		"Alloc":            func() error { _, err := c.Alloc(1); return err },
		"AllocPinned":      func() error { _, err := c.AllocPinned(1); return err },
		"LoadModule":       func() error { _, err := c.LoadModule(t.cfg.PTX); return err },
		"StreamPriorities": func() error { _, _, err := c.StreamPriorities(); return err },
		"BorrowStream":     func() error { _, err := c.BorrowStream(0); return err },
		"WithThreadStream": func() error { return c.WithThreadStream(func(*cuda.Stream) error { return nil }) },
		"legacy stream":    func() error { return legacy.Sync() },
		"host function":    func() error { return cuda.HostLaunch(legacy, func() {}) },
	} {
		t.Log(name)
		t.Is(call(), cuda.ErrClosed)
	}
}

func contextCloseInside(t *T) {
	c, other := t.NewContext(), t.NewContext()
	s := t.ContextStream(other)
	errs := make(chan error, 2)
	t.Host(t.Stream(), func() {
		errs <- other.Close()
		errs <- c.Close()
	})
	t.Is(Receive(t, "Close with a stream open", errs), cuda.ErrIllegalState)
	t.OK(Receive(t, "Close inside", errs))
	_, err := c.NewStream()
	t.Is(err, cuda.ErrClosed)
	t.OK(s.Memset(t.Buffer(4), 1))
}

func contextClosePrimary(t *T) {
	dev := t.Device(0)
	t.OK(dev.Close())
	t.OK(dev.Context.Close())
	var none *cuda.Context
	t.OK(none.Close())
	t.Sync(t.Stream())
}

func contextsClosedByDriver(t *T) {
	d := t.OpenDriver()
	dev := t.Device(0)
	c, err := dev.NewContext()
	t.OK(err)
	s, err := c.NewStream()
	t.OK(err)
	ran := false
	t.Host(s, func() { time.Sleep(5 * time.Millisecond); ran = true })
	t.OK(d.Close())
	if !ran {
		t.Error("the Driver's Close did not wait for the context's work")
	}
	t.OK(c.Close())
	_, err = dev.NewContext()
	t.Is(err, cuda.ErrClosed)
}

func contextPolicies(t *T) {
	for _, p := range []cuda.SyncPolicy{cuda.SyncAuto, cuda.SyncSpin, cuda.SyncYield, cuda.SyncBlock} {
		s := t.ContextStream(t.NewContext(cuda.ContextSync(p)))
		ran := false
		t.Host(s, func() { ran = true })
		t.Sync(s)
		if !ran {
			t.Errorf("policy %d: Sync did not wait", p)
		}
	}
	for _, p := range []cuda.SyncPolicy{0, 5} {
		_, err := t.Device(0).NewContext(cuda.ContextSync(p))
		t.Is(err, cuda.ErrInvalidValue)
	}
}
