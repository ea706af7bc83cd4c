package cudatest

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hostlaunch/cuda"
)

// pinnedCases: registered memory, pools, rows, and copies between contexts.
var pinnedCases = []Case{
	{ID: "CY-01", Name: "pinned slices", Run: pinnedSlices},
	{ID: "CY-01", Name: "rows", Run: copyRows},
	{ID: "CY-01", Name: "rows that do not fit", Run: rowsRefused},
	{ID: "CY-01", Name: "between contexts", Run: copyBetweenContexts},
	{ID: "CY-07", Name: "an unpinned slice is free of copies", Run: unpinnedAfter},
	{ID: "CY-07", Name: "what cannot be pinned", Run: pinRefused},
	{ID: "CY-07", Name: "a pool's block goes back in stream order", Run: poolInOrder},
	{ID: "CY-07", Name: "a pool's size is bounded", Run: poolBounded},
	{ID: "CY-07", Name: "a pool closed with blocks out", Run: poolClosed},
}

// pinnedSlices: memory of a Go slice, pinned, is copied from and to directly.
func pinnedSlices(t *T) {
	const n = 1 << 18
	s, b := t.Stream(), t.Buffer(4*n)
	vals := make([]float32, n)
	for i := range vals {
		vals[i] = float32(i)
	}
	p, err := cuda.Pin(t.Device(0).Context, vals)
	t.OK(err)
	if p.Len() != 4*n || &cuda.PinnedSlice[float32](p)[1] != &vals[1] {
		t.Errorf("%d bytes, or another slice", p.Len())
	}
	if st := t.Driver.Stats(); st.PinnedBuffers != 1 || st.PinnedBytes != 4*n {
		t.Errorf("%+v", st)
	}
	g := t.Gate(s)
	t.OK(cuda.CopyToDevice(s, b, vals))
	t.OK(cuda.CopyToHost(s, vals[:100], t.Part(b, 400, 400)))
	if t.Driver.Stats().Copies != 0 {
		t.Error("a copy of pinned memory is staged")
	}
	vals[0] = 7 // the copy engine reads it when the stream comes to it
	g.Open()
	t.Sync(s)
	got := make([]float32, n)
	t.OK(cuda.CopyToHost(s, got, b))
	t.Sync(s)
	if got[0] != 7 || got[n-1] != n-1 || vals[0] != 100 || vals[99] != 199 || vals[100] != 100 {
		t.Errorf("got %v, %v; %v, %v, %v", got[0], got[n-1], vals[0], vals[99], vals[100])
	}
	t.OK(p.Close())
	vals[3] = -1 // ordinary memory again
	t.OK(cuda.CopyToDevice(s, b, vals))
	t.OK(cuda.CopyToHost(s, got, b))
	t.Sync(s)
	if !slices.Equal(got, vals) {
		t.Error("the bytes differ when it is not pinned any more")
	}
}

func unpinnedAfter(t *T) {
	s, b, e := t.Stream(), t.Buffer(1<<16), t.Event()
	for range 5 {
		p, err := cuda.Pin(t.Device(0).Context, make([]byte, 1<<16)) // and the slice is dropped
		t.OK(err)
		t.Spin(s, 2*time.Millisecond)
		t.OK(cuda.CopyToHost(s, p.Bytes(), b))
		t.OK(s.Record(e))
		runtime.GC()
		t.OK(p.Close())
		if done, err := e.Query(); !done || err != nil {
			t.Errorf("Query = %v, %v: the memory was unpinned before the copy was done", done, err)
		}
	}
	t.Sync(s)
}

func pinRefused(t *T) {
	c, mem := t.Device(0).Context, make([]byte, 1<<16)
	p, err := cuda.Pin(c, mem[1<<12:1<<13])
	t.OK(err)
	for _, r := range [][2]int{{1 << 12, 1 << 13}, {0, 1 << 16}, {0, 1<<12 + 1}, {1<<13 - 1, 1 << 14}, {5000, 5001}} {
		_, err := cuda.Pin(c, mem[r[0]:r[1]])
		t.Is(err, cuda.ErrHostMemoryAlreadyRegistered)
		t.Contains(err, "overlaps")
	}
	_, err = cuda.Pin(c, t.Pinned(64).Bytes())
	t.Is(err, cuda.ErrHostMemoryAlreadyRegistered)
	t.OK(p.Close())
	t.OK(p.Close())
	again, err := cuda.Pin(c, mem[:1<<16])
	t.OK(err)
	t.OK(again.Close())
	_, err = cuda.Pin(c, mem[:0])
	t.Is(err, cuda.ErrInvalidValue)
	if _, err = cuda.Pin(c, []string{"x"}); !errors.Is(err, cuda.ErrInvalidValue) || !strings.Contains(err.Error(), "string") {
		t.Errorf("a slice of strings: %v", err)
	}
	_, err = cuda.Pin(nil, mem)
	t.Is(err, cuda.ErrInvalidValue)
}

