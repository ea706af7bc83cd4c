package cudatest

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// stagedManyCases: many copies of ordinary memory at once, and copies beside what is held, fails or ends.
var stagedManyCases = []Case{
	{ID: "CY-04", Name: "eight streams at once", Run: stagedStreams},
	{ID: "CY-04", Name: "many callers on one stream", Run: stagedCallers},
	{ID: "CY-05", Name: "sixteen streams share a pool that is too small", Run: stagedShare},
	{ID: "CY-04", Name: "a slot is filled when it has been emptied", Run: stagedTurns},
	{ID: "CY-04", Name: "two streams with the same slots", Run: stagedSameSlots},
	{ID: "CY-05", Name: "a held stream holds no other up", Run: stagedBesideHeld},
	{ID: "CY-05", Name: "copies of all sizes return while the stream is held", Run: copiesReturn},
	{ID: "CY-05", Name: "a call that the driver holds up", Run: stagedInTurns},
	{ID: "CY-05", Name: "while a host function runs", Run: stagedBesideHostFunction},
	{ID: "CY-06", Name: "context lost in the middle", Child: true, Run: stagedLost},
	{ID: "CY-08", Name: "64 streams", Run: stagedManyStreams},
	{ID: "CY-08", Name: "beside 64 tasks", Run: stagedBesideTasks},
	{ID: "LI-01", Name: "Shutdown names copies, Close waits for them", Run: stagedShutdown},
}

// stagedInTurns copies ordinary and pinned memory to the device in turns, without a pause: on an H200 the driver then holds up a copy's call
// now and then until what was queued before it is done, which must not need anything of that call.
func stagedInTurns(t *T) {
	const n, rounds = 48 << 20, 12
	s, b := t.Stream(), t.Buffer(n)
	src, pinned, back := noise(n, 1), t.Pinned(n), t.Pinned(n)
	copy(pinned.Bytes(), noise(n, 2))
	for range rounds {
		for _, from := range [][]byte{src, pinned.Bytes()} {
			t.OK(cuda.CopyToDevice(s, b, from))
			t.Sync(s)
		}
	}
	t.OK(cuda.CopyToDevice(s, b, src))
	t.OK(cuda.CopyToHost(s, back.Bytes(), b))
	t.Sync(s)
	if !bytes.Equal(back.Bytes(), src) {
		t.Error("other bytes than were copied")
	}
}

// stagedStreams copies both ways on eight streams, with the garbage collector at work.
func stagedStreams(t *T) {
	const most, streams, rounds = 4<<20 + 11, 8, 4
	stop := t.collecting()
	var callers sync.WaitGroup
	for i := range streams {
		s, b := t.Stream(), t.Buffer(most)
		callers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 0))
			for round := range rounds {
				n := 1 + r.IntN(most)
				src, dst := noise(n, uint64(i*rounds+round)), make([]byte, n)
				part, err := b.Slice(most-n, n)
				if err == nil {
					err = cuda.CopyToDevice(s, part, src)
				}
				if err == nil {
					err = cuda.CopyToHost(s, dst, part)
				}
				if err == nil {
					err = s.Sync()
				}
				if err != nil || !bytes.Equal(src, dst) {
					t.Errorf("stream %d, %d bytes: equal %v, error %v", i, n, bytes.Equal(src, dst), err)
				}
			}
		})
	}
	callers.Wait()
	stop()
	t.ringAtRest()
}

// stagedCallers: several goroutines may queue copies on one stream at once.
func stagedCallers(t *T) {
	const n, callers, each = 300_001, 8, 6
	s, b := t.Stream(), t.Buffer(callers*n)
	var all sync.WaitGroup
	for i := range callers {
		part := t.Part(b, i*n, n)
		all.Go(func() {
			for round := range each {
				src, dst := noise(n, uint64(i*each+round)), make([]byte, n)
				done := make(chan error, 1)
				err := cuda.CopyToDevice(s, part, src)
				if err == nil {
					err = cuda.CopyToHost(s, dst, part, cuda.CopyDone(func(err error) { done <- err }))
				}
				if err == nil {
					err = <-done
				}
				if err != nil || !bytes.Equal(src, dst) {
					t.Errorf("caller %d: equal %v, error %v", i, bytes.Equal(src, dst), err)
				}
			}
		})
	}
	all.Wait()
	t.Sync(s)
}

// queuedOn queues a copy to the device and back on each of n streams, and returns what checks them.
func queuedOn(t *T, streams []*cuda.Stream, bufs []*cuda.Buffer, opts ...cuda.CopyOption) (check func()) {
	t.Helper()
	var src, dst [][]byte
	for i, s := range streams {
		n := bufs[i].Len()
		src, dst = append(src, noise(n, uint64(i))), append(dst, make([]byte, n))
		t.OK(cuda.CopyToDevice(s, bufs[i], src[i], opts...))
		t.OK(cuda.CopyToHost(s, dst[i], bufs[i], opts...))
	}
	return func() {
		t.Helper()
		for i, s := range streams {
			t.Sync(s)
			if !bytes.Equal(src[i], dst[i]) {
				t.Fatalf("stream %d: the bytes differ", i)
			}
		}
	}
}

