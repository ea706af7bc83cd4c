package softcuda_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// stagedChaos copies at random, from goroutines and tasks, through a small ring and small pools whose blocks are taken meanwhile, while
// the driver refuses calls, the device is lost, or a pool or the Driver is closed. However it goes, every copy that was queued is told of
// once, its bytes are right if it succeeded, its progress comes to its end, nothing hangs, and nothing is left.
type stagedChaos struct {
	*testing.T
	seed    uint64
	mode    stagedTrouble
	f       *softcuda.Faults
	d       *cuda.Driver
	c       *cuda.Context // the device's, one made by NewContext, or a green one's
	own     bool          // it was made by NewContext
	green   *cuda.GreenContext
	streams []*cuda.Stream
	pools   []*cuda.PinnedPool

	mu     sync.Mutex
	copies []*chaosCopy
}

type stagedTrouble int

const (
	noTrouble stagedTrouble = iota
	callsRefused
	deviceLost
	closedMeanwhile
)

// chaosCopy is a copy of the bytes that pattern makes.
type chaosCopy struct {
	n      int
	got    []byte // of a copy to the host
	want   []byte
	queued bool
	told   atomic.Int32
	err    error
	p      cuda.CopyProgress
}

// TestStagedChaos has CHAOS_SEEDS seeds, if the environment says so.
func TestStagedChaos(t *testing.T) {
	t.Setenv("HOSTLAUNCH_STAGING", "ring=256K,chunk=32K,least=8K,part=4K,slots=3,small=0,threads=3")
	before := runtime.NumGoroutine()
	forSeeds(t, "CHAOS_SEEDS", 60, 20, func(seed uint64) { (&stagedChaos{T: t, seed: seed}).run() })
	goroutinesGone(t, before)
}

func (c *stagedChaos) run() {
	r := rand.New(rand.NewPCG(c.seed, 1))
	c.open(r)
	var all sync.WaitGroup
	for i := range uint64(3) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(c.seed, 10+i))
			for range 6 {
				c.step(r)
			}
		})
	}
	c.trouble(r)
	all.Wait()
	c.f.Clear()
	if c.own && c.mode != closedMeanwhile && r.IntN(2) == 0 {
		c.closeContext()
	}
	limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := c.d.Shutdown(limit); err != nil {
		c.Errorf("seed %d: Shutdown = %v, %+v", c.seed, err, c.d.Stats())
		return
	}
	runtime.KeepAlive(c.green)
	for _, copied := range c.copies {
		c.check(copied)
	}
	if st := c.d.Stats(); st != (cuda.Stats{}) {
		c.Errorf("seed %d, mode %d: left: %+v", c.seed, c.mode, st)
	}
}

func (c *stagedChaos) open(r *rand.Rand) {
	c.f, c.mode = new(softcuda.Faults), stagedTrouble(r.IntN(4))
	c.d = softcuda.New(softcuda.Options{Faults: c.f}, cuda.Logger(slog.New(slog.DiscardHandler)), cuda.MaxHeldStreams(1+r.IntN(3)))
	dev := must(c.d.Device(0))
	switch c.seed % 3 {
	case 0:
		c.c = dev.Context
	case 1:
		c.c, c.own = must(dev.NewContext()), true
	case 2:
		c.green = must(dev.NewGreenContext(must(dev.SMResource())))
		c.c = c.green.Context()
	}
	for range 3 {
		c.streams = append(c.streams, must(c.c.NewStream()))
	}
	c.streams = append(c.streams, must(c.c.NewStream(cuda.Blocking())))
	if r.IntN(3) == 0 {
		c.streams = append(c.streams, c.c.DefaultStream())
	}
	for range 2 {
		c.pools = append(c.pools, must(c.c.NewPinnedPool(4096<<r.IntN(6))))
	}
}

// trouble is what goes wrong meanwhile.
func (c *stagedChaos) trouble(r *rand.Rand) {
	switch c.mode {
	case callsRefused:
		for _, call := range []string{"StreamBatchMemOp", "MemcpyHtoDAsync", "MemcpyDtoHAsync", "Memcpy2DAsync", "EventRecord", "EventCreate",
			"StreamWaitEvent", "NotifyEvent", "MemHostAlloc", "LaunchHostFunc"} {
			if r.IntN(3) == 0 {
				c.ok("Faults.Add", c.f.Add(softcuda.Fault{Call: call, Times: -1, Probability: 0.1, Result: cuda.ErrOperatingSystem}))
			}
		}
	case deviceLost:
		time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond)
		c.ok("LoseDevice", c.f.LoseDevice(0, cuda.ErrECCUncorrectable))
	case closedMeanwhile:
		time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond)
		if r.IntN(2) == 0 {
			c.ok("PinnedPool.Close", c.pools[0].Close())
		} else {
			c.ok("Driver.Close", c.d.Close())
		}
	}
}

// ok reports whether a call succeeded, and wants an error to be one that the trouble explains, or that a full pool or a task may have.
func (c *stagedChaos) ok(what string, err error) bool {
	if err == nil {
		return true
	}
	may := []error{cuda.ErrDeadlock, cuda.ErrOutOfMemory, context.DeadlineExceeded, context.Canceled}
	switch c.mode {
	case callsRefused:
		may = append(may, cuda.ErrOperatingSystem)
	case deviceLost:
		may = append(may, cuda.ErrDeviceLost)
	}
	if c.mode == closedMeanwhile || c.own { // see closeContext, which tasks may be overtaken by
		may = append(may, cuda.ErrClosed)
	}
	if !slices.ContainsFunc(may, func(e error) bool { return errors.Is(err, e) }) {
		c.Errorf("seed %d, mode %d: %s: %v", c.seed, c.mode, what, err)
	}
	return false
}

