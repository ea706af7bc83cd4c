package cudatest

import (
	"errors"
	"runtime"
	"strings"
	"time"
	"weak"

	"github.com/hostlaunch/cuda"
)

// greenCases: green contexts and their streams.
var greenCases = []Case{
	{ID: "ST-09", Name: "Contexts of a regular stream", Run: contextsRegular},
	{ID: "ST-09", Name: "Contexts of a green stream", Run: contextsGreen},
	{ID: "ST-09", Name: "multiprocessors", Run: greenSplit},
	{ID: "ST-09", Name: "a green stream at work", Run: greenWork},
	{ID: "ST-09", Name: "a green stream is non-blocking", Run: greenNonBlocking},
	{ID: "ST-09", Name: "closing", Run: greenClose},
	{ID: "ST-09", Name: "the collector and green contexts", Run: greenCollected},
	{ID: "ST-09", Name: "a stream's multiprocessors", Run: greenStreamResource},
	{ID: "ST-09", Name: "bad green contexts", Run: greenRefused},
	{ID: "HL-06", Name: "a green context inside", Run: greenInside},
}

// Needs skips the case if err says that the driver is too old for what the case is about, and wants it to say since when it
// is there. Every other error fails the case.
func (t *T) Needs(err error) {
	t.Helper()
	if !errors.Is(err, cuda.ErrNotSupported) {
		t.OK(err)
		return
	}
	if !strings.Contains(err.Error(), "came with CUDA") {
		t.Fatalf("%q does not say which CUDA version has it", err)
	}
	t.Skip(err)
}

// Unsure is for what no document says: the software device has to do it, and of hardware it is only noted.
func (t *T) Unsure(format string, args ...any) {
	t.Helper()
	if t.Driver.Name() == "software" {
		t.Errorf(format, args...)
		return
	}
	t.Logf("not as expected: "+format, args...)
}

// Green makes a green context of one small part of device 0.
func (t *T) Green() *cuda.GreenContext {
	t.Helper()
	dev := t.Device(0)
	all, err := dev.SMResource()
	t.Needs(err)
	parts, _, err := all.Split(1, all.MinPartition(), 0)
	t.OK(err)
	g, err := dev.NewGreenContext(parts...)
	t.OK(err)
	t.Cleanup(func() { g.Close() })
	return g
}

// GreenStream makes a stream of g.
func (t *T) GreenStream(g *cuda.GreenContext, opts ...cuda.StreamOption) *cuda.Stream {
	t.Helper()
	s, err := g.NewStream(opts...)
	t.Needs(err)
	t.Cleanup(func() { s.Sync(); s.Close() })
	return s
}

func contextsRegular(t *T) {
	for _, s := range []*cuda.Stream{t.Stream(), t.Device(0).DefaultStream()} {
		primary, green, err := s.Contexts()
		t.Needs(err)
		if primary != t.Device(0).Context || green != nil || s.Context() != primary {
			t.Errorf("contexts %p, %v, and Context %p; want %p and none", primary, green, s.Context(), t.Device(0).Context)
		}
	}
	t.OK(t.Device(0).WithThreadStream(func(s *cuda.Stream) error {
		if primary, green, err := s.Contexts(); primary != t.Device(0).Context || green != nil || err != nil {
			t.Errorf("per-thread stream: contexts %p, %v, %v", primary, green, err)
		}
		return nil
	}))
}

func contextsGreen(t *T) {
	g := t.Green()
	s := t.GreenStream(g)
	primary, green, err := s.Contexts()
	t.OK(err)
	if primary != t.Device(0).Context || green != g {
		t.Errorf("contexts %p, %p; want %p, %p", primary, green, t.Device(0).Context, g)
	}
	if s.Context() != g.Context() || g.Context() == primary {
		t.Errorf("Context %p; the green context's is %p, the device's %p", s.Context(), g.Context(), primary)
	}
	if n, err := s.DeviceOrdinal(); n != 0 || err != nil {
		t.Errorf("device %d, %v", n, err)
	}
	borrowed, err := t.Device(0).StreamOf(s)
	t.OK(err)
	defer borrowed.Close()
	primary, green, err = borrowed.Contexts()
	t.OK(err)
	if primary != t.Device(0).Context || green == nil || green.Context() != g.Context() || borrowed.Context() != g.Context() {
		t.Unsure("borrowed: contexts %p, %v, and Context %p", primary, green, borrowed.Context())
	}
}

