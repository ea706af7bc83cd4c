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

// TestGraphTaskBesideFree: TK-03, memory is being freed, which waits for the device, when a graph's task begins. What the task has to wait
// behind for its turn, one of Go that has yet to hold its stream, does not wait for the end of the freeing, which is behind the graph's
// task.
func TestGraphTaskBesideFree(t *testing.T) {
	f := new(softcuda.Faults)
	d, dev := openSeeded(t, softcuda.Options{Faults: f})
	var s [3]*cuda.Stream
	for i := range s {
		s[i] = must(dev.NewStream())
	}
	word, memory := must(dev.AllocPinned(4)), must(dev.Alloc(4))
	nothing := func(context.Context) error { return nil }
	x := must(must(cuda.Capture(s[0], cuda.CaptureRelaxed, func(b *cuda.GraphBuilder) error { return b.Memset(memory, 0) })).Instantiate())
	inside, over := make(chan error, 1), make(chan error, 1)
	g := must(must(cuda.Capture(s[0], cuda.CaptureRelaxed, func(b *cuda.GraphBuilder) error {
		return b.Task(func(context.Context) error {
			_, err := cuda.Go(s[2], nothing)
			inside <- errors.Join(err, x.Launch(s[2]))
			return nil
		})
	})).Instantiate())
	if err := s[0].WaitValue32(word.Word(0), cuda.ValueEQ, 1); err != nil { // keeps the device busy
		t.Fatal(err)
	}
	freed := must(dev.Alloc(4))
	go func() { over <- freed.Close() }()
	for f.Calls("cuMemFree") == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := g.Launch(s[1]); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-inside:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatalf("the graph's task waits for the freeing\n%s", allGoroutines())
	}
	atomic.StoreUint32(&cuda.PinnedSlice[uint32](word)[0], 1)
	if err := errors.Join(<-over, d.Close()); err != nil {
		t.Error(err)
	}
}
