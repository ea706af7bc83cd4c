package cudatest

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// callbackCases: callbacks with status.
var callbackCases = []Case{
	{ID: "CB-01", Name: "between kernels", Run: callbackBetweenKernels},
	{ID: "CB-01", Name: "once per call, in order", Run: callbackOnce},
	{ID: "CB-02", Name: "told of the failure", Child: true, Run: callbackTold},
	{ID: "CB-02", Name: "waiting in the library", Child: true, Run: callbackWaiting},
	{ID: "CB-02", Name: "behind a function that runs", Child: true, Run: callbackBehindFunction},
	{ID: "CB-02", Name: "refused once the failure is known", Child: true, Run: callbackRefused},
	{ID: "CB-02", Name: "before the failure", Child: true, Run: callbackBefore},
	{ID: "CB-02", Name: "Close waits for them", Child: true, Run: callbackClose},
	{ID: "CB-04", Name: "not on the caller", Run: callbackNotOnCaller},
	{ID: "CB-04", Name: "independent streams", Run: callbackIndependent},
	{ID: "CB-04", Name: "CUDA inside is refused", Run: callbackInside},
	{ID: "CB-04", Name: "kept alive until it has run", Run: callbackKeptAlive},
	{ID: "CB-04", Name: "panic to OnDone", Run: callbackPanic},
	{ID: "CB-04", Name: "nil and closed", Run: callbackNilAndClosed},
	{ID: "CB-04", Name: "sees other streams' work", Run: callbackSeesJoined},
	{ID: "CB-04", Name: "stream closed behind it", Run: callbackClosedBehind},
	{ID: "CB-04", Name: "default and per-thread streams", Run: callbackEveryStream},
	{ID: "CB-04", Name: "beside host functions", Run: callbackBesideFunctions},
}

// Callback queues fn on s.
func (t *T) Callback(s *cuda.Stream, fn func(error), opts ...cuda.HostOption) {
	t.Helper()
	t.OK(cuda.AddCallback(s, fn, opts...))
}

func callbackBetweenKernels(t *T) {
	s, k := t.Stream(), t.Kernel("append")
	log := t.DeviceLog(3)
	for range 20 {
		log.words[0] = 0
		var status error = cuda.ErrUnknown
		t.OK(s.Launch(k, one, log.mem, uint64(1)))
		t.Callback(s, func(err error) {
			status = err
			log.words[1+log.words[0]] = 2
			log.words[0]++
		})
		t.OK(s.Launch(k, one, log.mem, uint64(3)))
		t.Sync(s)
		log.Want(1, 2, 3)
		t.OK(status)
	}
}

func callbackOnce(t *T) {
	s := t.Stream()
	var order []int
	for i := range 1000 {
		t.Callback(s, func(error) { order = append(order, i) })
	}
	t.Sync(s)
	time.Sleep(5 * time.Millisecond)
	if len(order) != 1000 {
		t.Fatalf("%d runs of 1000", len(order))
	}
	for i, n := range order {
		if i != n {
			t.Fatalf("callback %d ran as number %d", n, i)
		}
	}
}

// callbackTold queues callbacks behind a fault. Host functions there are dropped; callbacks run.
func callbackTold(t *T) {
	lostFunctions := lost(t)
	s := t.Stream()
	got, ends := make(chan error, 100), make(chan error, 100)
	t.FaultLater(s)
	t.Host(s, func() { t.Error("a host function ran") })
	for range 20 {
		t.Callback(s, func(err error) { got <- err }, cuda.OnDone(func(err error) { ends <- err }))
	}
	start := time.Now()
	for range 20 {
		t.Is(Receive(t, "a callback", got), cuda.ErrDeviceLost, cuda.ErrIllegalAddress)
		t.OK(Receive(t, "OnDone of a callback", ends))
	}
	t.Logf("20 callbacks were told within %v of being queued, %v of it before the fault", time.Since(start), faultDelay)
	Receive(t, "OnLost of the host function", lostFunctions)
	time.Sleep(1500 * time.Millisecond) // by then the library, too, would have had its turn
	t.OK(t.Driver.Close())
	if len(got) > 0 || len(ends) > 0 {
		t.Error("told twice")
	}
}