// greenSplit: parts are of one size, at least what was asked for and in steps of the alignment, and add up.
func greenSplit(t *T) {
	dev := t.Device(0)
	all, err := dev.SMResource()
	t.Needs(err)
	t.Logf("%d multiprocessors, parts of at least %d, in steps of %d", all.Count(), all.MinPartition(), all.Alignment())
	for _, flags := range []cuda.SplitFlags{0, cuda.SplitIgnoreCoscheduling} {
		for _, least := range []int{0, 1, all.MinPartition(), all.Count()/2 - 1} {
			parts, rest, err := all.Split(all.Count(), least, flags)
			t.OK(err)
			sum := rest.Count()
			for _, p := range parts {
				if sum += p.Count(); p.Count() < least {
					t.Errorf("a part of %d, asked for %d at least", p.Count(), least)
				}
				if p.Count() != parts[0].Count() || p.Alignment() > 0 && p.Count()%p.Alignment() != 0 {
					t.Unsure("parts of %d, in steps of %d, asked for %d: %d", parts[0].Count(), p.Alignment(), least, p.Count())
				}
			}
			t.Logf("flags %d, at least %d: %d parts of %d, and %d", flags, least, len(parts), parts[0].Count(), rest.Count())
			if sum != all.Count() {
				t.Unsure("parts and rest have %d multiprocessors, the device %d", sum, all.Count())
			}
		}
	}
	g := t.Green()
	own, err := g.SMResource()
	t.OK(err)
	if own.Count() != all.MinPartition() {
		t.Unsure("the green context has %d multiprocessors, want %d", own.Count(), all.MinPartition())
	}
}

// greenWork: kernels, memory, events and host functions of the device, in order.
func greenWork(t *T) {
	s, other, b := t.GreenStream(t.Green()), t.Stream(), t.Buffer(4)
	var order Order
	t.OK(s.Memset(b, 0))
	t.OK(s.Launch(t.Kernel("increment"), one, b, uint32(1)))
	t.Host(s, order.Add(1))
	t.OK(s.Launch(t.Kernel("increment"), one, b, uint32(1)))
	t.Host(s, order.Add(2))
	got := make([]uint32, 1)
	t.OK(cuda.CopyToHost(s, got, b))
	t.Sync(s)
	order.Want(t, 1, 2)
	if got[0] != 2 {
		t.Errorf("the word is %d, want 2", got[0])
	}
	// Events are the primary context's. The driver may want the green context's own for recording.
	e := t.Event()
	if err := s.Record(e); err != nil {
		t.Logf("recording an event of the primary context on a green stream: %v", err)
		return
	}
	t.OK(other.WaitEvent(e))
	t.OK(e.Sync())
	t.Sync(other)
}

func greenNonBlocking(t *T) {
	g := t.Green()
	s := t.GreenStream(g, cuda.NonBlocking(), cuda.Priority(100), cuda.Clamp())
	flags, err := s.Flags()
	t.OK(err)
	prio, err := s.Priority()
	t.OK(err)
	if least, _, err := t.Device(0).StreamPriorities(); flags != cuda.StreamNonBlocking || prio != least || err != nil {
		t.Errorf("flags %v, priority %d, want %v, %d (%v)", flags, prio, cuda.StreamNonBlocking, least, err)
	}
	_, err = g.NewStream(cuda.Blocking())
	t.Is(err, cuda.ErrInvalidValue)
	_, err = g.NewStream(cuda.Priority(100))
	t.Is(err, cuda.ErrInvalidValue)
	legacy := t.Device(0).DefaultStream()
	b := t.Buffer(4)
	gate := t.Gate(s)
	t.OK(legacy.Memset(b, 1))
	t.Sync(legacy)
	gate.Open()
	t.Sync(s)
}

