package softcuda_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// model is a Cost of round numbers: 1 MiB takes 8 ms to the device, 4 ms to the host and 1 ms on the device, a kernel as many
// milliseconds as its first argument says, but loop 2 ms.
func model() *softcuda.Cost {
	const perMs = 1 << 20 * 1000
	return &softcuda.Cost{
		ToDevice: perMs / 8, ToHost: perMs / 4, OnDevice: perMs,
		Kernel: func(l *softcuda.Launch) time.Duration {
			if l.Kernel == "loop" {
				return 2 * time.Millisecond
			}
			return time.Duration(softcuda.Arg[uint32](l, 0)) * time.Millisecond
		},
		HostFunction: 500 * time.Microsecond,
	}
}

const costPTX = `.version 8.0
.target sm_90
.entry work(.param .u32 ms)
.entry loop(.param .u64 cond)
`

// costLab is a device whose operations cost what model says.
type costLab struct {
	testing.TB
	drv  *cuda.Driver
	dev  *cuda.Device
	s    []*cuda.Stream
	x, y *cuda.Buffer
	h, g *cuda.PinnedBuffer
	work *cuda.Kernel
	loop *cuda.Kernel // which takes 2 ms, and counts the times that a conditional is still to run
}

func newCostLab(t testing.TB, o softcuda.Options) *costLab {
	left := uint32(0)
	o.Kernels = softcuda.Kernels{"work": func(*softcuda.Launch) {}, "loop": func(l *softcuda.Launch) {
		if left == 0 {
			left = 5
		}
		left--
		l.SetConditional(softcuda.Arg[uint64](l, 0), left)
	}}
	if o.Cost == nil {
		o.Cost = model()
	}
	l := &costLab{TB: t}
	l.drv, l.dev = openSeeded(t, o)
	l.s = newStreams(t, l.dev, 8)
	l.x, l.y = must(l.dev.Alloc(1<<20)), must(l.dev.Alloc(1<<20))
	l.h, l.g = must(l.dev.AllocPinned(1<<20)), must(l.dev.AllocPinned(1<<20))
	mod := must(l.dev.LoadModule([]byte(costPTX)))
	l.work, l.loop = must(mod.Kernel("work")), must(mod.Kernel("loop"))
	return l
}

func (l *costLab) up(on cuda.Queue)   { l.Helper(); noErr(l, cuda.CopyToDevice(on, l.x, l.h.Bytes())) }
func (l *costLab) down(on cuda.Queue) { l.Helper(); noErr(l, cuda.CopyToHost(on, l.g.Bytes(), l.y)) }
func (l *costLab) kernel(on cuda.Queue, ms uint32) {
	l.Helper()
	one := cuda.Dim3{X: 1, Y: 1, Z: 1}
	noErr(l, on.Launch(l.work, cuda.LaunchConfig{Grid: one, Block: one}, ms))
}

func (l *costLab) mark(on *cuda.Stream) *cuda.Event {
	l.Helper()
	e := must(l.dev.NewEvent(cuda.WithTiming()))
	noErr(l, on.Record(e))
	return e
}

// elapsed wants so much time between two events.
func (l *costLab) elapsed(what string, from, to *cuda.Event, want time.Duration) {
	l.Helper()
	noErr(l, to.Sync())
	if got := must(to.Elapsed(from)).Round(100 * time.Nanosecond); got != want { // a float32 of milliseconds
		l.Errorf("%s: %v, want %v", what, got, want)
	}
}

// inBubble runs a test on a device in a bubble, where all times are exact.
func inBubble(t *testing.T, o softcuda.Options, run func(l *costLab)) {
	synctest.Test(t, func(t *testing.T) {
		l := newCostLab(t, o)
		defer l.drv.Close()
		run(l)
	})
}

// TestCostOverlap has two copies of both ways and a kernel, side by side on three streams.
func TestCostOverlap(t *testing.T) {
	inBubble(t, softcuda.Options{}, func(l *costLab) {
		start, began := time.Now(), l.mark(l.s[0])
		l.up(l.s[0])
		l.down(l.s[1])
		l.kernel(l.s[2], 7)
		up, down, kernel := l.mark(l.s[0]), l.mark(l.s[1]), l.mark(l.s[2])
		for _, s := range l.s[1:3] {
			noErr(t, l.s[0].WaitStream(s))
		}
		l.elapsed("copy to the device", began, up, 8*time.Millisecond)
		l.elapsed("copy to the host", began, down, 4*time.Millisecond)
		l.elapsed("kernel", began, kernel, 7*time.Millisecond)
		l.elapsed("all", began, l.mark(l.s[0]), 8*time.Millisecond)
		if d := time.Since(start); d != 8*time.Millisecond {
			t.Errorf("the program sees %v", d)
		}
	})
}

