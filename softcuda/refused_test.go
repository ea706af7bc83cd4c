package softcuda_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

// refusal is a call that is refused: with a code, and a text that names what is wrong.
type refusal struct {
	name  string
	call  string // the driver's call that fails; "": none, the library refuses
	do    func() error
	code  cuda.Code
	names string
}

// refuse wants each call to be refused, and to leave nothing.
func refuse(t *testing.T, f *softcuda.Faults, drv *cuda.Driver, list []refusal) {
	for _, r := range list {
		t.Run(r.name, func(t *testing.T) {
			if f.Clear(); r.call != "" {
				noErr(t, f.Add(softcuda.Fault{Call: r.call, Result: r.code}))
			}
			before := drv.Stats()
			if err := r.do(); !errors.Is(err, r.code) || !strings.Contains(err.Error(), r.names) {
				t.Errorf("%v, want %v that names %q", err, r.code, r.names)
			}
			f.Clear()
			for deadline := time.Now().Add(5 * time.Second); drv.Stats() != before && time.Now().Before(deadline); {
				time.Sleep(50 * time.Microsecond)
			}
			if now := drv.Stats(); now != before {
				t.Errorf("left: %+v, before: %+v", now, before)
			}
		})
	}
}

// TestGraphCallsRefused has the driver refuse what changes a graph or an executable: what the node was to own is let go at once, not
// with the graph.
func TestGraphCallsRefused(t *testing.T) {
	f, drv, dev := openFaulty(t, 0)
	s := newStreams(t, dev, 1)[0]
	b, inner, g := must(dev.Alloc(64)), must(dev.NewGraph()), must(dev.NewGraph())
	must(inner.AddNode(nothing()))
	host, set := must(g.AddNode(nothing())), must(g.AddNode(cuda.MemsetParams(b, 1)))
	child := must(g.AddNode(cuda.ChildGraphParams(inner)))
	x := must(g.Instantiate())
	same := must(g.Clone())
	builder := must(dev.NewGraphBuilder())
	refuse(t, f, drv, []refusal{
		{"add", "GraphAddNode", func() error { return ask(g.AddNode(nothing(), host)) }, cuda.ErrOperatingSystem, "the graph is as it was"},
		{"add a child", "GraphAddNode",
			func() error { return ask(g.AddNode(cuda.ChildGraphParams(inner))) }, cuda.ErrOutOfMemory, "child graph node"},
		{"add behind another graph's", "",
			func() error { return ask(g.AddNode(nothing(), cuda.GraphNode{})) }, cuda.ErrInvalidValue, "the node"},
		{"set", "GraphNodeSetParams", func() error { return g.SetParams(host, nothing()) }, cuda.ErrOperatingSystem, "the node is as it was"},
		{"set a child", "GraphNodeSetParams",
			func() error { return g.SetParams(child, cuda.ChildGraphParams(inner)) }, cuda.ErrOutOfMemory, "as it was"},
		{"set by another type", "", func() error { return g.SetParams(set, nothing()) }, cuda.ErrInvalidValue, "n is a memset node"},
		{"type", "GraphNodeGetType", func() error { return g.SetParams(host, nothing()) }, cuda.ErrOperatingSystem, "Graph.SetParams"},
		{"set executable", "GraphExecNodeSetParams",
			func() error { return x.SetParams(host, nothing()) }, cuda.ErrOperatingSystem, "executable is as it was"},
		{"instantiate", "GraphInstantiate*", func() error { return ask(g.Instantiate()) }, cuda.ErrOutOfMemory, "Graph.Instantiate"},
		{"update", "GraphExecUpdate", func() error { return x.Update(same) }, cuda.ErrOperatingSystem, "executable is as it was"},
		{"update's reference", "GraphRetainUserObject", func() error { return x.Update(same) }, cuda.ErrOperatingSystem, "GraphExec.Update"},
		{"clone", "GraphClone", func() error { return ask(g.Clone()) }, cuda.ErrOutOfMemory, "Graph.Clone"},
		{"child", "GraphChildGraph*",
			func() error { return ask(same.ChildGraph(must(same.Nodes())[2])) }, cuda.ErrOperatingSystem, "Graph.ChildGraph"},
		{"launch", "GraphLaunch", func() error { return x.Launch(s) }, cuda.ErrOutOfMemory, "nothing of the graph will run"},
		{"begin", "StreamBeginCapture",
			func() error { return builder.Begin(cuda.CaptureRelaxed) }, cuda.ErrOperatingSystem, "GraphBuilder.Begin"},
		{"begin to graph", "StreamBeginCaptureToGraph",
			func() error { return builder.BeginToGraph(g, nil, 0) }, cuda.ErrOutOfMemory, "GraphBuilder"},
	})
	noErr(t, x.Launch(s))
	noErr(t, s.Sync())
}

