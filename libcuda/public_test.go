//go:build linux && (amd64 || arm64)

package libcuda

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
)

// public opens a fake through the public face.
func public(t *testing.T) (*fake, *cuda.Driver, *cuda.Device) {
	t.Helper()
	f := newFake(t)
	d, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	return f, d, dev
}

// TestBorrowThenOpen: a stream is borrowed whose device is opened only afterwards: it is one Context, which is watched.
func TestBorrowThenOpen(t *testing.T) {
	f, d, dev := public(t)
	f.log()
	b, err := dev.BorrowStream(uintptr(stream)) // which the fake takes for one of device 1
	if err != nil {
		t.Fatal(err)
	}
	if log := f.log(); !slices.Contains(log, "cuDeviceGetAttribute(attrib=88, dev=1) in (nil)") {
		t.Errorf("device 1 was not asked how it reaches pageable memory:\n%s", strings.Join(log, "\n"))
	}
	second, err := d.Device(1)
	if err != nil {
		t.Fatal(err)
	}
	if b.Context() != second.Context {
		t.Error("the borrowed stream's Context is not its device's")
	}
	e, err := second.NewEvent()
	if err := errors.Join(err, b.Record(e)); err != nil {
		t.Error(err)
	}
	f.set(knobHold, 1)
	f.set(knobCapturing, 0)
	told := make(chan error, 1)
	if err := cuda.HostLaunch(b, func() {}, cuda.OnDone(func(err error) { told <- err })); err != nil {
		t.Fatal(err)
	}
	f.set(knobLost, 700)
	select {
	case err := <-told:
		if !errors.Is(err, cuda.ErrDeviceLost) {
			t.Errorf("told %v", err)
		}
	case <-time.After(time.Second):
		t.Error("nobody was told of the loss within a second")
	}
	f.set(knobLost, 0)
	f.set(knobHold, 0)
}

// TestCancelledWaits: the events that cancelled waits have left with the service are destroyed, each once.
func TestCancelledWaits(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	made, destroyed := 0, 0
	for range 20 {
		f.set(knobEvent, int64(driver.ErrorNotReady))
		d, err := Open()
		if err != nil {
			t.Fatal(err)
		}
		dev, err := d.Device(0)
		if err != nil {
			t.Fatal(err)
		}
		s, err := dev.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := s.Wait(ctx); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Millisecond) // the service looks seldom now
		f.set(knobEvent, 0)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		for _, l := range f.log() {
			if strings.HasPrefix(l, "cuEventCreate(") {
				made++
			}
			if strings.HasPrefix(l, "cuEventDestroy(") {
				destroyed++
			}
		}
	}
	if made != destroyed || made == 0 {
		t.Errorf("%d events made, %d destroyed", made, destroyed)
	}
}

// TestEventFlags: what is asked of an event reaches the driver.
func TestEventFlags(t *testing.T) {
	f, _, dev := public(t)
	for want, opts := range map[string][]cuda.EventOption{
		"flags=2": nil, "flags=0": {cuda.WithTiming()}, "flags=3": {cuda.BlockingSync()}, "flags=1": {cuda.BlockingSync(), cuda.WithTiming()},
	} {
		f.log()
		e, err := dev.NewEvent(opts...)
		if err != nil {
			t.Fatal(err)
		}
		if log := f.log(); !slices.Contains(log, "cuEventCreate("+want+") in 0xc0") {
			t.Errorf("want %s:\n%s", want, strings.Join(log, "\n"))
		}
		e.Close()
	}
}

// TestBorrowedFromOurs: the driver is handed no handle that was destroyed, though the program closed the original.
func TestBorrowedFromOurs(t *testing.T) {
	f, _, dev := public(t)
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	b, err := dev.StreamOf(s)
	if err != nil {
		t.Fatal(err)
	}
	f.log()
	if err := errors.Join(s.Close(), b.Sync(), b.Close()); err != nil {
		t.Error(err)
	}
	log := f.log()
	used := slices.IndexFunc(log, func(l string) bool { return strings.HasPrefix(l, "cuStreamSynchronize") })
	destroyed := slices.IndexFunc(log, func(l string) bool { return strings.HasPrefix(l, "cuStreamDestroy") })
	if used < 0 || destroyed < used {
		t.Errorf("the driver was called with:\n%s", strings.Join(log, "\n"))
	}
}
