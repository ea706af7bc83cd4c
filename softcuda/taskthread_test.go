package softcuda_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestThreadStreamRoom: Go on the per-thread stream waits for room, is ErrDeadlock in the task that has it, and bears refusals.
func TestThreadStreamRoom(t *testing.T) {
	f := new(softcuda.Faults)
	d := softcuda.New(softcuda.Options{Faults: f}, cuda.MaxHeldStreams(1))
	defer d.Close()
	dev, err := d.Device(0)
	noErr(t, err)
	nothing := func(context.Context) error { return nil }
	var inside error
	holder, err := cuda.Go(newStreams(t, dev, 1)[0], func(context.Context) error {
		inside = dev.WithThreadStream(func(s *cuda.Stream) error {
			_, err := cuda.Go(s, nothing)
			return err
		})
		time.Sleep(5 * time.Millisecond)
		return nil
	})
	noErr(t, err)
	for i := range 30 {
		refused := i%3 == 2
		if refused {
			noErr(t, f.Add(softcuda.Fault{Call: "StreamWaitValue32", Result: cuda.ErrUnknown}))
		}
		noErr(t, dev.WithThreadStream(func(s *cuda.Stream) error {
			var over, late atomic.Bool
			_, err := cuda.Go(s, func(context.Context) error { time.Sleep(time.Millisecond); over.Store(true); return nil })
			if err != nil && !refused {
				t.Error(err)
			}
			noErr(t, cuda.HostLaunch(s, func() { late.Store(err == nil && !over.Load()) }))
			if err := s.Sync(); err != nil || late.Load() {
				t.Errorf("round %d: Sync = %v, and the function ran before the task was over: %v", i, err, late.Load())
			}
			return nil
		}))
	}
	<-holder.Done()
	is(t, inside, cuda.ErrDeadlock)
	s, err := dev.NewStream(cuda.Blocking()) // which waits until no stream is held
	noErr(t, err)
	noErr(t, s.Close())
}