// TestCostOneEngine has two copies down on two streams, which one engine does one after another, and two up beside them.
func TestCostOneEngine(t *testing.T) {
	inBubble(t, softcuda.Options{}, func(l *costLab) {
		start := l.mark(l.s[0])
		l.down(l.s[0])
		l.down(l.s[1])
		l.up(l.s[2])
		l.up(l.s[3])
		var last [4]time.Duration
		var ends [4]*cuda.Event
		for i := range ends {
			ends[i] = l.mark(l.s[i])
		}
		for i, end := range ends {
			noErr(t, end.Sync())
			last[i] = must(end.Elapsed(start))
		}
		if d := max(last[0], last[1]); d != 8*time.Millisecond || min(last[0], last[1]) != 4*time.Millisecond {
			t.Errorf("two copies down end after %v and %v", last[0], last[1])
		}
		if d := max(last[2], last[3]); d != 16*time.Millisecond || min(last[2], last[3]) != 8*time.Millisecond {
			t.Errorf("two copies up end after %v and %v", last[2], last[3])
		}
	})
}

// TestCostInOrder has operations of all kinds in one stream, whose times add up.
func TestCostInOrder(t *testing.T) {
	inBubble(t, softcuda.Options{}, func(l *costLab) {
		s := l.s[0]
		start := l.mark(s)
		l.up(s)
		copied := l.mark(s)
		l.kernel(s, 3)
		noErr(t, s.CopyBuffer(l.y, l.x))
		noErr(t, s.Memset(l.x, 1))
		kernels := l.mark(s)
		noErr(t, cuda.HostLaunch(s, func() { time.Sleep(250 * time.Microsecond) }))
		called := l.mark(s)
		noErr(t, cuda.AddCallback(s, func(error) {}))
		noErr(t, s.WriteValue32(l.x.Word(0), 1))
		noErr(t, s.WaitValue32(l.x.Word(0), cuda.ValueEQ, 1))
		l.down(s)
		end := l.mark(s)
		l.elapsed("copy", start, copied, 8*time.Millisecond)
		l.elapsed("kernel, copy and memset", copied, kernels, 5*time.Millisecond)
		l.elapsed("host function", kernels, called, 750*time.Microsecond)
		l.elapsed("the rest", called, end, 4500*time.Microsecond)
		l.elapsed("all", start, end, 8*time.Millisecond+5*time.Millisecond+750*time.Microsecond+4500*time.Microsecond)
	})
}

// TestCostHostFunctions has host functions on eight streams, which take place one at a time, and tasks, which overlap.
func TestCostHostFunctions(t *testing.T) {
	inBubble(t, softcuda.Options{}, func(l *costLab) {
		start := time.Now()
		for _, s := range l.s {
			noErr(t, cuda.HostLaunch(s, func() { time.Sleep(2 * time.Millisecond) }))
		}
		for _, s := range l.s {
			noErr(t, s.Sync())
		}
		if d, want := time.Since(start), 8*(2*time.Millisecond+500*time.Microsecond); d != want {
			t.Errorf("host functions took %v, want %v", d, want)
		}
		start = time.Now()
		for _, s := range l.s {
			must(cuda.Go(s, func(context.Context) error { time.Sleep(20 * time.Millisecond); return nil }))
		}
		for _, s := range l.s {
			noErr(t, s.Sync())
		}
		if d, want := time.Since(start), 8*500*time.Microsecond+20*time.Millisecond; d != want { // each begins by a host function
			t.Errorf("tasks took %v, want %v", d, want)
		}
	})
}

// TestCostGraph has a graph with branches, by capture and by nodes.
func TestCostGraph(t *testing.T) {
	inBubble(t, softcuda.Options{}, func(l *costLab) {
		s := l.s[0]
		graph := must(cuda.Capture(s, cuda.CaptureRelaxed, func(g *cuda.GraphBuilder) error {
			l.kernel(g, 1)
			side := must(g.Split(2))
			l.up(g)
			l.down(side[0])
			l.kernel(side[1], 2)
			l.kernel(side[1], 5)
			return g.Join(side...)
		}))
		x := must(graph.Instantiate())
		for range 2 {
			start := l.mark(s)
			noErr(t, x.Launch(s))
			l.elapsed("graph", start, l.mark(s), 9*time.Millisecond)
		}
		nodes := must(l.dev.NewGraph())
		must(nodes.AddNode(cuda.MemsetParams(l.x, 1), must(nodes.AddNode(cuda.MemcpyToHostParams(l.g.Bytes(), l.y)))))
		start := l.mark(s)
		noErr(t, must(nodes.Instantiate()).Launch(s))
		l.elapsed("copy node and memset node", start, l.mark(s), 5*time.Millisecond)
	})
}

