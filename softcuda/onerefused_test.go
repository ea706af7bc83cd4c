package softcuda_test

import (
	"context"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestStreamPoolRefused: streams for tasks that could not be made with the first task are made with a later one.
func TestStreamPoolRefused(t *testing.T) {
	f, _, dev := openFaulty(t, 0)
	s := must(dev.NewStream())
	noErr(t, f.Add(softcuda.Fault{Call: "StreamCreateWithPriority", Result: cuda.ErrOutOfMemory}))
	noErr(t, must(cuda.Go(s, short)).Wait(context.Background()))
	f.Clear()
	noErr(t, s.Sync())
	for range 2 {
		err := must(cuda.Go(s, func(context.Context) error {
			own, err := dev.NewStream()
			if err != nil {
				return err
			}
			return own.Close()
		})).Wait(context.Background())
		noErr(t, s.Sync())
		if err != nil {
			t.Errorf("NewStream in a task: %v", err)
		}
	}
}

// TestFlagsRefused: that the driver once did not say whether a stream is ordered with the legacy one is not taken for that it is not.
func TestFlagsRefused(t *testing.T) {
	f := new(softcuda.Faults)
	drv, dev := openSeeded(t, softcuda.Options{Faults: f}, cuda.MaxHeldStreams(1))
	s, held := must(dev.NewStream(cuda.Blocking())), must(dev.NewStream())
	borrowed := must(dev.BorrowStream(s.CUDAStream()))
	gate := make(chan struct{})
	must(cuda.Go(held, func(context.Context) error { <-gate; return nil }))
	for _, on := range []*cuda.Stream{s, borrowed} {
		noErr(t, f.Add(softcuda.Fault{Call: "StreamGetFlags", Result: cuda.ErrOperatingSystem}))
		ended, ran := false, make(chan bool, 1)
		task := must(cuda.Go(on, func(context.Context) error {
			time.Sleep(2 * time.Millisecond)
			ended = true
			return nil
		}))
		noErr(t, cuda.HostLaunch(dev.DefaultStream(), func() { ran <- ended }))
		if on == s {
			close(gate)
		}
		noErr(t, task.Wait(context.Background()))
		if !<-ran {
			t.Error("what is behind the task in the legacy stream ran before its end")
		}
		f.Clear()
	}
	noErr(t, drv.Close())
}

// TestContextClosedWhileStreamsAreMade: Context.Close waits for the streams that are being made for tasks, and destroys those too.
func TestContextClosedWhileStreamsAreMade(t *testing.T) {
	const delay = 50 * time.Millisecond
	f, _, dev := openFaulty(t, 0)
	own := must(dev.NewContext())
	s, held, gate := own.DefaultStream(), must(dev.NewStream()), make(chan struct{})
	first := must(cuda.Go(held, func(context.Context) error { <-gate; return nil }))
	noErr(t, must(cuda.Go(s, short)).Wait(context.Background())) // no streams are made while the other task holds one
	noErr(t, s.Sync())
	noErr(t, f.Add(softcuda.Fault{Call: "StreamCreateWithPriority", Delay: delay}))
	close(gate)
	noErr(t, first.Wait(context.Background()))
	for f.Struck() == 0 {
		time.Sleep(100 * time.Microsecond)
	}
	start := time.Now()
	noErr(t, own.Close())
	if d := time.Since(start); d < delay/2 {
		t.Errorf("Close returned after %v, while a stream was being made in the context", d)
	}
}

// TestEndCaptureRefused: a capture that the driver would not end once is over all the same: a task on the stream begins.
func TestEndCaptureRefused(t *testing.T) {
	f, _, dev := openFaulty(t, 0)
	s := must(dev.NewStream())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	noErr(t, f.Add(softcuda.Fault{Call: "StreamEndCapture", Result: cuda.ErrOutOfMemory}))
	_, err := cuda.Capture(s, cuda.CaptureRelaxed, func(b *cuda.GraphBuilder) error { return b.Task(short) })
	is(t, err, cuda.ErrOutOfMemory)
	noErr(t, must(cuda.Go(s, short)).Wait(ctx))
	noErr(t, must(cuda.Go(dev.DefaultStream(), short)).Wait(ctx))
	noErr(t, s.Sync())
}
