package softcuda_test

import (
	"context"
	"fmt"
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

// TestPoolAfterRefusalMidway: a copy of which the driver refuses something when the device has begun to use a slot keeps that only until
// what is queued is done, and who finds no room meanwhile does not wait.
func TestPoolAfterRefusalMidway(t *testing.T) {
	for _, room := range []int{4 << 10, 8 << 10, 16 << 10} { // the smallest has one slot
		t.Run(fmt.Sprint(room), func(t *testing.T) { poolAfterRefusalMidway(t, room) })
	}
}

func poolAfterRefusalMidway(t *testing.T, room int) {
	f, _, dev := openFaulty(t, 0)
	pool := must(dev.NewPinnedPool(room))
	s, b, p := must(dev.NewStream()), must(dev.Alloc(100_000)), make([]byte, 100_000)
	copies := map[string]func() error{
		"up":   func() error { return cuda.CopyToDevice(s, b, p, cuda.Staging(pool)) },
		"down": func() error { return cuda.CopyToHost(s, p, b, cuda.Staging(pool)) },
	}
	for name, copyIt := range copies {
		for after := range 4 {
			gate := make(chan struct{})
			noErr(t, cuda.HostLaunch(s, func() { <-gate }))
			noErr(t, f.Add(softcuda.Fault{Call: "StreamBatchMemOp", After: after, Result: cuda.ErrOperatingSystem}))
			refused := make(chan error, 1)
			go func() { refused <- copyIt() }()
			for deadline := time.Now().Add(20 * time.Millisecond); f.Struck() == 0; time.Sleep(100 * time.Microsecond) {
				select {
				case <-gate:
				default:
					if time.Now().After(deadline) { // it may be waiting for the workers, and those for the device
						close(gate)
					}
				}
			}
			is(t, <-refused, cuda.ErrOperatingSystem)
			select {
			case <-gate:
			default:
				other, more := make(chan error, 1), must(dev.NewStream())
				go func() { other <- cuda.CopyToDevice(more, b, p, cuda.Staging(pool)) }()
				select {
				case <-other:
				case <-time.After(3 * time.Second):
					t.Errorf("%s %d: a copy waits for another stream's work", name, after)
				}
				close(gate)
				noErr(t, more.Sync())
			}
			noErr(t, s.Sync())
			f.Clear()
			if err := copyIt(); err != nil {
				t.Errorf("%s %d: later: %v", name, after, err)
			}
			noErr(t, s.Sync())
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := pool.Get(ctx, room)
	noErr(t, err)
}
