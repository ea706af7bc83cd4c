package cudatest

import (
	"errors"
	"slices"
	"time"

	"github.com/hostlaunch/cuda"
)

func forkAndJoin(t *T) {
	log := &Order{}
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		t.Host(b, log.Add(1))
		forks, err := b.Split(2)
		t.OK(err)
		for _, f := range forks {
			t.Host(f, log.Add(2))
		}
		t.Host(b, log.Add(2))
		t.OK(b.Join(forks...))
		t.Is(cuda.HostLaunch(forks[0], func() {}), cuda.ErrNotBuilding)
		t.Host(b, log.Add(3))
		return nil
	})
	s, x := t.Stream(), t.Exec(g)
	t.OK(x.Launch(s))
	t.OK(x.Launch(s))
	t.Sync(s)
	log.Want(t, 1, 2, 2, 2, 3, 1, 2, 2, 2, 3)
	edges, err := g.Edges()
	t.Needs(err)
	t.OK(err)
	nodes, err := g.Nodes()
	t.OK(err)
	if len(nodes) != 5 || len(edges) != 6 {
		t.Errorf("%d nodes and %d edges, want 5 and 6", len(nodes), len(edges))
	}
	for _, n := range nodes {
		if typ, err := g.NodeType(n); typ != cuda.HostNode || err != nil {
			t.Errorf("a node of type %v, %v", typ, err)
		}
	}
}

func forkByEvents(t *T) {
	log, other, e := &Order{}, t.Stream(), t.Event()
	buf := t.Buffer(64)
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		t.Host(b, log.Add(1))
		t.OK(b.Record(e))
		t.OK(other.WaitEvent(e))
		t.Status(other, cuda.CaptureActive)
		t.Is(cuda.HostLaunch(other, func() {}), cuda.ErrCapturing)
		t.OK(other.Memset(buf, 9))
		t.OK(b.WaitStream(other))
		t.Host(b, log.Add(2))
		return nil
	})
	t.Works(other)
	s := t.Stream()
	t.OK(t.Exec(g).Launch(s))
	host := make([]byte, 64)
	t.OK(cuda.CopyToHost(s, host, buf))
	t.Sync(s)
	log.Want(t, 1, 2)
	if host[0] != 9 {
		t.Errorf("the fork wrote %d, want 9", host[0])
	}
}

func notJoined(t *T) {
	s := t.Stream()
	var fork *cuda.GraphBuilder
	_, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		t.Host(b, func() {})
		forks, err := b.Split(1)
		t.OK(err)
		fork = forks[0]
		t.Host(fork, func() {})
		_, err = fork.End()
		t.Is(err, cuda.ErrCaptureUnmatched)
		return nil
	})
	t.Is(err, cuda.ErrCaptureUnjoined)
	t.Is(cuda.HostLaunch(fork, func() {}), cuda.ErrNotBuilding)
	t.OK(fork.Close())
	t.Works(s)
}

func mergeRefused(t *T) {
	a, b, e := t.Begin(cuda.CaptureRelaxed), t.Begin(cuda.CaptureRelaxed), t.Event()
	t.Host(a, func() {})
	t.Host(b, func() {})
	t.OK(a.Record(e))
	t.Is(b.WaitEvent(e), cuda.ErrCaptureMerge)
	for name, q := range map[string]*cuda.GraphBuilder{"recorded": a, "waiting": b} {
		g, err := q.End()
		t.Logf("after a refused merge the %s capture ends with %v", name, err)
		t.OK(g.Close())
		t.OK(q.Begin(cuda.CaptureRelaxed)) // its stream works
		g, err = q.End()
		t.OK(err)
		t.OK(g.Close())
	}
}

func wrongJoin(t *T) {
	outside, e := t.Stream(), t.Event()
	t.OK(outside.Record(e))
	t.Sync(outside)
	b, c := t.Begin(cuda.CaptureRelaxed), t.Begin(cuda.CaptureRelaxed)
	forks, err := c.Split(1)
	t.OK(err)
	t.Is(b.Join(forks...), cuda.ErrCaptureMerge)
	t.Is(b.Join(b), cuda.ErrInvalidValue)
	t.Is(c.Join(forks[0], forks[0]), cuda.ErrInvalidValue)
	t.Is(b.WaitStream(outside), cuda.ErrCaptureIsolation)
	_, err = b.Split(0)
	t.Is(err, cuda.ErrInvalidValue)
	t.Host(b, func() {})
	g, err := b.End() // none of that spoiled it
	t.OK(err)
	t.OK(g.Close())
	t.OK(c.Join(forks...))
	g, err = c.End()
	t.OK(err)
	t.OK(g.Close())
	t.OK(b.Begin(cuda.CaptureRelaxed))
	t.Is(b.WaitEvent(e), cuda.ErrCaptureIsolation)
	_, err = b.End()
	t.Is(err, cuda.ErrCaptureInvalidated)
}

