package softcuda_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestTaskHoldRefused: a task whose stream cannot be held keeps nobody who queues it. Here a graph's task does, and so it cannot begin
// before that one ends: it is refused.
func TestTaskHoldRefused(t *testing.T) {
	f := new(softcuda.Faults)
	d := softcuda.New(softcuda.Options{Faults: f})
	defer d.Close()
	dev, err := d.Device(0)
	noErr(t, err)
	s := newStreams(t, dev, 2)
	noErr(t, f.Add(softcuda.Fault{Call: "StreamWaitValue32", Times: 1, Result: cuda.ErrUnknown}))
	var ran atomic.Bool
	inside := make(chan error, 1)
	g, err := cuda.Capture(s[0], cuda.CaptureRelaxed, func(b *cuda.GraphBuilder) error {
		return b.Task(func(context.Context) error {
			_, err := cuda.Go(s[1], func(context.Context) error {
				ran.Store(true)
				return nil
			})
			inside <- err
			return nil
		})
	})
	noErr(t, err)
	x, err := g.Instantiate()
	noErr(t, err)
	noErr(t, x.Launch(s[0]))
	is(t, <-inside, cuda.ErrUnknown)
	noErr(t, s[0].Sync())
	noErr(t, s[1].Sync())
	if ran.Load() {
		t.Error("the refused task ran")
	}
}

// TestTaskHoldRefusedBegun: a task whose stream has come to it before it turns out that it cannot be held runs, and what is behind it waits.
func TestTaskHoldRefusedBegun(t *testing.T) {
	f := new(softcuda.Faults)
	d := softcuda.New(softcuda.Options{Faults: f})
	defer d.Close()
	dev, err := d.Device(0)
	noErr(t, err)
	s := newStreams(t, dev, 1)[0]
	for range 200 {
		noErr(t, f.Add(softcuda.Fault{Call: "StreamWaitValue32", Times: 1, Result: cuda.ErrUnknown}))
		var ended, early atomic.Bool
		_, err := cuda.Go(s, func(context.Context) error {
			runtime.Gosched()
			ended.Store(true)
			return nil
		})
		noErr(t, cuda.HostLaunch(s, func() { early.Store(!ended.Load()) }))
		noErr(t, s.Sync())
		if refused := err != nil; refused == ended.Load() || !refused && early.Load() {
			t.Fatalf("refused: %v, ran: %v, what is behind it ran before its end: %v", err, ended.Load(), early.Load())
		}
	}
}
