package cudatest

import (
	"bytes"
	"context"
	"runtime/pprof"
	gotrace "runtime/trace"
	"strings"
	"sync"
	"time"

	"github.com/hostlaunch/cuda"
)

// The rest of traceCases: the limit, the ends of traces, waits, nodes of graphs, and what Go's own tools show.

func traceLimit(t *T) {
	_, err := t.Driver.StartTrace(cuda.TraceLimit(0))
	t.Is(err, cuda.ErrInvalidValue)
	s, b := t.Stream(), t.Buffer(16)
	tr := t.StartTrace(cuda.TraceLimit(10))
	for range 5 {
		t.OK(s.Memset(b, 2))
		t.Host(s, func() {})
		t.Host(s, func() {}, cuda.Name("named"))
	}
	t.Sync(s)
	trace := t.StopTrace(tr)
	if len(trace.Spans) != 10 || trace.Dropped != 6 {
		t.Errorf("%d spans, %d dropped", len(trace.Spans), trace.Dropped)
	}
	for _, sp := range trace.Spans {
		if sp.End < 0 {
			t.Errorf("%+v", sp)
		}
	}
}

func traceStuck(t *T) {
	s, b := t.Stream(), t.Buffer(16)
	tr := t.StartTrace()
	t.OK(s.Memset(b, 1))
	g := t.Gate(s)
	<-g.Entered
	t.OK(s.Memset(b, 2))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	trace, err := tr.Stop(ctx)
	t.Is(err, cuda.ErrContextEnded, context.DeadlineExceeded)
	t.Contains(err, "host function", "queued at")
	t.sound(trace)
	sets, host := spansOf(trace, cuda.TraceMemset), t.only(trace, cuda.TraceHost)
	if len(sets) != 2 || sets[0].End < 0 || sets[1].End != -1 || host.Start < 0 || host.End != -1 {
		t.Errorf("%+v", trace.Spans)
	}
	g.Open()
	again, err := tr.Stop(t.Context())
	t.Is(err, cuda.ErrContextEnded)
	if again != trace {
		t.Error("another trace at the second Stop")
	}
	t.Sync(s)
}

func traceOne(t *T) {
	tr := t.StartTrace()
	_, err := t.Driver.StartTrace()
	t.Is(err, cuda.ErrIllegalState)
	_, err = tr.Stop(context.Context(nil))
	t.Is(err, cuda.ErrInvalidValue)
	_, err = (*cuda.Tracer)(nil).Stop(t.Context())
	t.Is(err, cuda.ErrInvalidValue)
	if trace := t.StopTrace(tr); len(trace.Spans) != 0 || trace.Spans == nil || trace.Streams == nil {
		t.Errorf("%+v", trace)
	}
	t.StopTrace(t.StartTrace())
}

func traceInside(t *T) {
	s, errs := t.Stream(), make(chan error, 2)
	tr := t.StartTrace()
	t.Host(s, func() {
		_, err := t.Driver.StartTrace()
		errs <- err
		_, err = tr.Stop(context.Background())
		errs <- err
	})
	t.Sync(s)
	t.Is(<-errs, cuda.ErrNotPermitted)
	t.Is(<-errs, cuda.ErrNotPermitted)
	t.StopTrace(tr)
}

func traceClose(t *T) {
	t.OpenDriver()
	s, err := t.Device(0).NewStream()
	t.OK(err)
	b, err := t.Device(0).Alloc(16)
	t.OK(err)
	tr, err := t.Driver.StartTrace()
	t.OK(err)
	t.OK(s.Memset(b, 1))
	t.Host(s, func() { time.Sleep(5 * time.Millisecond) })
	t.OK(t.Driver.Close())
	trace, err := tr.Stop(context.Background())
	t.OK(err)
	t.sound(trace)
	if m, h := t.only(trace, cuda.TraceMemset), t.only(trace, cuda.TraceHost); m.End < 0 || h.End < 0 {
		t.Errorf("%+v", trace.Spans)
	}
	_, err = t.Driver.StartTrace()
	t.Is(err, cuda.ErrClosed)
}

