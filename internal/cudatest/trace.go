package cudatest

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// traceCases: what a tracer notes, and that it changes nothing.
var traceCases = []Case{
	{ID: "TR-01", Name: "every kind of operation", Run: traceEveryKind},
	{ID: "TR-01", Name: "the order of streams", Run: traceOrder},
	{ID: "TR-01", Name: "refused calls", Run: traceRefused},
	{ID: "TR-01", Name: "started in mid-work", Run: traceMidWork},
	{ID: "TR-01", Name: "the host alone", Run: traceHostOnly},
	{ID: "TR-02", Name: "captures", Run: traceCaptures},
	{ID: "TR-02", Name: "behind waiting tasks", Run: traceBehindTasks},
	{ID: "TR-02", Name: "the default streams", Run: traceDefaultStreams},
	{ID: "TR-02", Name: "a context of the program's own", Run: traceOwnContext},
	{ID: "TR-03", Name: "limit", Run: traceLimit},
	{ID: "TR-04", Name: "work that does not end", Run: traceStuck},
	{ID: "TR-04", Name: "one at a time", Run: traceOne},
	{ID: "TR-04", Name: "inside a host function", Run: traceInside},
	{ID: "TR-04", Name: "Close stops it", Run: traceClose},
	{ID: "TR-04", Name: "a lost context", Child: true, Run: traceLost},
	{ID: "TR-05", Name: "from many goroutines, again and again", Run: traceAgain},
	{ID: "TR-06", Name: "waits", Run: traceWaits},
	{ID: "TR-07", Name: "functions of graphs", Run: traceNodes},
	{ID: "TR-07", Name: "launches that were there before", Run: traceNodesBefore},
	{ID: "TR-08", Name: "labels", Run: traceLabels},
	{ID: "TR-08", Name: "package runtime.trace", Run: traceRuntime},
}

// StartTrace starts a tracer, which ends with the case.
func (t *T) StartTrace(opts ...cuda.TraceOption) *cuda.Tracer {
	t.Helper()
	tr, err := t.Driver.StartTrace(opts...)
	t.OK(err)
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		tr.Stop(ended)
	})
	return tr
}

// StopTrace stops a tracer and checks what holds for every trace.
func (t *T) StopTrace(tr *cuda.Tracer) *cuda.Trace {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	trace, err := tr.Stop(ctx)
	t.OK(err)
	t.sound(trace)
	return trace
}

// sound checks what holds for every trace.
func (t *T) sound(trace *cuda.Trace) {
	t.Helper()
	for i, sp := range trace.Spans {
		device := sp.Device && sp.Start >= 0
		switch {
		case sp.ID != i+1, sp.Stream < 0, sp.Stream >= len(trace.Streams), sp.Name == "", sp.Op == "":
			t.Errorf("span %d: %+v", i+1, sp)
		case sp.Kind == cuda.TraceNode && (sp.Enqueued != -1 || sp.Parent == 0):
			t.Errorf("a node with a time of queuing, or without a launch: %+v", sp)
		case sp.Returned >= 0 && sp.Returned < sp.Enqueued, sp.End >= 0 && (sp.Start < 0 || sp.End < sp.Start):
			t.Errorf("it ended before it began: %+v", sp)
		case device && sp.Start < sp.Enqueued-trace.Accuracy, max(sp.Start, sp.End) > trace.Duration:
			t.Errorf("it began before it was queued, or never ended; accuracy %v: %+v", trace.Accuracy, sp)
		}
		for _, other := range append(sp.After, sp.Parent) {
			if other < 0 || other >= sp.ID {
				t.Errorf("refers to span %d: %+v", other, sp)
			}
		}
	}
}

// spansOf are the spans of a kind.
func spansOf(trace *cuda.Trace, kind cuda.TraceKind) (list []cuda.TraceSpan) {
	for _, sp := range trace.Spans {
		if sp.Kind == kind {
			list = append(list, sp)
		}
	}
	return list
}

// only is the one span of a kind.
func (t *T) only(trace *cuda.Trace, kind cuda.TraceKind) cuda.TraceSpan {
	t.Helper()
	list := spansOf(trace, kind)
	if len(list) != 1 {
		t.Fatalf("%d spans of kind %s in %+v", len(list), kind, trace.Spans)
	}
	return list[0]
}

