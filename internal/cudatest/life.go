package cudatest

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// lifeCases: how a driver ends, and what it leaves to the program.
var lifeCases = []Case{
	{ID: "LI-01", Name: "Close waits", Run: closeWaits},
	{ID: "LI-01", Name: "Shutdown says what is stuck", Run: shutdownSaysStuck},
	{ID: "LI-01", Name: "Shutdown names the running function", Run: shutdownNamesRunning},
	{ID: "LI-01", Name: "everything is closed", Run: everythingClosed},
	{ID: "LI-01", Name: "Close of all that is open", Run: closeWithAllOpen},
	{ID: "LI-01", Name: "Close inside a report", Run: closeInsideReport},
	{ID: "LI-01", Name: "Close inside a host function", Run: closeInsideFunction},
	{ID: "LI-01", Name: "Close beside Close", Run: closeBesideClose},
	{ID: "LI-01", Name: "Close beside waits", Run: closeBesideWaits},
	{ID: "LI-01", Name: "Close inside WithThreadStream", Run: closeInsideThreadStream},
	{ID: "LI-01", Name: "Close under fire", Run: closeUnderFire},
	{ID: "LI-02", Name: "exit with functions queued", Child: true, Run: exitWithQueued},
	{ID: "LI-02", Name: "exit while a function runs", Child: true, Run: exitWhileRunning},
	{ID: "LI-03", Name: "100 cycles add no thread", Run: hundredCycles},
	{ID: "LI-05", Name: "SIGINT arrives", Child: true, Run: interruptArrives},
	{ID: "LI-05", Name: "goroutines are preempted", Child: true, Run: goroutinesPreempted},
	{ID: "LI-05", Name: "profiling works", Run: profilingWorks},
}

// threads is how many OS threads the process has; where that cannot be asked, how many the Go runtime ever made.
func threads() int {
	if list, err := os.ReadDir("/proc/self/task"); err == nil {
		return len(list)
	}
	return pprof.Lookup("threadcreate").Count()
}

// Stuck wants a shutdown of d not to come to its end now, and its error to say so in these words.
func (t *T) Stuck(d *cuda.Driver, words ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := d.Shutdown(ctx)
	t.Is(err, cuda.ErrContextEnded, context.DeadlineExceeded)
	t.Contains(err, append([]string{"Driver.Shutdown"}, words...)...)
}

// closeWaits has a kernel, a function and an OnDone that all take their time.
func closeWaits(t *T) {
	d := t.OpenDriver()
	s, b, k := t.Stream(), t.Buffer(4), t.Kernel("spin")
	out := cuda.PinnedSlice[uint32](t.Pinned(4))
	var sawCopy, ran, reported atomic.Bool
	t.OK(s.Launch(k, one, uint64(20*time.Millisecond)))
	t.OK(s.Memset32(b, 7))
	t.OK(cuda.CopyToHost(s, out, b))
	t.Host(s, func() {
		sawCopy.Store(out[0] == 7)
		time.Sleep(10 * time.Millisecond)
		ran.Store(true)
	}, cuda.OnDone(func(error) {
		time.Sleep(10 * time.Millisecond)
		reported.Store(true)
	}))
	t.OK(d.Close())
	if !sawCopy.Load() || !ran.Load() || !reported.Load() {
		t.Errorf("Close returned; the copy was done: %v, the function: %v, its OnDone: %v", sawCopy.Load(), ran.Load(), reported.Load())
	}
}

func shutdownSaysStuck(t *T) {
	d := t.OpenDriver()
	s, b := t.Stream(), t.Buffer(64)
	ran := false
	g := t.Gate(s)
	<-g.Entered
	t.OK(cuda.HostLaunch(s, func() { ran = true }, cuda.Name("behind the gate")))
	for range 2 { // it can be waited for again
		t.Stuck(d, "gate, enqueued at", "which runs", "behind the gate", "life.go:")
	}
	t.Is(s.Memset(b, 1), cuda.ErrClosed) // already, though the shutdown is not through
	g.Open()
	t.OK(d.Shutdown(t.Context()))
	if !ran {
		t.Error("the function behind the gate did not run")
	}
	t.OK(d.Close())
}

// shutdownNamesRunning: what is stuck is the function that runs, more than those that wait behind it.
func shutdownNamesRunning(t *T) {
	d := t.OpenDriver()
	g := t.Gate(t.Stream())
	<-g.Entered
	t.Stuck(d, "gate", "t.go:")
	g.Open()
	t.OK(d.Close())
}

