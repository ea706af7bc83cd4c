package main

import (
	"fmt"
	"runtime"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/bench/rig"
)

// bench is what the measurements share.
type bench struct {
	*rig.Rig
	nothing *cuda.Kernel
}

func newBench(drv *cuda.Driver) (*bench, error) {
	dev, err := drv.Device(0)
	if err != nil {
		return nil, err
	}
	b := new(bench)
	if b.Rig, err = rig.New(dev); err != nil {
		return nil, err
	}
	b.nothing, err = b.Mod.Kernel("nothing")
	return b, err
}

func (b *bench) measurements() []measurement {
	return append([]measurement{
		{"draining", "enqueue on a draining stream", func() (float64, error) { return b.Many(20000, false) }},
		{"busy", "enqueue behind a busy stream", func() (float64, error) { return b.BehindBusy(500) }},
		{"roundtrip", "launch and sync on an idle stream", func() (float64, error) { return b.RoundTrip(2000) }},
		{"run", "launch and run, 20,000 functions, each", func() (float64, error) { return b.Many(20000, true) }},
		{"wake", "Event.Wait (cuEventSynchronize) behind a 100 us kernel, beyond it", func() (float64, error) { return b.Wake(500) }},
	}, b.graphMeasurements()...)
}

// allocations counts what a HostLaunch allocates, from enqueue to run.
func (b *bench) allocations() error {
	const n = 20000
	var before, after runtime.MemStats
	if _, err := b.Many(n, true); err != nil {
		return err
	}
	runtime.ReadMemStats(&before)
	if _, err := b.Many(n, true); err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	fmt.Printf("\nallocations per HostLaunch, with a closure made before: %.3f (%.0f bytes)\n",
		float64(after.Mallocs-before.Mallocs)/n, float64(after.TotalAlloc-before.TotalAlloc)/n)
	return nil
}