// ordered wants spans of a stream to be one behind the other. Host functions are timed by another clock than the device's.
func (t *T) ordered(trace *cuda.Trace, spans []cuda.TraceSpan) {
	t.Helper()
	for i := 1; i < len(spans); i++ {
		before, sp := spans[i-1], spans[i]
		if before.Stream != sp.Stream || before.End < 0 || sp.Start < before.End-2*trace.Accuracy {
			t.Errorf("not behind each other, accuracy %v:\n%+v\n%+v", trace.Accuracy, before, sp)
		}
	}
}

// traceEveryKind queues each kind of operation once.
func traceEveryKind(t *T) {
	s, other, dst, src, e := t.Stream(), t.Stream(), t.Buffer(256), t.Buffer(256), t.Event()
	pinned, word := t.Pinned(256), t.Pinned(8)
	kernel, dev := t.Kernel("nothing"), t.Device(0)
	tr := t.StartTrace()
	t.OK(s.Launch(kernel, one))
	t.OK(s.Memset(dst, 1))
	t.OK(s.Memset32(src, 2))
	t.OK(s.CopyBuffer(dst, src))
	t.OK(cuda.CopyToHost(s, pinned.Bytes(), dst))
	t.OK(cuda.CopyToDevice(s, dst, make([]byte, 256)))
	t.OK(s.CopyRows(dst, src, cuda.Rows{Width: 16, Height: 4}))
	t.Host(s, func() {}, cuda.Name("mine"))
	t.HostCopy(s, make([]byte, 64), make([]byte, 64))
	t.OK(cuda.AddCallback(s, func(error) {}))
	task := t.Task(s, func(context.Context) error { return dev.DefaultStream().Memset(src, 3) })
	t.OK(s.WriteValue32(word.Word(0), 1))
	t.OK(s.Record(e))
	t.OK(other.WaitEvent(e))
	t.Ends(task)
	t.Sync(other)
	trace := t.StopTrace(tr)
	counts := map[cuda.TraceKind]int{
		cuda.TraceKernel: 1, cuda.TraceMemset: 3, cuda.TraceCopy: 4, cuda.TraceHost: 1, cuda.TraceNative: 1, cuda.TraceCallback: 1,
		cuda.TraceTask: 1, cuda.TraceMemOp: 1, cuda.TraceRecord: 1, cuda.TraceWait: 1,
	}
	for kind, want := range counts {
		if got := len(spansOf(trace, kind)); got != want {
			t.Errorf("%d spans of kind %s, want %d", got, kind, want)
		}
	}
	var queued []cuda.TraceSpan
	for _, sp := range trace.Spans {
		host := sp.Kind == cuda.TraceHost || sp.Kind == cuda.TraceCallback || sp.Kind == cuda.TraceTask || sp.Kind == cuda.TraceSync
		if sp.Device == host || sp.End < 0 || sp.Error != "" || !strings.Contains(sp.Site, ".go:") {
			t.Errorf("%+v", sp)
		}
		if sp.Stream == 0 && sp.Kind != cuda.TraceSync {
			queued = append(queued, sp)
		}
	}
	t.ordered(trace, queued)
	if k := t.only(trace, cuda.TraceKernel); k.Name != "nothing" || k.Op != "Stream.Launch" || !strings.HasPrefix(k.Site, "trace.go:") {
		t.Errorf("the kernel is %+v", k)
	}
	for _, c := range spansOf(trace, cuda.TraceCopy) { // which are called in more ways than one
		if !strings.HasPrefix(c.Site, "trace.go:") || c.Bytes == 0 {
			t.Errorf("a copy is %+v", c)
		}
	}
	if h := t.only(trace, cuda.TraceHost); h.Name != "mine" || h.Op != "HostLaunch" {
		t.Errorf("the host function is %+v", h)
	}
	if m := spansOf(trace, cuda.TraceMemset)[2]; m.Parent != t.only(trace, cuda.TraceTask).ID || m.Bytes != 256 {
		t.Errorf("what the task queued is %+v", m)
	}
	if trace.Driver != t.Driver.Name() || trace.Version != t.Driver.Version().String() || trace.Accuracy <= 0 || trace.Duration <= 0 {
		t.Errorf("%+v", trace)
	}
}