// callbackWaiting has callbacks wait in the library, behind a task that finds no room for its stream, when the context fails.
func callbackWaiting(t *T) {
	t.OpenDriver(cuda.MaxHeldStreams(1))
	held, s, faulty := t.Stream(), t.Stream(), t.Stream()
	began, release, got := make(chan error), make(chan struct{}), make(chan int, 100)
	if _, err := cuda.Go(held, func(context.Context) error { close(began); <-release; return nil }); err != nil {
		t.Fatal(err)
	}
	<-began
	if _, err := cuda.Go(s, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		t.Callback(s, func(err error) {
			if !errors.Is(err, cuda.ErrDeviceLost) {
				t.Errorf("callback %d got %v", i, err)
			}
			got <- i
		})
	}
	t.Fault(faulty)
	for i := range 20 {
		if n := Receive(t, "a callback", got); n != i {
			t.Errorf("callback %d came in place of %d", n, i)
		}
	}
	close(release)
	t.OK(t.Driver.Close())
	if len(got) > 0 {
		t.Error("a callback came twice")
	}
}

// callbackBehindFunction has callbacks wait behind a host function that runs for long, on a stream that the fault is not on.
func callbackBehindFunction(t *T) {
	lost(t)
	s, other := t.Stream(), t.Stream()
	g := t.Gate(other)
	<-g.Entered
	got := make(chan error, 100)
	for range 10 {
		t.Callback(other, func(err error) { got <- err })
	}
	t.Fault(s)
	t.Is(s.Sync(), cuda.ErrDeviceLost)
	time.Sleep(50 * time.Millisecond)
	t.Logf("%d of 10 callbacks ran beside the function", len(got))
	g.Open()
	for range 10 {
		t.Is(Receive(t, "a callback", got), cuda.ErrDeviceLost)
	}
	time.Sleep(1500 * time.Millisecond)
	if len(got) > 0 {
		t.Error("told twice")
	}
}

func callbackRefused(t *T) {
	lost(t)
	s := t.Stream()
	t.Fault(s)
	t.Is(s.Sync(), cuda.ErrDeviceLost)
	err := cuda.AddCallback(s, func(error) { t.Error("ran") }, cuda.OnDone(func(error) { t.Error("OnDone was called") }))
	t.Is(err, cuda.ErrDeviceLost, cuda.ErrIllegalAddress)
	time.Sleep(50 * time.Millisecond)
}

// callbackBefore: what ran before the failure was told that all is well.
func callbackBefore(t *T) {
	lost(t)
	s := t.Stream()
	got := make(chan error, 2)
	t.Callback(s, func(err error) { got <- err })
	t.OK(Receive(t, "the callback before", got))
	t.FaultLater(s)
	t.Callback(s, func(err error) { got <- err })
	t.Is(Receive(t, "the callback behind", got), cuda.ErrDeviceLost)
}

func callbackClose(t *T) {
	lost(t)
	s := t.Stream()
	var ran atomic.Int32
	t.FaultLater(s)
	for range 10 {
		t.Callback(s, func(err error) {
			if errors.Is(err, cuda.ErrDeviceLost) {
				ran.Add(1)
			}
		})
	}
	t.OK(t.Driver.Close())
	if n := ran.Load(); n != 10 {
		t.Errorf("Close returned after %d of 10 callbacks", n)
	}
}

func callbackNotOnCaller(t *T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := t.Stream()
	g := t.newGate()
	t.Callback(s, func(error) { g.pass() })
	<-g.Entered // had it run on this goroutine, this would never come
	if done, err := s.Query(); done || err != nil {
		t.Errorf("Query = %v, %v while the callback runs", done, err)
	}
	g.Open()
	t.Sync(s)
}

func callbackIndependent(t *T) {
	var runs atomic.Int32
	for range 8 {
		s := t.Stream()
		for range 10 {
			t.Callback(s, func(error) { runs.Add(1) })
		}
	}
	t.Eventually("80 callbacks have run", func() bool { return runs.Load() == 80 })
}

