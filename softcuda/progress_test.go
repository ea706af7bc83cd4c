package softcuda_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestPoolGetWhileClosed: who waits for a block when the Driver is closed is told so.
func TestPoolGetWhileClosed(t *testing.T) {
	_, d, dev := openFaulty(t, 0)
	pool, err := dev.NewPinnedPool(4096)
	noErr(t, err)
	b, err := pool.Get(t.Context(), 4096)
	noErr(t, err)
	got := make(chan error, 1)
	go func() {
		_, err := pool.Get(context.Background(), 1)
		got <- err
	}()
	time.Sleep(10 * time.Millisecond)
	noErr(t, d.Close())
	b.Release()
	select {
	case err := <-got:
		is(t, err, cuda.ErrClosed)
	case <-time.After(5 * time.Second):
		t.Error("Get waits on")
	}
}

// TestReleaseAfterRefused: a ReleaseAfter that the driver refuses leaves the block to the caller: nobody else gets what is in use.
func TestReleaseAfterRefused(t *testing.T) {
	f, _, dev := openFaulty(t, 0)
	s := newStreams(t, dev, 1)[0]
	pool, err := dev.NewPinnedPool(4096)
	noErr(t, err)
	b, err := pool.Get(t.Context(), 4096)
	noErr(t, err)
	gate := make(chan struct{})
	noErr(t, cuda.HostLaunch(s, func() { <-gate; b.Bytes() }))
	noErr(t, f.Add(softcuda.Fault{Call: "NotifyEvent", Result: cuda.ErrOperatingSystem}))
	is(t, b.ReleaseAfter(s), cuda.ErrOperatingSystem)
	if _, ok, err := pool.TryGet(4096); ok || err != nil {
		t.Errorf("the block is given to another: %v, %v", ok, err)
	}
	close(gate)
	noErr(t, s.Sync())
	b.Release()
	if _, ok, err := pool.TryGet(4096); !ok || err != nil {
		t.Errorf("the block is not back: %v, %v", ok, err)
	}
}

// TestProgressOfLost: bytes that a lost device will never copy do not count.
func TestProgressOfLost(t *testing.T) {
	for _, toHost := range []bool{false, true} {
		f, _, dev := openFaulty(t, 0)
		s := newStreams(t, dev, 1)[0]
		const n = 4 << 20
		b, err := dev.Alloc(n)
		noErr(t, err)
		gate := make(chan struct{})
		noErr(t, cuda.HostLaunch(s, func() { <-gate }))
		var p cuda.CopyProgress
		done := make(chan error, 1)
		opts := []cuda.CopyOption{cuda.Progress(&p), cuda.CopyDone(func(err error) { done <- err })}
		if toHost {
			noErr(t, cuda.CopyToHost(s, make([]byte, n), b, opts...))
		} else {
			noErr(t, cuda.CopyToDevice(s, b, make([]byte, n), opts...))
		}
		noErr(t, f.LoseDevice(0, cuda.ErrECCUncorrectable))
		s.Sync()
		if err := <-done; !errors.Is(err, cuda.ErrDeviceLost) {
			t.Error(err)
		}
		close(gate)
		if p.BytesDone() != 0 {
			t.Errorf("to the host %v: %d bytes of %d are done, of a copy that the device never came to", toHost, p.BytesDone(), p.BytesTotal())
		}
	}
}

// TestProgressOfRefused: what is not queued is not to be copied either: a copy that is tried again comes to its end.
func TestProgressOfRefused(t *testing.T) {
	f, _, dev := openFaulty(t, 0)
	s := newStreams(t, dev, 1)[0]
	const n = 4 << 20
	b, err := dev.Alloc(n)
	noErr(t, err)
	pinned, err := dev.AllocPinned(n)
	noErr(t, err)
	ordinary := make([]byte, n)
	up := func(o cuda.CopyOption) error { return cuda.CopyToDevice(s, b, ordinary, o) }
	down := func(o cuda.CopyOption) error { return cuda.CopyToHost(s, ordinary, b, o) }
	direct := func(o cuda.CopyOption) error { return cuda.CopyToHost(s, pinned.Bytes(), b, o) }
	for _, c := range []struct {
		call  string
		after int
		queue func(o cuda.CopyOption) error
	}{
		{"StreamBatchMemOp", 0, up}, {"MemcpyHtoDAsync", 0, up}, {"MemcpyHtoDAsync", 2, up}, {"StreamBatchMemOp", 3, up}, {"EventRecord", 0, up},
		{"MemcpyDtoHAsync", 0, down}, {"MemcpyDtoHAsync", 2, down}, {"StreamBatchMemOp", 0, down}, {"StreamBatchMemOp", 3, down}, {"EventRecord", 0, down},
		{"EventRecord", 0, direct}, {"NotifyEvent", 0, direct},
	} {
		var p cuda.CopyProgress
		comesTo := func(what string, least int64) {
			t.Helper()
			for deadline := time.Now().Add(time.Second); p.BytesDone() < p.BytesTotal() && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			if done, total := p.BytesDone(), p.BytesTotal(); done != total || done < least {
				t.Errorf("%s %d, %s: %d bytes of %d", c.call, c.after, what, done, total)
			}
		}
		noErr(t, f.Add(softcuda.Fault{Call: c.call, After: c.after, Result: cuda.ErrOperatingSystem}))
		is(t, c.queue(cuda.Progress(&p)), cuda.ErrOperatingSystem)
		f.Clear()
		noErr(t, s.Sync())
		comesTo("refused", 0)
		noErr(t, c.queue(cuda.Progress(&p)))
		noErr(t, s.Sync())
		comesTo("again", n)
	}
}
