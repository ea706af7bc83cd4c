package cudatest

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/hostlaunch/cuda"
)

// stagedCases: copies of ordinary memory, which go through pinned memory of the library. What a case needs is made before a stream
// is held.
var stagedCases = []Case{
	{ID: "CY-01", Name: "staged, several turns of the ring", Run: stagedSizes},
	{ID: "CY-01", Name: "staged, several turns of a small pool", Run: stagedThroughPool},
	{ID: "CY-02", Name: "returns while the stream is held", Run: stagedReturns},
	{ID: "CY-02", Name: "later work waits for the last byte", Run: stagedOrder},
	{ID: "CY-02", Name: "dropped slices, with garbage collection", Run: stagedDropped},
	{ID: "CY-02", Name: "Direct", Run: copyDirect},
	{ID: "CY-02", Name: "default streams", Run: stagedOnDefaultStreams},
	{ID: "CY-02", Name: "in a graph, at every launch", Run: copiesInGraph},
	{ID: "CY-10", Name: "CopyDone and Progress", Run: copyDoneAndProgress},
	{ID: "CY-10", Name: "options that do not fit", Run: copyOptionsRefused},
}

// noise is pattern for large sizes.
func noise(n int, seed uint64) []byte {
	r := rand.NewPCG(seed, uint64(n))
	p := make([]byte, n+8)
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(p[i:], r.Uint64())
	}
	return p[:n:n]
}

// Pool makes a pool on device 0.
func (t *T) Pool(n int) *cuda.PinnedPool {
	t.Helper()
	p, err := t.Device(0).NewPinnedPool(n)
	t.OK(err)
	t.Cleanup(func() { p.Close() })
	return p
}

// freeAgain wants all of a pool to be free when its copies are done, or a moment later.
func (t *T) freeAgain(pool *cuda.PinnedPool) {
	t.Helper()
	t.Eventually("the pool is free after the copies", func() bool {
		b, ok, err := pool.TryGet(pool.Len())
		t.OK(err)
		b.Release()
		return ok
	})
}

// roundTripBytes takes bytes to a device and back by ordinary memory at odd addresses, and looks at the bytes beside them too.
func roundTripBytes(t *T, s *cuda.Stream, b *cuda.Buffer, n, off int, opts ...cuda.CopyOption) {
	t.Helper()
	src, dst := noise(n+off, uint64(n)), bytes.Repeat([]byte{0xCC}, n+off+1)
	part := t.Part(b, off, n)
	t.OK(cuda.CopyToDevice(s, part, src[off:], opts...))
	t.OK(cuda.CopyToHost(s, dst[off:off+n], part, opts...))
	t.Sync(s)
	if !bytes.Equal(dst[off:off+n], src[off:]) {
		t.Fatalf("%d bytes, offset %d: the bytes differ", n, off)
	}
	if bytes.Count(dst[:off], []byte{0xCC}) != off || dst[n+off] != 0xCC {
		t.Fatalf("%d bytes, offset %d: a byte beside them has changed", n, off)
	}
}

// ringAtRest wants no copy to be in progress, now or a moment later, and the ring to be within its bound.
func (t *T) ringAtRest() {
	t.Helper()
	t.Eventually("no copy is in progress", func() bool { return t.Driver.Stats().Copies == 0 })
	if held := t.Driver.StagingBytes(); held > ringBound {
		t.Errorf("%d bytes are held", held)
	}
}

// ringBound is what the library's own ring may take.
const ringBound = 256 << 20

func stagedSizes(t *T) {
	const most = 70<<20 + 1
	s, b := t.Stream(), t.Buffer(most+8)
	for _, n := range []int{1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 256<<10 + 3, 1<<20 - 1, 3<<20 + 4097, 16 << 20, most} {
		roundTripBytes(t, s, b, n, 0)
		roundTripBytes(t, s, b, n, 3)
	}
	t.ringAtRest()
}

func stagedThroughPool(t *T) {
	const most = 10<<20 + 7
	s, b := t.Stream(), t.Buffer(most+8)
	for _, size := range []int{4 << 10, 100_000, 1 << 20} {
		pool := t.Pool(size)
		for _, n := range []int{0, 1, 4096, 65_537, 1<<20 + 1, most} {
			if n > 100*size {
				continue
			}
			roundTripBytes(t, s, b, n, n%4, cuda.Staging(pool))
		}
		t.freeAgain(pool)
		t.OK(pool.Close())
		t.Is(cuda.CopyToHost(s, make([]byte, 1), t.Part(b, 0, 1), cuda.Staging(pool)), cuda.ErrClosed)
	}
}

