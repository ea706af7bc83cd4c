package softcuda_test

import (
	"context"
	"errors"
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

// taskChaos does at random, from many goroutines, what can be done with tasks: of streams and of graphs, that wait for each other, are
// cancelled, fail, stop their streams, while the driver refuses calls, the context fails or the Driver is closed. However it goes,
// every task and function that was accepted ends once, nothing hangs, and nothing is left.
type taskChaos struct {
	*testing.T
	d       *cuda.Driver
	dev     *cuda.Device
	streams []*cuda.Stream
	events  []*cuda.Event
	execs   []*cuda.GraphExec
	ctx     context.Context // that some tasks are given

	accepted, ended, twice atomic.Int64
	graphRuns              atomic.Int64 // OnDones of graphs' tasks
	launches               atomic.Int64
	mu                     sync.Mutex
	tasks                  []*cuda.Task
}

// once is an OnDone that counts, and finds a second call.
func (c *taskChaos) once() cuda.HostOption {
	var told atomic.Bool
	return cuda.OnDone(func(error) {
		if told.Swap(true) {
			c.twice.Add(1)
		}
		c.ended.Add(1)
	})
}

func pick[V any](r *rand.Rand, list []V) V { return list[r.IntN(len(list))] }

// inside is what a task does.
func (c *taskChaos) inside(r *rand.Rand, ctx context.Context, inGraph bool) error {
	for range r.IntN(3) {
		limited, cancel := context.WithTimeout(ctx, time.Duration(1+r.IntN(5))*time.Millisecond)
		s, e := pick(r, c.streams), pick(r, c.events)
		var err error
		switch n := r.IntN(10); {
		case n == 0 && !inGraph: // of several launches at once it is not known which one a graph's task is of
			err = s.Sync()
		case n <= 1:
			err = s.Wait(limited)
		case n == 2 && !inGraph && r.IntN(2) == 0:
			err = e.Sync()
		case n == 2:
			err = e.Wait(limited)
		case n == 3:
			c.goTask(r)
		case n == 4:
			var own *cuda.Stream
			if own, err = c.dev.NewStream(); err == nil {
				err = errors.Join(own.Sync(), own.Close())
			}
		case n == 5:
			var b *cuda.Buffer
			if b, err = c.dev.Alloc(64); err == nil {
				err = errors.Join(s.Memset(b, 1), c.copies(r, s, b, inGraph), b.Close())
			}
		case n == 6:
			_, err = c.dev.LoadModule([]byte("none"))
		case n == 7:
			panic("on purpose")
		case n == 8:
			runtime.Goexit()
		default:
			err = c.latest().Wait(limited)
		}
		cancel()
		if err != nil && r.IntN(2) == 0 {
			return err
		}
	}
	return nil
}

// latest is the latest task that is known. The first may run before it is: then it waits for that.
func (c *taskChaos) latest() *cuda.Task {
	for {
		c.mu.Lock()
		if n := len(c.tasks); n > 0 {
			defer c.mu.Unlock()
			return c.tasks[n-1]
		}
		c.mu.Unlock()
		time.Sleep(100 * time.Microsecond)
	}
}

// copies copies b, which s has been queued to write, or memory of its own, in a way that may have the driver wait.
func (c *taskChaos) copies(r *rand.Rand, s *cuda.Stream, b *cuda.Buffer, inGraph bool) (err error) {
	own, err := c.dev.Alloc(b.Len())
	if err != nil {
		return err
	}
	defer own.Close()
	p := make([]byte, b.Len())
	switch n := r.IntN(4); {
	case inGraph:
	case n == 0:
		_, err = own.ReadAt(p, 0)
	case n == 1:
		_, err = own.WriteAt(p, 0)
	case n == 2:
		err = cuda.CopyToHost(s, p, b, cuda.Direct())
	}
	return err
}

func (c *taskChaos) goTask(r *rand.Rand) {
	opts := []cuda.HostOption{c.once()}
	if r.IntN(4) == 0 {
		opts = append(opts, cuda.WithContext(c.ctx))
	}
	if r.IntN(12) == 0 {
		opts = append(opts, cuda.StopOnError())
	}
	if r.IntN(4) == 0 {
		opts = append(opts, cuda.SyncMode(cuda.Spin))
	}
	inner := rand.New(rand.NewPCG(r.Uint64(), 2))
	t, err := cuda.Go(pick(r, c.streams), func(ctx context.Context) error { return c.inside(inner, ctx, false) }, opts...)
	if err != nil {
		return
	}
	c.accepted.Add(1)
	c.mu.Lock()
	c.tasks = append(c.tasks, t)
	c.mu.Unlock()
}

// step is what a goroutine does that is no task.
func (c *taskChaos) step(r *rand.Rand) {
	s := pick(r, c.streams)
	switch n := r.IntN(16); n {
	case 0:
		s.Sync()
	case 1:
		limited, cancel := context.WithTimeout(c.ctx, time.Millisecond)
		s.Wait(limited)
		cancel()
	case 2, 3:
		s.Record(pick(r, c.events))
	case 4, 5:
		s.WaitEvent(pick(r, c.events))
	case 6:
		s.WaitStream(pick(r, c.streams))
	case 7, 8:
		if pick(r, c.execs).Launch(s) == nil {
			c.launches.Add(1)
		}
	case 9, 10:
		if cuda.HostLaunch(s, func() {}, c.once(), cuda.SyncMode(cuda.HostSyncMode(r.IntN(2)))) == nil {
			c.accepted.Add(1)
		}
	case 11:
		if b, err := c.dev.Alloc(256); err == nil {
			s.Memset(b, 1)
			cuda.CopyToHost(s, make([]byte, 256), b)
			b.Close()
		}
	default:
		c.goTask(r)
	}
}

// TestTaskChaos has CHAOS_SEEDS seeds, if the environment says so.
func TestTaskChaos(t *testing.T) {
	for _, open := range []func(softcuda.Options, ...cuda.Option) (*cuda.Driver, error){
		func(o softcuda.Options, opts ...cuda.Option) (*cuda.Driver, error) {
			return softcuda.New(o, opts...), nil
		}, softcuda.NewSpinning,
	} {
		forSeeds(t, "CHAOS_SEEDS", 16, 4, func(seed uint64) { runTaskChaos(t, seed, open) })
	}
}

// faultsOf are what goes wrong with a seed: nothing, refused calls, or a lost device.
func (c *taskChaos) faultsOf(seed uint64, f *softcuda.Faults) {
	switch seed % 4 {
	case 1:
		for _, call := range []string{"StreamWaitValue32", "LaunchHostFunc", "EventRecord", "StreamWaitEvent", "GraphLaunch", "StreamBatchMemOp", "EventCreate"} {
			noErr(c, f.Add(softcuda.Fault{Call: call, Times: -1, Probability: 0.05, Result: cuda.ErrUnknown}))
		}
	case 2:
		noErr(c, f.Add(softcuda.Fault{Op: "memset", After: 5, Result: cuda.ErrIllegalAddress}))
	}
}

func runTaskChaos(t *testing.T, seed uint64, open func(softcuda.Options, ...cuda.Option) (*cuda.Driver, error)) {
	before := runtime.NumGoroutine()
	f := new(softcuda.Faults)
	quiet := []cuda.Option{cuda.OnPanic(func(*cuda.PanicError) {}), cuda.OnLost(func(*cuda.LostError) {}), cuda.MaxHeldStreams(1 + int(seed%3)), cuda.Logger(slog.New(slog.DiscardHandler))}
	d, err := open(softcuda.Options{Faults: f, Kernels: testkernels.Twins()}, quiet...)
	noErr(t, err)
	dev, err := d.Device(0)
	noErr(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	c := &taskChaos{T: t, d: d, dev: dev, ctx: ctx, streams: append(newStreams(t, dev, 5), dev.DefaultStream())}
	blocking, err := dev.NewStream(cuda.Blocking())
	noErr(t, err)
	c.streams = append(c.streams, blocking)
	for range 4 {
		e, err := dev.NewEvent()
		noErr(t, err)
		c.events = append(c.events, e)
	}
	inner := rand.New(rand.NewPCG(seed, 3))
	g, err := cuda.Capture(c.streams[0], cuda.CaptureRelaxed, func(b *cuda.GraphBuilder) error {
		var turn sync.Mutex
		return b.Task(func(ctx context.Context) error {
			turn.Lock()
			r := rand.New(rand.NewPCG(inner.Uint64(), 4))
			turn.Unlock()
			return c.inside(r, ctx, true)
		}, cuda.OnDone(func(error) { c.graphRuns.Add(1) }))
	})
	noErr(t, err)
	for range 2 {
		x, err := g.Instantiate()
		noErr(t, err)
		c.execs = append(c.execs, x)
	}
	c.goTask(rand.New(rand.NewPCG(seed, 5)))
	c.faultsOf(seed, f)
	var all sync.WaitGroup
	for i := range uint64(6) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, 10+i))
			for range 40 {
				c.step(r)
			}
		})
	}
	time.AfterFunc(time.Duration(seed%8)*time.Millisecond, cancel)
	if seed%2 == 0 { // in the middle of it
		time.Sleep(time.Duration(seed%5) * time.Millisecond)
		noErr(t, d.Close())
	}
	all.Wait()
	noErr(t, d.Close())
	cancel()
	c.check(seed, before)
}

// check is what must hold once the Driver is closed.
func (c *taskChaos) check(seed uint64, before int) {
	for _, task := range c.tasks {
		select {
		case <-task.Done():
		default:
			c.Errorf("seed %d: a task has not ended: %s", seed, task.Name())
		}
	}
	if c.accepted.Load() != c.ended.Load() || c.twice.Load() != 0 {
		c.Errorf("seed %d: %d accepted, %d ended, %d twice", seed, c.accepted.Load(), c.ended.Load(), c.twice.Load())
	}
	if c.launches.Load() != c.graphRuns.Load() {
		c.Errorf("seed %d: %d launches of graphs, %d ends of their tasks", seed, c.launches.Load(), c.graphRuns.Load())
	}
	if st := c.d.Stats(); st != (cuda.Stats{}) {
		c.Errorf("seed %d: left: %+v", seed, st)
	}
	goroutinesGone(c, before)
}