// traceOrder: goroutines with a stream each.
func traceOrder(t *T) {
	const goroutines, rounds = 8, 100
	var streams []*cuda.Stream
	var buffers []*cuda.Buffer
	for range goroutines {
		streams, buffers = append(streams, t.Stream()), append(buffers, t.Buffer(1<<12))
	}
	kernel := t.Kernel("nothing")
	tr := t.StartTrace()
	var all sync.WaitGroup
	for i, s := range streams {
		b := buffers[i]
		all.Go(func() {
			for range rounds {
				t.Check(s.Launch(kernel, one))
				t.Check(cuda.HostLaunch(s, func() {}))
				t.Check(s.Memset(b, 1))
			}
			t.Check(s.Sync())
		})
	}
	all.Wait()
	trace := t.StopTrace(tr)
	by := make([][]cuda.TraceSpan, len(trace.Streams))
	for _, sp := range trace.Spans {
		if sp.Kind != cuda.TraceSync {
			by[sp.Stream] = append(by[sp.Stream], sp)
		}
	}
	for i, list := range by {
		if len(list) != 3*rounds {
			t.Errorf("%d spans of stream %d (%s)", len(list), i, trace.Streams[i].Name)
		}
		t.ordered(trace, list)
	}
}

// Check notes an error, on any goroutine.
func (t *T) Check(err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func traceRefused(t *T) {
	s, b, kernel := t.Stream(), t.Buffer(16), t.Kernel("nothing")
	tr := t.StartTrace()
	if s.Launch(nil, one) == nil || s.CopyBuffer(b, nil) == nil || cuda.HostLaunch(s, nil) == nil {
		t.Error("not refused")
	}
	if err := s.Launch(kernel, cuda.Grid1D(1<<20, 1<<20)); err == nil {
		t.Error("a block of a million threads")
	}
	t.OK(s.Memset(b, 1))
	t.Host(s, func() { panic("on purpose") }, cuda.OnDone(func(error) {}))
	t.Sync(s)
	trace := t.StopTrace(tr)
	if k := t.only(trace, cuda.TraceKernel); k.Error == "" || k.Start != -1 || k.End != -1 || k.Returned < 0 {
		t.Errorf("what the driver refused is %+v", k)
	}
	if h := t.only(trace, cuda.TraceHost); !strings.Contains(h.Error, "on purpose") || h.End < 0 {
		t.Errorf("what panicked is %+v", h)
	}
	if m := t.only(trace, cuda.TraceMemset); m.Error != "" || m.End < 0 {
		t.Errorf("what was queued behind it is %+v", m)
	}
}

// traceMidWork: what was queued before is not there, and what comes behind it is.
func traceMidWork(t *T) {
	s, b := t.Stream(), t.Buffer(16)
	g := t.Gate(s)
	<-g.Entered
	t.OK(s.Memset(b, 1))
	tr := t.StartTrace()
	t.OK(s.Memset(b, 2))
	opened := time.Now()
	g.Open()
	trace := t.StopTrace(tr)
	if m := t.only(trace, cuda.TraceMemset); m.Start < opened.Sub(trace.Began)-trace.Accuracy {
		t.Errorf("it began before what was before it had ended: %+v", m)
	}
}

func traceHostOnly(t *T) {
	s, b := t.Stream(), t.Buffer(16)
	tr := t.StartTrace(cuda.TraceHostOnly())
	t.OK(s.Memset(b, 2))
	t.Host(s, func() {})
	t.Sync(s)
	trace := t.StopTrace(tr)
	if m := t.only(trace, cuda.TraceMemset); m.Start != -1 || m.End != -1 || m.Device || m.Returned < 0 {
		t.Errorf("%+v", m)
	}
	if h := t.only(trace, cuda.TraceHost); h.Start < 0 || h.End < 0 || trace.Accuracy != 0 {
		t.Errorf("accuracy %v, %+v", trace.Accuracy, h)
	}
}

// traceCaptures captures in Global mode while other goroutines queue traced work and their times are collected.
func traceCaptures(t *T) {
	s, other, b, beside, done := t.Stream(), t.Stream(), t.Buffer(64), t.Buffer(64), make(chan struct{})
	var all sync.WaitGroup
	tr := t.StartTrace()
	all.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				t.Check(other.Memset(beside, 1))
				time.Sleep(10 * time.Microsecond)
			}
		}
	})
	var runs atomic.Int32
	for range 5 {
		g, err := cuda.Capture(s, cuda.CaptureGlobal, func(c *cuda.GraphBuilder) error {
			for range 10 {
				t.OK(c.Memset(b, 2))
				t.OK(cuda.HostLaunch(c, func() { runs.Add(1) }))
				time.Sleep(time.Millisecond)
			}
			return nil
		})
		t.OK(err)
		if nodes, err := g.Nodes(); err != nil || len(nodes) != 20 {
			t.Errorf("%d nodes, %v", len(nodes), err)
		}
		x := t.Exec(g)
		t.OK(x.Launch(s))
		t.Sync(s)
		t.OK(g.Close())
	}
	close(done)
	all.Wait()
	trace := t.StopTrace(tr)
	if graphs, nodes := len(spansOf(trace, cuda.TraceGraph)), len(spansOf(trace, cuda.TraceNode)); graphs != 5 || nodes != 50 || runs.Load() != 50 {
		t.Errorf("%d launches, %d functions of %d", graphs, nodes, runs.Load())
	}
	for _, sp := range trace.Spans {
		if strings.HasPrefix(sp.Op, "GraphBuilder") {
			t.Errorf("what is captured is traced: %+v", sp)
		}
	}
}

