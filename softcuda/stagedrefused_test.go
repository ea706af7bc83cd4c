package softcuda_test

import (
	"context"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestPoolAfterRefusal: a copy of which the driver refuses the very first call leaves nothing in its pool.
func TestPoolAfterRefusal(t *testing.T) {
	for _, call := range []string{"StreamBatchMemOp", "MemcpyDtoHAsync", "MemcpyHtoDAsync"} {
		f, _, dev := openFaulty(t, 0)
		pool, err := dev.NewPinnedPool(64 << 10)
		noErr(t, err)
		s := newStreams(t, dev, 1)[0]
		b, err := dev.Alloc(100_000)
		noErr(t, err)
		p := make([]byte, 100_000)
		copyIt := func() error {
			if call == "MemcpyDtoHAsync" {
				return cuda.CopyToHost(s, p, b, cuda.Staging(pool))
			}
			return cuda.CopyToDevice(s, b, p, cuda.Staging(pool))
		}
		noErr(t, f.Add(softcuda.Fault{Call: call, Result: cuda.ErrOperatingSystem}))
		is(t, copyIt(), cuda.ErrOperatingSystem)
		noErr(t, s.Sync())
		for range 3 {
			if err := copyIt(); err != nil {
				t.Errorf("%s: later: %v", call, err)
				break
			}
		}
		noErr(t, s.Sync())
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if _, err := pool.Get(ctx, 64<<10); err != nil {
			t.Errorf("%s: %v", call, err)
		}
		cancel()
	}
}

// TestRingAfterRefusals: the ring survives 300 refusals.
func TestRingAfterRefusals(t *testing.T) {
	f, _, dev := openFaulty(t, 0)
	s := newStreams(t, dev, 1)[0]
	b, err := dev.Alloc(4096)
	noErr(t, err)
	p := make([]byte, 4096)
	for i := range 300 {
		noErr(t, f.Add(softcuda.Fault{Call: "MemcpyDtoHAsync", Result: cuda.ErrOperatingSystem}))
		if err := cuda.CopyToHost(s, p, b); err == nil {
			t.Fatal(i)
		}
		f.Clear()
		noErr(t, s.Sync())
		if err := cuda.CopyToHost(s, p, b); err != nil {
			t.Fatalf("after %d refusals: %v", i+1, err)
		}
		noErr(t, s.Sync())
	}
}
