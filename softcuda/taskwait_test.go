package softcuda_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// waitingTask opens a device with three streams, and begins a task on the first of them that calls wait once it has been let go. end
// lets it, and returns what wait did, which must not hang.
func waitingTask(t *testing.T, f *softcuda.Faults, wait func() error) (dev *cuda.Device, s []*cuda.Stream, end func() error) {
	t.Helper()
	d := softcuda.New(softcuda.Options{Faults: f})
	dev, err := d.Device(0)
	noErr(t, err)
	s = newStreams(t, dev, 3)
	goes := make(chan struct{})
	task, err := cuda.Go(s[0], func(context.Context) error {
		<-goes
		return wait()
	})
	noErr(t, err)
	return dev, s, func() error {
		t.Helper()
		close(goes)
		select {
		case <-task.Done():
		case <-time.After(10 * time.Second):
			t.Fatal("the task hangs")
		}
		noErr(t, d.Close())
		return task.Err()
	}
}

// is wants err to be target.
func is(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("got %v, want %v", err, target)
	}
}

// TestTaskWaitFormerLaunch: a launch waits for the executable's former one, and so for what that is behind, on another stream.
func TestTaskWaitFormerLaunch(t *testing.T) {
	var second *cuda.Stream
	dev, s, end := waitingTask(t, nil, func() error { return second.Sync() })
	second = s[1]
	g, err := dev.NewGraph()
	noErr(t, err)
	_, err = g.AddNode(cuda.EmptyParams())
	noErr(t, err)
	x, err := g.Instantiate()
	noErr(t, err)
	noErr(t, x.Launch(s[0])) // behind the task
	noErr(t, x.Launch(s[1]))
	is(t, end(), cuda.ErrDeadlock)
}

// TestTaskWaitRecordRefused: an event is behind what its latest record that was made is behind, whichever of the driver's calls refuses
// another.
func TestTaskWaitRecordRefused(t *testing.T) {
	for _, c := range []struct {
		first, refused int // streams
		want           error
	}{{0, 1, cuda.ErrDeadlock}, {1, 0, nil}} {
		for after := range 2 {
			f := new(softcuda.Faults)
			var e *cuda.Event
			dev, s, end := waitingTask(t, f, func() error { return e.Sync() })
			var err error
			e, err = dev.NewEvent()
			noErr(t, err)
			noErr(t, s[c.first].Record(e))
			noErr(t, f.Add(softcuda.Fault{Call: "EventRecord", After: after, Times: 1, Result: cuda.ErrUnknown}))
			is(t, s[c.refused].Record(e), cuda.ErrUnknown)
			is(t, end(), c.want)
		}
	}
}

// TestTaskWaitRecordedAnew: a task waits for the record that it was found to be free to wait for, though the event is recorded behind the
// task meanwhile.
func TestTaskWaitRecordedAnew(t *testing.T) {
	for _, wait := range []func(*cuda.Event) error{
		(*cuda.Event).Sync, func(e *cuda.Event) error { return e.Wait(context.Background()) },
	} {
		var e *cuda.Event
		waits := make(chan struct{})
		dev, s, end := waitingTask(t, nil, func() error {
			close(waits)
			return wait(e)
		})
		var err error
		e, err = dev.NewEvent()
		noErr(t, err)
		over := make(chan struct{})
		_, err = cuda.Go(s[1], func(context.Context) error {
			<-over
			return nil
		}, cuda.StopOnError()) // so that the record waits in the library
		noErr(t, err)
		noErr(t, s[1].Record(e))
		go func() {
			<-waits
			time.Sleep(20 * time.Millisecond)
			s[0].Record(e)
			close(over)
		}()
		noErr(t, end())
	}
}

// TestBorrowedAltered: a stream made beforehand whose attributes were set by way of StreamOf does not come again.
func TestBorrowedAltered(t *testing.T) {
	d := softcuda.New(softcuda.Options{})
	defer d.Close()
	dev, err := d.Device(0)
	noErr(t, err)
	s := newStreams(t, dev, 1)[0]
	for round := range 3 {
		gate := make(chan struct{})
		k, err := cuda.Go(s, func(context.Context) error { <-gate; return nil })
		noErr(t, err)
		pooled := newStreams(t, dev, 1)[0] // made beforehand, since a stream is held
		if was, err := pooled.SynchronizationPolicy(); err != nil || was == cuda.SyncYield {
			t.Errorf("round %d: a new stream has policy %v, %v", round, was, err)
		}
		b, err := dev.StreamOf(pooled)
		noErr(t, err)
		noErr(t, errors.Join(b.SetSynchronizationPolicy(cuda.SyncYield), b.Close(), pooled.Close()))
		close(gate)
		<-k.Done()
		other, err := dev.NewStream(cuda.Blocking()) // when no stream is held: what was closed has been given back
		noErr(t, err)
		noErr(t, other.Close())
	}
}
