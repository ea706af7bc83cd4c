package softcuda_test

import (
	"context"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/nativetest"
	"github.com/hostlaunch/cuda/softcuda"
)

// lab is what a program of the corpus works with: streams a, b and c, blocking streams p and q, device memory x, y and z that has been
// written to, and pinned memory h and g.
type lab struct {
	*testing.T
	check         *softcuda.Check
	drv           *cuda.Driver
	dev           *cuda.Device
	a, b, c, p, q *cuda.Stream
	x, y, z       *cuda.Buffer
	h, g          []byte
	e, f          *cuda.Event
	kernels       map[string]*cuda.Kernel
}

const corpusPTX = `.version 8.0
.target sm_90
.entry fill(.param .u64 to)
.entry sum(.param .u64 from, .param .u64 to)
.entry inc(.param .u64 p)
.entry count(.param .u64 p)
.entry half(.param .u64 p, .param .u32 upper)
`

var corpusKernels = softcuda.Kernels{
	"fill": func(l *softcuda.Launch) {
		for i := range softcuda.Slice[byte](l, 0, -1) {
			softcuda.Slice[byte](l, 0, -1)[i] = 7
		}
	},
	"sum":   func(l *softcuda.Launch) { softcuda.Slice[byte](l, 1, 1)[0] = softcuda.Slice[byte](l, 0, -1)[0] },
	"inc":   func(l *softcuda.Launch) { softcuda.Slice[byte](l, 0, 8)[0]++ },
	"count": func(l *softcuda.Launch) { softcuda.Slice[byte](l, 0, 8) },
	"half":  func(l *softcuda.Launch) { softcuda.Slice[byte](l, 0, 64)[softcuda.Arg[uint32](l, 1)*32]++ },
}

var corpusArguments = map[string][]softcuda.ArgKind{
	"fill": {softcuda.Out}, "sum": {softcuda.In, softcuda.Out}, "count": {softcuda.Atomic},
}

func (l *lab) launch(on cuda.Queue, name string, args ...any) {
	l.Helper()
	one := cuda.LaunchConfig{Grid: cuda.Dim3{X: 1, Y: 1, Z: 1}, Block: cuda.Dim3{X: 1, Y: 1, Z: 1}}
	noErr(l, on.Launch(l.kernels[name], one, args...))
}
func (l *lab) fill(on cuda.Queue, to *cuda.Buffer)      { l.Helper(); l.launch(on, "fill", to) }
func (l *lab) sum(on cuda.Queue, from, to *cuda.Buffer) { l.Helper(); l.launch(on, "sum", from, to) }
func (l *lab) inc(on cuda.Queue, b *cuda.Buffer)        { l.Helper(); l.launch(on, "inc", b) }
func (l *lab) up(on cuda.Queue, to *cuda.Buffer, from []byte) {
	l.Helper()
	noErr(l, cuda.CopyToDevice(on, to, from))
}
func (l *lab) down(on cuda.Queue, to []byte, from *cuda.Buffer) {
	l.Helper()
	noErr(l, cuda.CopyToHost(on, to, from))
}
func (l *lab) set(on *cuda.Stream, b *cuda.Buffer) { l.Helper(); noErr(l, on.Memset(b, 1)) }
func (l *lab) copy(on *cuda.Stream, to, from *cuda.Buffer) {
	l.Helper()
	noErr(l, on.CopyBuffer(to, from))
}
func (l *lab) host(on cuda.Queue, fn func())        { l.Helper(); noErr(l, cuda.HostLaunch(on, fn)) }
func (l *lab) sync(s *cuda.Stream)                  { l.Helper(); noErr(l, s.Sync()) }
func (l *lab) after(s, other *cuda.Stream)          { l.Helper(); noErr(l, s.WaitStream(other)) }
func (l *lab) record(s *cuda.Stream, e *cuda.Event) { l.Helper(); noErr(l, s.Record(e)) }
func (l *lab) wait(s *cuda.Stream, e *cuda.Event)   { l.Helper(); noErr(l, s.WaitEvent(e)) }
func (l *lab) hostCopy(on cuda.Queue, to, from []byte) {
	l.Helper()
	noErr(l, cuda.HostCopy(on, cuda.HostSlice(to), cuda.HostSlice(from)))
}