// TestMisuseRefused is misuse of the library that it refuses itself.
func TestMisuseRefused(t *testing.T) {
	f, drv, dev := openFaulty(t, 0)
	other, err := softcuda.New(softcuda.Options{}).Device(0)
	noErr(t, err)
	t.Cleanup(func() { other.Driver().Close() })
	own := must(dev.NewContext())
	s, capturing, stranger, elsewhere := must(dev.NewStream()), must(dev.NewStream()), must(other.NewStream()), must(own.NewStream())
	b, g, inner := must(dev.Alloc(64)), must(dev.NewGraph()), must(dev.NewGraph())
	must(inner.AddNode(cuda.EmptyParams()))
	child := must(g.AddNode(cuda.ChildGraphParams(inner)))
	embedded := must(g.ChildGraph(child))
	free := must(dev.NewGraph())
	alloc, mem, err := free.AddAlloc(64)
	noErr(t, err)
	freed := must(free.AddNode(cuda.MemFreeParams(mem), alloc))
	x := must(g.Instantiate())
	store := must(must(dev.LoadModule(testkernels.PTX)).Kernel("store"))
	builder := must(dev.NewGraphBuilder())
	foreign := must(own.NewEvent())
	pool := must(dev.NewPinnedPool(4096))
	block := must(pool.Get(context.Background(), 64))
	t.Cleanup(block.Release)
	var none context.Context
	many := make([]cuda.MemOp, 256)
	for i := range many {
		many[i] = cuda.Write32(b.Word(0), 1)
	}
	capture := func(do func() error) error { // what do is refused with while a stream captures
		var refused error
		_, err := cuda.Capture(capturing, cuda.CaptureRelaxed, func(*cuda.GraphBuilder) error {
			refused = do()
			return errors.New("enough")
		})
		if err == nil || refused == nil {
			return err
		}
		return refused
	}
	list := []refusal{
		{"zero condition", "",
			func() error { return s.Launch(store, oneThread, cuda.Condition{}, uint32(1)) }, cuda.ErrInvalidValue, "argument 0"},
		{"into an embedded graph", "",
			func() error { return builder.BeginToGraph(embedded, nil, 0) }, cuda.ErrNotPermitted, "child graph node"},
		{"change an embedded graph", "", func() error { return ask(embedded.AddNode(nothing())) }, cuda.ErrNotPermitted, "child graph node"},
		{"change a free node", "",
			func() error { return free.SetParams(freed, cuda.MemFreeParams(mem)) }, cuda.ErrNotSupported, "memory free node"},
		{"another context's stream", "", func() error { return x.Launch(elsewhere) }, cuda.ErrInvalidContext, "the stream"},
		{"another driver's stream", "", func() error { return x.Launch(stranger) }, cuda.ErrInvalidValue, "one Driver"},
		{"upload on a capturing stream", "", func() error {
			return capture(func() error { return ask(g.Instantiate(cuda.UploadOn(capturing))) })
		}, cuda.ErrCapturing, "Graph.Instantiate"},
		{"another context's event", "",
			func() error { return ask(g.AddNode(cuda.EventRecordParams(foreign))) }, cuda.ErrInvalidHandle, "the event"},
		{"too many operations", "",
			func() error { return ask(g.AddNode(cuda.BatchMemOpParams(many...))) }, cuda.ErrInvalidValue, "256 operations"},
		{"pool without a context", "",
			func() error { return ask(pool.Get(none, 1)) }, cuda.ErrInvalidValue, "ctx is nil"},
		{"release behind another driver's", "", func() error { return block.ReleaseAfter(stranger) }, cuda.ErrInvalidValue, "one Driver"},
		{"release behind a capturing stream", "", func() error {
			return capture(func() error { return block.ReleaseAfter(capturing) })
		}, cuda.ErrCapturing, "ReleaseAfter"},
	}
	refuse(t, f, drv, list)
	runtime.KeepAlive(inner) // the count of what is open would be another without it
}