func callbackInside(t *T) {
	s, other, b := t.Stream(), t.Stream(), t.Buffer(64)
	pinned := t.Pinned(64)
	errs := make(chan error, 10)
	length := 0
	t.Callback(s, func(error) {
		_, query := s.Query()
		errs <- query
		errs <- cuda.HostLaunch(other, func() {})
		errs <- cuda.AddCallback(other, func(error) {})
		errs <- other.Memset(b, 1)
		errs <- t.Driver.Shutdown(t.Context())
		length = len(pinned.Bytes())
	})
	t.Sync(s)
	for range 5 {
		t.Is(Receive(t, "a call inside", errs), cuda.ErrNotPermitted)
	}
	if length != 64 {
		t.Error("Bytes does not work inside")
	}
}

func callbackKeptAlive(t *T) {
	s := t.Stream()
	g := t.Gate(s)
	var collected *atomic.Bool
	sum := uint64(0)
	func() {
		var data *[8]uint64
		data, collected = collectable()
		data[7] = 9
		t.Callback(s, func(error) { sum = data[7] })
	}()
	t.Kept("it has not run", collected)
	g.Open()
	t.Sync(s)
	if sum != 9 {
		t.Errorf("read %d, want 9", sum)
	}
	t.Gone(collected)
}

func callbackPanic(t *T) {
	s := t.Stream()
	ends := make(chan error, 2)
	after := false
	t.Callback(s, func(error) { panic("the value") }, cuda.Name("teller"), cuda.OnDone(func(err error) { ends <- err }))
	t.Callback(s, func(error) { after = true })
	t.Sync(s)
	var p *cuda.PanicError
	if err := Receive(t, "OnDone", ends); !errors.As(err, &p) {
		t.Fatalf("OnDone got %v, want a *PanicError", err)
	}
	if p.Value != "the value" || p.Name != "teller" || !strings.Contains(p.Site, "callback.go:") || !after {
		t.Errorf("value %v, name %q, site %q; the next one ran: %v", p.Value, p.Name, p.Site, after)
	}
}

func callbackNilAndClosed(t *T) {
	s := t.Stream()
	never := func(error) { t.Error("ran") }
	t.Is(cuda.AddCallback(nil, never), cuda.ErrInvalidValue)
	t.Is(cuda.AddCallback(s, nil), cuda.ErrInvalidValue)
	t.Is(cuda.AddCallback(s, never, cuda.SyncMode(cuda.Spin)), cuda.ErrInvalidValue)
	t.OK(s.Close())
	t.Is(cuda.AddCallback(s, never), cuda.ErrClosed)
	if st := t.Driver.Stats(); st.Waiting != 0 {
		t.Errorf("%d wait", st.Waiting)
	}
}

func callbackSeesJoined(t *T) {
	s, other, e, b := t.Stream(), t.Stream(), t.Event(), t.Buffer(4)
	out := cuda.PinnedSlice[uint32](t.Pinned(4))
	out[0] = 0
	t.Spin(other, 5*time.Millisecond)
	t.OK(other.Memset32(b, 7))
	t.OK(cuda.CopyToHost(other, out, b))
	t.OK(other.Record(e))
	t.OK(s.WaitEvent(e))
	var seen uint32
	t.Callback(s, func(error) { seen = out[0] })
	t.Sync(s)
	if seen != 7 {
		t.Errorf("the callback saw %d, want 7", seen)
	}
}

func callbackClosedBehind(t *T) {
	s, err := t.Device(0).NewStream()
	t.OK(err)
	got := make(chan error, 1)
	t.Spin(s, 5*time.Millisecond)
	t.Callback(s, func(err error) { got <- err })
	t.OK(s.Close())
	t.OK(Receive(t, "the callback", got))
}

func callbackEveryStream(t *T) {
	var runs int
	legacy := t.Device(0).DefaultStream()
	t.Callback(legacy, func(error) { runs++ })
	t.Sync(legacy)
	t.OK(t.Device(0).WithThreadStream(func(s *cuda.Stream) error {
		t.Callback(s, func(error) { runs++ })
		return s.Sync()
	}))
	if runs != 2 {
		t.Errorf("%d of 2 ran", runs)
	}
}

// callbackBesideFunctions mixes both forms on one stream.
func callbackBesideFunctions(t *T) {
	s, o := t.Stream(), new(Order)
	var want []int
	for i := range 60 {
		if i%3 == 0 {
			t.Callback(s, func(error) { o.Add(i)() })
		} else {
			t.Host(s, o.Add(i))
		}
		want = append(want, i)
	}
	t.Sync(s)
	o.Want(t, want...)
}
