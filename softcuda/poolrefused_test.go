package softcuda_test

import (
	stdctx "context"
	"errors"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestPoolRefusedInTask: TK-03, a PinnedPool that comes to nothing for want of memory gives back what it has got when no stream is held: in
// a task that would wait for the task.
func TestPoolRefusedInTask(t *testing.T) {
	const size = 1 << 20
	d, dev := openSeeded(t, softcuda.Options{Memory: size + 512*192 + 8<<10}) // for the blocks, the holds of tasks and little more
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 1)
	task, err := cuda.Go(s, func(stdctx.Context) error {
		_, err := dev.NewPinnedPool(size)
		refused <- err
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-refused:
		if !errors.Is(err, cuda.ErrOutOfMemory) {
			t.Errorf("%v; want ErrOutOfMemory", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("NewPinnedPool waits for the task that it is called in")
	}
	if err := errors.Join(task.Wait(stdctx.Background()), s.Sync()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(3 * time.Second); ; time.Sleep(time.Millisecond) {
		if b, err := dev.AllocPinned(size); err == nil {
			b.Close()
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the memory has not been given back: %v", err)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
