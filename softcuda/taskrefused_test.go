package softcuda_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestTaskHoldRefused: a task whose stream cannot be held keeps nobody: what is queued behind it waits in the library. Here a graph's
// task queues it, and so it cannot begin before that one ends.
func TestTaskHoldRefused(t *testing.T) {
	f := new(softcuda.Faults)
	d := softcuda.New(softcuda.Options{Faults: f})
	defer d.Close()
	dev, err := d.Device(0)
	noErr(t, err)
	s := newStreams(t, dev, 2)
	noErr(t, f.Add(softcuda.Fault{Call: "StreamWaitValue32", Times: 1, Result: cuda.ErrUnknown}))
	release := make(chan struct{})
	var after, early atomic.Bool
	inside := make(chan error, 1)
	g, err := cuda.Capture(s[0], cuda.CaptureRelaxed, func(b *cuda.GraphBuilder) error {
		return b.Task(func(context.Context) error {
			_, err := cuda.Go(s[1], func(context.Context) error {
				<-release
				early.Store(after.Load())
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
	noErr(t, <-inside)
	noErr(t, cuda.HostLaunch(s[1], func() { after.Store(true) }))
	noErr(t, s[0].Sync())
	close(release)
	noErr(t, s[1].Sync())
	if early.Load() || !after.Load() {
		t.Errorf("what is behind the task ran before its end: %v, ran: %v", early.Load(), after.Load())
	}
}
