package cudatest

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// spinCases: what holds for host functions holds in mode Spin.
var spinCases = []Case{
	{ID: "HL-21", Name: "Spin, between kernels", Run: spinBetweenKernels},
	{ID: "HL-21", Name: "Spin, later work waits", Run: spinHoldsStream},
	{ID: "HL-21", Name: "Spin, once each, in order", Run: spinInOrder},
	{ID: "HL-21", Name: "Spin, beside Block", Run: spinBesideBlock},
	{ID: "HL-21", Name: "Spin, many goroutines on one stream", Run: spinManyGoroutines},
	{ID: "HL-21", Name: "Spin, many streams", Run: spinManyStreams},
	{ID: "HL-21", Name: "Spin, CUDA inside is refused", Run: spinInside},
	{ID: "HL-21", Name: "Spin, panic and OnDone", Run: spinPanics},
	{ID: "HL-21", Name: "Spin, one P", Run: spinOneP},
	{ID: "HL-21", Name: "Spin, default and borrowed streams", Run: spinOnEveryStream},
	{ID: "HL-21", Name: "Spin, contexts made and closed", Run: spinInContexts},
	{ID: "HL-21", Name: "Spin, stream closed behind it", Run: spinClosedBehind},
	{ID: "HL-21", Name: "Spin, tasks", Run: spinTasks},
	{ID: "HL-21", Name: "Spin, no spinning when idle", Run: spinIdle},
	{ID: "HL-21", Name: "Spin, Close waits", Run: spinClose},
	{ID: "HL-21", Name: "Spin, lost", Child: true, Run: spinLost},
}

var spinMode = cuda.SyncMode(cuda.Spin)

func spinBetweenKernels(t *T) {
	t.SpinDriver()
	s, log := t.Stream(), t.DeviceLog(4)
	for range 100 {
		log.words[0] = 0
		log.Add(s, 1)
		t.Host(s, func() {
			log.words[1+log.words[0]] = 2
			log.words[0]++
		}, spinMode)
		log.Add(s, 3)
		t.Sync(s)
		log.Want(1, 2, 3)
	}
}

func spinHoldsStream(t *T) {
	t.SpinDriver()
	s, e := t.Stream(), t.Event()
	other := t.Stream()
	g := t.Gate(s, spinMode)
	t.OK(s.Record(e))
	<-g.Entered
	ran := false
	t.Host(other, func() { ran = true }, spinMode) // somebody has taken over the looking
	t.Sync(other)
	if !ran {
		t.Error("the function of another stream did not run")
	}
	t.Waits("work behind a function", e)
	g.Open()
	t.Completes("work behind the function", e)
}

func spinInOrder(t *T) {
	t.SpinDriver()
	const each = 500
	var streams [4]*cuda.Stream
	var next [4]int
	var wrong atomic.Int32
	for i := range streams {
		streams[i] = t.Stream()
	}
	for i := range each {
		for n, s := range streams {
			t.Host(s, func() {
				if next[n] != i {
					wrong.Add(1)
				}
				next[n]++
			}, spinMode)
		}
	}
	for _, s := range streams {
		t.Sync(s)
	}
	if wrong.Load() > 0 || next != [4]int{each, each, each, each} {
		t.Errorf("%d out of order; %v ran of %d each", wrong.Load(), next, each)
	}
}

func spinBesideBlock(t *T) {
	t.SpinDriver()
	s := t.Stream()
	var o Order
	var want []int
	for i := range 60 {
		switch i % 3 {
		case 0:
			t.Host(s, o.Add(i), spinMode)
		case 1:
			t.Host(s, o.Add(i))
		case 2:
			t.Task(s, func(context.Context) error { o.Add(i)(); return nil }, spinMode)
		}
		want = append(want, i)
	}
	t.Sync(s)
	o.Want(t, want...)
}

