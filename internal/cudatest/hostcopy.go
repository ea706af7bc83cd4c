package cudatest

import (
	"bytes"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda"
)

var hostCopyCases = []Case{
	{ID: "CY-03", Name: "every size and alignment", Run: hostCopySizes},
	{ID: "CY-03", Name: "overlapping", Run: hostCopyOverlap},
	{ID: "CY-03", Name: "in stream order", Run: hostCopyInOrder},
	{ID: "CY-03", Name: "between pinned, managed and ordinary memory", Run: hostCopyKinds},
	{ID: "CY-03", Name: "dropped ends", Run: hostCopyDropped},
	{ID: "CY-03", Name: "closed ends", Run: hostCopyClosed},
	{ID: "CY-03", Name: "captured", Run: hostCopyCaptured},
	{ID: "CY-03", Name: "graphs closed in mid-launch beside copies", Run: hostCopyGraphsClosed},
	{ID: "CY-03", Name: "refused", Run: hostCopyRefused},
	{ID: "CY-03", Name: "lost", Child: true, Run: hostCopyLost},
	{ID: "CY-09", Name: "HostCopy", Run: hostCopyPointers},
}

// HostCopy queues a copy between two slices.
func (t *T) HostCopy(on cuda.Queue, dst, src []byte, opts ...cuda.HostOption) {
	t.Helper()
	t.OK(cuda.HostCopy(on, cuda.HostSlice(dst), cuda.HostSlice(src), opts...))
}

func hostCopySizes(t *T) {
	s := t.Stream()
	for _, n := range []int{0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 256, 257, 511, 1000, 4095, 4097, 1<<16 + 5, 1<<20 - 1, 9<<20 + 3} {
		for _, off := range [][2]int{{0, 0}, {1, 0}, {0, 3}, {13, 64}} {
			src, dst := pattern(n+off[1], 3), bytes.Repeat([]byte{0xee}, n+off[0]+1)
			told := make(chan error, 1)
			t.HostCopy(s, dst[off[0]:off[0]+n], src[off[1]:], cuda.OnDone(func(err error) { told <- err }))
			t.Sync(s)
			t.OK(Receive(t, "OnDone", told))
			if !bytes.Equal(dst[off[0]:off[0]+n], src[off[1]:]) {
				t.Fatalf("%d bytes, offsets %v: the bytes differ", n, off)
			}
			if rest := append(dst[:off[0]:off[0]], dst[off[0]+n:]...); !bytes.Equal(rest, bytes.Repeat([]byte{0xee}, len(rest))) {
				t.Fatalf("%d bytes, offsets %v: more was written", n, off)
			}
		}
	}
	words := []float64{1, 2, 3}
	got := make([]float64, 3)
	t.OK(cuda.HostCopy(s, cuda.HostSlice(got), cuda.HostSlice(words)))
	t.Sync(s)
	if got[2] != 3 {
		t.Errorf("copied %v", got)
	}
}

func hostCopyOverlap(t *T) {
	s := t.Stream()
	for _, n := range []int{10, 300, 5000, 100_000, 9 << 20} {
		for _, shift := range []int{1, 8, 63, 64, 65, 4096, n / 2} {
			for _, forward := range []bool{true, false} {
				b := pattern(n+shift, 7)
				want := bytes.Clone(b)
				dst, src := b[shift:], b[:n]
				wantDst, wantSrc := want[shift:], want[:n]
				if forward {
					dst, src, wantDst, wantSrc = src, dst, wantSrc, wantDst
				}
				copy(wantDst, wantSrc)
				t.HostCopy(s, dst, src)
				t.Sync(s)
				if !bytes.Equal(b, want) {
					t.Fatalf("%d bytes moved by %d, forward %v: the bytes differ", n, shift, forward)
				}
			}
		}
	}
	b := pattern(1000, 1)
	t.HostCopy(s, b, b)
	t.Sync(s)
	if !bytes.Equal(b, pattern(1000, 1)) {
		t.Error("a copy onto itself changed the bytes")
	}
}

// hostCopyInOrder passes bytes on through host memory, between fills and copies of the device.
func hostCopyInOrder(t *T) {
	s, b := t.Stream(), t.Buffer(1<<16)
	a, c := t.Pinned(1<<16), t.Pinned(1<<16)
	var kept [8][]byte
	t.Spin(s, 5*time.Millisecond)
	for i := range kept {
		kept[i] = make([]byte, 1<<16)
		t.OK(s.Memset(b, byte(i)))
		t.OK(cuda.CopyToHost(s, a.Bytes(), b))
		t.OK(cuda.HostCopy(s, c, a))
		t.OK(s.Memset(b, 0xff))
		t.OK(cuda.CopyToHost(s, a.Bytes(), b))
		t.OK(cuda.HostCopy(s, cuda.HostSlice(kept[i]), c))
	}
	t.Sync(s)
	for i, k := range kept {
		if !bytes.Equal(k, bytes.Repeat([]byte{byte(i)}, 1<<16)) {
			t.Errorf("copy %d was out of order", i)
		}
	}
}

