package softcuda_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// taskOrder has goroutines queue on streams that all share, with tasks that fail and stop their streams, streams that are closed and
// made anew, and a driver that is slow or refuses calls: each goroutine's order holds, and whatever was accepted ends once.
type taskOrder struct {
	*testing.T
	seed     uint64
	refuses  bool // the driver does, now and then
	dev      *cuda.Device
	streams  [6]atomic.Pointer[cuda.Stream] // the last but one is blocking, the last the legacy default stream
	accepted atomic.Int64
	ended    atomic.Int64
}

// TestTaskOrder has ORDER_SEEDS seeds, if the environment says so.
func TestTaskOrder(t *testing.T) {
	forSeeds(t, "ORDER_SEEDS", 30, 10, func(seed uint64) { (&taskOrder{T: t, seed: seed, refuses: seed%4 == 1}).run() })
}

// faults are a driver that is slow for most seeds, and refuses calls for some.
func (o *taskOrder) faults() *softcuda.Faults {
	f := new(softcuda.Faults)
	if o.seed%3 != 0 {
		for _, call := range []string{"StreamWaitValue32", "LaunchHostFunc", "EventRecord", "StreamWaitEvent", "StreamAddCallback"} {
			noErr(o, f.Add(softcuda.Fault{Call: call, Times: -1, Probability: 0.1, Delay: 100 * time.Microsecond}))
		}
	}
	if o.refuses {
		for _, call := range []string{"StreamWaitValue32", "LaunchHostFunc", "StreamAddCallback", "EventCreate"} {
			noErr(o, f.Add(softcuda.Fault{Call: call, Times: -1, Probability: 0.05, Result: cuda.ErrUnknown}))
		}
	}
	return f
}

func (o *taskOrder) run() {
	open, opts := softcuda.NewSpinning, []cuda.Option{cuda.MaxHeldStreams(1 + int(o.seed%3)), cuda.Logger(slog.New(slog.DiscardHandler))}
	if o.seed%2 != 0 {
		open = func(so softcuda.Options, opts ...cuda.Option) (*cuda.Driver, error) {
			return softcuda.New(so, opts...), nil
		}
	}
	d, err := open(softcuda.Options{Faults: o.faults()}, opts...)
	noErr(o, err)
	o.dev, err = d.Device(0)
	noErr(o, err)
	for i := range o.streams {
		o.streams[i].Store(o.fresh(i))
	}
	var all sync.WaitGroup
	for g := range uint64(5) {
		all.Go(func() { o.goroutine(rand.New(rand.NewPCG(o.seed, g))) })
	}
	all.Wait()
	for i := range o.streams {
		noErr(o, o.streams[i].Load().Close())
	}
	s, err := o.dev.NewStream(cuda.Blocking()) // which waits until no stream is held
	noErr(o, err)
	noErr(o, s.Close())
	noErr(o, d.Close())
	if o.accepted.Load() != o.ended.Load() {
		o.Errorf("seed %d: %d accepted, %d ended", o.seed, o.accepted.Load(), o.ended.Load())
	}
	if st := d.Stats(); st != (cuda.Stats{}) {
		o.Errorf("seed %d: left: %+v", o.seed, st)
	}
}

// fresh is a new stream for a place in streams.
func (o *taskOrder) fresh(i int) *cuda.Stream {
	var opts []cuda.StreamOption
	switch i {
	case len(o.streams) - 1:
		return o.dev.DefaultStream()
	case len(o.streams) - 2:
		opts = append(opts, cuda.Blocking())
	}
	s, err := o.dev.NewStream(opts...)
	if err != nil {
		o.Error(err)
	}
	return s
}

func (o *taskOrder) goroutine(r *rand.Rand) {
	e, err := o.dev.NewEvent()
	for err != nil && o.refuses {
		e, err = o.dev.NewEvent()
	}
	if err != nil {
		o.Error(err)
		return
	}
	defer e.Close()
	for range 30 {
		switch n := r.IntN(12); {
		case n < 4:
			var err error
			if r.IntN(40) == 0 {
				err = errors.New("mine")
			}
			wait := time.Duration(r.IntN(300)) * time.Microsecond
			o.task(r, o.any(r), func(context.Context) error { time.Sleep(wait); return err })
		case n < 8:
			o.pair(r, e)
		case n == 8:
			i := r.IntN(len(o.streams) - 1)
			if err := o.streams[i].Swap(o.fresh(i)).Close(); err != nil {
				o.Error(err)
			}
		case n == 9:
			o.any(r).Sync()
		case n == 10:
			e.Sync()
		case !o.refuses:
			o.threadStream(r)
		}
	}
}

func (o *taskOrder) any(r *rand.Rand) *cuda.Stream { return o.streams[r.IntN(len(o.streams))].Load() }

// once counts an end, and finds a second one.
func (o *taskOrder) once() cuda.HostOption {
	var told atomic.Bool
	return cuda.OnDone(func(error) {
		o.ended.Add(1)
		if told.Swap(true) {
			o.Errorf("seed %d: told twice", o.seed)
		}
	})
}

// accept counts what was accepted.
func (o *taskOrder) accept(err error) error {
	if err == nil {
		o.accepted.Add(1)
	}
	return err
}

func (o *taskOrder) task(r *rand.Rand, s *cuda.Stream, fn func(context.Context) error) error {
	opts := []cuda.HostOption{o.once(), cuda.SyncMode(cuda.HostSyncMode(r.IntN(2)))}
	if r.IntN(3) == 0 {
		opts = append(opts, cuda.StopOnError())
	}
	_, err := cuda.Go(s, fn, opts...)
	return o.accept(err)
}

// pair queues a function on a stream, and behind it, by an event or WaitStream, another on another. Nothing is promised if one of the
// calls is refused, or if the first never runs.
func (o *taskOrder) pair(r *rand.Rand, e *cuda.Event) {
	var first atomic.Bool
	from, to := o.any(r), o.any(r)
	if o.accept(cuda.HostLaunch(from, func() { first.Store(true) }, o.once(), cuda.SyncMode(cuda.HostSyncMode(r.IntN(2))))) != nil {
		return
	}
	if r.IntN(2) == 0 {
		if from.Record(e) != nil || to.WaitEvent(e) != nil {
			return
		}
		if r.IntN(2) == 0 {
			o.any(r).Record(e) // changes nothing
		}
	} else if to.WaitStream(from) != nil {
		return
	}
	check := func() {
		if first.Load() {
			return
		}
		time.Sleep(20 * time.Millisecond)
		if first.Load() {
			o.Errorf("seed %d: what is behind a function ran before it", o.seed)
		}
	}
	switch r.IntN(3) {
	case 0:
		o.accept(cuda.AddCallback(to, func(error) { check() }, o.once()))
	case 1:
		o.task(r, to, func(context.Context) error { check(); return nil })
	default:
		o.accept(cuda.HostLaunch(to, check, o.once()))
	}
}

// threadStream has two tasks run on the per-thread stream, in their order.
func (o *taskOrder) threadStream(r *rand.Rand) {
	err := o.dev.WithThreadStream(func(s *cuda.Stream) error {
		var first, second atomic.Bool
		err := errors.Join(
			o.task(r, s, func(context.Context) error { time.Sleep(50 * time.Microsecond); first.Store(true); return nil }),
			o.task(r, s, func(context.Context) error { second.Store(first.Load()); return nil }),
			s.Sync())
		if !second.Load() {
			o.Errorf("seed %d: the second task of a per-thread stream did not come after the first", o.seed)
		}
		return err
	})
	if err != nil {
		o.Errorf("seed %d: %v", o.seed, err)
	}
}