func everythingClosed(t *T) {
	d := t.OpenDriver()
	s, e, b, p, k, dev := t.Stream(), t.Event(), t.Buffer(64), t.Pinned(64), t.Kernel("nothing"), t.Device(0)
	legacy := dev.DefaultStream()
	t.OK(d.Close())
	calls := streamCalls(t, s, legacy, e, b, k)
	for op, call := range streamCalls(t, legacy, s, e, b, k) {
		calls["default "+op] = call
	}
	more := map[string]func() error{
		"Driver.Device":            func() error { _, err := d.Device(0); return err },
		"NewStream":                func() error { _, err := dev.NewStream(); return err },
		"NewEvent":                 func() error { _, err := dev.NewEvent(); return err },
		"Alloc":                    func() error { _, err := dev.Alloc(1); return err },
		"AllocPinned":              func() error { _, err := dev.AllocPinned(1); return err },
		"LoadModule":               func() error { _, err := dev.LoadModule(t.cfg.PTX); return err },
		"Module.Kernel":            func() error { _, err := k.Module().Kernel("nothing"); return err },
		"BorrowStream":             func() error { _, err := dev.BorrowStream(0); return err },
		"StreamOf":                 func() error { _, err := dev.StreamOf(s); return err },
		"WithThreadStream":         func() error { return dev.WithThreadStream(func(*cuda.Stream) error { return nil }) },
		"Device.TotalMemory":       func() error { _, err := dev.TotalMemory(); return err },
		"Device.ComputeCapability": func() error { _, _, err := dev.ComputeCapability(); return err },
		"Context.StreamPriorities": func() error { _, _, err := dev.StreamPriorities(); return err },
		"Event.Query":              func() error { _, err := e.Query(); return err },
		"Event.Sync":               func() error { return e.Sync() },
		"Event.Wait":               func() error { return e.Wait(t.Context()) },
		"Event.Elapsed":            func() error { _, err := e.Elapsed(e); return err },
		"Buffer.ReadAt":            func() error { _, err := b.ReadAt(make([]byte, 1), 0); return err },
		"Buffer.WriteAt":           func() error { _, err := b.WriteAt(make([]byte, 1), 0); return err },
	}
	for op, call := range more {
		calls[op] = call
	}
	for op, call := range calls {
		err := call()
		t.Is(err, cuda.ErrClosed)
		t.Contains(err, strings.TrimPrefix(op, "default "))
	}
	Receive(t, "Done of an event", e.Done())
	for what, c := range map[string]io.Closer{"stream": s, "legacy": legacy, "event": e, "buffer": b, "pinned": p, "module": k.Module(), "driver": d} {
		if err := c.Close(); err != nil {
			t.Errorf("Close of the %s behind the driver's: %v", what, err)
		}
	}
	if p.Bytes() != nil {
		t.Error("pinned memory is still to be had")
	}
	if st := d.Stats(); st != (cuda.Stats{}) {
		t.Errorf("left: %+v", st)
	}
	t.OK((*cuda.Driver)(nil).Close())
	t.OK((*cuda.Driver)(nil).Shutdown(t.Context()))
}

// closeWithAllOpen leaves open what a program can, dropped and not, with work queued.
func closeWithAllOpen(t *T) {
	d := t.OpenDriver()
	dev := t.Device(0)
	for i := range 10 {
		s, err := dev.NewStream()
		t.OK(err)
		e, err := dev.NewEvent()
		t.OK(err)
		b, err := dev.Alloc(1 << 16)
		t.OK(err)
		p, err := dev.AllocPinned(1 << 16)
		t.OK(err)
		m, err := dev.LoadModule(t.cfg.PTX)
		t.OK(err)
		k, err := m.Kernel("spin")
		t.OK(err)
		t.OK(s.Launch(k, one, uint64(time.Millisecond)))
		t.OK(cuda.CopyToHost(s, p.Bytes(), b))
		t.OK(s.Record(e))
		t.OK(dev.DefaultStream().WaitStream(s))
		t.OK(dev.DefaultStream().Memset(b, byte(i)))
		t.Host(s, func() { p.Bytes()[0] = 1 })
	}
	runtime.GC()
	t.OK(d.Close())
	if st := d.Stats(); st != (cuda.Stats{}) {
		t.Errorf("left: %+v", st)
	}
}

func closeInsideReport(t *T) {
	d := t.OpenDriver()
	s := t.Stream()
	errs := make(chan error, 3)
	closed := make(chan struct{})
	t.Host(s, func() {}, cuda.OnDone(func(error) {
		errs <- d.Shutdown(t.Context())
		errs <- d.Close()
		go func() { // which is the way out
			errs <- d.Close()
			close(closed)
		}()
	}))
	for range 2 {
		err := Receive(t, "Shutdown inside OnDone", errs)
		t.Is(err, cuda.ErrDeadlock)
		t.Contains(err, "goroutine") // which is the way out
	}
	t.OK(Receive(t, "Close in a goroutine", errs))
	Receive(t, "the end of it", closed)
	t.OK(d.Close())
}