func implicitCapture(t *T) {
	s, legacy := t.Stream(cuda.Blocking()), t.Device(0).DefaultStream()
	g, err := cuda.Capture(s, cuda.CaptureRelaxed, func(b *cuda.GraphBuilder) error {
		_, err := legacy.CaptureStatus()
		t.Is(err, cuda.ErrCaptureImplicit)
		if _, err := legacy.CaptureInfo(); !errors.Is(err, cuda.ErrNotSupported) {
			t.Is(err, cuda.ErrCaptureImplicit)
		}
		t.Status(s, cuda.CaptureActive)
		return cuda.HostLaunch(b, func() {})
	})
	t.OK(err)
	t.OK(g.Close())
	buf := t.Buffer(64)
	g, err = cuda.Capture(s, cuda.CaptureRelaxed, func(*cuda.GraphBuilder) error {
		t.Is(legacy.Memset(buf, 1), cuda.ErrCaptureImplicit)
		return nil
	})
	t.Logf("after work on the legacy stream was refused, the capture ends with %v", err)
	t.OK(g.Close())
	t.Works(legacy)
	t.Works(s)
	// A non-blocking stream has nothing to do with the legacy stream.
	g, err = cuda.Capture(t.Stream(), cuda.CaptureRelaxed, func(*cuda.GraphBuilder) error { return legacy.Memset(buf, 1) })
	t.OK(err)
	t.OK(g.Close())
	t.Sync(legacy)
}

// legacyIsNoFork: the legacy stream cannot be drawn into a capture, though that is on a stream that it has nothing to do with.
func legacyIsNoFork(t *T) {
	b, e, legacy := t.Begin(cuda.CaptureRelaxed), t.Event(), t.Device(0).DefaultStream()
	t.Host(b, func() {})
	t.OK(b.Record(e))
	err := legacy.WaitEvent(e)
	t.Logf("the legacy stream waits for a captured event: %v", err)
	if err == nil {
		t.Error("the legacy stream captures")
	}
	g, err := b.End()
	t.Logf("then the capture ends with %v", err)
	t.OK(g.Close())
	t.Works(legacy)
}

func statusAndInfo(t *T) {
	s := t.Stream()
	t.Status(s, cuda.CaptureNone)
	info, err := s.CaptureInfo()
	t.Needs(err)
	t.OK(err)
	if info.Status != cuda.CaptureNone || info.Dependencies != nil {
		t.Errorf("not capturing: %+v", info)
	}
	ids := map[uint64]bool{}
	for range 3 {
		b := t.Begin(cuda.CaptureThreadLocal)
		info, err := b.CaptureInfo()
		t.OK(err)
		if info.Status != cuda.CaptureActive || info.ID == 0 || info.Graph == 0 || len(info.Dependencies) != 0 {
			t.Errorf("fresh: %+v", info)
		}
		ids[info.ID] = true
		t.Host(b, func() {})
		info, err = b.CaptureInfo()
		t.OK(err)
		if len(info.Dependencies) != 1 || info.Dependencies[0].Edge != (cuda.EdgeData{}) || !ids[info.ID] {
			t.Errorf("with a node: %+v", info)
		}
		g, err := b.End()
		t.OK(err)
		if nodes, err := g.Nodes(); err != nil || len(nodes) != 1 || nodes[0] != info.Dependencies[0].Node {
			t.Errorf("nodes %v, %v; want %v", nodes, err, info.Dependencies)
		}
		t.OK(g.Close())
	}
	if len(ids) != 3 {
		t.Errorf("ids %v of three captures", ids)
	}
}

func captureDependencies(t *T) {
	log := &Order{}
	var first, second cuda.CaptureDependency
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		t.Host(b, log.Add(1))
		info, err := b.CaptureInfo()
		t.Needs(err)
		t.OK(err)
		first = info.Dependencies[0]
		t.OK(b.SetDependencies())
		t.Host(b, log.Add(1)) // a root of its own
		info, err = b.CaptureInfo()
		t.OK(err)
		second = info.Dependencies[0]
		t.OK(b.AddDependencies(first))
		t.Host(b, log.Add(2))
		t.Is(b.AddDependencies(cuda.CaptureDependency{}), cuda.ErrInvalidValue)
		return nil
	})
	edges, err := g.Edges()
	t.OK(err)
	from := map[cuda.GraphNode]bool{}
	for _, e := range edges {
		from[e.From] = true
	}
	if len(edges) != 2 || !from[first.Node] || !from[second.Node] {
		t.Errorf("edges %v, want from %v and %v", edges, first, second)
	}
	s := t.Stream()
	t.OK(t.Exec(g).Launch(s))
	t.Sync(s)
	log.Want(t, 1, 1, 2)
	t.Is(s.UpdateCaptureDependencies(true), cuda.ErrIllegalState)
}

