package softcuda_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestStagedWithoutEvent: a staged copy for which the driver has no event is refused with the driver's reason, once, and leaves its pool
// as it was.
func TestStagedWithoutEvent(t *testing.T) {
	f, _, dev := openFaulty(t, 0)
	pool, err := dev.NewPinnedPool(1 << 20)
	noErr(t, err)
	s := newStreams(t, dev, 1)[0]
	b, err := dev.Alloc(100_000)
	noErr(t, err)
	data := make([]byte, 100_000)
	noErr(t, f.Add(softcuda.Fault{Call: "cuEventCreate", Times: -1, Result: cuda.ErrOperatingSystem}))
	refused := make(chan error, 1)
	go func() { refused <- cuda.CopyToDevice(s, b, data, cuda.Staging(pool)) }()
	select {
	case err := <-refused:
		if !errors.Is(err, cuda.ErrOperatingSystem) {
			t.Errorf("refused with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the call does not return")
	}
	f.Clear()
	noErr(t, cuda.CopyToDevice(s, b, data, cuda.Staging(pool)))
	noErr(t, s.Sync())
}

// TestStagedRefusedMidway: a staged copy of which the driver refuses any one part is an error, hangs nothing, and leaves its pool of use.
func TestStagedRefusedMidway(t *testing.T) {
	const n = 3 << 20
	for _, size := range []int{256 << 10, 4 << 20} { // pools for a slot, and for several
		for _, call := range []string{"cuStreamBatchMemOp", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuEventRecord"} {
			for nth := 1; nth <= 6; nth++ {
				f, d, dev := openFaulty(t, 0)
				pool, err := dev.NewPinnedPool(size)
				noErr(t, err)
				s := newStreams(t, dev, 1)[0]
				b, err := dev.Alloc(n)
				noErr(t, err)
				noErr(t, f.Add(softcuda.Fault{Call: call, After: nth - 1, Result: cuda.ErrOperatingSystem}))
				up := cuda.CopyToDevice(s, b, make([]byte, n), cuda.Staging(pool))
				down := cuda.CopyToHost(s, make([]byte, n), b, cuda.Staging(pool))
				for _, err := range []error{up, down} {
					if err != nil && !errors.Is(err, cuda.ErrOperatingSystem) {
						t.Errorf("%s, %d: %v", call, nth, err)
					}
				}
				noErr(t, s.Sync())
				noErr(t, pool.Close())
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				if err := d.Shutdown(ctx); err != nil {
					t.Fatalf("%s, %d: up %v, down %v, then %v", call, nth, up, down, err)
				}
				cancel()
			}
		}
	}
}
