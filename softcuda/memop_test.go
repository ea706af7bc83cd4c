package softcuda_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// flagOf makes a word of pinned memory for r.
func flagOf(r *rig) (cuda.Word, *atomic.Uint32) {
	r.Helper()
	p, err := r.dev.AllocPinned(4)
	r.ok(err)
	return p.Word(0), &cuda.PinnedSlice[atomic.Uint32](p)[0]
}

// TestWaitValueVirtualTime: a wait-value in a synctest bubble is met at the time of the write, give or take a look's interval.
func TestWaitValueVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.d.Close()
		at, flag := flagOf(r)
		start := time.Now()
		time.AfterFunc(time.Hour, func() { flag.Store(1) })
		r.ok(r.s.WaitValue32(at, cuda.ValueEQ, 1))
		r.ok(r.s.Sync())
		if took := time.Since(start); took < time.Hour || took > time.Hour+time.Millisecond {
			t.Errorf("met after %v", took)
		}
	})
}

// TestWaitValueLost: a failure takes wait-values away with everything else, whether they are at the head of their streams or not.
func TestWaitValueLost(t *testing.T) {
	quiet(t)
	r := newRig(t, softcuda.Kernels{"fail": func(*softcuda.Launch) { panic("fail") }})
	at, _ := flagOf(r)
	other, err := r.dev.NewStream()
	r.ok(err)
	r.ok(other.WaitValue32(at, cuda.ValueEQ, 1))
	r.ok(other.WaitValue32(at, cuda.ValueEQ, 2))
	told := make(chan error, 1)
	r.ok(cuda.AddCallback(other, func(err error) { told <- err }))
	r.launch("fail")
	if err := other.Sync(); !errors.Is(err, cuda.ErrLaunchFailed) {
		t.Errorf("Sync: %v", err)
	}
	if err := <-told; !errors.Is(err, cuda.ErrLaunchFailed) {
		t.Errorf("the callback was told %v", err)
	}
	r.ok(r.d.Close())
}

// TestWaitValueManyStreams: many streams wait for one word, in steps.
func TestWaitValueManyStreams(t *testing.T) {
	r := newRig(t, nil)
	at, flag := flagOf(r)
	var ran atomic.Int32
	for i := range uint32(100) {
		s, err := r.dev.NewStream()
		r.ok(err)
		r.ok(s.WaitValue32(at, cuda.ValueGEQ, i+1))
		r.ok(cuda.HostLaunch(s, func() { ran.Add(1) }))
	}
	for i := range int32(100) {
		flag.Store(uint32(i + 1))
		for deadline := time.Now().Add(5 * time.Second); ran.Load() != i+1; time.Sleep(10 * time.Microsecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d streams went on at %d", ran.Load(), i+1)
			}
		}
	}
	r.ok(r.d.Close())
}