func (c *stagedChaos) step(r *rand.Rand) {
	s := pick(r, c.streams)
	switch r.IntN(7) {
	case 0, 1:
		c.upAndDown(r, s, r.IntN(2) == 0)
	case 2:
		inner := rand.New(rand.NewPCG(r.Uint64(), 5))
		_, err := cuda.Go(s, func(context.Context) error {
			for range 1 + inner.IntN(3) {
				c.upAndDown(inner, pick(inner, c.streams), inner.IntN(3) == 0)
			}
			return nil
		})
		c.ok("Go", err)
	case 3:
		c.ok("HostLaunch", cuda.HostLaunch(s, func() { time.Sleep(100 * time.Microsecond) }))
	case 4:
		c.block(r, s)
	case 5:
		c.ok("HostCopy", cuda.HostCopy(s, cuda.HostSlice(make([]byte, 100)), cuda.HostSlice(pattern(100, 1))))
	case 6:
		if own, err := c.c.NewStream(); c.ok("NewStream", err) {
			c.upAndDown(r, own, false)
			c.ok("Stream.Close", own.Close())
		}
	}
}

// block takes a block of a pool, spoils what it has, and gives it back.
func (c *stagedChaos) block(r *rand.Rand, s *cuda.Stream) {
	limited, cancel := context.WithTimeout(context.Background(), 2*time.Millisecond)
	defer cancel()
	pool := pick(r, c.pools)
	b, err := pool.Get(limited, 1+r.IntN(pool.Len()))
	if !c.ok("PinnedPool.Get", err) {
		return
	}
	for i := range b.Bytes() {
		b.Bytes()[i] = 0xee
	}
	if r.IntN(2) == 0 || !c.ok("ReleaseAfter", b.ReleaseAfter(s)) {
		b.Release()
	}
}

// upAndDown copies bytes to the device and back on one stream.
func (c *stagedChaos) upAndDown(r *rand.Rand, s *cuda.Stream, waits bool) {
	n := 1 + r.IntN(200<<10)
	if r.IntN(3) == 0 {
		n = 1 + r.IntN(5000)
	}
	b, err := c.c.Alloc(n)
	if !c.ok("Alloc", err) {
		return
	}
	defer b.Close()
	src := append(make([]byte, r.IntN(9), n+9), pattern(n, byte(r.IntN(256)))...) // not aligned
	src = src[len(src)-n:]
	up, down := &chaosCopy{n: n}, &chaosCopy{n: n, want: src, got: make([]byte, n)}
	c.mu.Lock()
	c.copies = append(c.copies, up, down)
	c.mu.Unlock()
	if r.IntN(4) == 0 {
		rows := cuda.Rows{Width: max(n/(1+r.IntN(20)), 1)}
		rows.Height = n / rows.Width
		up.n = rows.Width * rows.Height
		err = cuda.CopyRowsToDevice(s, b, src, rows, c.options(r, up)...)
		if up.queued = err == nil; up.queued && up.n < n {
			err = cuda.CopyToDevice(s, must(b.Slice(up.n, n-up.n)), src[up.n:])
		}
	} else {
		err = cuda.CopyToDevice(s, b, src, c.options(r, up)...)
		up.queued = err == nil
	}
	if !c.ok("to the device", err) {
		return
	}
	err = cuda.CopyToHost(s, down.got, b, c.options(r, down)...)
	down.queued = err == nil
	if c.ok("to the host", err) && waits && c.ok("Sync", s.Sync()) && !bytes.Equal(down.got, src) {
		c.Errorf("seed %d, mode %d: after Sync the bytes of %d are not right", c.seed, c.mode, n)
	}
}

func (c *stagedChaos) options(r *rand.Rand, copied *chaosCopy) []cuda.CopyOption {
	o := []cuda.CopyOption{cuda.Progress(&copied.p), cuda.CopyDone(func(err error) {
		copied.err = err
		copied.told.Add(1)
	})}
	if r.IntN(3) > 0 {
		o = append(o, cuda.Staging(pick(r, c.pools)))
	}
	return o
}

func pattern(n int, seed byte) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i*7+(i>>8)*13) + seed
	}
	return p
}

// closeContext closes all that was made in the context, and then that, once no task uses it.
func (c *stagedChaos) closeContext() {
	for _, s := range c.streams {
		c.ok("Stream.Close", s.Close())
	}
	for _, p := range c.pools {
		c.ok("PinnedPool.Close", p.Close())
	}
	var err error
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if err = c.c.Close(); !errors.Is(err, cuda.ErrIllegalState) {
			break
		}
	}
	c.ok("Context.Close", err)
}

// check is what must hold of a copy once the Driver is closed.
func (c *stagedChaos) check(copied *chaosCopy) {
	want := int32(0)
	if copied.queued {
		want = 1
	}
	if got := copied.told.Load(); got != want {
		c.Errorf("seed %d, mode %d: a copy of %d, queued %v, was told of %d times", c.seed, c.mode, copied.n, copied.queued, got)
	}
	done, total := copied.p.BytesDone(), copied.p.BytesTotal()
	if done > total || copied.queued && copied.err == nil && (done != total || total != int64(copied.n)) {
		c.Errorf("seed %d, mode %d: %d bytes of %d, in a copy of %d that ended with %v", c.seed, c.mode, done, total, copied.n, copied.err)
	}
	switch {
	case !copied.queued:
	case copied.err != nil && c.mode != deviceLost:
		c.Errorf("seed %d, mode %d: a copy of %d ended with %v", c.seed, c.mode, copied.n, copied.err)
	case copied.err == nil && !bytes.Equal(copied.got, copied.want):
		c.Errorf("seed %d, mode %d: the bytes of %d are not right", c.seed, c.mode, copied.n)
	}
}