// TestCostDelay has a fault delay a copy, and what is behind it.
func TestCostDelay(t *testing.T) {
	var faults softcuda.Faults
	noErr(t, faults.Add(softcuda.Fault{Op: "copy", Delay: 3 * time.Millisecond}))
	inBubble(t, softcuda.Options{Faults: &faults}, func(l *costLab) {
		start := l.mark(l.s[0])
		l.down(l.s[0])
		l.kernel(l.s[0], 2)
		l.elapsed("late copy and kernel", start, l.mark(l.s[0]), 9*time.Millisecond)
	})
}

// TestCostSeeded wants the same times of a device that does one operation at a time, in any order, and in no time.
func TestCostSeeded(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
		inBubble(t, softcuda.Options{Seed: seed}, func(l *costLab) {
			start, began := l.mark(l.s[0]), time.Now()
			l.up(l.s[0])
			l.down(l.s[1])
			l.kernel(l.s[2], 7)
			l.elapsed("copy to the device", start, l.mark(l.s[0]), 8*time.Millisecond)
			l.elapsed("copy to the host", start, l.mark(l.s[1]), 8*time.Millisecond) // its mark was queued only then
			start = l.mark(l.s[4])
			l.down(l.s[4])
			l.kernel(l.s[5], 11)
			copied, kernel := l.mark(l.s[4]), l.mark(l.s[5])
			l.elapsed("copy", start, copied, 4*time.Millisecond)
			noErr(t, l.s[4].WaitStream(l.s[5]))
			noErr(t, l.s[4].WriteValue32(l.x.Word(0), 1))
			l.elapsed("kernel", start, kernel, 11*time.Millisecond)
			l.kernel(l.s[4], 1)
			l.elapsed("both, and a kernel", start, l.mark(l.s[4]), 12*time.Millisecond)
			if d := time.Since(began); d > time.Microsecond {
				t.Errorf("seed %d: the program has waited %v", seed, d)
			}
		})
	}
}

// TestCostH200 has the model of an H200 tell what the link gives.
func TestCostH200(t *testing.T) {
	inBubble(t, softcuda.Options{Cost: softcuda.H200()}, func(l *costLab) {
		start := l.mark(l.s[0])
		for range 64 {
			l.down(l.s[0])
		}
		end := l.mark(l.s[0])
		noErr(t, end.Sync())
		rate := 64 * (1 << 20) / must(end.Elapsed(start)).Seconds() / 1e9
		if rate < 45 || rate > 55.2 {
			t.Errorf("copies of 1 MiB to the host move %.1f GB/s", rate)
		}
	})
}

// TestCostOutside wants the model's times by the computer's clock too: no less than they say, and events exact.
func TestCostOutside(t *testing.T) {
	l := newCostLab(t, softcuda.Options{})
	defer l.drv.Close()
	began := time.Now()
	l.kernel(l.s[0], 10) // while the rest is queued
	start := l.mark(l.s[0])
	l.down(l.s[0])
	l.down(l.s[0])
	l.elapsed("two copies", start, l.mark(l.s[0]), 8*time.Millisecond)
	if d := time.Since(began); d < 18*time.Millisecond {
		t.Errorf("the program sees %v", d)
	}
}

// TestCostLoop has a loop of a graph, whose body runs five times, each behind the one before.
func TestCostLoop(t *testing.T) {
	for seed := range uint64(4) {
		inBubble(t, softcuda.Options{Seed: seed}, func(l *costLab) {
			graph := must(l.dev.NewGraph())
			cond := must(graph.NewCondition(cuda.AtLaunch(5)))
			_, body, err := graph.AddWhile(cond)
			noErr(t, err)
			one := cuda.LaunchConfig{Grid: cuda.Dim3{X: 1, Y: 1, Z: 1}, Block: cuda.Dim3{X: 1, Y: 1, Z: 1}}
			must(body.AddNode(cuda.KernelParams(l.loop, one, cond)))
			must(body.AddNode(cuda.MemsetParams(l.x, 1)))
			x := must(graph.Instantiate())
			for range 2 {
				start := l.mark(l.s[0])
				noErr(t, x.Launch(l.s[0]))
				l.elapsed(fmt.Sprint("loop ", seed), start, l.mark(l.s[0]), 5*2*time.Millisecond)
			}
		})
	}
}