func closeInsideFunction(t *T) {
	d := t.OpenDriver()
	s := t.Stream()
	errs := make(chan error, 2)
	behind := false
	g := t.Gate(s)
	t.Host(s, func() {
		errs <- d.Shutdown(t.Context())
		errs <- d.Close()
	})
	t.Host(s, func() { behind = true })
	g.Open()
	t.Is(Receive(t, "Shutdown inside a host function", errs), cuda.ErrNotPermitted)
	t.OK(Receive(t, "Close inside a host function", errs))
	t.OK(d.Close())
	if !behind {
		t.Error("the function behind it did not run")
	}
}

func closeBesideClose(t *T) {
	d := t.OpenDriver()
	s := t.Stream()
	g := t.Gate(s)
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() { errs <- d.Close() }()
	}
	time.Sleep(10 * time.Millisecond)
	if len(errs) > 0 {
		t.Errorf("a Close returned %v with work queued", <-errs)
	}
	g.Open()
	for range cap(errs) {
		t.OK(Receive(t, "Close", errs))
	}
}

// closeBesideWaits: who waits already gets what he waits for, and Close waits for that.
func closeBesideWaits(t *T) {
	d := t.OpenDriver()
	s, e := t.Stream(), t.Event()
	g := t.Gate(s)
	t.OK(s.Record(e))
	errs, closed := make(chan error, 3), make(chan error, 1)
	go func() { errs <- s.Wait(t.Context()) }()
	go func() { errs <- e.Wait(t.Context()) }()
	go func() { errs <- s.Sync() }()
	done := e.Done()
	time.Sleep(10 * time.Millisecond)
	go func() { closed <- d.Close() }()
	time.Sleep(10 * time.Millisecond)
	if len(errs) > 0 || len(closed) > 0 {
		t.Errorf("%d waits and %d Closes returned while the gate was shut", len(errs), len(closed))
	}
	g.Open()
	for range cap(errs) {
		t.OK(Receive(t, "a wait", errs))
	}
	Receive(t, "Done", done)
	t.OK(Receive(t, "Close", closed))
}

func closeInsideThreadStream(t *T) {
	d := t.OpenDriver()
	ended := make(chan error, 1)
	dev := t.Device(0)
	go func() {
		ended <- dev.WithThreadStream(func(s *cuda.Stream) error {
			if err := d.Close(); err != nil {
				return err
			}
			if err := s.Sync(); !errors.Is(err, cuda.ErrClosed) {
				t.Errorf("Sync afterwards = %v", err)
			}
			return nil
		})
	}()
	t.OK(Receive(t, "Close inside WithThreadStream", ended))
}

// closeUnderFire closes a driver that eight goroutines use. Each call works or finds it closed, and nothing of what they
// queued runs once Close has returned.
func closeUnderFire(t *T) {
	for range 10 {
		d := t.OpenDriver()
		dev, s, b := t.Device(0), t.Stream(), t.Buffer(64)
		legacy := dev.DefaultStream()
		var closed atomic.Bool
		late := make(chan string, 100)
		say := func(what string) {
			if closed.Load() {
				select {
				case late <- what:
				default:
				}
			}
		}
		host := func(s *cuda.Stream) error {
			return cuda.HostLaunch(s, func() { say("a host function") }, cuda.OnDone(func(error) { say("an OnDone") }))
		}
		var users sync.WaitGroup
		for _, call := range []func() error{
			func() error { return host(s) },
			func() error { return host(legacy) },
			func() error { return s.Wait(t.Context()) },
			func() error { _, err := dev.NewStream(); return err },
			func() error { _, err := dev.Alloc(64); return err },
			func() error { _, err := dev.NewEvent(); return err },
			func() error { return legacy.Memset(b, 1) },
			func() error { return dev.WithThreadStream(host) },
		} {
			users.Go(func() {
				for {
					err := call()
					if errors.Is(err, cuda.ErrClosed) {
						return
					}
					if err != nil {
						t.Errorf("a call beside Close: %v", err)
						return
					}
				}
			})
		}
		time.Sleep(2 * time.Millisecond)
		t.OK(d.Close())
		closed.Store(true)
		users.Wait()
		time.Sleep(2 * time.Millisecond)
		if len(late) > 0 {
			t.Fatalf("%s ran after Close", <-late)
		}
		if st := d.Stats(); st != (cuda.Stats{}) {
			t.Fatalf("left: %+v", st)
		}
	}
}
