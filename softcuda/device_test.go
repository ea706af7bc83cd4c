package softcuda_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

// rig is a device with a stream, and kernels by name, as Go functions without parameters or with one pointer.
type rig struct {
	*testing.T
	d   *cuda.Driver
	dev *cuda.Device
	s   *cuda.Stream
	m   *cuda.Module
}

const ptx = `.version 8.0
.target sm_90
.entry sleep()
.entry fail()
.entry touch(.param .u64 p)
`

func newRig(t *testing.T, kernels softcuda.Kernels, opts ...cuda.Option) *rig {
	t.Helper()
	r := &rig{T: t, d: softcuda.New(softcuda.Options{Kernels: kernels}, opts...)}
	var err error
	r.dev, err = r.d.Device(0)
	r.ok(err)
	r.s, err = r.dev.NewStream()
	r.ok(err)
	r.m, err = r.dev.LoadModule([]byte(ptx))
	r.ok(err)
	return r
}

func (r *rig) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) launch(kernel string, args ...any) {
	r.Helper()
	k, err := r.m.Kernel(kernel)
	r.ok(err)
	r.ok(r.s.Launch(k, cuda.Grid1D(1, 1), args...))
}

// TestVirtualTime has a kernel sleep for an hour inside a synctest bubble. The bubble's end shows that, once nothing is
// queued, no goroutine is left, with or without Close.
func TestVirtualTime(t *testing.T) {
	for _, closing := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, softcuda.Kernels{"sleep": func(*softcuda.Launch) { time.Sleep(time.Hour) }})
			before, err := r.dev.NewEvent(cuda.WithTiming())
			r.ok(err)
			after, err := r.dev.NewEvent(cuda.WithTiming())
			r.ok(err)
			start := time.Now()
			var ran time.Duration
			r.ok(r.s.Record(before))
			r.launch("sleep")
			r.ok(cuda.HostLaunch(r.s, func() { ran = time.Since(start); time.Sleep(time.Minute) }))
			r.ok(r.s.Record(after))

			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := r.s.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
				t.Errorf("Wait = %v after %v", err, time.Since(start))
			}
			synctest.Wait() // everybody is blocked, and nothing spins
			if done, err := after.Query(); done || err != nil {
				t.Errorf("Query = %v, %v within the hour", done, err)
			}
			r.ok(r.s.Sync())
			if d, err := after.Elapsed(before); time.Since(start) != 61*time.Minute || ran != time.Hour || d.Round(time.Second) != 61*time.Minute || err != nil {
				t.Errorf("Sync after %v, the function after %v, elapsed %v, %v", time.Since(start), ran, d, err)
			}
			if closing {
				r.launch("sleep")
				r.ok(r.d.Close())
				if time.Since(start) != 121*time.Minute {
					t.Errorf("Close after %v", time.Since(start))
				}
			}
		})
	}
}

// TestVirtualTimeDropped has the garbage collector find dropped objects while in a bubble: cleanups run outside of it.
func TestVirtualTimeDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, softcuda.Kernels{})
		for range 100 {
			_, err := r.dev.NewStream()
			r.ok(err)
			_, err = r.dev.Alloc(64)
			r.ok(err)
			e, err := r.dev.NewEvent()
			r.ok(err)
			r.ok(r.s.Record(e))
			<-e.Done()
			runtime.GC()
		}
		r.ok(r.d.Close())
	})
}

// TestSpinsAtOnce: streams run beside each other, in virtual time as well.
func TestSpinsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, softcuda.Kernels{"sleep": func(*softcuda.Launch) { time.Sleep(time.Hour) }})
		start := time.Now()
		for range 50 {
			s, err := r.dev.NewStream()
			r.ok(err)
			r.s = s
			r.launch("sleep")
		}
		r.ok(r.d.Close())
		if d := time.Since(start); d != time.Hour {
			t.Errorf("fifty streams took %v, want an hour", d)
		}
	})
}