func hostCopyKinds(t *T) {
	const n = 10_000
	s := t.Stream()
	pinned, managed, local := t.Pinned(n), t.Managed(cuda.AttachHost), pattern(n, 9)
	size := managed.Len()
	t.OK(cuda.HostCopy(s, pinned, cuda.HostSlice(local)))
	t.OK(cuda.HostCopy(s, managed, cuda.HostSlice(pinned.Bytes()[5:5+size])))
	got := make([]byte, size)
	t.OK(cuda.HostCopy(s, cuda.HostSlice(got), managed))
	t.Sync(s)
	if !bytes.Equal(got, local[5:5+size]) {
		t.Error("the bytes differ")
	}
}

// hostCopyDropped: nobody but the library holds the ends.
func hostCopyDropped(t *T) {
	s := t.Stream()
	g := t.Gate(s)
	var gone atomic.Int32
	const n = 1 << 16
	end := make([]byte, n)
	func() {
		const middle = 20
		chain := [][]byte{pattern(n, 4)}
		for range middle {
			b := make([]byte, n)
			runtime.AddCleanup(&b[0], func(int) { gone.Add(1) }, 0)
			chain = append(chain, b)
		}
		chain = append(chain, end)
		for i := range chain[1:] {
			t.HostCopy(s, chain[i+1], chain[i])
		}
	}()
	for range 5 {
		runtime.GC()
		_ = bytes.Repeat([]byte{0xdd}, n) // takes the place of what has been collected
	}
	if n := gone.Load(); n != 0 {
		t.Errorf("%d slices were collected before they were copied", n)
	}
	g.Open()
	t.Sync(s)
	if !bytes.Equal(end, pattern(n, 4)) {
		t.Error("the bytes were lost on the way")
	}
	t.Eventually("the slices are let go of", func() bool { runtime.GC(); return gone.Load() == 20 })
}

// hostCopyClosed: pinned memory that is closed while a copy waits is freed afterwards; Close does not wait for that.
func hostCopyClosed(t *T) {
	s := t.Stream()
	before := t.Driver.Stats().PinnedBuffers
	g := t.Gate(s)
	got := make([]byte, 64)
	for _, whole := range []bool{true, false} {
		p, err := t.Device(0).AllocPinned(64)
		t.OK(err)
		copy(p.Bytes(), bytes.Repeat([]byte{3}, 64))
		var src cuda.HostMemory = p
		if !whole {
			src = cuda.HostSlice(p.Bytes()[:64]) // found by its address
		}
		t.OK(cuda.HostCopy(s, cuda.HostSlice(got), src))
		t.OK(p.Close())
		t.Is(cuda.HostCopy(s, cuda.HostSlice(got), p), cuda.ErrClosed)
	}
	p, err := t.Device(0).AllocPinned(8)
	t.OK(err)
	t.Native(s, "add", cuda.NativePointer(unsafe.Pointer(&p.Bytes()[0])))
	t.OK(p.Close())
	if n := t.Driver.Stats().PinnedBuffers; n != before+3 {
		t.Errorf("%d pinned buffers while functions wait that use them, want %d", n, before+3)
	}
	g.Open()
	t.Sync(s)
	if got[0] != 3 || got[63] != 3 {
		t.Errorf("copied %d and %d, want 3", got[0], got[63])
	}
	t.Eventually("the pinned memory is freed", func() bool { return t.Driver.Stats().PinnedBuffers == before })
}

func hostCopyCaptured(t *T) {
	s := t.Stream()
	const n = 1 << 14
	a, c := t.Pinned(n), make([]byte, n)
	before := t.Driver.Stats().PinnedBuffers
	closed, err := t.Device(0).AllocPinned(n)
	t.OK(err)
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		local := make([]byte, n) // which only the graph holds
		return errors.Join(
			cuda.HostCopy(b, cuda.HostSlice(local), a),
			cuda.HostCopy(b, closed, cuda.HostSlice(local)),
			cuda.HostCopy(b, cuda.HostSlice(c), closed))
	})
	t.OK(err)
	t.OK(closed.Close())
	x, err := g.Instantiate()
	t.OK(err)
	t.OK(g.Close())
	for i := range 100 {
		copy(a.Bytes(), bytes.Repeat([]byte{byte(i)}, n))
		if i%10 == 0 {
			runtime.GC()
		}
		t.OK(x.Launch(s))
		t.Sync(s)
		if c[0] != byte(i) || c[n-1] != byte(i) {
			t.Fatalf("launch %d copied %d and %d", i, c[0], c[n-1])
		}
	}
	t.OK(x.Close())
	t.Eventually("what the graph held is freed", func() bool {
		st := t.Driver.Stats()
		return st.PinnedBuffers == before && st.HostNodes == 0
	})
}

