package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/bench/rig"
)

// taskBench is what the measurements of tasks and of mode Spin share.
type taskBench struct {
	*bench
	stamp   *cuda.Kernel
	stamps  *cuda.Buffer
	streams []*cuda.Stream // 64
	others  []*cuda.Stream // as many, for tasks to work on
}

func newTaskBench(b *bench) (t *taskBench, err error) {
	t = &taskBench{bench: b}
	if t.stamp, err = b.Mod.Kernel("stamp"); err != nil {
		return nil, err
	}
	if t.stamps, err = b.Dev.Alloc(16); err != nil {
		return nil, err
	}
	for range 64 {
		s, err := b.Dev.NewStream()
		o, err2 := b.Dev.NewStream()
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		t.streams, t.others = append(t.streams, s), append(t.others, o)
	}
	return t, nil
}

// close frees what newTaskBench has made: left to the garbage collector, that would be freed in the middle of other measurements, and a
// call that frees memory waits for the device and holds others up.
func (t *taskBench) close() {
	t.stamps.Close()
	for _, s := range slices.Concat(t.streams, t.others) {
		s.Close()
	}
}

// measurements are compared with the C++ program's of the same name.
func (t *taskBench) measurements() []measurement {
	spin := cuda.SyncMode(cuda.Spin)
	function := func(opts ...cuda.HostOption) func() error {
		return func() error { return cuda.HostLaunch(t.S, t.Fn, opts...) }
	}
	task := func(opts ...cuda.HostOption) func() error {
		body := func(context.Context) error { t.Fn(); return nil }
		return func() error { _, err := cuda.Go(t.S, body, opts...); return err }
	}
	gap := func(between func() error, part float64) func() (float64, error) {
		return func() (float64, error) { return t.gap(500, between, part) }
	}
	return []measurement{
		{"gapnone", "between two kernels, nothing", gap(func() error { return nil }, 0.5)},
		{"gapblock", "between two kernels, HostLaunch Block (cuLaunchHostFunc)", gap(function(), 0.5)},
		{"gapspin", "between two kernels, HostLaunch Spin (write-value, poller, wait-value)", gap(function(spin), 0.5)},
		{"gapspin99", "the same, 99th percentile", gap(function(spin), 0.99)},
		{"gapspin", "between two kernels, Go Spin (write-value, poller, wait-value)", gap(task(spin), 0.5)},
		{"gapblock", "between two kernels, Go Block (cuLaunchHostFunc)", gap(task(), 0.5)},
		{"roundtrip", "idle round trip, HostLaunch Block (cuLaunchHostFunc)", func() (float64, error) { return t.round(2000, function()) }},
		{"roundspin", "idle round trip, HostLaunch Spin (write-value, poller, wait-value)", func() (float64, error) { return t.round(2000, function(spin)) }},
		{"eight", "eight 20 ms tasks on eight streams (cuLaunchHostFunc)", t.eight},
		{"idle", "processor time of the idle process in a second", idle},
	}
}

// gap is the time between the ends of two kernels with something between them, on the device's clock: the part of 500 gaps that
// is asked for.
func (t *taskBench) gap(n int, between func() error, part float64) (float64, error) {
	gaps := make([]float64, n)
	second, err := t.stamps.Slice(8, 8)
	if err != nil {
		return 0, err
	}
	var raw [16]byte
	at := func(i int) (v uint64) {
		for j := range 8 {
			v |= uint64(raw[8*i+j]) << (8 * j)
		}
		return v
	}
	one := cuda.Grid1D(1, 1)
	for i := range gaps {
		err := errors.Join(
			t.S.Launch(t.Spin, one, uint64(100*time.Microsecond)), // so that all is queued before the first stamp
			t.S.Launch(t.stamp, one, t.stamps), between(), t.S.Launch(t.stamp, one, second), t.S.Sync())
		if err != nil {
			return 0, err
		}
		if _, err := t.stamps.ReadAt(raw[:], 0); err != nil {
			return 0, err
		}
		gaps[i] = float64(at(1)) - float64(at(0))
	}
	slices.Sort(gaps)
	return gaps[int(float64(n-1)*part)], nil
}

// round is the median time of queuing something on an idle stream and waiting for it.
func (t *taskBench) round(n int, queue func() error) (float64, error) {
	return rig.Each(n, func() error { return errors.Join(queue(), t.S.Sync()) })
}

// eight is the time of eight tasks that sleep for 20 ms, on as many streams.
func (t *taskBench) eight() (float64, error) {
	start := time.Now()
	for _, s := range t.streams[:8] {
		if _, err := cuda.Go(s, func(context.Context) error { time.Sleep(20 * time.Millisecond); return nil }); err != nil {
			return 0, err
		}
	}
	for _, s := range t.streams[:8] {
		if err := s.Sync(); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(start).Nanoseconds()), nil
}

// report prints what C++ has nothing beside.
func (t *taskBench) report() error {
	const each = 100
	before, start := threads(), time.Now()
	var tasks []*cuda.Task
	for range each {
		for i, s := range t.streams {
			task, err := cuda.Go(s, func(context.Context) error {
				return errors.Join(t.others[i].Launch(t.Spin, cuda.Grid1D(1, 1), uint64(1000)), t.others[i].Sync())
			})
			if err != nil {
				return err
			}
			tasks = append(tasks, task)
		}
	}
	most := threads()
	for _, task := range tasks {
		if err := task.Wait(context.Background()); err != nil {
			return err
		}
		most = max(most, threads())
	}
	fmt.Printf("\n64 streams with %d tasks each, which launch a kernel and wait for it: %v; OS threads: %d before, %d at most\n",
		each, time.Since(start).Round(time.Millisecond), before, most)
	return nil
}

// idle is the processor time that the idle process takes in a second.
func idle() (float64, error) {
	time.Sleep(200 * time.Millisecond) // what is over may end
	before, err := processorTime()
	if err != nil {
		return 0, err
	}
	time.Sleep(time.Second)
	after, err := processorTime()
	return float64((after - before).Nanoseconds()), err
}

// threads is how many threads the process has, where the system tells.
func threads() int {
	list, _ := os.ReadDir("/proc/self/task")
	return len(list)
}

// processorTime is what the process's threads have used so far, to about a nanosecond.
func processorTime() (total time.Duration, err error) {
	list, err := os.ReadDir("/proc/self/task")
	for _, thread := range list {
		text, err := os.ReadFile("/proc/self/task/" + thread.Name() + "/schedstat")
		if err != nil {
			continue // it has ended
		}
		ns, _, _ := strings.Cut(string(text), " ")
		d, err := time.ParseDuration(ns + "ns")
		if err != nil {
			return 0, err
		}
		total += d
	}
	return total, err
}