// stagedShare: a pool that has no slots for all streams is used in turns, whichever stream gets to its copy first.
func stagedShare(t *T) {
	const n, streams = 200_001, 16
	pool := t.Pool(128 << 10)
	var list []*cuda.Stream
	var bufs []*cuda.Buffer
	for range streams {
		list, bufs = append(list, t.Stream()), append(bufs, t.Buffer(n))
	}
	for range 3 {
		queuedOn(t, list, bufs, cuda.Staging(pool))()
	}
	t.freeAgain(pool)
}

// stagedTurns copies from and to the device in turns through few slots, without waiting in between: what comes to the host is what
// was copied before, though the copy after it wants the same slots.
func stagedTurns(t *T) {
	const n, rounds = 200_001, 16
	pool := t.Pool(128 << 10)
	s, buf := t.Stream(), t.Buffer(n)
	var src, dst [rounds][]byte
	for i := range rounds {
		src[i], dst[i] = noise(n, uint64(i)), make([]byte, n)
		t.OK(cuda.CopyToDevice(s, buf, src[i], cuda.Staging(pool)))
		t.OK(cuda.CopyToHost(s, dst[i], buf, cuda.Staging(pool)))
	}
	t.Sync(s)
	for i := range rounds {
		if !bytes.Equal(src[i], dst[i]) {
			t.Fatalf("round %d: the bytes differ", i)
		}
	}
	t.freeAgain(pool)
}

// stagedSameSlots has a stream that comes to its copy at once share the slots of one that comes late.
func stagedSameSlots(t *T) {
	const n, late = 60_000, 6
	pool, early := t.Pool(512<<10), t.Stream()
	var streams []*cuda.Stream
	var bufs []*cuda.Buffer
	var dst [][]byte
	for i := range late + 1 {
		s, b := t.Stream(), t.Buffer(n)
		t.OK(s.Memset(b, byte(i+1)))
		t.Sync(s)
		streams, bufs = append(streams, s), append(bufs, b)
	}
	toHost := func(s *cuda.Stream, i int) {
		dst = append(dst, make([]byte, n))
		t.OK(cuda.CopyToHost(s, dst[len(dst)-1], bufs[i], cuda.Staging(pool)))
	}
	var want []byte
	for i := range late {
		t.Spin(streams[i], 30*time.Millisecond)
		for range min(i, 1) + 1 { // the first has least to do
			toHost(streams[i], i)
			want = append(want, byte(i+1))
		}
	}
	toHost(early, late)
	want = append(want, late+1)
	for _, s := range append(streams, early) {
		t.Sync(s)
	}
	for k, d := range dst {
		if bytes.Count(d, want[k:k+1]) != n {
			t.Errorf("copy %d has other bytes", k)
		}
	}
}

// stagedBesideHeld: copies on a stream that waits for this goroutine, more than the pool holds, leave room for those on others.
func stagedBesideHeld(t *T) {
	const n = 2<<20 + 1
	pool, held, s, flag := t.Pool(1<<20), t.Stream(), t.Stream(), t.Flag()
	t.Freed(flag, 1)
	list, bufs := []*cuda.Stream{held, held, held}, []*cuda.Buffer{t.Buffer(n), t.Buffer(n), t.Buffer(n)}
	b, own := t.Buffer(n), t.Buffer(n)
	roundTripBytes(t, s, own, n, 0)
	t.Sync(s)
	t.OK(held.WaitValue32(flag.Word(0), cuda.ValueEQ, 1))
	behind := queuedOn(t, list, bufs, cuda.Staging(pool))
	roundTripBytes(t, s, b, n, 0, cuda.Staging(pool))
	check := queuedOn(t, list, bufs) // the ring too
	roundTripBytes(t, s, own, n, 0)
	flag.low.Store(1)
	behind()
	check()
}

