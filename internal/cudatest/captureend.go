package cudatest

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/hostlaunch/cuda"
)

var captureEndCases = []Case{
	{ID: "CP-02", Name: "wrong thread", Run: wrongThread},
	{ID: "CP-02", Name: "relaxed ends anywhere", Run: relaxedEndsAnywhere},
	{ID: "CP-10", Name: "error", Run: captureError},
	{ID: "CP-10", Name: "panic", Run: capturePanic},
	{ID: "CP-10", Name: "goexit", Run: captureGoexit},
	{ID: "CP-10", Name: "builder closed", Run: builderClosed},
	{ID: "CP-10", Name: "builder dropped", Run: builderDropped},
	{ID: "CP-10", Name: "driver closed", Run: driverClosedCapturing},
	{ID: "CP-11", Name: "sync and query", Run: syncCapturing},
	{ID: "CP-11", Name: "wait", Run: waitCapturing},
	{ID: "CP-11", Name: "close", Run: closeCapturing},
	{ID: "CP-11", Name: "close a fork", Run: closeFork},
	{ID: "CP-12", Name: "waits elsewhere", Run: waitsBesideCapture},
	{ID: "CP-12", Name: "dropped objects", Run: droppedBesideCapture},
	{ID: "HL-13", Name: "refused", Run: hostOnCapturing},
	{ID: "HL-13", Name: "borrowed", Run: hostOnBorrowedCapturing},
	{ID: "HL-14", Name: "not building", Run: notBuilding},
	{ID: "CB-03", Name: "capturing", Run: callbackOnCapturing},
	{ID: "ST-12", Name: "in a graph", Run: memOpsInGraph},
}

// modes are all capture modes.
var modes = []cuda.CaptureMode{cuda.CaptureGlobal, cuda.CaptureThreadLocal, cuda.CaptureRelaxed}

func wrongThread(t *T) {
	for _, mode := range modes[:2] {
		s := t.Stream()
		borrowed := make(chan *cuda.GraphBuilder)
		ended := make(chan struct{})
		b := t.Builder()
		go func() { // a goroutine that stays locked to its thread, and ends so
			if err := b.Begin(mode); err != nil {
				t.Error(err)
			}
			if err := cuda.HostLaunch(b, func() { t.Error("ran") }); err != nil {
				t.Error(err)
			}
			borrowed <- b
			<-ended
		}()
		<-borrowed
		elsewhere(func() {
			_, err := b.End()
			t.Is(err, cuda.ErrCaptureWrongThread)
		})
		close(ended)
		_, err := b.End()
		t.Is(err, cuda.ErrNotBuilding)
		t.OK(b.Begin(mode)) // the capture is gone
		g, err := b.End()
		t.OK(err)
		t.OK(g.Close())
		t.Works(s)
	}
}

func relaxedEndsAnywhere(t *T) {
	b, ran := t.Begin(cuda.CaptureRelaxed), 0
	elsewhere(func() { t.Host(b, func() { ran++ }) })
	var g *cuda.Graph
	elsewhere(func() {
		var err error
		g, err = b.End()
		t.OK(err)
	})
	t.Cleanup(func() { g.Close() })
	s := t.Stream()
	t.OK(t.Exec(g).Launch(s))
	t.Sync(s)
	if ran != 1 {
		t.Errorf("%d runs", ran)
	}
}

// nothingCaptured wants nothing to be left of captures on s.
func (t *T) nothingCaptured(s *cuda.Stream) {
	t.Helper()
	t.Works(s)
	if st := t.Driver.Stats(); st.Graphs != 0 || st.HostNodes != 0 {
		t.Errorf("%d graphs and %d host nodes are left", st.Graphs, st.HostNodes)
	}
}

func captureError(t *T) {
	s, mine := t.Stream(), errors.New("mine")
	for _, mode := range modes {
		g, err := cuda.Capture(s, mode, func(b *cuda.GraphBuilder) error {
			t.Host(b, func() { t.Error("ran") })
			return mine
		})
		if g != nil || err != mine {
			t.Errorf("Capture = %v, %v; want the error of build", g, err)
		}
		t.nothingCaptured(s)
	}
}

