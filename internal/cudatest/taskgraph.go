package cudatest

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// taskGraphCases: tasks in graphs.
var taskGraphCases = []Case{
	{ID: "TK-06", Name: "once per launch, in order", Run: graphTaskInOrder},
	{ID: "TK-06", Name: "two executables at a time", Run: graphTasksApart},
	{ID: "TK-06", Name: "calls CUDA", Run: graphTaskCalls},
	{ID: "TK-06", Name: "errors and panics", Run: graphTaskErrors},
	{ID: "TK-06", Name: "refused", Run: graphTasksRefused},
	{ID: "TK-06", Name: "Close waits", Run: graphTaskClose},
}

// captureExec makes an executable of what build captures.
func (t *T) captureExec(build func(*cuda.GraphBuilder)) *cuda.GraphExec {
	t.Helper()
	g := t.Capture(func(b *cuda.GraphBuilder) error { build(b); return nil })
	x := t.Exec(g)
	t.OK(g.Close())
	return x
}

func graphTaskInOrder(t *T) {
	s, k, log := t.Stream(), t.Kernel("append"), t.DeviceLog(8)
	ends := make(chan error, 100)
	x := t.captureExec(func(b *cuda.GraphBuilder) {
		t.OK(b.Launch(k, one, log.mem, uint64(1)))
		t.OK(b.Task(func(context.Context) error {
			log.words[1+log.words[0]] = 2
			log.words[0]++
			return nil
		}, cuda.OnDone(func(err error) { ends <- err })))
		t.OK(b.Launch(k, one, log.mem, uint64(3)))
	})
	for range 20 {
		log.words[0] = 0
		t.OK(x.Launch(s))
		t.Sync(s)
		log.Want(1, 2, 3)
		t.OK(Receive(t, "OnDone", ends))
	}
	if len(ends) > 0 {
		t.Error("OnDone was told more than once a launch")
	}
}

// graphTasksApart: two executables have the same task. What is behind it in one goes on when that one's own has returned, and not when
// the other's has.
func graphTasksApart(t *T) {
	const launches = 15
	streams, first, other := [2]*cuda.Stream{t.Stream(), t.Stream()}, t.Event(), t.Event()
	gates, turns := [2]*Gate{t.newGate(), t.newGate()}, 0 // tasks of graphs run one at a time
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		return b.Task(func(context.Context) error {
			if turns++; turns <= len(gates) {
				gates[turns-1].pass()
			}
			return nil
		})
	})
	execs := [2]*cuda.GraphExec{t.Exec(g), t.Exec(g)}
	t.OK(execs[0].Launch(streams[0]))
	t.OK(streams[0].Record(first))
	Receive(t, "the first executable's task runs", gates[0].Entered)
	t.OK(execs[1].Launch(streams[1]))
	t.OK(streams[1].Record(other))
	t.Waits("work behind the first executable's task, which runs", first)
	gates[0].Open()
	t.Completes("work behind the first executable's task, which has returned", first)
	t.Waits("work behind the other's task, which has not", other)
	gates[1].Open()
	t.Completes("work behind the other's task", other)
	for range launches {
		for i, x := range execs {
			t.OK(x.Launch(streams[i]))
		}
	}
	t.Sync(streams[0])
	t.Sync(streams[1])
	if turns != 2*launches+2 {
		t.Errorf("%d runs of %d launches", turns, 2*launches+2)
	}
}

func graphTaskCalls(t *T) {
	s, other, k, log, dev := t.Stream(), t.Stream(), t.Kernel("append"), t.DeviceLog(8), t.Device(0)
	var loading error
	x := t.captureExec(func(b *cuda.GraphBuilder) {
		t.OK(b.Task(func(ctx context.Context) error {
			buf, err := dev.Alloc(64)
			if err != nil {
				return err
			}
			own, err := dev.NewStream()
			if err != nil {
				return err
			}
			_, loading = dev.LoadModule(t.cfg.PTX)
			return errors.Join(buf.Close(), other.Launch(k, one, log.mem, uint64(1)), other.Wait(ctx), own.Launch(k, one, log.mem, uint64(2)), own.Sync(), own.Close())
		}))
		t.OK(b.Launch(k, one, log.mem, uint64(3)))
	})
	t.OK(x.Launch(s))
	t.Sync(s)
	log.Want(1, 2, 3)
	t.Is(loading, cuda.ErrDeadlock)
}

func graphTaskErrors(t *T) {
	s, mine := t.Stream(), errors.New("mine")
	ends := make(chan error, 4)
	done := cuda.OnDone(func(err error) { ends <- err })
	var behind atomic.Int32
	for i, fn := range []func(context.Context) error{
		func(context.Context) error { return mine },
		func(context.Context) error { panic(mine) },
		func(context.Context) error { runtime.Goexit(); return nil },
	} {
		x := t.captureExec(func(b *cuda.GraphBuilder) {
			t.OK(b.Task(fn, done, cuda.Name("fuse")))
			t.Host(b, func() { behind.Add(1) })
		})
		for range 2 {
			t.OK(x.Launch(s))
			t.Sync(s)
			err := Receive(t, "OnDone", ends)
			var p *cuda.PanicError
			switch {
			case i == 0 && err != mine, i == 1 && (!errors.As(err, &p) || p.Value != mine || p.Name != "fuse"), i == 2 && !errors.Is(err, cuda.ErrGoexit):
				t.Errorf("%d: OnDone got %v", i, err)
			}
		}
	}
	if behind.Load() != 6 {
		t.Errorf("%d functions behind ran, want 6", behind.Load())
	}
	log := new(logBook)
	t.OpenDriver(log.logger())
	s = t.Stream()
	x := t.captureExec(func(b *cuda.GraphBuilder) {
		t.OK(b.Task(func(context.Context) error { return mine }, cuda.Name("unheard")))
	})
	t.OK(x.Launch(s))
	t.Sync(s)
	t.OK(t.Driver.Close())
	if got := log.String(); !strings.Contains(got, "unheard") || !strings.Contains(got, "mine") {
		t.Errorf("logged %q", got)
	}
}

func graphTasksRefused(t *T) {
	nothing := func(context.Context) error { return nil }
	b, err := t.Device(0).NewGraphBuilder()
	t.OK(err)
	t.Is(b.Task(nothing), cuda.ErrNotBuilding)
	t.OK(b.Begin(cuda.CaptureThreadLocal))
	t.Is(b.Task(nil), cuda.ErrInvalidValue)
	t.Is(b.Task(nothing, cuda.StopOnError()), cuda.ErrInvalidValue)
	t.Is(b.Task(nothing, cuda.SyncMode(9)), cuda.ErrInvalidValue)
	t.Is(cuda.HostLaunch(b, func() {}, cuda.WithContext(t.Context())), cuda.ErrInvalidValue)
	t.OK(b.Task(nothing))
	t.OK(b.Close())
	t.Is(b.Task(nothing), cuda.ErrNotBuilding)
}

func graphTaskClose(t *T) {
	d := t.OpenDriver()
	s, other, k := t.Stream(), t.Stream(), t.Kernel("nothing")
	entered := make(chan struct{})
	var result error
	x := t.captureExec(func(b *cuda.GraphBuilder) {
		t.OK(b.Task(func(ctx context.Context) error {
			close(entered)
			time.Sleep(10 * time.Millisecond)
			result = errors.Join(other.Launch(k, one), other.Wait(ctx))
			return nil
		}))
	})
	t.OK(x.Launch(s))
	<-entered
	t.OK(d.Close())
	t.OK(result)
}
