package softcuda_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

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

// TestCloseBehindGraphTask: Close waits for a task of a graph as for those of Go: it may use CUDA to its end, and so may the tasks
// that it begins meanwhile, also one that waits in the library.
func TestCloseBehindGraphTask(t *testing.T) {
	for range 20 {
		d := softcuda.New(softcuda.Options{}, cuda.MaxHeldStreams(1))
		dev, err := d.Device(0)
		noErr(t, err)
		s := newStreams(t, dev, 3)
		var tasks atomic.Int32
		use := func(context.Context) error {
			time.Sleep(time.Millisecond)
			b, err := dev.Alloc(64)
			if err == nil {
				err = errors.Join(s[0].Memset(b, 1), b.Close())
			}
			if tasks.Add(1); err != nil {
				t.Error(err)
			}
			return nil
		}
		closing := make(chan struct{})
		g := must(cuda.Capture(s[0], cuda.CaptureRelaxed, func(b *cuda.GraphBuilder) error {
			return b.Task(func(ctx context.Context) error {
				<-closing
				for _, other := range s[1:] {
					if _, err := cuda.Go(other, use); err != nil {
						t.Error(err)
					}
				}
				return nil
			})
		}))
		noErr(t, must(g.Instantiate()).Launch(s[0]))
		closed := make(chan error)
		go func() { closed <- d.Close() }()
		for !errors.Is(s[1].Sync(), cuda.ErrClosed) {
			time.Sleep(100 * time.Microsecond)
		}
		time.Sleep(time.Millisecond)
		close(closing)
		noErr(t, <-closed)
		if st := d.Stats(); tasks.Load() != 2 || st != (cuda.Stats{}) {
			t.Fatalf("%d of 2 tasks have run; left: %+v", tasks.Load(), st)
		}
	}
}