func TestFailingKernels(t *testing.T) {
	quiet(t)
	var none []int
	for name, c := range map[string]struct {
		kernel softcuda.Kernel
		want   error
	}{
		"panics":             {func(*softcuda.Launch) { panic("no") }, cuda.ErrLaunchFailed},
		"indexes outside":    {func(l *softcuda.Launch) { none[l.Threads()]++ }, cuda.ErrIllegalAddress},
		"calls Goexit":       {func(*softcuda.Launch) { runtime.Goexit() }, cuda.ErrLaunchFailed},
		"asks for too much":  {func(l *softcuda.Launch) { softcuda.Slice[byte](l, 0, 65) }, cuda.ErrIllegalAddress},
		"has no argument 1":  {func(l *softcuda.Launch) { softcuda.Arg[int32](l, 1) }, cuda.ErrLaunchFailed},
		"takes too wide one": {func(l *softcuda.Launch) { softcuda.Arg[[2]uint64](l, 0) }, cuda.ErrLaunchFailed},
	} {
		t.Run(name, func(t *testing.T) {
			lost := make(chan *cuda.LostError, 1)
			r := newRig(t, softcuda.Kernels{"touch": c.kernel}, cuda.OnLost(func(e *cuda.LostError) { lost <- e }))
			b, err := r.dev.Alloc(64)
			r.ok(err)
			r.launch("touch", b)
			queued := cuda.HostLaunch(r.s, func() { t.Error("a function behind the failure ran") })
			if err := r.s.Sync(); !errors.Is(err, c.want) || !errors.Is(err, cuda.ErrDeviceLost) {
				t.Errorf("Sync = %v, want %v and the device lost", err, c.want)
			}
			if queued == nil {
				if e := <-lost; !errors.Is(e, c.want) {
					t.Errorf("OnLost got %v", e)
				}
			}
			r.ok(r.d.Close())
		})
	}
}

// quiet discards what the device logs about failing kernels.
func quiet(t *testing.T) {
	old := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { slog.SetDefault(old) })
}

// TestStrayAddresses: an address that is nobody's loses the device, also one right behind an allocation, or in a freed one.
func TestStrayAddresses(t *testing.T) {
	quiet(t)
	touch := softcuda.Kernels{"touch": func(l *softcuda.Launch) { softcuda.Slice[byte](l, 0, 1)[0]++ }}
	for name, stray := range map[string]func(b, freed *cuda.Buffer) cuda.DevicePtr{
		"null":         func(*cuda.Buffer, *cuda.Buffer) cuda.DevicePtr { return 0 },
		"small":        func(*cuda.Buffer, *cuda.Buffer) cuda.DevicePtr { return 16 },
		"behind":       func(b, _ *cuda.Buffer) cuda.DevicePtr { return b.Ptr() + 64 },
		"before":       func(b, _ *cuda.Buffer) cuda.DevicePtr { return b.Ptr() - 1 },
		"freed":        func(_, freed *cuda.Buffer) cuda.DevicePtr { return freed.Ptr() },
		"other device": func(b, _ *cuda.Buffer) cuda.DevicePtr { return b.Ptr() + 1<<49 },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, touch)
			b, err := r.dev.Alloc(64)
			r.ok(err)
			freed, err := r.dev.Alloc(64)
			r.ok(err)
			r.ok(freed.Close())
			r.launch("touch", cuda.DevicePtr(b.Ptr()+63))
			r.ok(r.s.Sync())
			r.launch("touch", stray(b, freed))
			if err := r.s.Sync(); !errors.Is(err, cuda.ErrIllegalAddress) || !errors.Is(err, cuda.ErrDeviceLost) {
				t.Errorf("Sync = %v, want an illegal address", err)
			}
			r.ok(r.d.Close())
		})
	}
}

// TestGoexitContained: a host function's runtime.Goexit, which no thread of the NVIDIA driver survives, is a report here, and
// the stream goes on.
func TestGoexitContained(t *testing.T) {
	told := make(chan error, 1)
	hook := make(chan *cuda.PanicError, 1)
	r := newRig(t, nil, cuda.OnPanic(func(p *cuda.PanicError) { hook <- p }))
	var log []int
	r.ok(cuda.HostLaunch(r.s, func() { log = append(log, 1) }))
	r.ok(cuda.HostLaunch(r.s, func() { defer func() { log = append(log, 2) }(); runtime.Goexit() }, cuda.Name("leaver"), cuda.OnDone(func(err error) { told <- err })))
	r.ok(cuda.HostLaunch(r.s, runtime.Goexit))
	r.ok(cuda.HostLaunch(r.s, func() { log = append(log, 3) }))
	r.ok(r.s.Sync())
	if !slices.Equal(log, []int{1, 2, 3}) {
		t.Errorf("order %v, want 1 2 3", log)
	}
	var p *cuda.PanicError
	if err := <-told; !errors.As(err, &p) || !errors.Is(err, cuda.ErrGoexit) || p.Value != cuda.ErrGoexit || p.Name != "leaver" {
		t.Errorf("OnDone got %v", err)
	}
	if p := <-hook; !errors.Is(p, cuda.ErrGoexit) {
		t.Errorf("OnPanic got %v", p)
	}
	if _, err := r.s.Query(); err != nil {
		t.Errorf("CUDA outside is taken for inside: %v", err)
	}
	r.ok(r.d.Close())
}

