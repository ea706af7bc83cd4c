package softcuda_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

// closeChaos does at random what the library can, from goroutines, tasks, tasks of graphs and reports, drops half of what it makes, and
// closes the Driver meanwhile in one of many ways, or loses the device. However it goes, what was queued is told of once, no error is of
// the kind that only a handle gives that is gone, nothing hangs, and nothing is left.
type closeChaos struct {
	*testing.T
	seed uint64
	f    *softcuda.Faults
	d    *cuda.Driver
	dev  *cuda.Device

	mu      sync.Mutex
	told    []*chaosTold
	streams []*cuda.Stream
	waits   sync.WaitGroup
}

// chaosTold is something whose end is told.
type chaosTold struct {
	what   string
	queued bool
	n      atomic.Int32
}

// TestCloseChaos has CLOSE_SEEDS seeds, if the environment says so.
func TestCloseChaos(t *testing.T) {
	before := runtime.NumGoroutine()
	forSeeds(t, "CLOSE_SEEDS", 60, 20, func(seed uint64) { (&closeChaos{T: t, seed: seed}).run() })
	goroutinesGone(t, before)
}

func (c *closeChaos) run() {
	r := rand.New(rand.NewPCG(c.seed, 1))
	c.f = new(softcuda.Faults)
	quiet, most := cuda.Logger(slog.New(slog.DiscardHandler)), cuda.MaxHeldStreams(1+r.IntN(3))
	c.d = softcuda.New(softcuda.Options{Faults: c.f, Kernels: testkernels.Twins()}, quiet, most)
	c.dev = must(c.d.Device(0))
	for range 3 {
		c.streams = append(c.streams, must(c.dev.NewStream()))
	}
	c.streams = append(c.streams, c.dev.DefaultStream())
	var all sync.WaitGroup
	for i := range uint64(3) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(c.seed, 10+i))
			for range 12 {
				c.step(r, 0, false)
			}
		})
	}
	time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond)
	if r.IntN(4) == 0 {
		c.f.LoseDevice(0, cuda.ErrECCUncorrectable)
	}
	c.close(r)
	all.Wait()
	if err := c.d.Close(); err != nil {
		c.Errorf("seed %d: Close = %v", c.seed, err)
	}
	c.waits.Wait()
	for _, told := range c.told {
		if n := told.n.Load(); told.queued && n != 1 || !told.queued && n != 0 {
			c.Errorf("seed %d: a %s, queued: %v, was told of %d times", c.seed, told.what, told.queued, n)
		}
	}
	if st := c.d.Stats(); st != (cuda.Stats{}) {
		c.Errorf("seed %d: left: %+v", c.seed, st)
	}
}

// close closes the Driver in one of many ways.
func (c *closeChaos) close(r *rand.Rand) {
	s := c.streams[r.IntN(3)]
	deadlock := func(what string, err error) {
		if !errors.Is(err, cuda.ErrDeadlock) {
			c.Errorf("seed %d: Close in %s = %v", c.seed, what, err)
		}
	}
	switch r.IntN(6) {
	case 0:
		go c.d.Close()
	case 1:
		c.check("HostLaunch", cuda.HostLaunch(s, func() { c.check("Close", c.d.Close()) }))
	case 2:
		_, err := cuda.Go(s, func(context.Context) error { deadlock("a task", c.d.Close()); return nil })
		c.check("Go", err)
	case 3:
		c.check("HostLaunch", cuda.HostLaunch(s, func() {}, cuda.OnDone(func(error) { deadlock("OnDone", c.d.Close()) })))
	case 4:
		ctx, cancel := context.WithTimeout(context.Background(), time.Microsecond)
		defer cancel()
		if err := c.d.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			c.Errorf("seed %d: Shutdown = %v", c.seed, err)
		}
	}
}

// check wants err to be one of those that a program like this one has to expect.
func (c *closeChaos) check(what string, err error) {
	for _, may := range []error{
		cuda.ErrClosed, cuda.ErrDeadlock, cuda.ErrDeviceLost, cuda.ErrNotPermitted, context.DeadlineExceeded, cuda.ErrNotBuilding,
	} {
		if errors.Is(err, may) {
			return
		}
	}
	if err != nil {
		c.Errorf("seed %d: %s: %v", c.seed, what, err)
	}
}

// tell is the OnDone or CopyDone of something; its second result notes whether it was queued.
func (c *closeChaos) tell(what string, also func()) (done func(error), queued func(error)) {
	told := &chaosTold{what: what}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, told)
	return func(error) {
			told.n.Add(1)
			also()
		}, func(err error) {
			told.queued = err == nil
			c.check(what, err)
		}
}