// count has a native function add to the first word of b.
func (l *lab) count(on cuda.Queue, b []byte) {
	l.Helper()
	noErr(l, cuda.HostLaunchNative(on, cuda.NativeFunc(nativetest.Func(nativetest.Add)), cuda.NativePointer(unsafe.Pointer(&b[0]))))
}

// conditional is a graph that always sets x and has a kernel add to y, both in a conditional.
func (l *lab) conditional() *cuda.GraphExec {
	l.Helper()
	g := must(l.dev.NewGraph())
	cond := must(g.NewCondition(cuda.AtLaunch(1)))
	_, then, err := g.AddIf(cond)
	noErr(l, err)
	one := cuda.LaunchConfig{Grid: cuda.Dim3{X: 1, Y: 1, Z: 1}, Block: cuda.Dim3{X: 1, Y: 1, Z: 1}}
	must(then.AddNode(cuda.KernelParams(l.kernels["inc"], one, l.y), must(then.AddNode(cuda.MemsetParams(l.x, 1)))))
	return must(g.Instantiate())
}
func (l *lab) reads(b []byte)  { l.check.Reads(b) }
func (l *lab) writes(b []byte) { l.check.Writes(b); b[0]++ }
func (l *lab) part(b *cuda.Buffer, from, n int) *cuda.Buffer {
	l.Helper()
	return must(b.Slice(from, n))
}
func (l *lab) graph(on *cuda.Stream, build func(g *cuda.GraphBuilder)) *cuda.GraphExec {
	l.Helper()
	g, err := cuda.Capture(on, cuda.CaptureRelaxed, func(g *cuda.GraphBuilder) error { build(g); return nil })
	noErr(l, err)
	return must(g.Instantiate())
}

// program is one of the corpus. A wrong one names what the two accesses are, in the order in which they are queued.
type program struct {
	name          string
	first, second string // parts of the report's; empty for a right program
	run           func(l *lab)
}

func newLab(t *testing.T, seed uint64) *lab {
	l := &lab{T: t, check: &softcuda.Check{IgnoreLeaks: true}, kernels: map[string]*cuda.Kernel{}}
	l.drv, l.dev = openSeeded(t, softcuda.Options{Seed: seed, Check: l.check, Kernels: corpusKernels, Arguments: corpusArguments})
	s := newStreams(t, l.dev, 3)
	l.a, l.b, l.c = s[0], s[1], s[2]
	l.p, l.q = must(l.dev.NewStream(cuda.Blocking())), must(l.dev.NewStream(cuda.Blocking()))
	l.e, l.f = must(l.dev.NewEvent()), must(l.dev.NewEvent())
	for _, b := range []**cuda.Buffer{&l.x, &l.y, &l.z} {
		*b = must(l.dev.Alloc(64))
		noErr(t, l.a.Memset(*b, 0))
	}
	noErr(t, l.a.Sync())
	l.h, l.g = must(l.dev.AllocPinned(64)).Bytes(), must(l.dev.AllocPinned(64)).Bytes()
	mod := must(l.dev.LoadModule([]byte(corpusPTX)))
	for name := range corpusKernels {
		l.kernels[name] = must(mod.Kernel(name))
	}
	return l
}

// run runs a program and gives what was found.
func (p program) reports(t *testing.T, seed uint64) []softcuda.Report {
	l := newLab(t, seed)
	p.run(l)
	for _, s := range []*cuda.Stream{l.a, l.b, l.c, l.p, l.q, l.dev.DefaultStream()} {
		noErr(t, s.Sync())
	}
	noErr(t, l.drv.Close())
	return l.check.Reports()
}

// firstOfWrong is the first seed for programs that do two things at once which they must not. A device without a seed does so too, which
// the race detector tells of.
func firstOfWrong() uint64 {
	if raceDetector {
		return 1
	}
	return 0
}

// TestCorpusWrong wants each wrong program reported, with the right pair, whatever the schedule.
func TestCorpusWrong(t *testing.T) {
	for _, p := range wrongPrograms {
		t.Run(p.name, func(t *testing.T) {
			for seed := firstOfWrong(); seed < 8; seed++ {
				list := p.reports(t, seed)
				if len(list) != 1 || !strings.Contains(list[0].First, p.first) || !strings.Contains(list[0].Second, p.second) || !strings.Contains(list[0].First, "corpus_test.go:") {
					t.Errorf("seed %d: want %q and %q, got %v", seed, p.first, p.second, list)
				}
			}
		})
	}
	t.Logf("%d wrong programs", len(wrongPrograms))
}

