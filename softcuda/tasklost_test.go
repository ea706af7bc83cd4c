package softcuda_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestLostBehindStopOnError: HL-17, CB-02, what waits in the library behind a task that may yet stop its stream is told of a lost device at
// once, and not when the task has ended, which may itself wait for one of those.
func TestLostBehindStopOnError(t *testing.T) {
	var faults softcuda.Faults
	d := softcuda.New(softcuda.Options{Faults: &faults})
	defer d.Close()
	s, b := streamAndBuffer(t, d, 1<<20)
	began, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	task, err := cuda.Go(s, func(context.Context) error { close(began); <-release; return nil }, cuda.StopOnError(), cuda.Name("holder"))
	good(t, err)
	<-began
	told := map[string]chan error{}
	tell := func(name string) func(error) {
		ch := make(chan error, 1)
		told[name] = ch
		return func(err error) { ch <- err }
	}
	good(t, cuda.HostLaunch(s, func() { t.Error("it ran") }, cuda.OnDone(tell("OnDone"))))
	good(t, cuda.AddCallback(s, tell("callback")))
	for name, wait := range map[string]func() error{
		"Sync": s.Sync,
		"Wait": func() error { return s.Wait(context.Background()) },
		"copy": func() error { return cuda.CopyToHost(s, make([]byte, b.Len()), b) },
	} {
		ended := tell(name)
		go func() { ended(wait()) }()
	}
	time.Sleep(20 * time.Millisecond) // they wait
	faults.LoseDevice(0, cuda.ErrECCUncorrectable)
	for name, ch := range told {
		select {
		case err := <-ch:
			if !errors.Is(err, cuda.ErrDeviceLost) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s was not told", name)
		}
	}
	select {
	case <-task.Done():
		t.Errorf("the task is over: %v", task.Err())
	default:
	}
}

// TestReleaseAfterLost: CY-07, a block whose stream's context has failed is given back, whatever ReleaseAfter says.
func TestReleaseAfterLost(t *testing.T) {
	for _, call := range []string{"", "cuEventCreate", "cuEventRecord"} {
		var faults softcuda.Faults
		d := softcuda.New(softcuda.Options{Faults: &faults})
		s, b := streamAndBuffer(t, d, 16)
		pool, err := b.Context().NewPinnedPool(4096)
		good(t, err)
		block, err := pool.Get(t.Context(), 100)
		good(t, err)
		if call == "" {
			faults.LoseDevice(0, cuda.ErrECCUncorrectable)
		} else {
			faults.Add(softcuda.Fault{Call: call, Lose: true, Result: cuda.ErrECCUncorrectable})
		}
		if err := block.ReleaseAfter(s); !errors.Is(err, cuda.ErrDeviceLost) {
			t.Errorf("%q: %v", call, err)
		}
		good(t, pool.Close())
		if n := d.Stats().PinnedPools; n != 0 {
			t.Errorf("%q: %d pools are left", call, n)
		}
		good(t, d.Close())
	}
}

// TestQueryStopped: TK-05, a stream that a failed task has stopped is not done, and Query says why.
func TestQueryStopped(t *testing.T) {
	d := softcuda.New(softcuda.Options{})
	defer d.Close()
	s, _ := streamAndBuffer(t, d, 16)
	task, err := cuda.Go(s, func(context.Context) error { return errors.New("no luck") }, cuda.StopOnError())
	good(t, err)
	task.Wait(t.Context())
	if done, err := s.Query(); done || !errors.Is(err, cuda.ErrTaskFailed) {
		t.Errorf("Query: %v, %v", done, err)
	}
}

// TestErrorsNameTasks: what never ran, or panicked, is called what it is.
func TestErrorsNameTasks(t *testing.T) {
	var faults softcuda.Faults
	d := softcuda.New(softcuda.Options{Faults: &faults})
	defer d.Close()
	s, _ := streamAndBuffer(t, d, 16)
	panics, err := cuda.Go(s, func(context.Context) error { panic("ouch") }, cuda.Name("first"))
	good(t, err)
	if err := panics.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "task first, enqueued at") {
		t.Errorf("a panic: %v", err)
	}
	release := make(chan struct{})
	good(t, cuda.HostLaunch(s, func() { <-release }))
	lost, err := cuda.Go(s, func(context.Context) error { return nil }, cuda.Name("second"))
	good(t, err)
	faults.LoseDevice(0, cuda.ErrECCUncorrectable)
	close(release)
	if err := lost.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "task second, enqueued at") {
		t.Errorf("a lost one: %v", err)
	}
}

func streamAndBuffer(t *testing.T, d *cuda.Driver, n int) (*cuda.Stream, *cuda.Buffer) {
	t.Helper()
	dev, err := d.Device(0)
	good(t, err)
	s, err := dev.NewStream()
	good(t, err)
	b, err := dev.Alloc(n)
	good(t, err)
	return s, b
}

func good(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