// step does something. In a graph's task it does not wait for host functions, which do not run meanwhile.
func (c *closeChaos) step(r *rand.Rand, depth int, inGraph bool) {
	if depth > 2 {
		return
	}
	deeper := func(n int, inGraph bool) func() {
		r := rand.New(rand.NewPCG(r.Uint64(), 2))
		return func() {
			for range n {
				c.step(r, depth+1, inGraph)
			}
		}
	}
	nothing := func() {}
	s := c.streams[r.IntN(len(c.streams))]
	drop := r.IntN(2) == 0
	end := func(what string, x interface{ Close() error }) {
		if !drop {
			c.check(what+".Close", x.Close())
		}
	}
	switch op := r.IntN(18); op {
	case 0:
		own, err := c.dev.NewStream()
		if c.check("NewStream", err); err == nil {
			c.check("WaitStream", s.WaitStream(own))
			end("Stream", own)
		}
	case 1:
		also := nothing
		if r.IntN(3) == 0 {
			also = deeper(1, false)
		}
		done, queued := c.tell("host function", also)
		queued(cuda.HostLaunch(s, func() {}, cuda.OnDone(done)))
	case 2, 3:
		in := deeper(1+r.IntN(2), inGraph)
		done, queued := c.tell("task", nothing)
		_, err := cuda.Go(s, func(context.Context) error { in(); return nil }, cuda.OnDone(done))
		queued(err)
	case 4, 5:
		c.graph(r, s, deeper(1, true), drop)
	case 6:
		own, err := c.dev.NewContext()
		if c.check("NewContext", err); err != nil {
			return
		}
		if e, err := own.NewEvent(); err == nil {
			e.Close()
		} else {
			c.check("NewEvent", err)
		}
		if s, err := own.NewStream(); err == nil {
			done, queued := c.tell("host function", nothing)
			queued(cuda.HostLaunch(s, func() {}, cuda.OnDone(done)))
			c.check("Sync", s.Sync())
			s.Close()
		}
		if err := own.Close(); !errors.Is(err, cuda.ErrIllegalState) {
			c.check("Context.Close", err)
		}
	case 7:
		c.green(r, drop)
	case 8:
		e, err := c.dev.NewEvent()
		if c.check("NewEvent", err); err != nil {
			return
		}
		c.check("Record", s.Record(e))
		done := e.Done()
		c.waits.Go(func() { <-done })
		c.check("WaitEvent", c.streams[0].WaitEvent(e))
		end("Event", e)
	case 9, 10:
		b, err := c.dev.Alloc(200_000)
		if c.check("Alloc", err); err != nil {
			return
		}
		data := make([]byte, b.Len())
		done, queued := c.tell("copy", nothing)
		queued(cuda.CopyToDevice(s, b, data, cuda.CopyDone(done)))
		done, queued = c.tell("copy", nothing)
		queued(cuda.CopyToHost(s, data, b, cuda.CopyDone(done)))
		end("Buffer", b)
	case 11:
		p, err := c.dev.NewPinnedPool(1 << 16)
		if c.check("NewPinnedPool", err); err != nil {
			return
		}
		b, _, err := p.TryGet(100)
		if c.check("TryGet", err); err == nil && r.IntN(2) == 0 {
			b.Release()
		} else if err == nil {
			c.check("ReleaseAfter", b.ReleaseAfter(s))
		}
		c.check("PinnedPool.Close", p.Close())
	case 12:
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		c.check("Wait", s.Wait(ctx))
	case 13:
		if !inGraph {
			c.check("Sync", s.Sync())
		}
	case 14:
		runtime.GC()
	case 15:
		done, queued := c.tell("callback", nothing)
		queued(cuda.AddCallback(s, func(error) {}, cuda.OnDone(done)))
	case 16:
		m, err := c.dev.LoadModule(testkernels.PTX)
		if c.check("LoadModule", err); err == nil {
			end("Module", m)
		}
	case 17:
		b, err := c.dev.AllocPinned(4096)
		if c.check("AllocPinned", err); err == nil {
			c.check("Batch", s.Batch(cuda.Write32(b.Word(0), 1), cuda.Wait32(b.Word(0), cuda.ValueEQ, 1)))
			c.check("PinnedBuffer.Close", b.Close())
		}
	}
}

// graph launches a graph with a host function and a task.
func (c *closeChaos) graph(r *rand.Rand, s *cuda.Stream, in func(), drop bool) {
	b, err := c.dev.NewGraphBuilder()
	if c.check("NewGraphBuilder", err); err != nil {
		return
	}
	if !drop {
		defer b.Close()
	}
	if err := b.Begin(cuda.CaptureRelaxed); err != nil {
		c.check("Begin", err)
		return
	}
	launches := r.IntN(3)
	told := &chaosTold{what: fmt.Sprint("graph's task of ", launches, " launches")}
	task := b.Task(func(context.Context) error { in(); return nil }, cuda.OnDone(func(error) { told.n.Add(1) }))
	c.check("GraphBuilder.Task", errors.Join(task, cuda.HostLaunch(b, func() {})))
	if r.IntN(4) == 0 {
		return // in the middle
	}
	g, err := b.End()
	if c.check("End", err); err != nil {
		return
	}
	x, err := g.Instantiate()
	if c.check("Instantiate", err); err != nil {
		return
	}
	n := int32(0)
	for range launches {
		err := x.Launch(s)
		if c.check("Launch", err); err == nil {
			n++
		}
	}
	told.n.Add(1 - n)
	told.queued = true
	c.mu.Lock()
	c.told = append(c.told, told)
	c.mu.Unlock()
	if !drop {
		c.check("Close", errors.Join(x.Close(), g.Close()))
	}
}

// green uses a green context's Context and a stream of it.
func (c *closeChaos) green(r *rand.Rand, drop bool) {
	all, err := c.dev.SMResource()
	if c.check("SMResource", err); err != nil {
		return
	}
	g, err := c.dev.NewGreenContext(all)
	if c.check("NewGreenContext", err); err != nil {
		return
	}
	s, err := g.NewStream()
	if c.check("GreenContext.NewStream", err); err != nil {
		return
	}
	var closing sync.WaitGroup
	defer closing.Wait()
	if !drop {
		closing.Go(func() { c.check("GreenContext.Close", g.Close()) })
	}
	borrowed, err := c.dev.StreamOf(s)
	if c.check("StreamOf", err); err != nil {
		return
	}
	done, queued := c.tell("host function", func() {})
	queued(cuda.HostLaunch(borrowed, func() {}, cuda.OnDone(done)))
	if r.IntN(2) == 0 {
		e, err := g.Context().NewEvent()
		if c.check("NewEvent", err); err == nil {
			c.check("Event.Close", e.Close())
		}
	}
	if !drop {
		c.check("Stream.Close", errors.Join(borrowed.Close(), s.Close()))
	}
}
