package softcuda_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// beside are two devices of a Driver, the first of which is about to be lost.
type beside struct {
	f         *softcuda.Faults
	drv       *cuda.Driver
	lost, dev *cuda.Device
	s         *cuda.Stream // of dev
}

func openBeside(t *testing.T) *beside {
	b := &beside{f: new(softcuda.Faults)}
	b.drv, b.lost = openSeeded(t, softcuda.Options{Devices: 2, Faults: b.f}, cuda.MaxHeldStreams(1))
	b.dev = must(b.drv.Device(1))
	b.s = must(b.dev.NewStream())
	return b
}

// alive wants dev to work still, and a function that waits there not to have been told of anything.
func (b *beside) alive(t *testing.T, uses func() error) {
	t.Helper()
	gate, told := make(chan struct{}), make(chan error, 1)
	noErr(t, cuda.HostLaunch(must(b.dev.NewStream()), func() { <-gate }, cuda.OnDone(func(err error) { told <- err })))
	err := uses()
	if err != nil && !errors.Is(err, cuda.ErrDeviceLost) {
		t.Errorf("the call: %v, want ErrDeviceLost", err)
	}
	time.Sleep(5 * time.Millisecond)
	close(gate)
	if err := <-told; err != nil {
		t.Errorf("a function of the device that works: %v", err)
	}
	task, err := cuda.Go(b.s, short)
	noErr(t, err)
	noErr(t, task.Wait(context.Background()))
	noErr(t, errors.Join(b.s.Memset(must(b.dev.Alloc(8)), 1), b.s.Sync()))
	if st := b.drv.Close(); !errors.Is(st, cuda.ErrDeviceLost) && st != nil {
		t.Error(st)
	}
}

// TestLostBeside: a call that uses what belongs to a lost device does not have its own device be taken for lost, now or behind a task
// that waits in the library.
func TestLostBeside(t *testing.T) {
	for name, use := range map[string]func(t *testing.T, b *beside) func() error{
		"wait": func(t *testing.T, b *beside) func() error {
			from, ev := must(b.lost.NewStream()), must(b.lost.NewEvent())
			noErr(t, from.Record(ev))
			return func() error { return b.s.WaitEvent(ev) }
		},
		"copy from": func(t *testing.T, b *beside) func() error {
			src, dst := must(b.lost.Alloc(64)), must(b.dev.Alloc(64))
			return func() error { return b.s.CopyBuffer(dst, src) }
		},
		"copy to": func(t *testing.T, b *beside) func() error {
			dst, src := must(b.lost.Alloc(64)), must(b.dev.Alloc(64))
			return func() error { return b.s.CopyBuffer(dst, src) }
		},
		"wait for a stream": func(t *testing.T, b *beside) func() error {
			from := must(b.lost.NewStream())
			return func() error { return b.s.WaitStream(from) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBeside(t)
			call := use(t, b)
			noErr(t, b.f.LoseDevice(0, cuda.ErrECCUncorrectable))
			b.alive(t, call)
		})
		t.Run(name+", behind a task", func(t *testing.T) {
			b := openBeside(t)
			call, gate, holds := use(t, b), make(chan struct{}), must(b.dev.NewStream())
			first := must(cuda.Go(holds, func(context.Context) error { <-gate; return nil }))
			must(cuda.Go(b.s, short))
			err := call()
			noErr(t, err)
			noErr(t, b.f.LoseDevice(0, cuda.ErrECCUncorrectable))
			close(gate)
			noErr(t, first.Wait(context.Background()))
			noErr(t, b.s.Sync())
			b.alive(t, func() error { return nil })
		})
	}
}

// TestOwnContextBesideLost: a context of its own works on when the primary one has failed, but for tasks.
func TestOwnContextBesideLost(t *testing.T) {
	f, _, dev := openFaulty(t, 0)
	own := must(dev.NewContext())
	s, b := must(own.NewStream()), must(own.Alloc(64))
	failing := must(dev.NewStream())
	noErr(t, f.Add(softcuda.Fault{Op: "memset", Result: cuda.ErrLaunchFailed}))
	noErr(t, failing.Memset(must(dev.Alloc(8)), 1))
	is(t, failing.Sync(), cuda.ErrDeviceLost)
	told := make(chan error, 1)
	gate := make(chan struct{})
	noErr(t, cuda.HostLaunch(s, func() { <-gate }, cuda.OnDone(func(err error) { told <- err })))
	if _, err := cuda.Go(must(own.NewStream()), short); !errors.Is(err, cuda.ErrDeviceLost) { // the memory for its hold is the primary's
		t.Errorf("Go: %v, want ErrDeviceLost", err)
	}
	time.Sleep(5 * time.Millisecond)
	close(gate)
	if err := <-told; err != nil {
		t.Errorf("a function of the context that works: %v", err)
	}
	noErr(t, errors.Join(s.Memset(b, 1), s.Sync()))
}
