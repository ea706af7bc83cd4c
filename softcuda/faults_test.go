package softcuda_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

func openFaulty(t *testing.T, seed uint64) (*softcuda.Faults, *cuda.Driver, *cuda.Device) {
	t.Helper()
	f := new(softcuda.Faults)
	drv, dev := openSeeded(t, softcuda.Options{Seed: seed, Faults: f, Kernels: testkernels.Twins()})
	t.Cleanup(func() { // a test that has failed may have left a function waiting
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := drv.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	return f, drv, dev
}

// TestFaultByCount refuses the third allocation and the fourth, and no other.
func TestFaultByCount(t *testing.T) {
	f, _, dev := openFaulty(t, 0)
	noErr(t, f.Add(softcuda.Fault{Call: "cuMemAlloc", After: 2, Times: 2, Result: cuda.ErrOutOfMemory}))
	for i := range 6 {
		_, err := dev.Alloc(8)
		if refused := i == 2 || i == 3; errors.Is(err, cuda.ErrOutOfMemory) != refused || (err != nil) != refused {
			t.Errorf("allocation %d: %v", i, err)
		}
	}
	if f.Calls("MemAlloc") != 6 || f.Struck() != 2 {
		t.Errorf("%d calls, %d struck", f.Calls("MemAlloc"), f.Struck())
	}
	f.Clear()
	if _, err := dev.Alloc(8); err != nil {
		t.Errorf("after Clear: %v", err)
	}
}

// TestFaultByProbability is the same for the same seed, and strikes at about so many.
func TestFaultByProbability(t *testing.T) {
	pattern := func(seed uint64) string {
		f, _, dev := openFaulty(t, seed)
		noErr(t, f.Add(softcuda.Fault{Call: "StreamCreate*", Times: -1, Probability: 0.3, Result: cuda.ErrUnknown}))
		var b strings.Builder
		for range 200 {
			if _, err := dev.NewStream(); err != nil {
				b.WriteByte('x')
			} else {
				b.WriteByte('.')
			}
		}
		return b.String()
	}
	first := pattern(7)
	if n := strings.Count(first, "x"); n < 30 || n > 90 {
		t.Errorf("%d of 200", n)
	}
	if pattern(7) != first || pattern(8) == first {
		t.Error("not by the seed")
	}
}

// TestFaultOfAnOperation loses the context at the second copy, on devices of both kinds; functions behind it are told.
func TestFaultOfAnOperation(t *testing.T) {
	for _, seed := range []uint64{0, 5} {
		f, _, dev := openFaulty(t, seed)
		noErr(t, f.Add(softcuda.Fault{Op: "copy", After: 1, Result: cuda.ErrECCUncorrectable}))
		s := newStreams(t, dev, 1)[0]
		b, err := dev.Alloc(8)
		noErr(t, err)
		p, err := dev.AllocPinned(8)
		noErr(t, err)
		told := make(chan error, 1)
		noErr(t, cuda.CopyToDevice(s, b, p.Bytes()))
		noErr(t, s.Sync())
		err = cuda.CopyToDevice(s, b, p.Bytes())
		err = errors.Join(err, cuda.HostLaunch(s, func() { t.Error("a function behind the failure ran") }, cuda.OnDone(func(err error) { told <- err })))
		if err == nil {
			if err := <-told; !errors.Is(err, cuda.ErrDeviceLost) {
				t.Errorf("seed %d: told %v", seed, err)
			}
		}
		if err := s.Sync(); !errors.Is(err, cuda.ErrDeviceLost) || !errors.Is(err, cuda.ErrECCUncorrectable) {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// TestFaultOfAKernel strikes at the kernel of a name only.
func TestFaultOfAKernel(t *testing.T) {
	f, _, dev := openFaulty(t, 0)
	noErr(t, f.Add(softcuda.Fault{Op: "kernel increment", Result: cuda.ErrLaunchTimeout}))
	mod, err := dev.LoadModule(testkernels.PTX)
	noErr(t, err)
	s := newStreams(t, dev, 1)[0]
	b, err := dev.Alloc(8)
	noErr(t, err)
	one := cuda.LaunchConfig{Grid: cuda.Dim3{X: 1, Y: 1, Z: 1}, Block: cuda.Dim3{X: 1, Y: 1, Z: 1}}
	noErr(t, s.Launch(must(mod.Kernel("store")), one, b, uint32(1)))
	noErr(t, s.Sync())
	noErr(t, s.Launch(must(mod.Kernel("increment")), one, b, uint32(1)))
	if err := s.Sync(); !errors.Is(err, cuda.ErrLaunchTimeout) {
		t.Error(err)
	}
}

// TestFaultLosesDevice loses a device by a call, and from code.
func TestFaultLosesDevice(t *testing.T) {
	f, _, dev := openFaulty(t, 0)
	noErr(t, f.Add(softcuda.Fault{Call: "EventCreate", Result: cuda.ErrECCUncorrectable, Lose: true}))
	s := newStreams(t, dev, 1)[0]
	if _, err := dev.NewEvent(); !errors.Is(err, cuda.ErrECCUncorrectable) {
		t.Errorf("the call: %v", err)
	}
	if err := s.Sync(); !errors.Is(err, cuda.ErrDeviceLost) {
		t.Errorf("later: %v", err)
	}
	f2, _, dev2 := openFaulty(t, 3)
	s = newStreams(t, dev2, 1)[0]
	for _, err := range []error{f2.LoseDevice(1, cuda.ErrHardwareStackError), f2.LoseDevice(0, cuda.ErrOutOfMemory), new(softcuda.Faults).LoseDevice(0, cuda.ErrLaunchFailed)} {
		if err == nil {
			t.Error("a wrong LoseDevice is taken")
		}
	}
	noErr(t, f2.LoseDevice(0, cuda.ErrHardwareStackError))
	if err := s.Sync(); !errors.Is(err, cuda.ErrDeviceLost) {
		t.Errorf("from code: %v", err)
	}
}

// TestFaultDelays has callback threads be slow.
func TestFaultDelays(t *testing.T) {
	for _, seed := range []uint64{0, 5} {
		f, _, dev := openFaulty(t, seed)
		const late = 30 * time.Millisecond
		noErr(t, f.Add(softcuda.Fault{Op: "host function", Delay: late}))
		s, start := newStreams(t, dev, 1)[0], time.Now()
		ran := 0
		noErr(t, cuda.HostLaunch(s, func() { ran++ }))
		noErr(t, cuda.HostLaunch(s, func() { ran++ }))
		noErr(t, s.Sync())
		if d := time.Since(start); d < late || ran != 2 {
			t.Errorf("seed %d: %d ran, after %v", seed, ran, d)
		}
	}
}

// TestFaultsRefused refuses what could never strike, and says why.
func TestFaultsRefused(t *testing.T) {
	f := new(softcuda.Faults)
	for _, c := range []struct {
		fault softcuda.Fault
		why   string
	}{
		{softcuda.Fault{Result: cuda.ErrUnknown}, "either a Call or an Op"},
		{softcuda.Fault{Call: "MemAlloc", Op: "copy", Result: cuda.ErrUnknown}, "either a Call or an Op"},
		{softcuda.Fault{Call: "cuNoSuchThing", Result: cuda.ErrUnknown}, "no function of the driver"},
		{softcuda.Fault{Op: "memcpy", Result: cuda.ErrLaunchFailed}, "no operation that a fault can strike"},
		{softcuda.Fault{Op: "callback", Delay: 1}, "no operation that a fault can strike"},
		{softcuda.Fault{Op: "wait-value", Delay: 1}, "no operation that a fault can strike"},
		{softcuda.Fault{Op: "event record", Delay: 1}, "no operation that a fault can strike"},
		{softcuda.Fault{Op: "kernel ", Delay: 1}, "no operation that a fault can strike"},
		{softcuda.Fault{Call: "MemAlloc", Result: cuda.ErrClosed}, "no driver answers"},
		{softcuda.Fault{Call: "MemAlloc"}, "neither a Result nor a Delay"},
		{softcuda.Fault{Call: "MemAlloc", Lose: true, Delay: 1}, "neither a Result nor a Delay"},
		{softcuda.Fault{Op: "host function", Result: cuda.ErrUnknown}, "can only be delayed"},
		{softcuda.Fault{Op: "copy", Result: cuda.ErrOutOfMemory}, "does not lose a context"},
		{softcuda.Fault{Call: "MemAlloc", Lose: true, Result: cuda.ErrOutOfMemory}, "does not lose a context"},
		{softcuda.Fault{Call: "MemAlloc", Result: cuda.ErrUnknown, Probability: 2}, "Probability"},
	} {
		if err := f.Add(c.fault); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%+v: %v", c.fault, err)
		}
	}
	for _, op := range []string{"copy", "memset", "write-value", "kernel", "kernel add", "host function"} {
		noErr(t, f.Add(softcuda.Fault{Op: op, Delay: 1}))
	}
}