func hostCopyRefused(t *T) {
	s := t.Stream()
	b := func(n int) cuda.HostMemory { return cuda.HostSlice(make([]byte, n)) }
	var noPinned *cuda.PinnedBuffer
	var noManaged *cuda.ManagedBuffer
	told := cuda.OnDone(func(error) { t.Error("OnDone of a refused copy") })
	for _, c := range []struct {
		on       cuda.Queue
		dst, src cuda.HostMemory
		words    string
	}{
		{nil, b(1), b(1), "on is nil"}, {s, nil, b(1), "dst is nil"}, {s, b(1), nil, "src is nil"},
		{s, noPinned, b(1), "dst is a nil"}, {s, b(1), noManaged, "src is a nil"},
		{s, b(2), b(1), "dst has 2 bytes and src 1"}, {s, b(0), b(1), "equal"}, {s, cuda.HostSlice(make([]uint32, 3)), b(3), "dst has 12 bytes"},
	} {
		err := cuda.HostCopy(c.on, c.dst, c.src, told)
		t.Is(err, cuda.ErrInvalidValue)
		t.Contains(err, c.words)
	}
	foreign, err := t.cfg.Open()
	t.OK(err)
	defer foreign.Close()
	dev, err := foreign.Device(0)
	t.OK(err)
	p, err := dev.AllocPinned(1)
	t.OK(err)
	err = cuda.HostCopy(s, b(1), p, told)
	t.Is(err, cuda.ErrInvalidValue)
	t.Contains(err, "src belongs to another Driver")
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(*cuda.GraphBuilder) error {
		t.Is(cuda.HostCopy(s, b(1), b(1), told), cuda.ErrCapturing)
		return nil
	})
	t.OK(err)
	t.OK(g.Close())
	if done, err := s.Query(); !done || err != nil {
		t.Errorf("Query = %v, %v: a refused copy was queued", done, err)
	}
}

func hostCopyPointers(t *T) {
	s := t.Stream()
	type link struct{ Next *link }
	plain := cuda.HostSlice(make([]unsafe.Pointer, 0))
	for words, m := range map[string]cuda.HostMemory{
		"string": cuda.HostSlice(make([]string, 2)), "Next": cuda.HostSlice(make([]link, 2)), "[]uint8": cuda.HostSlice(make([][]byte, 2)),
		"unsafe.Pointer": plain,
	} {
		for name, err := range map[string]error{"dst": cuda.HostCopy(s, m, m), "src": cuda.HostCopy(s, cuda.HostSlice(make([]byte, 32)), m)} {
			t.Is(err, cuda.ErrInvalidValue)
			t.Contains(err, words, name)
		}
	}
	if done, err := s.Query(); !done || err != nil {
		t.Errorf("Query = %v, %v: a refused copy was queued", done, err)
	}
}

func hostCopyLost(t *T) {
	told := lost(t)
	s := t.Stream()
	p, err := t.Device(0).AllocPinned(64)
	t.OK(err)
	dst := bytes.Repeat([]byte{1}, 64)
	t.FaultLater(s)
	for range 10 {
		t.OK(cuda.HostCopy(s, cuda.HostSlice(dst), p))
	}
	t.OK(p.Close())
	for range 10 {
		e := Receive(t, "OnLost", told)
		t.Is(unwrap(e), cuda.ErrIllegalAddress, cuda.ErrDeviceLost)
		if e.Name != "HostCopy" {
			t.Errorf("name %q", e.Name)
		}
	}
	if !bytes.Equal(dst, bytes.Repeat([]byte{1}, 64)) {
		t.Error("a copy that never ran has copied something")
	}
	t.OK(t.Driver.Close())
}

// hostCopyGraphsClosed: what a copy of a graph is made of is not another copy's before that has run and is told of, and then one's only.
func hostCopyGraphsClosed(t *T) {
	const rounds, launches = 400, 2
	var told atomic.Int32
	var all sync.WaitGroup
	both := func(k int, copies func(s *cuda.Stream, dst, src []byte) error) {
		s := t.Stream()
		all.Go(func() {
			for i := range rounds {
				src, dst := bytes.Repeat([]byte{byte(i + k)}, 100), make([]byte, 100)
				if err := errors.Join(copies(s, dst, src), s.Sync()); err != nil || !bytes.Equal(src, dst) {
					t.Errorf("round %d: %v, and the bytes are right: %v", i, err, bytes.Equal(src, dst))
					return
				}
			}
		})
	}
	for k := range 3 {
		both(k, func(s *cuda.Stream, dst, src []byte) error {
			g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
				return cuda.HostCopy(b, cuda.HostSlice(dst), cuda.HostSlice(src), cuda.OnDone(func(error) { told.Add(1) }))
			})
			if err != nil {
				return err
			}
			defer g.Close()
			x, err := g.Instantiate()
			if err != nil {
				return err
			}
			defer x.Close()
			return errors.Join(x.Launch(s), x.Launch(s))
		})
		both(100*k, func(s *cuda.Stream, dst, src []byte) error {
			return cuda.HostCopy(s, cuda.HostSlice(dst), cuda.HostSlice(src))
		})
	}
	all.Wait()
	t.Eventually("every run is told of", func() bool { return told.Load() >= 3*rounds*launches })
	if n := told.Load(); n != 3*rounds*launches {
		t.Errorf("%d runs were told of, of %d", n, 3*rounds*launches)
	}
}