func spinManyGoroutines(t *T) {
	t.SpinDriver()
	const goroutines, each = 64, 50
	s := t.Stream()
	var next [goroutines]int
	var wrong atomic.Int32
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range each {
				if err := cuda.HostLaunch(s, func() {
					if next[g] != i {
						wrong.Add(1)
					}
					next[g]++
				}, spinMode); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	t.Sync(s)
	for g, n := range next {
		if n != each {
			t.Errorf("goroutine %d: %d ran of %d", g, n, each)
		}
	}
	if wrong.Load() > 0 {
		t.Errorf("%d out of order", wrong.Load())
	}
}

func spinManyStreams(t *T) {
	t.SpinDriver()
	var ran atomic.Int32
	var streams []*cuda.Stream
	for range 64 {
		streams = append(streams, t.Stream())
	}
	for range 20 {
		for _, s := range streams {
			t.Host(s, func() { ran.Add(1) }, spinMode)
		}
	}
	for _, s := range streams {
		t.Sync(s)
	}
	if ran.Load() != 64*20 {
		t.Errorf("%d ran of %d", ran.Load(), 64*20)
	}
}

func spinInside(t *T) {
	t.SpinDriver()
	s, other := t.Stream(), t.Stream()
	t.refusedInside(s, everyCall(t, s, other), spinMode)
	outside := make(chan error, 1)
	t.Host(s, func() { go func() { outside <- other.Sync() }() }, spinMode)
	t.Sync(s)
	t.OK(Receive(t, "a goroutine that the function started", outside))
	gone := t.Stream()
	t.Host(s, func() { t.OK(gone.Close()) }, spinMode)
	t.Sync(s)
	t.Is(gone.Sync(), cuda.ErrClosed)
}

func spinPanics(t *T) {
	t.SpinDriver()
	s := t.Stream()
	ends := make(chan error, 4)
	after := false
	t.Host(s, func() { panic("the value") }, spinMode, cuda.Name("fuse"), cuda.OnDone(func(err error) { ends <- err }))
	var p *cuda.PanicError
	if err := Receive(t, "OnDone", ends); !errors.As(err, &p) || p.Value != "the value" || p.Name != "fuse" {
		t.Errorf("OnDone got %v", err)
	}
	t.Host(s, func() { after = true }, spinMode, cuda.OnDone(func(err error) { ends <- err }))
	t.Sync(s)
	if err := Receive(t, "OnDone", ends); err != nil || !after {
		t.Errorf("OnDone got %v; it ran: %v", err, after)
	}
	if t.cfg.OpenSpin != nil || t.Driver.Name() == "software" { // elsewhere only a driver's thread would do, and that Go ends
		t.Host(s, runtime.Goexit, spinMode, cuda.OnDone(func(err error) { ends <- err }))
		t.Host(s, func() { after = false }, spinMode)
		t.Sync(s)
		if err := Receive(t, "OnDone", ends); !errors.Is(err, cuda.ErrGoexit) || after {
			t.Errorf("OnDone got %v; the next one ran: %v", err, !after)
		}
	}
}

func spinOneP(t *T) {
	t.SpinDriver()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := t.Stream()
	runs := 0
	for range 100 {
		t.Host(s, func() { runs++; runtime.Gosched() }, spinMode)
		t.Sync(s)
	}
	if runs != 100 {
		t.Errorf("%d runs, want 100", runs)
	}
}

func spinOnEveryStream(t *T) {
	t.SpinDriver()
	dev, made := t.Device(0), t.Stream()
	borrowed, err := dev.StreamOf(made)
	t.OK(err)
	defer borrowed.Close()
	for i, s := range []*cuda.Stream{made, borrowed, dev.DefaultStream(), t.Stream(cuda.Blocking())} {
		ran := false
		t.Host(s, func() { ran = true }, spinMode)
		t.Sync(s)
		if !ran {
			t.Errorf("stream %d: the function did not run", i)
		}
	}
	t.OK(dev.WithThreadStream(func(s *cuda.Stream) error {
		ran := false
		t.Host(s, func() { ran = true }, spinMode)
		err := s.Sync()
		if !ran {
			t.Error("per-thread stream: the function did not run")
		}
		return err
	}))
}

// spinInContexts: what looks must not look at memory that has gone with a context.
func spinInContexts(t *T) {
	t.SpinDriver()
	for range 5 {
		c, err := t.Device(0).NewContext()
		t.OK(err)
		s, err := c.NewStream()
		t.OK(err)
		n := 0
		for range 20 {
			t.Host(s, func() { n++ }, spinMode)
		}
		t.Sync(s)
		t.OK(errors.Join(s.Close(), c.Close()))
		if n != 20 {
			t.Errorf("%d ran of 20", n)
		}
	}
}

func spinClosedBehind(t *T) {
	t.SpinDriver()
	s, err := t.Device(0).NewStream()
	t.OK(err)
	ran := make(chan struct{})
	g := t.Gate(s, spinMode)
	t.Host(s, func() { close(ran) }, spinMode)
	t.OK(s.Close())
	g.Open()
	Receive(t, "the function of a closed stream", ran)
}

func spinTasks(t *T) {
	t.SpinDriver()
	s, other, log := t.Stream(), t.Stream(), t.DeviceLog(200)
	var want []uint64
	for i := range uint64(50) {
		log.Add(s, 2*i)
		task := t.Task(s, func(context.Context) error {
			log.Add(other, 2*i+1)
			return other.Sync()
		}, spinMode)
		want = append(want, 2*i, 2*i+1)
		if i%10 == 0 {
			t.Ends(task)
		}
	}
	t.Sync(s)
	log.Want(want...)
	self := t.Task(s, func(context.Context) error { return s.Sync() }, spinMode)
	<-self.Done()
	t.Is(self.Err(), cuda.ErrDeadlock)
	leaving := t.Task(s, func(context.Context) error { runtime.Goexit(); return nil }, spinMode)
	t.Sync(s)
	if err := leaving.Err(); !errors.Is(err, cuda.ErrGoexit) {
		t.Errorf("runtime.Goexit gave %v", err)
	}
	t.Ends(t.Task(s, func(context.Context) error { return nil }, spinMode))
}

func spinIdle(t *T) {
	t.SpinDriver()
	s := t.Stream()
	for range 100 {
		t.Host(s, func() {}, spinMode)
	}
	t.Sync(s)
	before := runtime.NumGoroutine()
	time.Sleep(20 * time.Millisecond)
	var list [1 << 16]byte
	if n := runtime.Stack(list[:], true); containsSpinner(string(list[:n])) {
		t.Errorf("somebody spins (%d goroutines):\n%s", before, list[:n])
	}
}

func spinClose(t *T) {
	t.SpinDriver()
	s := t.Stream()
	ran := 0
	t.Spin(s, 5*time.Millisecond)
	for range 100 {
		t.Host(s, func() { ran++ }, spinMode)
	}
	t.OK(t.Driver.Close())
	if ran != 100 {
		t.Errorf("%d ran of 100", ran)
	}
}

func spinLost(t *T) {
	told := make(chan *cuda.LostError, 100)
	t.SpinDriver(cuda.OnLost(func(e *cuda.LostError) { told <- e }))
	s := t.Stream()
	t.FaultLater(s)
	fault := time.Now().Add(faultDelay)
	for range 20 {
		t.Host(s, func() { t.Error("a function of a lost device ran") }, spinMode)
	}
	for range 20 { // and meanwhile nobody calls the library
		t.Is(unwrap(Receive(t, "OnLost", told)), cuda.ErrIllegalAddress, cuda.ErrDeviceLost)
	}
	if took := time.Since(fault); took > time.Second {
		t.Errorf("the functions were resolved after %v, want within a second", took)
	}
	t.OK(t.Driver.Close())
}

// containsSpinner reports whether a goroutine of a stack trace looks for functions of mode Spin.
func containsSpinner(trace string) bool { return strings.Contains(trace, "cuda.(*spinner)") }