// traceLost: what has ended before the loss is known, and nothing is waited for that the loss has ended.
func traceLost(t *T) {
	lost(t)
	s, b := t.Stream(), t.Buffer(16)
	tr, err := t.Driver.StartTrace()
	t.OK(err)
	t.OK(s.Memset(b, 1))
	t.Sync(s)
	time.Sleep(50 * time.Millisecond) // times are collected from time to time
	t.FaultLater(s)
	ends := make(chan error, 1)
	t.Host(s, func() { t.Error("ran") }, cuda.OnDone(func(err error) { ends <- err }))
	Receive(t, "OnDone", ends)
	trace, err := tr.Stop(t.Context())
	t.OK(err)
	t.sound(trace)
	if m := t.only(trace, cuda.TraceMemset); m.End < 0 {
		t.Errorf("what had ended is %+v", m)
	}
	if h := t.only(trace, cuda.TraceHost); h.Error == "" || h.Start != -1 {
		t.Errorf("what never ran is %+v", h)
	}
	t.OK(t.Driver.Close())
}

// traceAgain starts and stops tracers while goroutines work; the census sees to the rest.
func traceAgain(t *T) {
	var all sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		s, e, b := t.Stream(), t.Event(), t.Buffer(64)
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				t.Check(s.Memset(b, 1))
				t.Check(cuda.HostLaunch(s, func() {}))
				t.Check(s.Record(e))
				t.Check(s.WaitEvent(e))
				if _, err := cuda.Go(s, func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
				t.Check(e.Sync())
			}
		})
	}
	for i := range 10 {
		tr := t.StartTrace()
		time.Sleep(time.Duration(i) * time.Millisecond)
		t.StopTrace(tr)
	}
	close(done)
	all.Wait()
}

func traceWaits(t *T) {
	s, other, b, e := t.Stream(), t.Stream(), t.Buffer(16), t.Event()
	tr := t.StartTrace()
	t.OK(s.Record(e))
	t.OK(other.WaitEvent(e))
	t.OK(s.Memset(b, 1))
	t.OK(other.WaitStream(s))
	t.OK(other.Memset(b, 2))
	began := time.Now()
	t.Spin(other, 5*time.Millisecond)
	t.Sync(other)
	took := time.Since(began)
	t.OK(e.Sync())
	t.OK(e.Wait(t.Context()))
	t.OK(s.Wait(t.Context()))
	task := t.Task(s, func(context.Context) error { return nil })
	t.Ends(task)
	trace := t.StopTrace(tr)
	record, sets, waits := t.only(trace, cuda.TraceRecord), spansOf(trace, cuda.TraceMemset), spansOf(trace, cuda.TraceWait)
	after := func(sp cuda.TraceSpan, want int) {
		t.Helper()
		if len(sp.After) != 1 || sp.After[0] != want {
			t.Errorf("waits for %v, want %d: %+v", sp.After, want, sp)
		}
	}
	after(waits[0], record.ID)
	after(waits[1], sets[0].ID)
	syncs := spansOf(trace, cuda.TraceSync)
	var ops []string
	for _, sp := range syncs {
		ops = append(ops, sp.Op)
	}
	if got := strings.Join(ops, " "); !strings.HasPrefix(got, "Stream.Sync Event.Sync Event.Wait Stream.Wait") {
		t.Fatalf("waits of goroutines: %s", got)
	}
	after(syncs[0], t.only(trace, cuda.TraceKernel).ID)
	after(syncs[1], record.ID)
	if wait := syncs[0].End - syncs[0].Start; wait > took || syncs[0].Stream == record.Stream || syncs[1].Stream != record.Stream {
		t.Errorf("of %v: %+v", took, syncs[:2])
	}
	for _, sp := range waits {
		if sp.Start < 0 || sp.End < 0 || sp.Stream == record.Stream {
			t.Errorf("%+v", sp)
		}
	}
}

