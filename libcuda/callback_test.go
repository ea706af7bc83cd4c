//go:build linux && (amd64 || arm64)

package libcuda

import (
	"strings"
	"testing"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

type callbackRun struct {
	data   uint64
	r      driver.Result
	inside bool
}

// TestCallbacks: a callback runs with its data and the status, counts as inside, and on a context that has failed with that error.
func TestCallbacks(t *testing.T) {
	f := newFake(t)
	runs := make(chan callbackRun, 1)
	var nv *nvidia
	nv = f.open(driver.Upcalls{
		Callback: func(data uint64, r driver.Result) { runs <- callbackRun{data, r, nv.InHostFunction()} },
		Pending:  func(driver.Context) int { return 0 },
	})
	add := func(data uint64) {
		t.Helper()
		if r := nv.StreamAddCallback(ctx, stream, data, 0); r != driver.Success {
			t.Fatal(r)
		}
	}
	add(1<<56 - 1)
	if got := <-runs; got != (callbackRun{1<<56 - 1, driver.Success, true}) {
		t.Errorf("ran as %+v", got)
	}
	f.set(knobHold, 1)
	add(7)
	f.set(knobLost, 700)
	f.set(knobHold, 0)
	if got := <-runs; got != (callbackRun{7, driver.ErrorIllegalAddress, true}) {
		t.Errorf("ran as %+v in a lost context", got)
	}
}

// TestCallbackWatched: callbacks that wait have their context watched, as host functions have.
func TestCallbackWatched(t *testing.T) {
	f, h := newFake(t), new(host)
	up := h.upcalls()
	up.Callback = func(uint64, driver.Result) {}
	nv := f.open(up)
	f.set(knobHold, 1)
	defer f.set(knobHold, 0)
	h.pending.Add(1)
	if r := nv.StreamAddCallback(ctx, stream, 1, 0); r != driver.Success {
		t.Fatal(r)
	}
	f.set(knobLost, 700)
	eventually(t, time.Second, "the loss is reported", func() bool { return h.losses.Load() == 1 })
}

// TestSyncMode: where the driver knows sync modes they reach it; an older one does without.
func TestSyncMode(t *testing.T) {
	f := newFake(t)
	f.set(knobVersion, 13020)
	nv := f.open(driver.Upcalls{HostFunc: func(uint64) {}, Pending: func(driver.Context) int { return 0 }})
	f.log()
	nv.LaunchHostFuncMode(ctx, stream, 0x77, 1)
	nv.LaunchHostFunc(ctx, driver.StreamLegacy, 0x78)
	want := "cuLaunchHostFunc(stream=0x5a, data=0x77, mode=1) in 0xc0\ncuLaunchHostFunc(stream=0x1, data=0x78) in 0xc0"
	if got := strings.Join(f.log(), "\n"); got != want {
		t.Errorf("called\n%s\nwant\n%s", got, want)
	}
	f = newFake(t)
	nv = f.open(driver.Upcalls{HostFunc: func(uint64) {}, Pending: func(driver.Context) int { return 0 }})
	f.log()
	nv.LaunchHostFuncMode(ctx, stream, 0x77, 1)
	if got, want := strings.Join(f.log(), "\n"), "cuLaunchHostFunc(stream=0x5a, data=0x77) in 0xc0"; !strings.HasSuffix(got, want) {
		t.Errorf("before CUDA 13.2 called\n%s\nwant\n%s", got, want)
	}
}