func captureToGraph(t *T) {
	log, b := &Order{}, t.Builder()
	g, err := t.Device(0).NewGraph()
	t.OK(err)
	t.Cleanup(func() { g.Close() })
	err = b.BeginToGraph(g, nil, cuda.CaptureThreadLocal)
	t.Needs(err)
	t.OK(err)
	t.Host(b, log.Add(1))
	_, err = g.Instantiate()
	t.Is(err, cuda.ErrIllegalState)
	t.Is(t.Builder().BeginToGraph(g, nil, cuda.CaptureThreadLocal), cuda.ErrCapturing)
	same, err := b.End()
	t.OK(err)
	if same != g {
		t.Error("End gave another graph")
	}
	nodes, err := g.Nodes()
	t.OK(err)
	before := t.Exec(g)
	t.OK(b.BeginToGraph(g, nodes, cuda.CaptureThreadLocal))
	t.Host(b, log.Add(2))
	_, err = b.End()
	t.OK(err)
	s := t.Stream()
	t.OK(before.Launch(s)) // made before the second node came
	t.OK(t.Exec(g).Launch(s))
	t.Sync(s)
	log.Want(t, 1, 1, 2)
}

func externalEvents(t *T) {
	log, in, out := &Order{}, t.Event(), t.Event()
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		t.OK(b.WaitEventExternal(in))
		t.Host(b, log.Add(2))
		t.OK(b.RecordExternal(out))
		return nil
	})
	var types []cuda.GraphNodeType
	nodes, err := g.Nodes()
	t.OK(err)
	for _, n := range nodes {
		typ, err := g.NodeType(n)
		t.OK(err)
		types = append(types, typ)
	}
	slices.Sort(types)
	if !slices.Equal(types, []cuda.GraphNodeType{cuda.HostNode, cuda.WaitEventNode, cuda.EventRecordNode}) {
		t.Errorf("node types %v", types)
	}
	x, s, first, last := t.Exec(g), t.Stream(), t.Stream(), t.Stream()
	for range 3 {
		t.Spin(first, 2*time.Millisecond)
		t.Host(first, log.Add(1))
		t.OK(first.Record(in))
		t.OK(x.Launch(s))
		t.OK(last.WaitEvent(out))
		t.Host(last, log.Add(3))
		t.Sync(last)
		if done, err := out.Query(); !done || err != nil {
			t.Errorf("the recorded event: %v, %v", done, err)
		}
	}
	t.Sync(s)
	log.Want(t, 1, 2, 3, 1, 2, 3, 1, 2, 3)
}

func capturedEvent(t *T) {
	e, s := t.Event(cuda.WithTiming()), t.Stream()
	ask := []func() error{
		func() error { _, err := e.Query(); return err },
		e.Sync,
		func() error { return e.Wait(t.Context()) },
	}
	for i, call := range ask {
		b := t.Begin(cuda.CaptureRelaxed)
		t.Host(b, func() {})
		t.OK(b.Record(e))
		t.Is(call(), cuda.ErrCapturedEvent)
		g, err := b.End()
		t.Logf("call %d: after the question the capture ends with %v", i, err)
		t.OK(g.Close())
		t.Is(call(), cuda.ErrInvalidValue)
		t.OK(s.Record(e)) // recorded anew, it is an ordinary event again
		t.OK(call())
		t.Sync(s)
	}
}

// capturedEventLater: nobody asks before the capture has ended well.
func capturedEventLater(t *T) {
	e, s := t.Event(), t.Stream()
	for _, empty := range []bool{true, false} {
		g := t.Capture(func(b *cuda.GraphBuilder) error {
			if !empty {
				t.Host(b, func() {})
			}
			return b.Record(e)
		})
		_, open := e.Query()
		t.OK(g.Close())
		_, closed := e.Query()
		t.Logf("empty %v: with the graph there %v, without %v", empty, open, closed)
		for _, err := range []error{open, closed} {
			if !errors.Is(err, cuda.ErrCapturedEvent) {
				t.Is(err, cuda.ErrInvalidValue)
			}
		}
		t.OK(s.Record(e))
		t.Sync(s)
		if done, err := e.Query(); !done || err != nil {
			t.Errorf("recorded anew: %v, %v", done, err)
		}
	}
}