// TestCorpusRight wants no report of a right program, whatever the schedule.
func TestCorpusRight(t *testing.T) {
	for _, p := range rightPrograms {
		t.Run(p.name, func(t *testing.T) {
			for seed := range uint64(8) {
				if list := p.reports(t, seed); len(list) > 0 {
					t.Errorf("seed %d: %v", seed, list)
				}
			}
		})
	}
	t.Logf("%d right programs", len(rightPrograms))
}

var wrongPrograms = []program{
	{"two streams write, no wait", "memset", "memset", func(l *lab) { l.set(l.a, l.x); l.set(l.b, l.x) }},
	{"kernel reads what another stream writes", "kernel fill", "kernel sum", func(l *lab) { l.fill(l.a, l.x); l.sum(l.b, l.x, l.y) }},
	{"kernel writes what another stream reads", "kernel sum", "kernel fill", func(l *lab) { l.sum(l.a, l.x, l.y); l.fill(l.b, l.x) }},
	{"copy of what another stream's kernel writes", "kernel inc", "copy", func(l *lab) { l.inc(l.a, l.x); l.copy(l.b, l.y, l.x) }},
	{"event recorded too early", "memset", "copy", func(l *lab) { l.record(l.a, l.e); l.set(l.a, l.x); l.wait(l.b, l.e); l.copy(l.b, l.y, l.x) }},
	{"event waited for too late", "memset", "copy", func(l *lab) { l.set(l.a, l.x); l.record(l.a, l.e); l.copy(l.b, l.y, l.x); l.wait(l.b, l.e) }},
	{"event never recorded", "memset", "copy", func(l *lab) { l.set(l.a, l.x); l.wait(l.b, l.e); l.copy(l.b, l.y, l.x) }},
	{"the wrong event", "memset", "copy", func(l *lab) {
		l.record(l.a, l.f)
		l.set(l.a, l.x)
		l.record(l.a, l.e)
		l.wait(l.b, l.f)
		l.copy(l.b, l.y, l.x)
	}},
	{"the wrong stream waits", "memset", "copy", func(l *lab) { l.set(l.a, l.x); l.after(l.c, l.a); l.copy(l.b, l.y, l.x) }},
	{"the wrong stream is waited for", "memset", "copy", func(l *lab) { l.set(l.a, l.x); l.after(l.b, l.c); l.copy(l.b, l.y, l.x) }},
	{"WaitStream before the work", "memset", "copy", func(l *lab) { l.after(l.b, l.a); l.set(l.a, l.x); l.copy(l.b, l.y, l.x) }},
	{"waits the wrong way round", "memset", "copy", func(l *lab) { l.set(l.a, l.x); l.after(l.a, l.b); l.copy(l.b, l.y, l.x) }},
	{"the second of two writers is not waited for", "memset", "copy", func(l *lab) {
		l.fill(l.a, l.y)
		l.set(l.b, l.x)
		l.after(l.c, l.a)
		l.copy(l.c, l.y, l.x)
		l.sync(l.c)
	}},
	{"the wrong stream is synced", "memset", "copy", func(l *lab) { l.set(l.a, l.x); l.sync(l.c); l.copy(l.b, l.y, l.x) }},
	{"ping-pong without the way back", "kernel sum", "kernel fill", func(l *lab) {
		l.fill(l.a, l.x)
		l.after(l.b, l.a)
		l.sum(l.b, l.x, l.y)
		l.fill(l.a, l.x)
	}},
	{"overlapping parts", "memset", "memset", func(l *lab) { l.set(l.a, l.part(l.x, 0, 33)); l.set(l.b, l.part(l.x, 32, 32)) }},
	{"halves by a kernel that takes the whole", "kernel half", "kernel half", func(l *lab) {
		l.launch(l.a, "half", l.x, uint32(0))
		l.launch(l.b, "half", l.x, uint32(1))
	}},
	{"non-blocking stream and the legacy stream", "memset", "copy", func(l *lab) { l.set(l.dev.DefaultStream(), l.x); l.copy(l.a, l.y, l.x) }},
	{"the legacy stream behind a non-blocking one", "memset", "copy", func(l *lab) { l.set(l.a, l.x); l.copy(l.dev.DefaultStream(), l.y, l.x) }},
	{"two blocking streams", "memset", "copy", func(l *lab) { l.set(l.p, l.x); l.copy(l.q, l.y, l.x) }},
	{"copy to the host, read before sync", "copy", "the program", func(l *lab) { l.down(l.a, l.h, l.x); l.reads(l.h) }},
	{"copy to the host, another stream synced", "copy", "the program", func(l *lab) { l.down(l.a, l.h, l.x); l.sync(l.b); l.reads(l.h) }},
	{"copy to the host, event from before it", "copy", "the program", func(l *lab) {
		l.record(l.a, l.e)
		l.down(l.a, l.h, l.x)
		noErr(l, l.e.Sync())
		l.reads(l.h)
	}},
	{"copy to the host, overwritten before sync", "copy", "the program", func(l *lab) { l.down(l.a, l.h, l.x); l.check.Writes(l.h[8:16]) }},
	{"staging buffer reused too early", "copy", "the program", func(l *lab) { l.up(l.a, l.x, l.h); l.writes(l.h); l.up(l.a, l.y, l.g) }},
	{"staging buffer reused after the wrong sync", "copy", "the program", func(l *lab) { l.up(l.a, l.x, l.h); l.sync(l.b); l.writes(l.h) }},
	{"staging buffer reused, nobody told", "copy", "the program writes", func(l *lab) { l.up(l.a, l.x, l.h); l.h[0]++ }},
	{"staging buffer reused before a copy into it, nobody told", "copy", "the program writes", func(l *lab) {
		l.set(l.a, l.y)
		l.up(l.a, l.x, l.h)
		l.h[0]++
		l.down(l.a, l.h, l.y)
	}},
	{"two staging buffers, three copies", "copy", "the program", func(l *lab) {
		l.up(l.a, l.x, l.h)
		l.record(l.a, l.e)
		l.up(l.a, l.y, l.g)
		noErr(l, l.e.Sync())
		l.writes(l.g)
	}},
	{"copies of two streams into one host buffer", "copy", "copy", func(l *lab) { l.down(l.a, l.h, l.x); l.down(l.b, l.h, l.y) }},
	{"copy to the host and back on another stream", "copy", "copy", func(l *lab) { l.down(l.a, l.h, l.x); l.up(l.b, l.y, l.h) }},
	{"host function reads what another stream copies", "copy", "host function", func(l *lab) { l.down(l.a, l.h, l.x); l.host(l.b, func() { l.reads(l.h) }) }},
	{"host function writes what a copy reads", "copy", "host function", func(l *lab) { l.up(l.a, l.x, l.h); l.host(l.b, func() { l.check.Writes(l.h) }) }},
	{"host function too early in its stream", "host function", "copy", func(l *lab) {
		gate := make(chan struct{})
		l.host(l.a, func() { <-gate; l.reads(l.h) })
		l.down(l.b, l.h, l.x)
		close(gate)
	}},
	{"graph: an edge is missing", "memset", "copy", func(l *lab) {
		x := l.graph(l.a, func(g *cuda.GraphBuilder) {
			side := must(g.Split(1))
			noErr(l, g.Memset(l.x, 1))
			noErr(l, side[0].CopyBuffer(l.y, l.x))
			noErr(l, g.Join(side...))
		})
		noErr(l, x.Launch(l.a))
	}},
	{"graph and a stream beside it", "memset", "copy", func(l *lab) {
		x := l.graph(l.a, func(g *cuda.GraphBuilder) { noErr(l, g.Memset(l.x, 1)) })
		noErr(l, x.Launch(l.a))
		l.copy(l.b, l.y, l.x)
	}},
	{"two graphs on two streams", "memset", "memset", func(l *lab) {
		x := l.graph(l.a, func(g *cuda.GraphBuilder) { noErr(l, g.Memset(l.x, 1)) })
		y := l.graph(l.a, func(g *cuda.GraphBuilder) { noErr(l, g.Memset(l.x, 2)) })
		noErr(l, x.Launch(l.a))
		noErr(l, y.Launch(l.b))
	}},
	{"graph with a copy, read before sync", "copy", "the program", func(l *lab) {
		x := l.graph(l.a, func(g *cuda.GraphBuilder) { l.down(g, l.h, l.x) })
		noErr(l, x.Launch(l.a))
		l.reads(l.h)
	}},
	{"task beside the work of another stream", "copy", "the program", func(l *lab) {
		l.down(l.b, l.h, l.x)
		task := must(cuda.Go(l.a, func(context.Context) error { l.reads(l.h); return nil }))
		noErr(l, task.Wait(context.Background()))
	}},
	{"query that said no", "copy", "the program", func(l *lab) {
		gate := make(chan struct{})
		l.host(l.b, func() { <-gate })
		l.down(l.a, l.h, l.x)
		l.b.Query()
		l.reads(l.h)
		close(gate)
	}},
	{"wait-value of another word", "memset", "copy", func(l *lab) {
		l.set(l.a, l.x)
		noErr(l, l.a.WriteValue32(l.z.Word(0), 1))
		noErr(l, l.b.WaitValue32(l.z.Word(4), cuda.ValueEQ, 0))
		l.copy(l.b, l.y, l.x)
	}},
	{"write-value before the work", "memset", "copy", func(l *lab) {
		noErr(l, l.a.WriteValue32(l.z.Word(0), 1))
		l.set(l.a, l.x)
		noErr(l, l.b.WaitValue32(l.z.Word(0), cuda.ValueEQ, 1))
		l.copy(l.b, l.y, l.x)
	}},
	{"HostCopy of what another stream copies to the host", "copy", "host function", func(l *lab) {
		l.down(l.a, l.h, l.x)
		l.hostCopy(l.b, l.g, l.h)
	}},
	{"HostCopy to what a copy reads", "host function", "copy", func(l *lab) {
		l.hostCopy(l.a, l.h, l.g)
		l.up(l.b, l.x, l.h)
	}},
	{"HostCopy of a graph beside a stream", "host function", "copy", func(l *lab) {
		noErr(l, l.graph(l.a, func(g *cuda.GraphBuilder) { l.hostCopy(g, l.h, l.g) }).Launch(l.a))
		l.down(l.b, l.h, l.x)
	}},
	{"HostCopy, read before sync", "host function", "the program", func(l *lab) {
		l.hostCopy(l.a, l.g, l.h)
		l.reads(l.g)
	}},
	{"native function beside a copy to the host", "copy", "host function", func(l *lab) {
		l.down(l.a, l.h, l.x)
		l.count(l.b, l.h)
	}},
	{"body of a conditional beside a copy", "memset in a conditional", "copy", func(l *lab) {
		noErr(l, l.conditional().Launch(l.a))
		l.copy(l.b, l.z, l.x)
	}},
	{"kernel in a conditional beside a copy", "copy", "kernel inc in a conditional", func(l *lab) {
		l.copy(l.b, l.z, l.y)
		noErr(l, l.conditional().Launch(l.a))
	}},
	{"managed memory read before sync", "kernel inc", "the program", func(l *lab) {
		m := must(l.dev.AllocManaged(64, cuda.AttachGlobal))
		l.inc(l.a, m.Buffer())
		l.reads(m.Bytes())
	}},
	{"managed memory of two streams", "memset", "kernel inc", func(l *lab) {
		m := must(l.dev.AllocManaged(64, cuda.AttachGlobal)).Buffer()
		l.set(l.a, m)
		l.inc(l.b, m)
	}},
	{"device memory read before it is written", "copy", "", func(l *lab) { l.down(l.a, l.h, must(l.dev.Alloc(64))) }},
	{"device memory written in part", "kernel sum", "", func(l *lab) {
		b := must(l.dev.Alloc(64))
		l.set(l.a, l.part(b, 0, 32))
		l.sum(l.a, b, l.y)
	}},
}