// stagedReturns queues large copies behind a gate and behind a wait-value that only this goroutine ends.
func stagedReturns(t *T) {
	const n = 20 << 20
	s, held, a, b, flag := t.Stream(), t.Stream(), t.Buffer(n), t.Buffer(n), t.Flag()
	t.Freed(flag, 1)
	src, dst, other := noise(n, 1), make([]byte, n), make([]byte, n)
	roundTripBytes(t, s, a, n, 0) // the ring is there
	t.Sync(s)
	g := t.Gate(s)
	t.OK(held.WaitValue32(flag.Word(0), cuda.ValueEQ, 1))
	start := time.Now()
	t.OK(cuda.CopyToDevice(s, a, src))
	t.OK(cuda.CopyToHost(s, dst, a))
	t.OK(cuda.CopyToDevice(held, b, src))
	t.OK(cuda.CopyToHost(held, other, b))
	t.Logf("four copies of %d MiB were queued in %v", n>>20, time.Since(start))
	if done, err := s.Query(); done || err != nil {
		t.Errorf("Query = %v, %v", done, err)
	}
	if st := t.Driver.Stats(); st.Copies != 4 {
		t.Errorf("%d copies are in progress, want 4", st.Copies)
	}
	if !bytes.Equal(dst, make([]byte, n)) || !bytes.Equal(other, make([]byte, n)) {
		t.Error("a copy was done before its turn")
	}
	g.Open()
	t.Sync(s)
	flag.low.Store(1)
	t.Sync(held)
	if !bytes.Equal(dst, src) || !bytes.Equal(other, src) {
		t.Error("the bytes differ")
	}
}

// stagedOrder has a host function, and one of another stream behind an event, look at what a copy has brought; and a copy in
// between fills.
func stagedOrder(t *T) {
	const n = 3<<20 + 1
	s, other, b, e := t.Stream(), t.Stream(), t.Buffer(n), t.Event()
	for round := range 5 {
		var dst [4][]byte
		var seen [8]bool
		for i := range dst {
			want := byte(16*round + i + 1)
			dst[i] = make([]byte, n)
			t.OK(s.Memset(b, want))
			t.OK(cuda.CopyToHost(s, dst[i], b))
			t.OK(s.Record(e))
			t.OK(s.Memset(b, 0xFF))
			look := func(k int) func() {
				return func() { seen[k] = bytes.Count(dst[i], []byte{want}) == n }
			}
			t.Host(s, look(2*i))
			t.OK(other.WaitEvent(e))
			t.Host(other, look(2*i+1))
		}
		t.Sync(s)
		t.Sync(other)
		if slices.Contains(seen[:], false) {
			t.Fatalf("round %d: what came behind a copy saw %v", round, seen)
		}
	}
}

func stagedDropped(t *T) {
	const n, copies = 1<<20 + 9, 6
	s, a, b := t.Stream(), t.Buffer(n), t.Buffer(n*copies)
	roundTripBytes(t, s, a, n, 0)
	t.Spin(s, 20*time.Millisecond)
	for i := range copies {
		t.OK(cuda.CopyToDevice(s, t.Part(b, i*n, n), noise(n, uint64(i))))
		t.OK(cuda.CopyToHost(s, make([]byte, n), t.Part(b, i*n, n)))
	}
	for range 5 {
		runtime.GC()
		for range 5 { // whatever was freed would be used again
			runtime.KeepAlive(bytes.Repeat([]byte{0xDD}, n))
		}
	}
	got := make([]byte, n*copies)
	t.OK(cuda.CopyToHost(s, got, b))
	t.Sync(s)
	for i := range copies {
		if !bytes.Equal(got[i*n:(i+1)*n], noise(n, uint64(i))) {
			t.Fatalf("source %d was lost on the way", i)
		}
	}
}