// copyRows takes a rectangle to a device, to another place there, and back, with pitches and beginnings of all kinds. The reference
// is a loop.
func copyRows(t *T) {
	const size = 3 << 20
	s, a, b := t.Stream(), t.Buffer(size), t.Buffer(size)
	pool := t.Pool(96 << 10) // smaller than some rows
	pinned := t.Pinned(size).Bytes()
	for _, c := range []struct{ width, height, srcPitch, aPitch, bPitch, dstPitch int }{
		{1, 1, 0, 0, 0, 0}, {7, 3, 7, 7, 7, 7}, {100, 50, 101, 128, 512, 333}, {4096, 100, 0, 8192, 4096, 5000},
		{1, 5000, 3, 2, 1, 5}, {500_000, 4, 600_001, 500_000, 700_000, 500_003}, {333, 4000, 700, 512, 0, 600}, {0, 5, 0, 0, 0, 0}, {9, 0, 0, 0, 0, 0},
	} {
		for _, opts := range [][]cuda.CopyOption{nil, {cuda.Staging(pool)}, {cuda.Direct()}} {
			src, dst, want := noise(size, uint64(c.width)), bytes.Repeat([]byte{0xCC}, size), bytes.Repeat([]byte{0xCC}, size)
			for y := range c.height {
				copy(want[y*max(c.dstPitch, c.width):][:c.width], src[y*max(c.srcPitch, c.width):])
			}
			if len(opts) == 0 { // pinned memory at one end
				copy(pinned, src)
				src = pinned
			}
			w, h := c.width, c.height
			t.OK(s.Memset(a, 1))
			t.OK(cuda.CopyRowsToDevice(s, a, src, cuda.Rows{Width: w, Height: h, SrcPitch: c.srcPitch, DstPitch: c.aPitch}, opts...))
			t.OK(s.CopyRows(b, a, cuda.Rows{Width: w, Height: h, SrcPitch: c.aPitch, DstPitch: c.bPitch}))
			t.OK(cuda.CopyRowsToHost(s, dst, b, cuda.Rows{Width: w, Height: h, SrcPitch: c.bPitch, DstPitch: c.dstPitch}, opts...))
			t.Sync(s)
			if !bytes.Equal(dst, want) {
				t.Fatalf("%+v: the bytes differ", c)
			}
		}
	}
}

func rowsRefused(t *T) {
	s, b, other := t.Stream(), t.Buffer(100), t.Buffer(100)
	host := make([]byte, 100)
	for _, r := range []cuda.Rows{
		{Width: 11, Height: 10}, {Width: 10, Height: 11}, {Width: -1, Height: 1}, {Width: 1, Height: -1}, {Width: 101, Height: 1},
		{Width: 10, Height: 2, SrcPitch: 9}, {Width: 10, Height: 2, DstPitch: 9}, {Width: 10, Height: 2, SrcPitch: 91}, {Width: 10, Height: 2, DstPitch: -10},
		{Width: 1, Height: 1 << 62, SrcPitch: 1 << 62, DstPitch: 1 << 62},
	} {
		t.Is(cuda.CopyRowsToHost(s, host, b, r), cuda.ErrInvalidValue)
		t.Is(cuda.CopyRowsToDevice(s, b, host, r), cuda.ErrInvalidValue)
		t.Is(s.CopyRows(other, b, r), cuda.ErrInvalidValue)
	}
	t.Is(s.CopyRows(b, b, cuda.Rows{Width: 5, Height: 5, SrcPitch: 20, DstPitch: 20}), cuda.ErrInvalidValue)
	t.Is(cuda.CopyRowsToHost(s, []*int{nil}, b, cuda.Rows{Width: 8, Height: 1}), cuda.ErrInvalidValue)
	t.Is(cuda.CopyRowsToHost(nil, host, b, cuda.Rows{Width: 8, Height: 1}), cuda.ErrInvalidValue)
	t.Is(cuda.CopyRowsToHost(s, host, nil, cuda.Rows{Width: 8, Height: 1}), cuda.ErrInvalidValue)
	if done, err := s.Query(); !done || err != nil {
		t.Errorf("Query = %v, %v: a refused copy was queued", done, err)
	}
}

func copyBetweenContexts(t *T) {
	const n = 1<<20 + 1
	s, a, back := t.Stream(), t.Buffer(n), t.Buffer(n)
	c, err := t.Device(0).NewContext()
	t.OK(err)
	b, err := c.Alloc(n)
	t.OK(err)
	there, err := c.NewStream()
	t.OK(err)
	src, dst, own := noise(n, 4), make([]byte, n), make([]byte, n)
	t.OK(cuda.CopyToDevice(s, a, src))
	t.OK(s.CopyBuffer(b, a))
	t.OK(s.CopyBuffer(back, b))
	t.OK(cuda.CopyToHost(s, dst, back))
	t.Sync(s)
	t.OK(cuda.CopyToHost(there, own, b)) // through a ring of that context's own
	t.Sync(there)
	if !bytes.Equal(dst, src) || !bytes.Equal(own, src) {
		t.Error("the bytes differ")
	}
	t.OK(there.Close())
	t.OK(b.Close())
	t.OK(c.Close())
}