// greenClose: a green context that is closed goes with the last of its streams, which work until then.
func greenClose(t *T) {
	g := t.Green()
	s := t.GreenStream(g)
	t.OK(g.Close())
	t.OK(g.Close())
	ran := make(chan struct{})
	t.Host(s, func() { close(ran) })
	Receive(t, "a function on a stream of a closed green context", ran)
	t.Sync(s)
	_, err := g.NewStream()
	t.Is(err, cuda.ErrClosed)
	_, err = g.SMResource()
	t.Is(err, cuda.ErrClosed)
	_, err = g.Context().NewStream()
	t.Is(err, cuda.ErrClosed)
	if _, green, err := s.Contexts(); green != g || err != nil {
		t.Errorf("Contexts = %v, %v", green, err)
	}
	t.OK(s.Close())
	t.Is(s.Sync(), cuda.ErrClosed)
}

// greenCollected: a green context that is dropped is closed, but not one of which the program has the Context.
func greenCollected(t *T) {
	create := func() *cuda.GreenContext {
		all, err := t.Device(0).SMResource()
		t.Needs(err)
		g, err := t.Device(0).NewGreenContext(all)
		t.OK(err)
		return g
	}
	beside := t.Stream()
	before := t.Driver.Stats().GreenContexts
	kept := create()
	c, again := kept.Context(), weak.Make(kept)
	create()
	for deadline := time.Now().Add(5 * time.Second); t.Driver.Stats().GreenContexts != before+1; time.Sleep(time.Millisecond) {
		runtime.GC()
		t.OK(second(beside.Query())) // what is garbage is closed beside a call
		if time.Now().After(deadline) {
			t.Fatalf("%d green contexts, want %d and the one whose Context is kept", t.Driver.Stats().GreenContexts, before)
		}
	}
	s, err := c.NewStream()
	t.OK(err)
	t.Host(s, func() {})
	t.Sync(s)
	if _, green, err := s.Contexts(); !errors.Is(err, cuda.ErrNotSupported) && (err != nil || green != again.Value()) {
		t.Unsure("Contexts = %p, %v; want the one whose Context it was made in", green, err)
	}
	t.OK(s.Close())
	t.OK(again.Value().Close())
	_, err = c.NewStream()
	t.Is(err, cuda.ErrClosed)
}

func greenStreamResource(t *T) {
	g := t.Green()
	want, err := g.SMResource()
	t.OK(err)
	got, err := t.GreenStream(g).SMResource()
	t.Needs(err)
	if got.Count() != want.Count() {
		t.Errorf("the stream has %d multiprocessors, its green context %d", got.Count(), want.Count())
	}
}

func greenRefused(t *T) {
	dev := t.Device(0)
	all, err := dev.SMResource()
	t.Needs(err)
	for _, c := range []struct {
		groups, least int
		flags         cuda.SplitFlags
	}{{0, 1, 0}, {-1, 1, 0}, {all.Count() + 1, 1, 0}, {1, -1, 0}, {1, all.Count() + 1, 0}, {1, 1, 4}} {
		_, _, err := all.Split(c.groups, c.least, c.flags)
		t.Is(err, cuda.ErrInvalidValue)
	}
	_, _, err = cuda.SMResource{}.Split(1, 1, 0)
	t.Is(err, cuda.ErrInvalidValue)
	_, err = dev.NewGreenContext()
	t.Is(err, cuda.ErrInvalidValue)
	_, err = dev.NewGreenContext(cuda.SMResource{})
	t.Is(err, cuda.ErrInvalidValue)
	a, _, err := all.Split(1, all.MinPartition(), 0)
	t.OK(err)
	b, _, err := all.Split(1, all.MinPartition(), 0)
	t.OK(err)
	if g, err := dev.NewGreenContext(a[0], b[0]); err == nil {
		t.Log("this driver takes parts of different splits")
		t.OK(g.Close())
	} else {
		t.Is(err, cuda.ErrInvalidResourceConfiguration)
	}
}

func greenInside(t *T) {
	s, g := t.Stream(), t.Green()
	t.refusedInside(s, map[string]func() error{
		"GreenContext.NewStream":  func() error { return second(g.NewStream()) },
		"GreenContext.SMResource": func() error { return second(g.SMResource()) },
	})
	var closing error = cuda.ErrUnknown
	t.Host(s, func() { closing = g.Close() })
	t.Sync(s)
	t.OK(closing)
	t.Is(second(g.SMResource()), cuda.ErrClosed)
}
