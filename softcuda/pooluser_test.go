package softcuda_test

import (
	"context"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestPoolReleasedByMany: CY-07, a block that several goroutines release at once goes back once: nobody shares its memory.
func TestPoolReleasedByMany(t *testing.T) {
	d := softcuda.New(softcuda.Options{})
	defer d.Close()
	dev, err := d.Device(0)
	noErr(t, err)
	s := newStreams(t, dev, 1)[0]
	const size, blocks = 4096, 4
	pool, err := dev.NewPinnedPool(blocks * size)
	noErr(t, err)
	for range 500 {
		b, err := pool.Get(t.Context(), size)
		noErr(t, err)
		var releases sync.WaitGroup
		releases.Go(func() { b.ReleaseAfter(s) })
		for range 2 {
			releases.Go(b.Release)
		}
		releases.Wait()
		if b.Bytes() != nil {
			t.Fatal("a released block has memory")
		}
	}
	seen := map[*byte]bool{}
	for range blocks {
		b, err := pool.Get(t.Context(), size) // some come back behind the stream
		noErr(t, err)
		if at := unsafe.SliceData(b.Bytes()); seen[at] {
			t.Fatal("a block's memory was given out twice")
		} else {
			seen[at] = true
		}
		defer b.Release()
	}
	if _, ok, err := pool.TryGet(1); ok || err != nil {
		t.Errorf("there is more memory than the pool has: %v", err)
	}
}

// TestPoolClosedWithBlocks: a pool that is closed takes no further copies, though a block keeps its memory, and the error says so.
func TestPoolClosedWithBlocks(t *testing.T) {
	d := softcuda.New(softcuda.Options{})
	defer d.Close()
	s, b := streamAndBuffer(t, d, 100_000)
	pool, err := b.Context().NewPinnedPool(1 << 20)
	noErr(t, err)
	block, err := pool.Get(t.Context(), 1)
	noErr(t, err)
	noErr(t, pool.Close())
	mem := make([]byte, 100_000)
	is(t, cuda.CopyToHost(s, mem, b, cuda.Staging(pool)), cuda.ErrClosed)
	is(t, cuda.CopyToDevice(s, b, mem, cuda.Staging(pool)), cuda.ErrClosed)
	noErr(t, s.Sync())
	block.Release()
}

// TestPoolGetLost: CY-06, who waits for a block is told when the device is lost: the host function that was to release one never runs.
func TestPoolGetLost(t *testing.T) {
	var faults softcuda.Faults
	d := softcuda.New(softcuda.Options{Faults: &faults}, cuda.OnLost(func(*cuda.LostError) {}))
	defer d.Close()
	s, b := streamAndBuffer(t, d, 16)
	pool, err := b.Context().NewPinnedPool(4096)
	noErr(t, err)
	block, err := pool.Get(t.Context(), 4096)
	noErr(t, err)
	goes := make(chan struct{})
	defer close(goes)
	_, err = cuda.Go(s, func(context.Context) error { <-goes; return nil })
	noErr(t, err)
	noErr(t, cuda.HostLaunch(s, block.Release))
	got := make(chan error, 1)
	go func() {
		_, err := pool.Get(context.Background(), 1)
		got <- err
	}()
	time.Sleep(10 * time.Millisecond) // it waits
	noErr(t, faults.LoseDevice(0, cuda.ErrECCUncorrectable))
	select {
	case err := <-got:
		is(t, err, cuda.ErrDeviceLost)
	case <-time.After(5 * time.Second):
		t.Error("Get waits on")
	}
	_, ok, err := pool.TryGet(1)
	if ok {
		t.Error("there is a block")
	}
	is(t, err, cuda.ErrDeviceLost)
	block.Release()
}