// traceNodes launches an executable on two streams in turn.
func traceNodes(t *T) {
	s, other := t.Stream(), t.Stream()
	x := t.captureExec(func(b *cuda.GraphBuilder) {
		t.OK(cuda.HostLaunch(b, func() {}, cuda.Name("first")))
		t.OK(b.Task(func(context.Context) error { return nil }, cuda.Name("second")))
		t.HostCopy(b, make([]byte, 16), make([]byte, 16))
	})
	tr := t.StartTrace()
	for range 5 {
		t.OK(x.Launch(s))
		t.OK(x.Launch(other))
	}
	trace := t.StopTrace(tr)
	graphs, nodes := spansOf(trace, cuda.TraceGraph), spansOf(trace, cuda.TraceNode)
	if len(graphs) != 10 || len(nodes) != 20 {
		t.Fatalf("%d launches, %d runs", len(graphs), len(nodes))
	}
	launch := map[int]cuda.TraceSpan{}
	for _, g := range graphs {
		launch[g.ID] = g
	}
	runs := map[int]string{}
	for _, n := range nodes {
		g := launch[n.Parent]
		if n.Stream != g.Stream || n.Start < g.Start-trace.Accuracy || n.End > g.End+trace.Accuracy {
			t.Errorf("run and launch:\n%+v\n%+v", n, g)
		}
		runs[n.Parent] += n.Name + " "
	}
	for id, names := range runs {
		if names != "first second " {
			t.Errorf("launch %d ran %s", id, names)
		}
	}
}

// traceNodesBefore: runs of launches from before the trace are not taken for those in it.
func traceNodesBefore(t *T) {
	s := t.Stream()
	x := t.captureExec(func(b *cuda.GraphBuilder) { t.OK(cuda.HostLaunch(b, func() {})) })
	g := t.Gate(s)
	t.OK(x.Launch(s))
	t.OK(x.Launch(s))
	tr := t.StartTrace()
	t.OK(x.Launch(s))
	g.Open()
	trace := t.StopTrace(tr)
	if n, g := t.only(trace, cuda.TraceNode), t.only(trace, cuda.TraceGraph); n.Parent != g.ID || n.Start < g.Start-trace.Accuracy {
		t.Errorf("run and launch:\n%+v\n%+v", n, g)
	}
}

// traceLabels looks for labels where the profiler shows them.
func traceLabels(t *T) {
	labelled := func(name string) bool {
		var profile bytes.Buffer
		pprof.Lookup("goroutine").WriteTo(&profile, 1)
		return strings.Contains(profile.String(), `"cuda":"`+name+`"`)
	}
	s := t.Stream()
	look := func(name string) func() {
		return func() {
			if !labelled(name) {
				t.Errorf("no label %s inside", name)
			}
		}
	}
	for range 2 {
		t.Host(s, look("host label"), cuda.Name("host label"))
		t.OK(cuda.AddCallback(s, func(error) { look("callback label")() }, cuda.Name("callback label")))
		task := t.Task(s, func(context.Context) error { look("task label")(); return nil }, cuda.Name("task label"))
		t.Host(s, func() { panic("on purpose") }, cuda.Name("panic label"), cuda.OnDone(func(error) {}))
		t.Ends(task)
		x := t.captureExec(func(b *cuda.GraphBuilder) {
			t.OK(cuda.HostLaunch(b, look("node label"), cuda.Name("node label")))
			t.OK(b.Task(func(context.Context) error { look("graph task label")(); return nil }, cuda.Name("graph task label")))
		})
		t.OK(x.Launch(s))
	}
	t.Sync(s)
	gate := t.Gate(s) // on the goroutine that had the labels, where the driver keeps one
	<-gate.Entered
	for _, name := range []string{"host label", "callback label", "panic label", "node label"} {
		if labelled(name) {
			t.Errorf("label %s is there still", name)
		}
	}
}

// traceRuntime looks for names in an execution trace, which has them as they are.
func traceRuntime(t *T) {
	var out bytes.Buffer
	if err := gotrace.Start(&out); err != nil {
		t.Skipf("runtime/trace is in use: %v", err)
	}
	s := t.Stream()
	t.Host(s, func() {}, cuda.Name("a host function's name"))
	t.Host(s, func() {})
	t.OK(cuda.AddCallback(s, func(error) {}, cuda.Name("a callback's name")))
	t.Ends(t.Task(s, func(context.Context) error { return nil }, cuda.Name("a task's name")))
	t.Sync(s)
	gotrace.Stop()
	for _, name := range []string{"cuda host function", "a host function's name", "cuda callback", "a callback's name", "cuda task a task's name", "traceRuntime.func"} {
		if !bytes.Contains(out.Bytes(), []byte(name)) {
			t.Errorf("%q is not in the execution trace", name)
		}
	}
}