func capturePanic(t *T) {
	s := t.Stream()
	for _, mode := range modes {
		func() {
			defer func() {
				if v := recover(); v != "out" {
					t.Errorf("recovered %v, want the panic of build", v)
				}
			}()
			cuda.Capture(s, mode, func(b *cuda.GraphBuilder) error {
				t.Host(b, func() { t.Error("ran") })
				panic("out")
			})
		}()
		t.nothingCaptured(s)
	}
}

func captureGoexit(t *T) {
	s := t.Stream()
	for _, mode := range modes {
		elsewhere(func() {
			cuda.Capture(s, mode, func(b *cuda.GraphBuilder) error {
				t.Host(b, func() { t.Error("ran") })
				runtime.Goexit()
				return nil
			})
		})
		t.nothingCaptured(s)
	}
}

func builderClosed(t *T) {
	for _, mode := range modes {
		b, other := t.Begin(mode), t.Stream()
		forks, err := b.Split(1)
		t.OK(err)
		t.Host(forks[0], func() { t.Error("ran") })
		t.OK(b.Close())
		t.OK(b.Close())
		for _, q := range []*cuda.GraphBuilder{b, forks[0]} {
			t.Is(cuda.HostLaunch(q, func() {}), cuda.ErrNotBuilding)
		}
		t.Is(b.Begin(mode), cuda.ErrNotBuilding)
		_, err = b.End()
		t.Is(err, cuda.ErrNotBuilding)
		t.OK(forks[0].Close())
		t.nothingCaptured(other)
	}
}

func builderDropped(t *T) {
	for _, mode := range modes {
		streams, s := t.Driver.Stats().Streams, t.Stream()
		t.Eventually("an unused builder's stream is gone", func() bool { // of an earlier turn
			s.Query()
			return t.Driver.Stats().Streams <= streams+1
		})
		elsewhere(func() {
			b, err := t.Device(0).NewGraphBuilder()
			t.OK(err)
			t.OK(b.Begin(mode))
			t.Host(b, func() { t.Error("ran") })
		})
		t.Eventually("the dropped builder's capture has ended and its stream is gone", func() bool {
			runtime.GC()
			// Any call has what was dropped closed. Under a Global capture a query would be refused.
			t.OK(t.Driver.WithCaptureMode(cuda.CaptureRelaxed, func() error { return nil }))
			st := t.Driver.Stats()
			return st.Streams <= streams+1 && st.HostNodes == 0
		})
		t.nothingCaptured(s)
		buf, err := t.Device(0).Alloc(64) // nobody forbids it any more
		t.OK(err)
		t.OK(buf.Close())
	}
}

func driverClosedCapturing(t *T) {
	d, err := t.cfg.Open()
	t.OK(err)
	dev, err := d.Device(0)
	t.OK(err)
	b, err := dev.NewGraphBuilder()
	t.OK(err)
	t.OK(b.Begin(cuda.CaptureRelaxed))
	t.Host(b, func() { t.Error("ran") })
	t.OK(d.Close())
	_, err = b.End()
	t.Is(err, cuda.ErrNotBuilding)
}

func syncCapturing(t *T) {
	s := t.Stream()
	for name, call := range map[string]func() error{
		"Sync":  s.Sync,
		"Query": func() error { _, err := s.Query(); return err },
	} {
		for _, mode := range modes {
			g, err := cuda.Capture(s, mode, func(b *cuda.GraphBuilder) error {
				t.Host(b, func() { t.Error("ran") })
				if err := call(); !errors.Is(err, cuda.ErrCaptureUnsupported) {
					t.Errorf("%s in mode %d: %v", name, mode, err)
				}
				return nil
			})
			if !errors.Is(err, cuda.ErrCaptureInvalidated) {
				t.Errorf("%s in mode %d: the capture ends with %v", name, mode, err)
			}
			t.OK(g.Close())
			t.Works(s)
		}
	}
}