func copyDoneAndProgress(t *T) {
	const n = 5 << 20
	s, b, pinned := t.Stream(), t.Buffer(n), t.Pinned(n).Bytes()
	host := noise(n, 2)
	roundTripBytes(t, s, b, n, 0)
	for name, queue := range map[string]func(...cuda.CopyOption) error{
		"to the device":        func(o ...cuda.CopyOption) error { return cuda.CopyToDevice(s, b, host, o...) },
		"to the host":          func(o ...cuda.CopyOption) error { return cuda.CopyToHost(s, host, b, o...) },
		"from pinned memory":   func(o ...cuda.CopyOption) error { return cuda.CopyToDevice(s, b, pinned, o...) },
		"small, to the device": func(o ...cuda.CopyOption) error { return cuda.CopyToDevice(s, t.Part(b, 0, 8), host[:8], o...) },
		"nothing":              func(o ...cuda.CopyOption) error { return cuda.CopyToHost(s, host[:0], t.Part(b, 0, 0), o...) },
		"rows, to the host": func(o ...cuda.CopyOption) error {
			return cuda.CopyRowsToHost(s, host, b, cuda.Rows{Width: 1024, Height: 5 << 10}, o...)
		},
		"the driver's own, large": func(o ...cuda.CopyOption) error { return cuda.CopyToDevice(s, b, pinned, append(o, cuda.Direct())...) },
	} {
		var p cuda.CopyProgress
		done := make(chan error, 2)
		g := t.Gate(s)
		t.OK(queue(cuda.CopyDone(func(err error) {
			_, e := s.Flags() // CUDA is allowed here
			if err == nil {
				err = e
			}
			done <- err
		}), cuda.Progress(&p)))
		<-g.Entered
		if p.BytesDone() != 0 && name != "to the device" || len(done) > 0 {
			t.Errorf("%s: %d bytes of %d, %d reports, before its turn", name, p.BytesDone(), p.BytesTotal(), len(done))
		}
		g.Open()
		t.OK(Receive(t, name, done))
		t.Sync(s)
		if p.BytesDone() != p.BytesTotal() || (p.BytesTotal() == 0) != (name == "nothing") {
			t.Errorf("%s: %d bytes of %d when it is done", name, p.BytesDone(), p.BytesTotal())
		}
		if len(done) > 0 {
			t.Errorf("%s: told twice", name)
		}
	}
}

func copyOptionsRefused(t *T) {
	s, b, pool := t.Stream(), t.Buffer(64), t.Pool(4096)
	host := make([]byte, 64)
	never := cuda.CopyDone(func(error) { t.Error("CopyDone of a refused copy") })
	t.Is(cuda.CopyToHost(s, host[:63], b, never), cuda.ErrInvalidValue)
	c, err := t.Device(0).NewContext()
	t.OK(err)
	other, err := c.NewStream()
	t.OK(err)
	t.Is(cuda.CopyToHost(other, host, b, cuda.Staging(pool), never), cuda.ErrInvalidValue)
	t.OK(cuda.CopyToHost(other, host, b, nil)) // an option may be nil
	t.Sync(other)
	t.OK(other.Close())
	t.OK(c.Close())
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(g *cuda.GraphBuilder) error {
		t.Is(cuda.CopyToHost(g, host, b, never), cuda.ErrNotSupported)
		t.Is(cuda.CopyToDevice(g, b, host, cuda.Progress(new(cuda.CopyProgress))), cuda.ErrNotSupported)
		return nil
	})
	t.OK(err)
	t.OK(g.Close())
}

func copyDirect(t *T) {
	const n = 3<<20 + 1
	s, b := t.Stream(), t.Buffer(n+8)
	before := t.Driver.StagingBytes()
	roundTripBytes(t, s, b, n, 1, cuda.Direct())
	if now := t.Driver.StagingBytes(); now != before {
		t.Errorf("the ring has grown from %d to %d bytes", before, now)
	}
}

func stagedOnDefaultStreams(t *T) {
	const n = 1<<20 + 5
	b := t.Buffer(n + 8)
	roundTripBytes(t, t.Device(0).DefaultStream(), b, n, 1)
	roundTripBytes(t, t.Stream(cuda.Blocking()), b, n, 1)
	var threads sync.WaitGroup
	for i := range 4 {
		own := t.Buffer(n + 8)
		threads.Go(func() {
			err := t.Device(0).WithThreadStream(func(s *cuda.Stream) error {
				roundTripBytes(t, s, own, n, i)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	threads.Wait()
}

// copiesInGraph: what a graph copies to and from ordinary memory is what that holds at the launch.
func copiesInGraph(t *T) {
	const n = 300_000
	s, b := t.Stream(), t.Buffer(n)
	rows, third := t.Buffer(n), cuda.Rows{Width: n / 3, Height: 3}
	src, dst, more := make([]byte, n), make([]byte, n), make([]byte, n)
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(g *cuda.GraphBuilder) error {
		t.OK(cuda.CopyToDevice(g, b, src))
		t.OK(cuda.CopyToHost(g, dst, b))
		t.OK(g.CopyRows(rows, b, third))
		t.OK(cuda.CopyRowsToHost(g, more, rows, third))
		return nil
	})
	t.OK(err)
	x, err := g.Instantiate()
	t.OK(err)
	for i := range 5 {
		copy(src, noise(n, uint64(i)))
		t.OK(x.Launch(s))
		t.Sync(s)
		if !bytes.Equal(dst, src) || !bytes.Equal(more, src) {
			t.Fatalf("launch %d: the bytes differ", i)
		}
	}
	t.OK(x.Close())
	t.OK(g.Close())
	t.Sync(s)
}
