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
	g := t.Gate(s)
	<-g.Entered // had it run on this goroutine, this would never come
	g.Open()
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

// refusedInside makes calls inside a host function on s. Each is to be refused at once, as the call that its key names.
func (t *T) refusedInside(s *cuda.Stream, calls map[string]func() error, opts ...cuda.HostOption) {
	t.Helper()
	got := map[string]error{}
	started := time.Now()
	t.Host(s, func() {
		for name, call := range calls {
			got[name] = call()
		}
	}, opts...)
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
}

// insideRefused calls everything that would reach the driver.
func insideRefused(t *T) {
	s, other := t.Stream(), t.Stream()
	calls := everyCall(t, s, other)
	t.covered(calls, notOfEveryCall)
	t.refusedInside(s, calls)
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
	g, early := t.newGate(), make(chan bool, 1)
	var done <-chan struct{}
	t.Host(s, func() {
		g.pass() // by now e is recorded behind this function
		done = e.Done()
		select {
		case <-done:
			early <- true
		case <-time.After(20 * time.Millisecond):
			early <- false
		}
	})
	<-g.Entered
	t.OK(s.Record(e))
	g.Open()
	if Receive(t, "word from the function", early) {
		t.Error("Done inside was closed before the event was complete")
	}
	t.Sync(s)
	Receive(t, "Done that was asked for inside", done)
}