func waitCapturing(t *T) {
	s := t.Stream()
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		t.Is(s.Wait(t.Context()), cuda.ErrCapturing)
		return cuda.HostLaunch(b, func() {})
	})
	t.OK(err) // the wait has not spoiled it
	t.OK(g.Close())
	t.Works(s)
}

func closeCapturing(t *T) {
	for _, mode := range modes {
		s, other := t.Stream(), t.Stream()
		g, err := cuda.Capture(s, mode, func(b *cuda.GraphBuilder) error {
			t.Host(b, func() {})
			t.OK(s.Close())
			t.Is(cuda.HostLaunch(b, func() {}), cuda.ErrClosed)
			return nil
		})
		t.OK(err) // destroyed only now
		x := t.Exec(g)
		t.OK(g.Close())
		t.OK(x.Launch(other))
		t.Works(other)
	}
}

func closeFork(t *T) {
	s, fork, e, buf := t.Stream(), t.Stream(), t.Event(), t.Buffer(64)
	_, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		t.Host(b, func() { t.Error("ran") })
		t.OK(b.Record(e))
		t.OK(fork.WaitEvent(e))
		t.OK(fork.Memset(buf, 1))
		return fork.Close()
	})
	t.Is(err, cuda.ErrCaptureUnjoined)
	t.nothingCaptured(s)
}

func waitsBesideCapture(t *T) {
	busy, e := t.Stream(), t.Event()
	waited := make(chan error, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	t.Spin(busy, 150*time.Millisecond)
	t.Host(busy, func() {}) // watched meanwhile
	t.OK(busy.Record(e))
	done := e.Done()
	go func() { waited <- busy.Wait(ctx) }() // some begin before the capture, some in the middle
	b := t.Begin(cuda.CaptureGlobal)
	go func() { waited <- e.Wait(ctx) }()
	go func() { <-done; waited <- nil }()
	t.Host(b, func() {})
	for range 3 {
		t.OK(Receive(t, "the end of a wait", waited))
	}
	t.Host(b, func() {})
	g, err := b.End()
	t.OK(err) // none of it spoiled the capture
	t.OK(g.Close())
	t.Works(busy)
}

func droppedBesideCapture(t *T) {
	s, before := t.Stream(), t.Driver.Stats()
	func() {
		_, err := t.Device(0).Alloc(1 << 20)
		t.OK(err)
		_, err = t.Device(0).NewEvent()
		t.OK(err)
	}()
	b := t.Begin(cuda.CaptureGlobal)
	for range 5 {
		runtime.GC()
		t.Host(b, func() {}) // any call may have what was dropped closed
		time.Sleep(time.Millisecond)
	}
	g, err := b.End()
	t.OK(err)
	t.OK(g.Close())
	t.OK(b.Close())
	t.Eventually("what was dropped is freed", func() bool {
		runtime.GC()
		s.Query()
		return t.Driver.Stats() == before
	})
}

func hostOnCapturing(t *T) {
	s, ran := t.Stream(), 0
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		err := cuda.HostLaunch(s, func() { t.Error("ran") }, cuda.OnDone(func(error) { t.Error("OnDone was told") }))
		t.Is(err, cuda.ErrCapturing)
		t.Contains(err, "GraphBuilder")
		return cuda.HostLaunch(b, func() { ran++ })
	})
	t.OK(err)
	t.Cleanup(func() { g.Close() })
	t.OK(t.Exec(g).Launch(s))
	t.Sync(s)
	if ran != 1 {
		t.Errorf("the function of the builder ran %d times", ran)
	}
}

func hostOnBorrowedCapturing(t *T) {
	s := t.Stream()
	mine, err := t.Device(0).StreamOf(s)
	t.OK(err)
	t.Cleanup(func() { mine.Close() })
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		t.Is(cuda.HostLaunch(mine, func() { t.Error("ran") }), cuda.ErrCapturing)
		return nil
	})
	t.OK(err)
	if nodes, err := g.Nodes(); len(nodes) != 0 || err != nil {
		t.Errorf("nodes %v, %v: the function was captured", nodes, err)
	}
	t.OK(g.Close())
	t.Works(mine)
}

