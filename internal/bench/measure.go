package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/testkernels"
)

// bench is what the measurements share.
type bench struct {
	dev     *cuda.Device
	s       *cuda.Stream
	spin    *cuda.Kernel
	nothing *cuda.Kernel
	count   atomic.Int64
	fn      func()
}

func newBench(drv *cuda.Driver) (*bench, error) {
	b := new(bench)
	b.fn = func() { b.count.Add(1) }
	var err error
	if b.dev, err = drv.Device(0); err != nil {
		return nil, err
	}
	if b.s, err = b.dev.NewStream(); err != nil {
		return nil, err
	}
	mod, err := b.dev.LoadModule(testkernels.PTX)
	if err != nil {
		return nil, err
	}
	if b.spin, err = mod.Kernel("spin"); err != nil {
		return nil, err
	}
	b.nothing, err = mod.Kernel("nothing")
	return b, err
}

func (b *bench) measurements() []measurement {
	return append([]measurement{
		{"draining", "enqueue on a draining stream", func() (float64, error) { return b.many(20000, false) }},
		{"busy", "enqueue behind a busy stream", func() (float64, error) { return b.behindBusy(500) }},
		{"roundtrip", "launch and sync on an idle stream", func() (float64, error) { return b.roundTrip(2000) }},
		{"run", "launch and run, 20,000 functions, each", func() (float64, error) { return b.many(20000, true) }},
		{"wake", "Event.Wait (cuEventSynchronize) behind a 100 us kernel, beyond it", func() (float64, error) { return b.wake(500) }},
	}, b.graphMeasurements()...)
}

// many enqueues n functions on an idle stream; the time to enqueue, or until all have run.
func (b *bench) many(n int, whole bool) (float64, error) {
	start := time.Now()
	for range n {
		if err := cuda.HostLaunch(b.s, b.fn); err != nil {
			return 0, err
		}
	}
	took := time.Since(start)
	err := b.s.Sync()
	if whole {
		took = time.Since(start)
	}
	return float64(took.Nanoseconds()) / float64(n), err
}

func (b *bench) behindBusy(n int) (float64, error) {
	if err := b.s.Launch(b.spin, cuda.Grid1D(1, 1), uint64(20*time.Millisecond)); err != nil {
		return 0, err
	}
	start := time.Now()
	for range n {
		if err := cuda.HostLaunch(b.s, b.fn); err != nil {
			return 0, err
		}
	}
	took := time.Since(start)
	return float64(took.Nanoseconds()) / float64(n), b.s.Sync()
}

func (b *bench) roundTrip(n int) (float64, error) {
	times := make([]float64, n)
	for i := range times {
		start := time.Now()
		if err := cuda.HostLaunch(b.s, b.fn); err != nil {
			return 0, err
		}
		if err := b.s.Sync(); err != nil {
			return 0, err
		}
		times[i] = float64(time.Since(start).Nanoseconds())
	}
	return median(times), nil
}

// wake waits for an event behind a kernel: launch, record and wake-up, without the time that the kernel spins.
func (b *bench) wake(n int) (float64, error) {
	const kernel = 100 * time.Microsecond
	e, err := b.dev.NewEvent()
	if err != nil {
		return 0, err
	}
	defer e.Close()
	times := make([]float64, n)
	for i := range times {
		start := time.Now()
		if err := b.s.Launch(b.spin, cuda.Grid1D(1, 1), uint64(kernel)); err != nil {
			return 0, err
		}
		if err := b.s.Record(e); err != nil {
			return 0, err
		}
		if err := e.Wait(context.Background()); err != nil {
			return 0, err
		}
		times[i] = float64((time.Since(start) - kernel).Nanoseconds())
	}
	return median(times), nil
}

// allocations counts what a HostLaunch allocates, from enqueue to run.
func (b *bench) allocations() error {
	const n = 20000
	var before, after runtime.MemStats
	if _, err := b.many(n, true); err != nil {
		return err
	}
	runtime.ReadMemStats(&before)
	if _, err := b.many(n, true); err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	fmt.Printf("\nallocations per HostLaunch, with a closure made before: %.3f (%.0f bytes)\n",
		float64(after.Mallocs-before.Mallocs)/n, float64(after.TotalAlloc-before.TotalAlloc)/n)
	return nil
}
