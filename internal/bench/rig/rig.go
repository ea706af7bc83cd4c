// Package rig is what the benchmarks share, cmd/hostlaunch's and internal/bench: the measurements that both make, and the C++
// program that makes the same ones by calling the driver itself.
package rig

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/testkernels"
)

// Rig is what measurements on a device need. They give ns.
type Rig struct {
	Dev  *cuda.Device
	S    *cuda.Stream
	Mod  *cuda.Module // testkernels.PTX
	Spin *cuda.Kernel
	Fn   func() // a host function that does next to nothing

	count atomic.Int64 // Fn's
}

// New makes a Rig, which lasts as long as the device's driver.
func New(dev *cuda.Device) (r *Rig, err error) {
	r = &Rig{Dev: dev}
	r.Fn = func() { r.count.Add(1) }
	if r.S, err = dev.NewStream(); err != nil {
		return nil, err
	}
	if r.Mod, err = dev.LoadModule(testkernels.PTX); err != nil {
		return nil, err
	}
	r.Spin, err = r.Mod.Kernel("spin")
	return r, err
}

// Many queues n functions on an idle stream: the time to queue one, or, if whole, until all have run, for each.
func (r *Rig) Many(n int, whole bool) (float64, error) {
	start := time.Now()
	for range n {
		if err := cuda.HostLaunch(r.S, r.Fn); err != nil {
			return 0, err
		}
	}
	took := time.Since(start)
	err := r.S.Sync()
	if whole {
		took = time.Since(start)
	}
	return Nanoseconds(took, n), err
}

// BehindBusy is the time to queue one of n functions on a stream that is busy meanwhile.
func (r *Rig) BehindBusy(n int) (float64, error) {
	if err := r.S.Launch(r.Spin, cuda.Grid1D(1, 1), uint64(20*time.Millisecond)); err != nil {
		return 0, err
	}
	start := time.Now()
	for range n {
		if err := cuda.HostLaunch(r.S, r.Fn); err != nil {
			return 0, err
		}
	}
	took := time.Since(start)
	return Nanoseconds(took, n), r.S.Sync()
}

// RoundTrip is the median time, of n, of HostLaunch on an idle stream and the wait for it.
func (r *Rig) RoundTrip(n int, opts ...cuda.HostOption) (float64, error) {
	return Each(n, func() error {
		if err := cuda.HostLaunch(r.S, r.Fn, opts...); err != nil {
			return err
		}
		return r.S.Sync()
	})
}

// Wake waits n times for an event behind a kernel: the median of launch, record and wake-up, without the time that the kernel spins.
func (r *Rig) Wake(n int) (float64, error) {
	const kernel = 100 * time.Microsecond
	e, err := r.Dev.NewEvent()
	if err != nil {
		return 0, err
	}
	defer e.Close()
	whole, err := Each(n, func() error {
		if err := r.S.Launch(r.Spin, cuda.Grid1D(1, 1), uint64(kernel)); err != nil {
			return err
		}
		if err := r.S.Record(e); err != nil {
			return err
		}
		return e.Wait(context.Background())
	})
	return whole - Nanoseconds(kernel, 1), err
}

// Each is the median time, of n, that step takes.
func Each(n int, step func() error) (float64, error) {
	times := make([]float64, n)
	for i := range times {
		start := time.Now()
		if err := step(); err != nil {
			return 0, err
		}
		times[i] = Nanoseconds(time.Since(start), 1)
	}
	return Median(times), nil
}

// Median sorts v and returns what is in the middle.
func Median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// Nanoseconds is the time for one of n.
func Nanoseconds(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / float64(n) }

// SizeName is what tables and plots call a number of bytes.
func SizeName(n int) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