var rightPrograms = []program{
	{name: "one stream", run: func(l *lab) { l.set(l.a, l.x); l.set(l.a, l.x); l.copy(l.a, l.y, l.x) }},
	{name: "two streams, two buffers", run: func(l *lab) { l.set(l.a, l.x); l.set(l.b, l.y) }},
	{name: "two readers", run: func(l *lab) { l.sum(l.a, l.x, l.y); l.sum(l.b, l.x, l.z) }},
	{name: "event", run: func(l *lab) { l.fill(l.a, l.x); l.record(l.a, l.e); l.wait(l.b, l.e); l.sum(l.b, l.x, l.y) }},
	{name: "event recorded twice", run: func(l *lab) {
		l.record(l.a, l.e)
		l.set(l.a, l.x)
		l.record(l.a, l.e)
		l.wait(l.b, l.e)
		l.copy(l.b, l.y, l.x)
	}},
	{name: "WaitStream", run: func(l *lab) { l.fill(l.a, l.x); l.after(l.b, l.a); l.copy(l.b, l.y, l.x) }},
	{name: "by way of a third stream", run: func(l *lab) { l.set(l.a, l.x); l.after(l.c, l.a); l.after(l.b, l.c); l.copy(l.b, l.y, l.x) }},
	{name: "both writers are waited for", run: func(l *lab) {
		l.set(l.a, l.part(l.x, 0, 32))
		l.set(l.b, l.part(l.x, 32, 32))
		l.after(l.c, l.a)
		l.after(l.c, l.b)
		l.copy(l.c, l.y, l.x)
	}},
	{name: "sync between", run: func(l *lab) { l.set(l.a, l.x); l.sync(l.a); l.copy(l.b, l.y, l.x) }},
	{name: "event sync between", run: func(l *lab) { l.set(l.a, l.x); l.record(l.a, l.e); noErr(l, l.e.Sync()); l.copy(l.b, l.y, l.x) }},
	{name: "wait of the program between", run: func(l *lab) { l.set(l.a, l.x); noErr(l, l.a.Wait(context.Background())); l.copy(l.b, l.y, l.x) }},
	{name: "query that said yes", run: func(l *lab) {
		l.set(l.a, l.x)
		for done := false; !done; done = must(l.a.Query()) {
			time.Sleep(time.Microsecond)
		}
		l.copy(l.b, l.y, l.x)
	}},
	{name: "ping-pong", run: func(l *lab) {
		for range 3 {
			l.fill(l.a, l.x)
			l.after(l.b, l.a)
			l.sum(l.b, l.x, l.y)
			l.after(l.a, l.b)
		}
	}},
	{name: "parts side by side", run: func(l *lab) { l.set(l.a, l.part(l.x, 0, 32)); l.set(l.b, l.part(l.x, 32, 32)) }},
	{name: "kernels on parts", run: func(l *lab) { l.inc(l.a, l.part(l.x, 0, 32)); l.inc(l.b, l.part(l.x, 32, 32)) }},
	{name: "rows side by side", run: func(l *lab) {
		rows := cuda.Rows{Width: 4, Height: 8, DstPitch: 8, SrcPitch: 8}
		noErr(l, l.a.CopyRows(l.part(l.x, 0, 60), l.y, rows))
		noErr(l, l.b.CopyRows(l.part(l.x, 4, 60), l.y, rows))
	}},
	{name: "atomic kernels", run: func(l *lab) { l.launch(l.a, "count", l.x); l.launch(l.b, "count", l.x) }},
	{name: "blocking stream and the legacy stream", run: func(l *lab) { l.set(l.dev.DefaultStream(), l.x); l.copy(l.p, l.y, l.x) }},
	{name: "the legacy stream between blocking ones", run: func(l *lab) {
		l.set(l.p, l.x)
		l.set(l.dev.DefaultStream(), l.z)
		l.copy(l.q, l.y, l.x)
	}},
	{name: "copy to the host, sync, read", run: func(l *lab) { l.down(l.a, l.h, l.x); l.sync(l.a); l.reads(l.h) }},
	{name: "copy to the host, event, read", run: func(l *lab) { l.down(l.a, l.h, l.x); l.record(l.a, l.e); noErr(l, l.e.Sync()); l.reads(l.h) }},
	{name: "copy to the host, later stream synced", run: func(l *lab) { l.down(l.a, l.h, l.x); l.after(l.b, l.a); l.sync(l.b); l.reads(l.h) }},
	{name: "copy to the host, another part read", run: func(l *lab) { l.down(l.a, l.h[:32], l.part(l.x, 0, 32)); l.reads(l.h[32:]) }},
	{name: "read of what is only copied from", run: func(l *lab) { l.up(l.a, l.x, l.h); l.reads(l.h) }},
	{name: "staging buffer reused after sync", run: func(l *lab) { l.up(l.a, l.x, l.h); l.sync(l.a); l.writes(l.h); l.up(l.a, l.y, l.h) }},
	{name: "staging buffer reused, nobody told", run: func(l *lab) { l.up(l.a, l.x, l.h); l.sync(l.a); l.h[0]++; l.up(l.a, l.y, l.h) }},
	{name: "two staging buffers", run: func(l *lab) {
		for range 3 {
			l.up(l.a, l.x, l.h)
			l.record(l.a, l.e)
			l.up(l.a, l.y, l.g)
			noErr(l, l.e.Sync())
			l.writes(l.h)
			l.sync(l.a)
			l.writes(l.g)
		}
	}},
	{name: "the program reads after OnDone", run: func(l *lab) {
		done := make(chan struct{})
		l.down(l.a, l.h, l.x)
		noErr(l, cuda.HostLaunch(l.a, func() {}, cuda.OnDone(func(error) { close(done) })))
		<-done
		l.reads(l.h)
	}},
	{name: "a host function tells the program", run: func(l *lab) {
		done := make(chan struct{})
		l.down(l.a, l.h, l.x)
		l.host(l.a, func() { close(done) })
		<-done
		l.reads(l.h)
	}},
	{name: "a callback tells the program", run: func(l *lab) {
		done := make(chan struct{})
		l.down(l.a, l.h, l.x)
		noErr(l, cuda.AddCallback(l.a, func(error) { close(done) }))
		<-done
		l.reads(l.h)
	}},
	{name: "the program is done before a gate opens", run: func(l *lab) {
		gate := make(chan struct{})
		l.host(l.a, func() { <-gate })
		l.up(l.a, l.x, l.h)
		l.writes(l.h)
		close(gate)
	}},
	{name: "host function reads behind its copy", run: func(l *lab) { l.down(l.a, l.h, l.x); l.host(l.a, func() { l.reads(l.h) }) }},
	{name: "host function writes before the copy", run: func(l *lab) { l.host(l.a, func() { l.writes(l.h) }); l.up(l.a, l.x, l.h) }},
	{name: "host function refills behind the copy", run: func(l *lab) {
		l.up(l.a, l.x, l.h)
		l.host(l.a, func() { l.writes(l.h) })
		l.up(l.a, l.y, l.h)
	}},
	{name: "host function of another stream, behind an event", run: func(l *lab) { l.down(l.a, l.h, l.x); l.after(l.b, l.a); l.host(l.b, func() { l.reads(l.h) }) }},
	{name: "callback reads behind its copy", run: func(l *lab) {
		l.down(l.a, l.h, l.x)
		noErr(l, cuda.AddCallback(l.a, func(error) { l.reads(l.h) }))
	}},
	{name: "copy up and down on one stream", run: func(l *lab) {
		l.set(l.a, l.y)
		l.up(l.a, l.x, l.h)
		l.down(l.a, l.h, l.y)
	}},
	{name: "copy up and a write-value there, on one stream", run: func(l *lab) {
		words := must(l.dev.AllocPinned(64))
		l.up(l.a, l.x, words.Bytes())
		noErr(l, l.a.WriteValue64(words.Word(56), 1<<32))
	}},
	{name: "copy down and up on one stream", run: func(l *lab) { l.down(l.a, l.h, l.x); l.up(l.a, l.y, l.h) }},
	{name: "graph with its edges", run: func(l *lab) {
		x := l.graph(l.a, func(g *cuda.GraphBuilder) {
			noErr(l, g.Memset(l.x, 1))
			side := must(g.Split(1))
			noErr(l, side[0].CopyBuffer(l.y, l.x))
			noErr(l, g.CopyBuffer(l.z, l.x))
			noErr(l, g.Join(side...))
			l.sum(g, l.y, l.z)
		})
		noErr(l, x.Launch(l.a))
		noErr(l, x.Launch(l.a))
	}},
	{name: "graph launched twice on two streams", run: func(l *lab) {
		x := l.graph(l.a, func(g *cuda.GraphBuilder) { noErr(l, g.Memset(l.x, 1)) })
		noErr(l, x.Launch(l.a))
		noErr(l, x.Launch(l.b))
	}},
	{name: "graph, and its stream waited for", run: func(l *lab) {
		x := l.graph(l.a, func(g *cuda.GraphBuilder) { l.down(g, l.h, l.x) })
		noErr(l, x.Launch(l.a))
		l.after(l.b, l.a)
		l.copy(l.b, l.x, l.y)
		l.sync(l.b)
		l.reads(l.h)
	}},
	{name: "task behind the work", run: func(l *lab) {
		l.down(l.a, l.h, l.x)
		task := must(cuda.Go(l.a, func(context.Context) error { l.reads(l.h); l.writes(l.h); return nil }))
		l.up(l.a, l.y, l.h)
		noErr(l, task.Wait(context.Background()))
	}},
	{name: "wait-value", run: func(l *lab) {
		l.set(l.a, l.x)
		noErr(l, l.a.WriteValue32(l.z.Word(0), 1))
		noErr(l, l.b.WaitValue32(l.z.Word(0), cuda.ValueEQ, 1))
		l.copy(l.b, l.y, l.x)
	}},
	{name: "wait-value queued first", run: func(l *lab) {
		noErr(l, l.b.WaitValue32(l.z.Word(0), cuda.ValueEQ, 1))
		l.copy(l.b, l.y, l.x)
		l.set(l.a, l.x)
		noErr(l, l.a.WriteValue32(l.z.Word(0), 1))
	}},
	{name: "ordinary slices", run: func(l *lab) {
		from, to := make([]byte, 64), make([]byte, 64)
		for range 4 {
			l.up(l.a, l.x, from)
			l.down(l.a, to, l.x)
			l.sync(l.a)
			from[0]++
		}
	}},
	{name: "HostCopy behind its copies", run: func(l *lab) {
		l.down(l.a, l.h, l.x)
		l.hostCopy(l.a, l.g, l.h)
		l.up(l.a, l.y, l.g)
		l.sync(l.a)
		l.reads(l.g)
		l.writes(l.h)
	}},
	{name: "HostCopy of slices, which is told", run: func(l *lab) {
		done, to := make(chan struct{}), make([]byte, 64)
		l.down(l.a, l.h, l.x)
		noErr(l, cuda.HostCopy(l.a, cuda.HostSlice(to), cuda.HostSlice(l.h), cuda.OnDone(func(error) { close(done) })))
		<-done
		l.reads(to)
		l.writes(l.h)
	}},
	{name: "HostCopy, which a host function of another stream tells", run: func(l *lab) {
		done := make(chan struct{})
		l.hostCopy(l.a, l.g, l.h)
		l.after(l.b, l.a)
		l.host(l.b, func() { close(done) })
		<-done
		l.reads(l.g)
		l.writes(l.h)
	}},
	{name: "native function behind its copy", run: func(l *lab) {
		l.down(l.a, l.h, l.x)
		l.count(l.a, l.h)
		l.up(l.a, l.y, l.h)
	}},
	{name: "conditional, and its stream waited for", run: func(l *lab) {
		x := l.conditional()
		noErr(l, x.Launch(l.a))
		noErr(l, x.Launch(l.a))
		l.after(l.b, l.a)
		l.copy(l.b, l.z, l.x)
		l.copy(l.b, l.z, l.y)
	}},
	{name: "managed memory read after sync", run: func(l *lab) {
		m := must(l.dev.AllocManaged(64, cuda.AttachGlobal))
		l.inc(l.a, m.Buffer())
		l.sync(l.a)
		l.reads(m.Bytes())
		l.writes(m.Bytes())
	}},
	{name: "device memory written in two parts", run: func(l *lab) {
		b := must(l.dev.Alloc(64))
		l.set(l.a, l.part(b, 0, 32))
		l.set(l.a, l.part(b, 32, 32))
		l.sum(l.a, b, l.y)
	}},
	{name: "a kernel adds to what it has allocated", run: func(l *lab) { l.inc(l.a, must(l.dev.Alloc(64))) }},
}