// traceBehindTasks: what waits in the library is marked in its turn.
func traceBehindTasks(t *T) {
	t.OpenDriver(cuda.MaxHeldStreams(1))
	first, second, third := t.Stream(), t.Stream(), t.Stream()
	log := t.DeviceLog(8)
	b, e := t.Buffer(64), t.Event()
	tr := t.StartTrace()
	g := t.TaskGate(first)
	<-g.Entered
	task := t.Task(second, func(context.Context) error { return nil })
	log.Add(second, 1)
	t.OK(second.Memset(b, 1))
	t.Host(second, func() {})
	t.OK(second.Record(e))
	t.OK(third.WaitEvent(e))
	log.Add(third, 2)
	t.OK(third.WaitStream(second))
	log.Add(third, 3)
	opened := time.Now()
	g.Open()
	t.Ends(task)
	t.Sync(third)
	trace := t.StopTrace(tr)
	log.Want(1, 2, 3)
	for _, sp := range trace.Spans {
		if late := opened.Sub(trace.Began) - trace.Accuracy; sp.Kind != cuda.TraceTask && (sp.Start >= 0 && sp.Start < late && sp.Returned > sp.Start || sp.End < late) {
			t.Errorf("it began before its turn came: %+v", sp)
		}
		if sp.Kind != cuda.TraceTask && sp.Kind != cuda.TraceSync && sp.Returned > opened.Sub(trace.Began) {
			t.Errorf("its caller waited: %+v", sp)
		}
	}
	waits := spansOf(trace, cuda.TraceWait)
	if len(waits) != 2 || len(waits[0].After) != 1 || waits[0].After[0] != t.only(trace, cuda.TraceRecord).ID {
		t.Errorf("the waits are %+v", waits)
	}
}

// traceDefaultStreams: marks on the legacy stream keep its rules.
func traceDefaultStreams(t *T) {
	legacy, blocking := t.Device(0).DefaultStream(), t.Stream(cuda.Blocking())
	log := t.DeviceLog(40)
	tr := t.StartTrace()
	var want []uint64
	for i := range uint64(40) {
		s := legacy
		if i%2 == 1 {
			s = blocking
		}
		t.Spin(s, time.Duration(40-i)*5*time.Microsecond)
		log.Add(s, i)
		want = append(want, i)
	}
	t.OK(t.Device(0).WithThreadStream(func(s *cuda.Stream) error { return s.Launch(t.Kernel("nothing"), one) }))
	t.Sync(legacy)
	trace := t.StopTrace(tr)
	log.Want(want...)
	names := map[string]bool{}
	for _, s := range trace.Streams {
		names[s.Name] = true
	}
	if len(trace.Streams) != 3 || !names["legacy default stream"] || !names["per-thread default stream"] {
		t.Errorf("the streams are %v", trace.Streams)
	}
	var chain []cuda.TraceSpan
	for _, sp := range spansOf(trace, cuda.TraceKernel) {
		if sp.Stream != 2 {
			sp.Stream = 0
			chain = append(chain, sp)
		}
	}
	t.ordered(trace, chain)
}

// traceOwnContext: a context is closed while it is traced.
func traceOwnContext(t *T) {
	tr := t.StartTrace()
	for range 3 {
		c := t.NewContext()
		s, err := c.NewStream()
		t.OK(err)
		b, err := c.Alloc(64)
		t.OK(err)
		t.OK(s.Memset(b, 1))
		t.OK(s.Sync())
		t.OK(b.Close())
		t.OK(s.Close())
		t.OK(c.Close())
	}
	trace := t.StopTrace(tr)
	for _, m := range spansOf(trace, cuda.TraceMemset) {
		if m.End < 0 {
			t.Errorf("%+v", m)
		}
	}
	if len(spansOf(trace, cuda.TraceMemset)) != 3 || len(trace.Streams) != 3 {
		t.Errorf("%+v", trace)
	}
}
