package cudatest

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
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

// exec makes an executable of what build captures.
func (t *T) exec(build func(*cuda.GraphBuilder)) *cuda.GraphExec {
	t.Helper()
	g, err := cuda.Capture(t.Stream(), cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error { build(b); return nil })
	t.OK(err)
	x, err := g.Instantiate()
	t.OK(err)
	t.OK(g.Close())
	t.Cleanup(func() { x.Close() })
	return x
}

func graphTaskInOrder(t *T) {
	s, k, log := t.Stream(), t.Kernel("append"), t.DeviceLog(8)
	ends := make(chan error, 100)
	x := t.exec(func(b *cuda.GraphBuilder) {
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

// graphTasksApart: what is behind a task in one executable must not go on when the task of the other has returned.
func graphTasksApart(t *T) {
	var mu sync.Mutex
	inside, broken := map[int]bool{}, 0
	turn := 0
	var current [2]int
	g, err := cuda.Capture(t.Stream(), cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		t.OK(b.Task(func(context.Context) error {
			mu.Lock()
			turn++
			n := turn
			inside[n] = true
			mu.Unlock()
			time.Sleep(time.Duration(1+n%3) * time.Millisecond)
			mu.Lock()
			delete(inside, n)
			mu.Unlock()
			return nil
		}))
		return nil
	})
	t.OK(err)
	defer g.Close()
	var streams [2]*cuda.Stream
	var execs [2]*cuda.GraphExec
	for i := range execs {
		streams[i] = t.Stream()
		execs[i], err = g.Instantiate()
		t.OK(err)
		defer execs[i].Close()
	}
	const launches = 15
	for range launches {
		for i, x := range execs {
			t.OK(x.Launch(streams[i]))
			t.Host(streams[i], func() {
				mu.Lock()
				defer mu.Unlock()
				current[i]++
				if turn-len(inside) < current[i] { // fewer have returned than this stream alone has behind it
					broken++
				}
			})
		}
	}
	t.Sync(streams[0])
	t.Sync(streams[1])
	if turn != 2*launches || broken > 0 {
		t.Errorf("%d runs of %d launches; %d times work went on too early", turn, 2*launches, broken)
	}
}

func graphTaskCalls(t *T) {
	s, other, k, log, dev := t.Stream(), t.Stream(), t.Kernel("append"), t.DeviceLog(8), t.Device(0)
	var loading error
	x := t.exec(func(b *cuda.GraphBuilder) {
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
		x := t.exec(func(b *cuda.GraphBuilder) {
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
	x := t.exec(func(b *cuda.GraphBuilder) {
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
	x := t.exec(func(b *cuda.GraphBuilder) {
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
