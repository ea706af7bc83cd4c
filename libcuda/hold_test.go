//go:build linux && (amd64 || arm64)

package libcuda

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
)

// TestHardwareQueues: the variable that the driver reads, within what it accepts.
func TestHardwareQueues(t *testing.T) {
	f := newFake(t)
	nv := f.open(driver.Upcalls{})
	for value, want := range map[string]int{"8": 8, "1": 1, "32": 32, "64": 32, "0": 8, "many": 8} {
		t.Setenv(connectionsVariable, value)
		if got := nv.HardwareQueues(); got != want {
			t.Errorf("%s=%s: %d queues, want %d", connectionsVariable, value, got, want)
		}
	}
}

// TestEmulateSpin: the driver's own mode came with CUDA 13.2.
func TestEmulateSpin(t *testing.T) {
	for version, want := range map[int64]bool{13000: true, 13020: false} {
		f := newFake(t)
		f.set(knobVersion, version)
		if nv := f.open(driver.Upcalls{}); nv.EmulateSpin() != want {
			t.Errorf("CUDA %d: EmulateSpin = %v", version, !want)
		}
	}
}

// TestTaskCalls: a task is a host function, which starts it, and a wait-value behind it.
func TestTaskCalls(t *testing.T) {
	f, _, dev := public(t)
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	task, err := cuda.Go(s, func(context.Context) error { return nil }) // and so the streams made beforehand are there
	if err != nil {
		t.Fatal(err)
	}
	<-task.Done()
	f.log()
	if task, err = cuda.Go(s, func(context.Context) error { return errors.New("mine") }); err != nil {
		t.Fatal(err)
	}
	if <-task.Done(); task.Err() == nil {
		t.Error("the task has no error")
	}
	var calls []string
	for _, line := range f.log() {
		if name, _, ok := strings.Cut(line, "("); ok && name != "cuStreamGetFlags" && name != "cuEventQuery" && name != "cuStreamQuery" {
			calls = append(calls, name)
		}
	}
	calls = slices.Compact(calls) // the fake wants a context current to launch in, and is asked again
	if want := []string{"cuLaunchHostFunc", "cuStreamWaitValue32"}; !slices.Equal(calls, want) {
		t.Errorf("a task called %q, want %q", calls, want)
	}
}

// TestTaskRefused: a task that the driver refuses leaves nothing behind.
func TestTaskRefused(t *testing.T) {
	f, d, dev := public(t)
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	before := d.Stats()
	f.set(knobLost, 1)
	var ran atomic.Bool
	_, err = cuda.Go(s, func(context.Context) error { ran.Store(true); return nil })
	f.set(knobLost, 0)
	if !errors.Is(err, cuda.ErrInvalidValue) {
		t.Errorf("Go = %v", err)
	}
	if now := d.Stats(); now != before || ran.Load() {
		t.Errorf("left %+v, before %+v; it ran: %v", now, before, ran.Load())
	}
}
