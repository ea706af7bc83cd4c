package softcuda_test

import (
	stdctx "context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// greenBorrowed are a green context's stream and two Streams borrowed of it, for runs of fn.
func greenBorrowed(t *testing.T, fn func(dev *cuda.Device, s, b *cuda.Stream)) {
	t.Helper()
	for what, borrow := range map[string]func(*cuda.Device, *cuda.Stream) (*cuda.Stream, error){
		"StreamOf":     func(dev *cuda.Device, s *cuda.Stream) (*cuda.Stream, error) { return dev.StreamOf(s) },
		"BorrowStream": func(dev *cuda.Device, s *cuda.Stream) (*cuda.Stream, error) { return dev.BorrowStream(s.CUDAStream()) },
	} {
		t.Run(what, func(t *testing.T) {
			d, dev := openSeeded(t, softcuda.Options{})
			defer d.Close()
			s := must(must(dev.NewGreenContext(must(dev.SMResource()))).NewStream())
			fn(dev, s, must(borrow(dev, s)))
			runtime.KeepAlive(s) // which a handle does not
		})
	}
}

// TestGreenBorrowedWait: TK-03, a task of a green context's stream that waits for that stream by a borrowed Stream is a deadlock as well.
func TestGreenBorrowedWait(t *testing.T) {
	greenBorrowed(t, func(dev *cuda.Device, s, b *cuda.Stream) {
		task, err := cuda.Go(s, func(stdctx.Context) error {
			ctx, cancel := stdctx.WithTimeout(stdctx.Background(), 2*time.Second)
			defer cancel()
			return b.Wait(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := task.Wait(stdctx.Background()); !errors.Is(err, cuda.ErrDeadlock) {
			t.Errorf("%v; want ErrDeadlock", err)
		}
	})
}

// TestGreenBorrowedContexts: ST-09, of a borrowed stream the green context is that which the program made. One that it has only of there is
// not closed by the collector, nor is its Context.
func TestGreenBorrowedContexts(t *testing.T) {
	greenBorrowed(t, func(dev *cuda.Device, s, b *cuda.Stream) {
		_, of, err := b.Contexts()
		if err != nil {
			t.Fatal(err)
		}
		c := b.Context()
		if err := errors.Join(b.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
		s, b = nil, nil
		for range 5 {
			runtime.GC()
			if _, err := dev.SMResource(); err != nil { // has what was dropped be closed
				t.Fatal(err)
			}
			time.Sleep(5 * time.Millisecond)
		}
		if e, err := c.NewEvent(); err != nil {
			t.Errorf("an event of its Context: %v", err)
		} else if err := e.Close(); err != nil {
			t.Error(err)
		}
		if s, err := of.NewStream(); err != nil {
			t.Errorf("a stream of it: %v", err)
		} else if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := of.Close(); err != nil {
			t.Error(err)
		}
		if n := dev.Driver().Stats().GreenContexts; n != 0 {
			t.Errorf("%d green contexts are open", n)
		}
	})
}
