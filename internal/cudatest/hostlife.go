package cudatest

import (
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

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
	var g *Gate
	func() {
		s, err := t.Device(0).NewStream()
		t.OK(err)
		g = t.Gate(s)
		for range 10 {
			t.Host(s, func() { runs.Add(1) })
		}
	}()
	for range 5 {
		runtime.GC()
		t.Driver.Device(0) // any call has what was dropped closed
		time.Sleep(time.Millisecond)
	}
	g.Open()
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
