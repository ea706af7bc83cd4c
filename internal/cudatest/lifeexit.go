package cudatest

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// exitWithQueued leaves the process as main's return does. The parent sees whether that goes well, and ends a child that hangs.
func exitWithQueued(t *T) {
	t.OpenDriver()
	s, k := t.Stream(), t.Kernel("spin")
	t.Gate(s)
	for range 1000 {
		t.Host(s, func() {})
	}
	other := t.Stream()
	t.OK(other.Launch(k, one, uint64(time.Millisecond)))
	for range 100 {
		t.Host(other, func() {})
	}
	os.Exit(0)
}

func exitWhileRunning(t *T) {
	t.OpenDriver()
	s := t.Stream()
	entered := make(chan struct{})
	t.Host(s, func() {
		close(entered)
		for {
			runtime.Gosched()
		}
	})
	<-entered
	os.Exit(0)
}

// hundredCycles opens, uses and closes a driver. A thread lost in each cycle would be a hundred; the Go runtime itself may
// start one or another at any time.
func hundredCycles(t *T) {
	cycle := func() {
		d := open(t.T, t.cfg)
		defer d.Close()
		dev, err := d.Device(0)
		t.OK(err)
		s, err := dev.NewStream()
		t.OK(err)
		e, err := dev.NewEvent()
		t.OK(err)
		b, err := dev.Alloc(64)
		t.OK(err)
		ran := false
		t.OK(s.Memset(b, 1))
		t.Host(s, func() { ran = true })
		t.OK(s.Record(e))
		t.OK(e.Wait(t.Context()))
		t.Sync(s)
		if !ran {
			t.Error("the function did not run")
		}
		t.OK(d.Close())
	}
	for range 10 {
		cycle()
	}
	before, goroutines := threads(), runtime.NumGoroutine()
	for range 100 {
		cycle()
	}
	if more := threads() - before; more > 10 {
		t.Errorf("%d more OS threads after 100 cycles", more)
	}
	t.Eventually("no goroutine is left", func() bool { return runtime.NumGoroutine() <= goroutines })
}

// work keeps host functions running until stop is called.
func (t *T) work() (stop func()) {
	t.Helper()
	s := t.Stream()
	var over atomic.Bool
	var worker sync.WaitGroup
	worker.Go(func() {
		for !over.Load() {
			for range 50 {
				if err := cuda.HostLaunch(s, func() { burn(10 * time.Microsecond) }); err != nil {
					t.Error(err)
					return
				}
			}
			if err := s.Sync(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	return func() {
		over.Store(true)
		worker.Wait()
	}
}

// burn uses CPU time for about d.
//
//go:noinline
func burn(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}

// interruptArrives is a case for a process of its own, since signal.Notify leaves a goroutine.
func interruptArrives(t *T) {
	t.OpenDriver()
	stop := t.work()
	defer stop()
	if runtime.GOOS == "windows" || runtime.GOARCH == "wasm" {
		t.Skip("a process cannot send itself an interrupt here")
	}
	signals := make(chan os.Signal, 10)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	self, err := os.FindProcess(os.Getpid())
	t.OK(err)
	for range 10 {
		t.OK(self.Signal(os.Interrupt))
		if got := Receive(t, "the interrupt", signals); got != os.Interrupt {
			t.Errorf("got %v", got)
		}
	}
}

// goroutinesPreempted has a goroutine that only a signal (SIGURG) can take the one P from.
func goroutinesPreempted(t *T) {
	if runtime.GOARCH == "wasm" {
		t.Skip("nothing is preempted here")
	}
	t.OpenDriver() // in a process of its own: what collecting takes beside the loop goes by what other cases have left
	stop := t.work()
	defer stop()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 5 {
		var over atomic.Bool
		ended := make(chan uint64)
		go func() {
			n := uint64(0)
			for !over.Load() { // no call, so no other place to yield
				n++
			}
			ended <- n
		}()
		time.Sleep(5 * time.Millisecond)
		runtime.GC() // has to stop it, too
		over.Store(true)
		Receive(t, "the end of the tight loop", ended)
	}
}

func profilingWorks(t *T) {
	if runtime.GOARCH == "wasm" {
		t.Skip("there is no CPU profiling here")
	}
	stop := t.work()
	defer stop()
	for range 10 { // a busy machine may give the burning too little time
		var profile bytes.Buffer
		if err := pprof.StartCPUProfile(&profile); err != nil {
			t.Skipf("profiling is on already: %v", err)
		}
		burn(300 * time.Millisecond)
		pprof.StopCPUProfile()
		z, err := gzip.NewReader(&profile)
		t.OK(err)
		text, err := io.ReadAll(z)
		t.OK(err)
		if bytes.Contains(text, []byte("cudatest.burn")) { // only what was sampled is in there by name
			return
		}
	}
	t.Error("the profiles have no sample of the busy function")
}
