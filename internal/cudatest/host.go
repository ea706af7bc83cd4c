package cudatest

import (
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// hostCases: what a host function is, on a sound device.
var hostCases = []Case{
	{ID: "HL-01", Name: "between kernels", Run: betweenKernels},
	{ID: "HL-01", Name: "later work waits", Run: laterWorkWaits},
	{ID: "HL-01", Name: "between copies", Run: betweenCopies},
	{ID: "HL-02", Name: "returns at enqueue", Run: returnsAtEnqueue},
	{ID: "HL-03", Name: "once per enqueue", Run: oncePerEnqueue},
	{ID: "HL-04", Name: "not on the caller", Run: notOnCaller},
	{ID: "HL-04", Name: "caller in Sync, one P", Run: callerInSync},
	{ID: "HL-05", Name: "independent streams", Run: independentStreams},
	{ID: "HL-06", Name: "CUDA inside is refused", Run: insideRefused},
	{ID: "HL-06", Name: "what needs no driver works inside", Run: insideAllowed},
	{ID: "HL-06", Name: "Close inside is carried out later", Run: closeInside},
	{ID: "HL-06", Name: "others are unaffected", Run: othersUnaffected},
	{ID: "HL-06", Name: "Done inside waits all the same", Run: doneInside},
	{ID: "HL-08", Name: "kept alive until it has run", Run: keptAlive},
	{ID: "HL-08", Name: "released where CUDA is allowed", Run: releasedOutside},
	{ID: "HL-10", Name: "nil and closed", Run: nilAndClosed},
	{ID: "HL-18", Name: "sees other streams' work", Run: seesJoinedWork},
	{ID: "HL-21", Name: "modes", Run: syncModes},
	{ID: "HL-22", Name: "default and borrowed streams", Run: everyStream},
	{ID: "HL-22", Name: "per-thread stream", Run: threadStream},
	{ID: "HL-22", Name: "two devices", Devices: 2, Run: twoDevices},
	{ID: "HL-23", Name: "stream closed behind it", Run: closedBehind},
	{ID: "HL-23", Name: "stream dropped behind it", Run: droppedBehind},
	{ID: "HL-26", Name: "goroutine started inside", Run: goroutineInside},
	{ID: "HL-27", Name: "OnDone after the function", Run: onDoneAfter},
}

func betweenKernels(t *T) {
	s, k, log := t.Stream(), t.Kernel("append"), t.Pinned(8*4)
	words := cuda.PinnedSlice[uint64](log)
	clear(words)
	var seen []uint64
	for range 20 {
		words[0] = 0
		t.OK(s.Launch(k, one, log, uint64(1)))
		t.Host(s, func() {
			seen = append(seen, words[0])
			words[1+words[0]] = 2
			words[0]++
		})
		t.OK(s.Launch(k, one, log, uint64(3)))
		t.Sync(s)
		if words[0] != 3 || words[1] != 1 || words[2] != 2 || words[3] != 3 {
			t.Fatalf("marks %v, want 1 2 3 behind their count", words)
		}
	}
	for i, n := range seen {
		if n != 1 {
			t.Errorf("function %d saw %d marks, want 1", i, n)
		}
	}
}

func laterWorkWaits(t *T) {
	s, b := t.Stream(), t.Buffer(4)
	out := cuda.PinnedSlice[uint32](t.Pinned(4))
	out[0] = 0
	t.OK(s.Memset32(b, 1))
	g := t.Gate(s)
	t.OK(s.Memset32(b, 2))
	t.OK(cuda.CopyToHost(s, out, b))
	<-g.Entered
	time.Sleep(20 * time.Millisecond)
	if done, err := s.Query(); done || err != nil {
		t.Fatalf("Query = %v, %v while the function runs", done, err)
	}
	g.Open()
	t.Sync(s)
	if out[0] != 2 {
		t.Errorf("copied %d, want 2", out[0])
	}
}

func betweenCopies(t *T) {
	s, b := t.Stream(), t.Buffer(1<<20)
	host := t.Pinned(1 << 20).Bytes()
	for i := range host {
		host[i] = 1
	}
	t.OK(s.Memset(b, 7))
	t.OK(cuda.CopyToHost(s, host, b))
	var first, last byte
	t.Host(s, func() { first, last = host[0], host[len(host)-1] })
	t.OK(s.Memset(b, 9))
	t.OK(cuda.CopyToHost(s, host, b))
	t.Sync(s)
	if first != 7 || last != 7 || host[0] != 9 {
		t.Errorf("function saw %d and %d, want 7; at the end %d, want 9", first, last, host[0])
	}
}

func returnsAtEnqueue(t *T) {
	s, e := t.Stream(), t.Event()
	g := t.Gate(s)
	ran := false
	t.Host(s, func() { ran = true })
	t.OK(s.Record(e))
	if done, err := e.Query(); done || err != nil {
		t.Fatalf("Query = %v, %v before the function ran", done, err)
	}
	g.Open()
	t.OK(e.Sync())
	if !ran {
		t.Error("the event completed before the function ran")
	}
	t.Sync(s)
}

func oncePerEnqueue(t *T) {
	s := t.Stream()
	runs := 0
	fn := func() { runs++ }
	for range 1000 {
		t.Host(s, fn)
	}
	t.Sync(s)
	time.Sleep(5 * time.Millisecond)
	if runs != 1000 {
		t.Errorf("%d runs of 1000 enqueues", runs)
	}
}

func notOnCaller(t *T) {
	s := t.Stream()
	blocked, free := make(chan struct{}), make(chan struct{})
	t.Host(s, func() { close(blocked); <-free })
	<-blocked // had it run on this goroutine, this would never come
	close(free)
	t.Sync(s)
}

func callerInSync(t *T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := t.Stream()
	runs := 0
	for range 200 {
		t.Host(s, func() { runs++; runtime.Gosched() })
		t.Sync(s)
	}
	if runs != 200 {
		t.Errorf("%d runs, want 200", runs)
	}
}

func independentStreams(t *T) {
	var runs atomic.Int32
	for range 8 {
		s := t.Stream()
		for range 10 {
			t.Host(s, func() { runs.Add(1); time.Sleep(100 * time.Microsecond) })
		}
	}
	t.Eventually("80 functions have run", func() bool { return runs.Load() == 80 })
}

// insideRefused calls everything that would reach the driver.
func insideRefused(t *T) {
	s, other := t.Stream(), t.Stream()
	calls := everyCall(t, s, other)
	t.covered(calls, notOfEveryCall)
	got := map[string]error{}
	started := time.Now()
	t.Host(s, func() {
		for name, call := range calls {
			got[name] = call()
		}
	})
	t.Sync(s)
	if d := time.Since(started); d > 2*time.Second {
		t.Errorf("the calls took %v: some of them waited", d)
	}
	for name := range calls {
		var e *cuda.Error
		if err := got[name]; !errors.Is(err, cuda.ErrNotPermitted) || !errors.As(err, &e) || e.Op != name {
			t.Errorf("%s inside a host function: %v, want ErrNotPermitted of that call", name, err)
		}
	}
	t.Sync(other)
}

func insideAllowed(t *T) {
	s, p, k, dev := t.Stream(), t.Pinned(16), t.Kernel("nothing"), t.Device(0)
	var n int
	var names string
	want, err := s.ID()
	t.OK(err)
	borrowed, err := dev.StreamOf(s)
	t.OK(err)
	defer borrowed.Close()
	var ids [2]uint64
	var errs [2]error
	t.Host(s, func() {
		n = len(p.Bytes()) + p.Len()
		names = k.Name() + t.Driver.Name() + dev.Name()
		t.Driver.Stats()
		s.CUDAStream()
		s.Context()
		ids[0], errs[0] = s.ID()
		ids[1], errs[1] = borrowed.ID()
	})
	t.Sync(s)
	if ids != [2]uint64{want, want} || errs != [2]error{} {
		t.Errorf("ids %v, %v; want %d", ids, errs, want)
	}
	if n != 32 || names == "" {
		t.Errorf("got %d and %q", n, names)
	}
}

func closeInside(t *T) {
	dev := t.Device(0)
	s, err := dev.NewStream()
	t.OK(err)
	e, err := dev.NewEvent()
	t.OK(err)
	b, err := dev.Alloc(64)
	t.OK(err)
	p, err := dev.AllocPinned(64)
	t.OK(err)
	before := t.Driver.Stats()
	errs := make(chan error, 10)
	t.Host(s, func() {
		errs <- b.Close()
		errs <- p.Close()
		errs <- e.Close()
		errs <- s.Close()
		errs <- s.Close()
	})
	for range 5 {
		if err := Receive(t, "a Close inside", errs); err != nil {
			t.Errorf("Close inside a host function: %v", err)
		}
	}
	t.Eventually("all four are closed", func() bool {
		now := t.Driver.Stats()
		return now.Streams == before.Streams-1 && now.Events == before.Events-1 &&
			now.Buffers == before.Buffers-1 && now.PinnedBuffers == before.PinnedBuffers-1
	})
	t.Is(s.Sync(), cuda.ErrClosed)
	t.Is(e.Sync(), cuda.ErrClosed)
}

func othersUnaffected(t *T) {
	s, other := t.Stream(), t.Stream()
	g := t.Gate(s)
	<-g.Entered
	t.Spin(other, 100*time.Microsecond)
	t.Sync(other)
	if done, err := s.Query(); done || err != nil {
		t.Errorf("Query of the held stream = %v, %v", done, err)
	}
	g.Open()
}

// doneInside: inside a function the driver cannot be asked about the event, and its channel is no less true for that.
func doneInside(t *T) {
	s, e := t.Stream(), t.Event()
	free := make(chan struct{})
	entered, early := make(chan struct{}), make(chan bool, 1)
	var done <-chan struct{}
	t.Host(s, func() {
		close(entered)
		<-free // by now e is recorded behind this function
		done = e.Done()
		select {
		case <-done:
			early <- true
		case <-time.After(20 * time.Millisecond):
			early <- false
		}
	})
	<-entered
	t.OK(s.Record(e))
	close(free)
	if Receive(t, "word from the function", early) {
		t.Error("Done inside was closed before the event was complete")
	}
	t.Sync(s)
	Receive(t, "Done that was asked for inside", done)
}

func keptAlive(t *T) {
	s := t.Stream()
	g := t.Gate(s)
	var gone atomic.Int32
	sum := make(chan int, 100)
	for i := range 100 {
		data := make([]int, 1000)
		for j := range data {
			data[j] = i
		}
		runtime.AddCleanup(&data[0], func(int) { gone.Add(1) }, 0)
		t.Host(s, func() {
			n := 0
			for _, v := range data {
				n += v
			}
			sum <- n
		})
	}
	for range 5 {
		runtime.GC()
	}
	if n := gone.Load(); n != 0 {
		t.Errorf("%d of 100 were collected before they ran", n)
	}
	g.Open()
	t.Sync(s)
	for i := range 100 {
		if n := <-sum; n != i*1000 {
			t.Errorf("function %d summed %d, want %d", i, n, i*1000)
		}
	}
	t.Eventually("what the functions captured is released", func() bool { runtime.GC(); return gone.Load() == 100 })
}

func releasedOutside(t *T) {
	s := t.Stream()
	result := make(chan error, 1)
	func() {
		type captured struct{ n [64]byte }
		c := &captured{}
		runtime.SetFinalizer(c, func(*captured) {
			_, err := s.Query()
			result <- err
		})
		t.Host(s, func() { c.n[0]++ })
	}()
	t.Sync(s)
	var err error
	t.Eventually("the finalizer has run", func() bool {
		runtime.GC()
		select {
		case err = <-result:
			return true
		default:
			return false
		}
	})
	if err != nil {
		t.Errorf("CUDA in the finalizer: %v", err)
	}
}

func nilAndClosed(t *T) {
	closed := t.Stream()
	t.OK(closed.Close())
	ran := func() { t.Error("a refused function ran") }
	told := cuda.OnDone(func(error) { t.Error("OnDone of a refused function") })
	t.Is(cuda.HostLaunch(nil, ran, told), cuda.ErrInvalidValue)
	t.Is(cuda.HostLaunch((*cuda.Stream)(nil), ran, told), cuda.ErrInvalidValue)
	t.Is(cuda.HostLaunch(closed, ran, told), cuda.ErrClosed)
	t.Is(cuda.HostLaunch(t.Stream(), nil, told), cuda.ErrInvalidValue)
	if st := t.Driver.Stats(); st.Waiting != 0 {
		t.Errorf("%d functions are retained", st.Waiting)
	}
	time.Sleep(2 * time.Millisecond)
}

func seesJoinedWork(t *T) {
	a, b, e := t.Stream(), t.Stream(), t.Event()
	out := cuda.PinnedSlice[uint32](t.Pinned(4))
	buf := t.Buffer(4)
	for i := range uint32(50) {
		out[0] = 0
		t.Spin(a, 200*time.Microsecond)
		t.OK(a.Memset32(buf, i+1))
		t.OK(cuda.CopyToHost(a, out, buf))
		t.OK(a.Record(e))
		t.OK(b.WaitEvent(e))
		var saw uint32
		t.Host(b, func() { saw = out[0] })
		t.Sync(b)
		if saw != i+1 {
			t.Fatalf("round %d: the function saw %d", i, saw)
		}
	}
}

func syncModes(t *T) {
	s := t.Stream()
	runs := 0
	t.Host(s, func() { runs++ }, cuda.SyncMode(cuda.Block))
	t.Host(s, func() { runs++ }, cuda.SyncMode(cuda.Spin))
	t.Is(cuda.HostLaunch(s, func() { runs += 100 }, cuda.SyncMode(7)), cuda.ErrInvalidValue)
	t.Sync(s)
	if runs != 2 {
		t.Errorf("%d runs, want 2", runs)
	}
}

func everyStream(t *T) {
	dev, made := t.Device(0), t.Stream()
	borrowed, err := dev.BorrowStream(made.CUDAStream())
	t.OK(err)
	of, err := dev.StreamOf(made)
	t.OK(err)
	legacy, err := dev.BorrowStream(0)
	t.OK(err)
	streams := []*cuda.Stream{made, borrowed, of, legacy, dev.DefaultStream(), t.Stream(cuda.Blocking())}
	for i, s := range streams {
		ran := false
		t.Host(s, func() { ran = true })
		t.Sync(s)
		if !ran {
			t.Errorf("stream %d: the function did not run", i)
		}
	}
	t.OK(borrowed.Close())
	t.Is(cuda.HostLaunch(borrowed, func() {}), cuda.ErrClosed)
	t.OK(of.Close())
	t.OK(legacy.Close())
	t.Host(made, func() {}) // still there: it was only borrowed
	t.Sync(made)
	_, err = dev.BorrowStream(2)
	t.Is(err, cuda.ErrInvalidHandle)
}

func threadStream(t *T) {
	dev := t.Device(0)
	ran := false
	t.OK(dev.WithThreadStream(func(s *cuda.Stream) error {
		if err := cuda.HostLaunch(s, func() { ran = true }); err != nil {
			return err
		}
		return s.Sync()
	}))
	if !ran {
		t.Error("the function did not run")
	}
	var leaked *cuda.Stream
	mine := errors.New("mine")
	if err := dev.WithThreadStream(func(s *cuda.Stream) error { leaked = s; return mine }); err != mine {
		t.Errorf("error %v, want fn's own", err)
	}
	t.Is(leaked.Sync(), cuda.ErrClosed)
	t.Is(dev.WithThreadStream(nil), cuda.ErrInvalidValue)
}

func twoDevices(t *T) {
	const n = 200
	var order [2]Order
	var streams [2]*cuda.Stream
	for i := range 2 {
		streams[i] = t.StreamOn(t.Device(i))
	}
	for j := range n {
		for i, s := range streams {
			t.Host(s, order[i].Add(j))
		}
	}
	for i, s := range streams {
		t.Sync(s)
		log := order[i].Log()
		if len(log) != n {
			t.Fatalf("device %d: %d runs, want %d", i, len(log), n)
		}
		for j, v := range log {
			if v != j {
				t.Fatalf("device %d: run %d was %d", i, j, v)
			}
		}
	}
}

func closedBehind(t *T) {
	var o Order
	done := make(chan struct{})
	s := t.Stream()
	g := t.Gate(s)
	for i := range 10 {
		t.Host(s, o.Add(i))
	}
	t.Host(s, func() { close(done) })
	t.OK(s.Close())
	g.Open()
	Receive(t, "the last function", done)
	o.Want(t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
}

func droppedBehind(t *T) {
	var runs atomic.Int32
	free := make(chan struct{})
	func() {
		s, err := t.Device(0).NewStream()
		t.OK(err)
		t.Host(s, func() { <-free })
		for range 10 {
			t.Host(s, func() { runs.Add(1) })
		}
	}()
	for range 5 {
		runtime.GC()
		t.Driver.Device(0) // any call has what was dropped closed
		time.Sleep(time.Millisecond)
	}
	close(free)
	t.Eventually("the functions of the dropped stream have run", func() bool { return runs.Load() == 10 })
	t.Eventually("the dropped stream is closed", func() bool {
		runtime.GC()
		t.Driver.Device(0)
		return t.Driver.Stats().Streams == 0
	})
}

func goroutineInside(t *T) {
	s, other := t.Stream(), t.Stream()
	errs := make(chan error, 1)
	ran := false
	t.Host(s, func() {
		go func() {
			if err := cuda.HostLaunch(other, func() { ran = true }); err != nil {
				errs <- err
				return
			}
			errs <- other.Sync()
		}()
	})
	t.OK(Receive(t, "the goroutine", errs))
	if !ran {
		t.Error("the function that the goroutine queued did not run")
	}
	t.Sync(s)
}

func onDoneAfter(t *T) {
	s, b := t.Stream(), t.Buffer(64)
	for range 100 {
		ran := false
		type end struct {
			err  error
			ran  bool
			cuda error
		}
		ends := make(chan end, 2)
		t.Host(s, func() { ran = true }, cuda.OnDone(func(err error) {
			ends <- end{err, ran, s.Memset(b, 1)}
		}))
		e := Receive(t, "OnDone", ends)
		if e.err != nil || !e.ran || e.cuda != nil {
			t.Fatalf("OnDone got %v; the function had run: %v; CUDA inside: %v", e.err, e.ran, e.cuda)
		}
		t.Sync(s)
		if len(ends) > 0 {
			t.Fatal("OnDone was called twice")
		}
	}
}