// TestShutdownSaysHowMany: of very many functions that wait, the first are named, and the others counted.
func TestShutdownSaysHowMany(t *testing.T) {
	drv, dev := openSeeded(t, softcuda.Options{})
	s, gate := must(dev.NewStream()), make(chan struct{})
	const n = 40
	for range n {
		noErr(t, cuda.HostLaunch(s, func() { <-gate }, cuda.Name("waiter")))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	err := drv.Shutdown(ctx)
	if err == nil || !strings.Contains(err.Error(), "waiter") || !strings.Contains(err.Error(), "more host functions") {
		t.Errorf("Shutdown: %v", err)
	}
	close(gate)
	noErr(t, drv.Close())
}

// TestTaskCannotWaitForItsTurn: on the per-thread stream Go waits until the stream can be held. In a task that keeps the only place,
// that would be for ever: it is ErrDeadlock, nothing is queued, and nobody is told.
func TestTaskCannotWaitForItsTurn(t *testing.T) {
	drv, dev := softcuda.New(softcuda.Options{}, cuda.MaxHeldStreams(1)), (*cuda.Device)(nil)
	dev, err := drv.Device(0)
	noErr(t, err)
	s := must(dev.NewStream())
	var refused error
	task, err := cuda.Go(s, func(context.Context) error {
		return dev.WithThreadStream(func(own *cuda.Stream) error {
			_, refused = cuda.Go(own, short, cuda.OnDone(func(err error) { t.Errorf("told: %v", err) }))
			return nil
		})
	})
	noErr(t, err)
	noErr(t, task.Wait(context.Background()))
	if !errors.Is(refused, cuda.ErrDeadlock) {
		t.Errorf("%v, want ErrDeadlock", refused)
	}
	noErr(t, dev.WithThreadStream(func(own *cuda.Stream) error {
		task, err := cuda.Go(own, short)
		return errors.Join(err, task.Wait(context.Background()), own.Sync())
	}))
	noErr(t, drv.Close())
}

// TestFaultOfAnOperationLosesAll: the operation's fault takes the device's other contexts along.
func TestFaultOfAnOperationLosesAll(t *testing.T) {
	f, _, dev := openFaulty(t, 0)
	own := must(dev.NewContext())
	s, other := must(dev.NewStream()), must(own.NewStream())
	noErr(t, f.Add(softcuda.Fault{Op: "memset", Result: cuda.ErrECCUncorrectable, Lose: true}))
	noErr(t, s.Memset(must(dev.Alloc(8)), 1))
	for _, s := range []*cuda.Stream{s, other} {
		if err := s.Sync(); !errors.Is(err, cuda.ErrECCUncorrectable) || !errors.Is(err, cuda.ErrDeviceLost) {
			t.Errorf("%v", err)
		}
	}
}

// TestNilHandles: what only tells something tells nothing of nil, as Close does nothing to it.
func TestNilHandles(t *testing.T) {
	var (
		pool  *cuda.PinnedPool
		block *cuda.PinnedBlock
		graph *cuda.Graph
		mod   *cuda.Module
		drv   *cuda.Driver
	)
	if pool.Len() != 0 || pool.Context() != nil || block.Bytes() != nil || graph.Context() != nil || mod.Context() != nil {
		t.Error("nil tells something")
	}
	if drv.StagingBytes() != 0 || drv.Stats() != (cuda.Stats{}) {
		t.Error("a nil Driver holds something")
	}
	noErr(t, errors.Join(pool.Close(), graph.Close(), mod.Close(), drv.Close()))
	zero := new(cuda.PinnedBlock)
	if zero.Release(); zero.Bytes() != nil {
		t.Error("a zero PinnedBlock has memory")
	}
	is(t, zero.ReleaseAfter(nil), cuda.ErrInvalidValue)
	_, real := openSeeded(t, softcuda.Options{Devices: 2})
	if real.Ordinal() != 0 || real.String() != real.Name() || must(real.NewGraph()).Context() != real.Context {
		t.Errorf("device %d, %q", real.Ordinal(), real)
	}
	noErr(t, real.Driver().Close())
}

// TestLostErrorNames: who is told that a function never ran learns which one, from where, and why.
func TestLostErrorNames(t *testing.T) {
	f, _, dev := openFaulty(t, 0)
	s, told := must(dev.NewStream()), make(chan error, 1)
	noErr(t, f.Add(softcuda.Fault{Op: "memset", Result: cuda.ErrLaunchFailed, Delay: 20 * time.Millisecond}))
	noErr(t, s.Memset(must(dev.Alloc(8)), 1))
	noErr(t, cuda.HostLaunch(s, func() {}, cuda.Name("decode"), cuda.OnDone(func(err error) { told <- err })))
	err := <-told
	var lost *cuda.LostError
	if !errors.As(err, &lost) {
		t.Fatalf("told %v", err)
	}
	for _, part := range []string{"decode", "refused_test.go:", "never ran", "CUDA_ERROR_LAUNCH_FAILED"} {
		if !strings.Contains(lost.Error(), part) {
			t.Errorf("%q does not name %s", lost.Error(), part)
		}
	}
}

// TestManyThreads: the per-thread streams of threads that have gone are forgotten, and those that have work are not.
func TestManyThreads(t *testing.T) {
	drv, dev := openSeeded(t, softcuda.Options{})
	gate, ran := make(chan struct{}), make(chan int, 200)
	for i := range 200 { // a goroutine is a thread
		done := make(chan error)
		go func() {
			done <- dev.WithThreadStream(func(s *cuda.Stream) error {
				return cuda.HostLaunch(s, func() {
					if i == 0 {
						<-gate
					}
					ran <- i
				})
			})
		}()
		noErr(t, <-done)
	}
	close(gate)
	noErr(t, drv.Close())
	if len(ran) != 200 {
		t.Errorf("%d functions ran, want 200", len(ran))
	}
}

// TestMemset16Node fills memory by words of two bytes.
func TestMemset16Node(t *testing.T) {
	drv, dev := openSeeded(t, softcuda.Options{})
	s, b, g := must(dev.NewStream()), must(dev.Alloc(6)), must(dev.NewGraph())
	must(g.AddNode(cuda.Memset16Params(b, 0x0201)))
	noErr(t, must(g.Instantiate()).Launch(s))
	noErr(t, s.Sync())
	got := make([]byte, 6)
	must(b.ReadAt(got, 0))
	if string(got) != "\x01\x02\x01\x02\x01\x02" {
		t.Errorf("%v", got)
	}
	noErr(t, drv.Close())
}

// TestTaskInLineIsLost: a task that waits in the library for another's end is told when the device is lost, however long the other
// takes (CONTRACT HL-17). Also where Go itself waits, on the per-thread stream: what has been told counts as queued.
func TestTaskInLineIsLost(t *testing.T) {
	f := new(softcuda.Faults)
	drv := softcuda.New(softcuda.Options{Faults: f}, cuda.MaxHeldStreams(1))
	dev, err := drv.Device(0)
	noErr(t, err)
	var ends atomic.Int32
	gate, began, waits := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	must(cuda.Go(must(dev.NewStream()), func(context.Context) error { close(began); <-gate; return nil }))
	<-began
	inLine := must(cuda.Go(must(dev.NewStream()), short))
	go func() {
		waits <- dev.WithThreadStream(func(own *cuda.Stream) error {
			task, err := cuda.Go(own, short, cuda.OnDone(func(error) { ends.Add(1) }))
			if err != nil {
				return fmt.Errorf("refused, while its end is told: %w", errors.ErrUnsupported)
			}
			return task.Err()
		})
	}()
	time.Sleep(20 * time.Millisecond) // so that it waits, most probably
	noErr(t, f.LoseDevice(0, cuda.ErrLaunchFailed))
	for what, told := range map[string]func() error{
		"a task": func() error { <-inLine.Done(); return inLine.Err() },
		"Go":     func() error { return <-waits },
	} {
		end := make(chan error, 1)
		go func() { end <- told() }()
		select {
		case err := <-end:
			if !errors.Is(err, cuda.ErrLaunchFailed) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(time.Second):
			t.Errorf("%s is not told", what)
		}
	}
	close(gate)
	if drv.Close(); ends.Load() != 1 {
		t.Errorf("the end of what Go waited with was told %d times", ends.Load())
	}
}
