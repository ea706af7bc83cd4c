package softcuda_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestCallbacksOfLostContext: the device itself runs callbacks when its context fails, at once, in their streams' order, and as
// host functions: CUDA is forbidden inside.
func TestCallbacksOfLostContext(t *testing.T) {
	quiet(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, softcuda.Kernels{"fail": func(*softcuda.Launch) { time.Sleep(time.Second); panic("fail") }})
		order := make(chan int, 40)
		inside := make(chan error, 40)
		start := time.Now()
		r.launch("fail")
		for i := range 40 {
			r.ok(cuda.AddCallback(r.s, func(err error) {
				if !errors.Is(err, cuda.ErrLaunchFailed) {
					t.Errorf("callback %d was told %v", i, err)
				}
				order <- i
				inside <- r.s.Sync()
			}))
		}
		for i := range 40 {
			if n := <-order; n != i {
				t.Errorf("callback %d ran as number %d", n, i)
			}
			if err := <-inside; !errors.Is(err, cuda.ErrNotPermitted) {
				t.Errorf("Sync inside: %v", err)
			}
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("the last ran after %v, want the second that the kernel takes", took)
		}
		r.ok(r.d.Close())
	})
}
