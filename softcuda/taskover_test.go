package softcuda_test

import (
	"context"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestTaskOver: TK-05, who has waited for a task, or for its stream, finds it over everywhere, with Spin and without.
func TestTaskOver(t *testing.T) {
	for _, mode := range []cuda.HostSyncMode{cuda.Block, cuda.Spin} {
		d, err := softcuda.NewSpinning(softcuda.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		dev, err := d.Device(0)
		if err != nil {
			t.Fatal(err)
		}
		s, err := dev.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		wrong := 0
		for i := range 1000 {
			k, err := cuda.Go(s, func(context.Context) error { return nil }, cuda.SyncMode(mode))
			if err == nil && i%2 == 0 {
				err = k.Wait(t.Context())
			} else if err == nil {
				err = s.Sync()
			}
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-k.Done():
			default:
				t.Fatal("Done is not closed")
			}
			if d.Stats().Tasks != 0 {
				wrong++
			}
		}
		if wrong > 0 {
			t.Errorf("mode %v: Stats counted the task still %d times", mode, wrong)
		}
	}
}

// TestCloseBehindTask: who has been told by a function that waited behind a task may close its stream and its context at once.
func TestCloseBehindTask(t *testing.T) {
	d := softcuda.New(softcuda.Options{}, cuda.MaxHeldStreams(1))
	defer d.Close()
	dev, err := d.Device(0)
	noErr(t, err)
	other := newStreams(t, dev, 1)[0]
	for range 1500 {
		c, err := dev.NewContext()
		noErr(t, err)
		s, err := c.NewStream()
		noErr(t, err)
		gate, told := make(chan struct{}), make(chan struct{})
		_, err = cuda.Go(other, func(context.Context) error { <-gate; return nil })
		noErr(t, err)
		k, err := cuda.Go(s, func(context.Context) error { return nil }) // waits for room
		noErr(t, err)
		noErr(t, cuda.HostLaunch(s, func() {}, cuda.OnDone(func(error) { close(told) })))
		close(gate)
		<-k.Done()
		<-told
		noErr(t, s.Close())
		noErr(t, c.Close())
	}
}