// TestArguments passes one argument of each kind through the parameter block.
func TestArguments(t *testing.T) {
	r := newRig(t, testkernels.Twins())
	m, err := r.dev.LoadModule(testkernels.PTX)
	r.ok(err)
	r.m = m
	b, err := r.dev.Alloc(64)
	r.ok(err)
	r.launch("arguments", uint8(1), uint16(2), int32(3), uint64(4), float32(5), float64(6), testkernels.Pair{A: 7, B: 8}, b)
	got := make([]uint64, 8)
	r.ok(cuda.CopyToHost(r.s, got, b))
	r.ok(r.s.Sync())
	if !slices.Equal(got, []uint64{1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("the kernel received %v", got)
	}
	r.ok(r.d.Close())
}

// TestNothingRunsIdle: a driver that nobody uses costs no goroutine, closed or not.
func TestNothingRunsIdle(t *testing.T) {
	before := runtime.NumGoroutine()
	r := newRig(t, testkernels.Twins())
	for range 10 {
		r.ok(cuda.HostLaunch(r.s, func() {}))
		r.ok(r.s.Memset(must(r.dev.Alloc(64)), 1))
	}
	r.ok(r.s.Sync())
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
	runtime.KeepAlive(r)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestFailureBesideWork: a kernel that runs while another stream's kernel fails comes to its end, and harms nothing there.
func TestFailureBesideWork(t *testing.T) {
	quiet(t)
	entered, free, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r := newRig(t, softcuda.Kernels{
		"sleep": func(*softcuda.Launch) { close(entered); <-free; close(left) },
		"fail":  func(*softcuda.Launch) { panic("no") },
	})
	other := must(r.dev.NewStream())
	r.launch("sleep")
	<-entered
	told := make(chan error, 1)
	r.ok(cuda.HostLaunch(r.s, func() { t.Error("a function of the lost device ran") }, cuda.OnDone(func(err error) { told <- err })))
	k := must(r.m.Kernel("fail"))
	r.ok(other.Launch(k, cuda.Grid1D(1, 1)))
	for _, s := range []*cuda.Stream{other, r.s} { // the second one's kernel runs on
		if err := s.Sync(); !errors.Is(err, cuda.ErrLaunchFailed) || !errors.Is(err, cuda.ErrDeviceLost) {
			t.Errorf("Sync = %v", err)
		}
	}
	if err := <-told; !errors.Is(err, cuda.ErrDeviceLost) {
		t.Errorf("OnDone got %v", err)
	}
	close(free)
	<-left
	r.ok(r.d.Close())
}

// TestArgBounds: an argument is not read beyond its end, into the next one.
func TestArgBounds(t *testing.T) {
	quiet(t)
	r := newRig(t, softcuda.Kernels{"pair": func(l *softcuda.Launch) { softcuda.Arg[uint64](l, 0) }})
	m, err := r.dev.LoadModule([]byte(".version 8.0\n.target sm_90\n.entry pair(.param .u32 a, .param .u32 b)\n"))
	r.ok(err)
	r.ok(r.s.Launch(must(m.Kernel("pair")), cuda.Grid1D(1, 1), uint32(1), uint32(2)))
	if err := r.s.Sync(); !errors.Is(err, cuda.ErrLaunchFailed) {
		t.Errorf("Sync = %v, want the kernel to have failed", err)
	}
	r.ok(r.d.Close())
}

// TestNoMemory: a device may have none.
func TestNoMemory(t *testing.T) {
	for _, n := range []int64{-1, -1 << 63} {
		d := softcuda.New(softcuda.Options{Memory: n})
		dev := must(d.Device(0))
		_, err := dev.Alloc(1)
		_, pinned := dev.AllocPinned(1)
		if !errors.Is(err, cuda.ErrOutOfMemory) || !errors.Is(pinned, cuda.ErrOutOfMemory) {
			t.Errorf("memory %d: %v, %v", n, err, pinned)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFailureBeforeWork: the device is lost before the goroutine of another stream's kernel has come to run.
func TestFailureBeforeWork(t *testing.T) {
	quiet(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 20 {
		r := newRig(t, softcuda.Kernels{"sleep": func(*softcuda.Launch) {}, "fail": func(*softcuda.Launch) { panic("no") }})
		other, sleep, fail := must(r.dev.NewStream()), must(r.m.Kernel("sleep")), must(r.m.Kernel("fail"))
		r.ok(r.s.Launch(sleep, cuda.Grid1D(1, 1)))
		r.ok(other.Launch(fail, cuda.Grid1D(1, 1))) // which one P runs first
		if err := other.Sync(); !errors.Is(err, cuda.ErrLaunchFailed) {
			t.Errorf("Sync = %v", err)
		}
		r.ok(r.d.Close())
	}
}