// copiesReturn queues copies of all kinds on a stream that waits for what this goroutine does afterwards.
func copiesReturn(t *T) {
	sizes := []int{1, 4 << 10, 64 << 10, 64<<10 + 1, 1 << 20}
	s, flag, b := t.Stream(), t.Flag(), t.Buffer(1<<20)
	t.Freed(flag, 1)
	roundTripBytes(t, s, b, 1<<20, 0)
	pinned, bufs := t.Pinned(1<<20).Bytes(), []*cuda.Buffer{}
	for _, n := range sizes {
		bufs = append(bufs, t.Buffer(n))
	}
	var src, dst [][]byte
	returned := make(chan error, 1)
	t.OK(s.WaitValue32(flag.Word(0), cuda.ValueEQ, 1))
	go func() {
		for i, n := range sizes {
			src, dst = append(src, noise(n, uint64(i))), append(dst, make([]byte, n))
			err := cuda.CopyToDevice(s, bufs[i], src[i])
			if err == nil {
				err = cuda.CopyToHost(s, dst[i], bufs[i])
			}
			if err == nil {
				err = cuda.CopyToHost(s, pinned[:n], bufs[i])
			}
			if err != nil {
				returned <- err
				return
			}
		}
		returned <- nil
	}()
	select {
	case err := <-returned:
		t.OK(err)
		flag.low.Store(1)
	case <-time.After(5 * time.Second):
		t.Errorf("a copy waits for what its stream waits for; %d of %d were queued", len(dst)-1, len(sizes))
		flag.low.Store(1)
		t.OK(<-returned)
	}
	t.Sync(s)
	for i := range src {
		if !bytes.Equal(src[i], dst[i]) {
			t.Errorf("%d bytes differ", sizes[i])
		}
	}
}

// stagedBesideHostFunction: a host function that runs long holds the context's other host functions up, and no copy.
func stagedBesideHostFunction(t *T) {
	const n = 2<<20 + 1
	s, b, gated := t.Stream(), t.Buffer(n), t.Stream()
	roundTripBytes(t, s, b, n, 0)
	g := t.Gate(gated)
	<-g.Entered
	roundTripBytes(t, s, b, n, 0)
	g.Open()
	t.Sync(gated)
}

// stagedLost: copies in progress and copies to come end with the context's error, though nobody calls the library.
func stagedLost(t *T) {
	const n, copies = 3 << 20, 6
	t.OpenDriver()
	s, other, b := t.Stream(), t.Stream(), t.Buffer(n)
	roundTripBytes(t, s, b, n, 0)
	pool := t.Pool(1 << 20)
	ends := make(chan error, 2*copies)
	told := cuda.CopyDone(func(err error) { ends <- err })
	t.FaultLater(s)
	for range copies / 2 {
		t.OK(cuda.CopyToHost(s, make([]byte, n), b, told))
		t.OK(cuda.CopyToDevice(s, b, make([]byte, n), told))
	}
	e := t.Event()
	t.OK(s.Record(e))
	t.OK(other.WaitEvent(e))
	t.OK(cuda.CopyToHost(other, make([]byte, n), b, told, cuda.Staging(pool)))
	start := time.Now()
	for range copies + 1 {
		t.Is(Receive(t, "CopyDone", ends), cuda.ErrDeviceLost, cuda.ErrIllegalAddress)
	}
	if d := time.Since(start); d > faultDelay+time.Second {
		t.Errorf("it took %v", d)
	}
	t.ringAtRest()
	t.Is(cuda.CopyToHost(other, make([]byte, n), b, told), cuda.ErrDeviceLost)
	if len(ends) > 0 {
		t.Error("told twice")
	}
	t.OK(pool.Close())
	t.OK(t.Driver.Close())
}

// stagedShutdown: a copy whose stream waits is what a shutdown waits for, and CopyDone has been told when that is through.
func stagedShutdown(t *T) {
	const n = 1 << 20
	d := t.OpenDriver()
	s, b, flag := t.Stream(), t.Buffer(n), t.Flag()
	roundTripBytes(t, s, b, n, 0)
	var told atomic.Int32
	t.OK(s.WaitValue32(flag.Word(0), cuda.ValueEQ, 1))
	for range 3 {
		t.OK(cuda.CopyToDevice(s, b, make([]byte, n), cuda.CopyDone(func(error) { told.Add(1) })))
		t.OK(cuda.CopyToHost(s, make([]byte, n), b, cuda.CopyDone(func(error) { told.Add(1) })))
	}
	t.Stuck(d, "6 copies")
	flag.low.Store(1)
	t.OK(d.Close())
	if told.Load() != 6 {
		t.Errorf("%d of 6 copies have told when the driver is closed", told.Load())
	}
}

func stagedManyStreams(t *T) {
	const n, streams = 1<<20 + 3, 64
	g, list, _ := t.heldStreams(streams)
	var bufs []*cuda.Buffer
	for range streams {
		bufs = append(bufs, t.Buffer(n))
	}
	check := queuedOn(t, list, bufs)
	g.Open()
	check()
	t.ringAtRest()
}

// stagedBesideTasks: no task ends before all is queued.
func stagedBesideTasks(t *T) {
	const n, streams = 1<<20 + 3, 64
	var list, others []*cuda.Stream
	var bufs []*cuda.Buffer
	var tasks []*cuda.Task
	for range streams {
		list, others, bufs = append(list, t.Stream()), append(others, t.Stream()), append(bufs, t.Buffer(n))
	}
	g := t.newGate()
	for _, s := range others {
		tasks = append(tasks, t.Task(s, g.task))
	}
	check := queuedOn(t, list, bufs)
	g.Open()
	check()
	for _, task := range tasks {
		t.Ends(task)
	}
	t.ringAtRest()
}
