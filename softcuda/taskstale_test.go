package softcuda_test

import (
	"context"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestTaskWaitStreamRefused: a wait for a stream whose record the driver refuses, in its turn, waits for nothing: not for what the
// library's own event was last recorded behind.
func TestTaskWaitStreamRefused(t *testing.T) {
	f := new(softcuda.Faults)
	third := make(chan *cuda.Stream, 1)
	dev, s, end := waitingTask(t, f, func() error { return (<-third).Sync() })
	third <- s[2]
	noErr(t, s[1].WaitStream(s[0])) // by an event of the library's, which goes back to it, recorded behind the task
	s[1] = newStreams(t, dev, 1)[0]
	goes := make(chan struct{})
	stops, err := cuda.Go(s[1], func(context.Context) error {
		<-goes
		return nil
	}, cuda.StopOnError()) // so that the record waits in the library
	noErr(t, err)
	noErr(t, s[2].WaitStream(s[1]))
	noErr(t, f.Add(softcuda.Fault{Call: "EventRecord", Times: 1, Result: cuda.ErrUnknown}))
	close(goes)
	noErr(t, stops.Wait(context.Background()))
	noErr(t, end())
}