// poolInOrder: a block that is released behind a held stream is not handed out before that has come so far.
func poolInOrder(t *T) {
	const n = 1 << 16
	pool, s, b := t.Pool(n), t.Stream(), t.Buffer(n)
	t.OK(s.Memset(b, 5))
	for range 5 {
		g := t.Gate(s)
		block, err := pool.Get(t.Context(), n)
		t.OK(err)
		mem := block.Bytes()
		clear(mem)
		t.OK(cuda.CopyToHost(s, mem, b))
		t.OK(block.ReleaseAfter(s))
		if block.Bytes() != nil {
			t.Error("Bytes of a released block")
		}
		block.Release() // does nothing any more
		t.Is(block.ReleaseAfter(s), cuda.ErrInvalidValue)
		if _, ok, err := pool.TryGet(1); ok || err != nil {
			t.Errorf("TryGet = %v, %v: the block is in use", ok, err)
		}
		short, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		if _, err := pool.Get(short, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Get = %v", err)
		}
		cancel()
		got := make(chan []byte, 1)
		go func() {
			again, err := pool.Get(t.Context(), n)
			if err != nil {
				t.Error(err)
			}
			got <- bytes.Clone(again.Bytes())
			again.Release()
		}()
		time.Sleep(time.Millisecond)
		if len(got) > 0 {
			t.Error("the block was handed out while the copy to it was queued")
		}
		g.Open()
		if mem := Receive(t, "the block", got); bytes.Count(mem, []byte{5}) != n {
			t.Error("the block was handed out before the copy to it was done")
		}
		t.Sync(s)
	}
}

func poolBounded(t *T) {
	pool := t.Pool(10 * 4096)
	if pool.Len() != 10*4096 || pool.Context() != t.Device(0).Context {
		t.Errorf("%d bytes", pool.Len())
	}
	var blocks []*cuda.PinnedBlock
	for i := range 10 {
		b, ok, err := pool.TryGet(4096)
		if t.OK(err); !ok {
			t.Fatalf("no room for block %d", i)
		}
		blocks = append(blocks, b)
		copy(cuda.BlockSlice[uint64](b), []uint64{uint64(i)})
	}
	if _, ok, err := pool.TryGet(1); ok || err != nil {
		t.Errorf("TryGet of a full pool = %v, %v", ok, err)
	}
	for i, b := range blocks {
		if v := cuda.BlockSlice[uint64](b); len(v) != 512 || v[0] != uint64(i) {
			t.Errorf("block %d has %d", i, v[0])
		}
	}
	for _, i := range []int{1, 3, 2, 7, 9, 8, 0, 5, 4, 6} {
		blocks[i].Release()
	}
	whole, ok, err := pool.TryGet(pool.Len())
	if t.OK(err); !ok {
		t.Error("free blocks do not join")
	}
	whole.Release()
	for _, n := range []int{0, -1, pool.Len() + 1} {
		_, err := pool.Get(t.Context(), n)
		t.Is(err, cuda.ErrInvalidValue)
	}
	_, err = t.Device(0).NewPinnedPool(0)
	t.Is(err, cuda.ErrInvalidValue)
}

func poolClosed(t *T) {
	pool, s, b := t.Pool(1<<16), t.Stream(), t.Buffer(1<<16)
	block, err := pool.Get(t.Context(), 1<<16)
	t.OK(err)
	waits := make(chan error, 1)
	go func() {
		_, err := pool.Get(t.Context(), 1)
		waits <- err
	}()
	time.Sleep(time.Millisecond)
	t.OK(pool.Close())
	t.Is(Receive(t, "Get", waits), cuda.ErrClosed)
	t.Spin(s, 2*time.Millisecond)
	t.OK(cuda.CopyToHost(s, block.Bytes(), b)) // the memory is there still
	t.OK(block.ReleaseAfter(s))
	t.Sync(s)
	t.Eventually("the pool is freed", func() bool { t.Driver.Device(0); return t.Driver.Stats().PinnedPools == 0 })
	t.OK(pool.Close())
	// A driver frees the pools that are left, blocks or not.
	d := t.OpenDriver()
	left, err := t.Device(0).NewPinnedPool(4096)
	t.OK(err)
	_, err = left.Get(t.Context(), 1)
	t.OK(err)
	t.OK(d.Close())
	t.OK(left.Close())
}