func callbackOnCapturing(t *T) {
	s := t.Stream()
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(*cuda.GraphBuilder) error {
		t.Is(cuda.AddCallback(s, func(error) { t.Error("ran") }), cuda.ErrCaptureUnsupported)
		return nil
	})
	t.Logf("after a callback was refused the capture ends with %v", err)
	t.OK(g.Close())
	t.nothingCaptured(s)
}

func memOpsInGraph(t *T) {
	words := t.Buffer(16)
	s, log := t.Stream(), &Order{}
	t.OK(s.Memset(words, 0))
	x := t.Exec(t.Capture(func(b *cuda.GraphBuilder) error {
		return errors.Join(
			b.WriteValue32(words.Word(0), 7),
			b.WaitValue32(words.Word(0), cuda.ValueEQ, 7),
			b.Batch(cuda.Write32(words.Word(4), 8), cuda.Wait32(words.Word(4), cuda.ValueGEQ, 8)),
			cuda.HostLaunch(b, log.Add(1)))
	}))
	t.OK(x.Launch(s))
	t.OK(x.Launch(s))
	got := make([]uint32, 4)
	t.OK(cuda.CopyToHost(s, got, words))
	t.Sync(s)
	log.Want(t, 1, 1)
	if got[0] != 7 || got[1] != 8 {
		t.Errorf("words %v, want 7 and 8", got)
	}
}

func notBuilding(t *T) {
	b, buf, e := t.Builder(), t.Buffer(64), t.Event()
	check := func(when string) {
		for name, call := range map[string]func() error{
			"HostLaunch":   func() error { return cuda.HostLaunch(b, func() {}) },
			"Launch":       func() error { return b.Launch(t.Kernel("nothing"), one) },
			"Memset":       func() error { return b.Memset(buf, 1) },
			"Memset16":     func() error { return b.Memset16(buf, 1) },
			"Memset32":     func() error { return b.Memset32(buf, 1) },
			"CopyBuffer":   func() error { return b.CopyBuffer(buf, buf) },
			"CopyToHost":   func() error { return cuda.CopyToHost(b, make([]byte, 64), buf) },
			"CopyToDevice": func() error { return cuda.CopyToDevice(b, buf, make([]byte, 64)) },
			"Record":       func() error { return b.Record(e) },
			"WaitEvent":    func() error { return b.WaitEvent(e) },
			"WaitStream":   func() error { return b.WaitStream(t.Device(0).DefaultStream()) },
			"External":     func() error { return errors.Join(b.RecordExternal(e), b.WaitEventExternal(e)) },
			"Split":        func() error { _, err := b.Split(1); return err },
			"Join":         func() error { return b.Join() },
			"End":          func() error { _, err := b.End(); return err },
			"CaptureInfo":  func() error { _, err := b.CaptureInfo(); return err },
			"Dependencies": func() error { return b.SetDependencies() },
		} {
			if err := call(); !errors.Is(err, cuda.ErrNotBuilding) {
				t.Errorf("%s %s: %v, want ErrNotBuilding", name, when, err)
			}
		}
	}
	check("before Begin")
	t.OK(b.Begin(cuda.CaptureThreadLocal))
	g, err := b.End()
	t.OK(err)
	t.OK(g.Close())
	check("after End")
	t.OK(b.Close())
	check("after Close")
	var lent *cuda.GraphBuilder
	g, err = cuda.Capture(t.Stream(), cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error { lent = b; return nil })
	t.OK(err)
	t.OK(g.Close())
	b = lent
	t.Is(cuda.HostLaunch(b, func() {}), cuda.ErrNotBuilding)
	t.Is(b.Begin(cuda.CaptureThreadLocal), cuda.ErrInvalidValue)
}
