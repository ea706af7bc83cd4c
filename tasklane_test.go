package cuda

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
)

// TestLaneOfAnother: who is still at the lane of a stream that is gone does not take the next stream's off, which has the same handle.
func TestLaneOfAnother(t *testing.T) {
	dev, _ := eventOf(t, new(eventful))
	s, b := dev.DefaultStream(), &dev.drv.tasks
	former := b.at(s.lane(), true)
	b.forget(s.lane())
	next := b.at(s.lane(), true)
	b.tidy(s.lane(), former)
	if b.lanes[s.lane()] != next {
		t.Error("the next stream's lane is gone")
	}
	b.tidy(s.lane(), next)
}

// TestThreadStreamForgotten: a per-thread stream that was stopped leaves nothing behind when it has ended.
func TestThreadStreamForgotten(t *testing.T) {
	dev, _ := eventOf(t, new(eventful))
	b := &dev.drv.tasks
	if err := dev.WithThreadStream(func(s *Stream) error {
		b.at(s.lane(), true).stopped = errors.New("mine")
		b.active.Add(1)
		return nil
	}); err != nil {
		t.Error(err)
	}
	b.wantNothing(t)
}

// TestIdleLaneForgotten: a lane of nothing, of a stream that is destroyed when no tasks are about, is not there for the next stream.
func TestIdleLaneForgotten(t *testing.T) {
	dev, _ := eventOf(t, new(eventful))
	s, b := &Stream{ctx: dev.Context, raw: 9}, &dev.drv.tasks
	s.ordered.Store(2)
	stopped := laneKey{ctx: dev.Context, raw: 10}
	b.at(stopped, false).stopped = errors.New("mine")
	b.active.Add(1)
	if err := b.enter("Stream.Launch", s); err != nil {
		t.Error(err)
	}
	b.forget(stopped)
	b.forget(s.lane())
	b.wantNothing(t)
}

// TestForeignLaneForgotten: a stream that the driver gives the handle of a foreign one, which was stopped and destroyed, is not stopped.
func TestForeignLaneForgotten(t *testing.T) {
	dev, _ := eventOf(t, new(eventful))
	b, k := &dev.drv.tasks, laneKey{ctx: dev.Context, raw: 9}
	l := b.at(k, false)
	l.stopped, l.items = errors.New("mine"), []*later{{}}
	b.active.Add(1)
	b.renew(k)
	if b.lanes[k] != l {
		t.Error("what still waited there is gone")
	}
	l.items = nil
	b.renew(k)
	b.wantNothing(t)
}

func (b *tasks) wantNothing(t *testing.T) {
	t.Helper()
	if n := b.active.Load(); n != 0 || len(b.lanes) != 0 {
		t.Errorf("%d active and %d lanes are left", n, len(b.lanes))
		b.active.Store(0)
	}
}

// tasking is a driver that could do with tasks, if it had memory to hold streams with.
type tasking struct{ eventful }

func (*tasking) HardwareQueues() int         { return 8 }
func (*tasking) WatchContext(driver.Context) {}
func (*tasking) MemoryWritten()              {}
func (*tasking) MemHostAlloc(driver.Context, uintptr, uint32) (unsafe.Pointer, driver.Result) {
	return nil, driver.ErrorOutOfMemory
}
func (*tasking) StreamCreateWithPriority(driver.Context, uint32, int32) (driver.Stream, driver.Result) {
	return 0, driver.ErrorOutOfMemory
}

func taskingDevice(t *testing.T) *Device {
	t.Helper()
	return deviceOf(t, new(tasking), MaxHeldStreams(1))
}

// beganTask is a task as Go has it before it is queued.
func beganTask(t *testing.T, s *Stream) *Task {
	t.Helper()
	if err := s.beginTask("Go"); err != nil {
		t.Fatal(err)
	}
	k, err := s.newTask("Go", func(context.Context) error { return nil }, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestThreadTaskSubmittedByItsThread: TK-01, no other goroutine submits a task of a per-thread stream, whose turn it is: there it would
// be in its own thread's.
func TestThreadTaskSubmittedByItsThread(t *testing.T) {
	dev := taskingDevice(t)
	if err := dev.WithThreadStream(func(s *Stream) error {
		k := beganTask(t, s)
		granted, err := dev.drv.tasks.add("Go", k)
		if err != nil {
			t.Fatal(err)
		}
		var other sync.WaitGroup
		other.Go(func() { dev.drv.tasks.pump(dev.drv, k.lane) }) // as the end of a task before it does
		other.Wait()
		if k.refused != nil {
			t.Errorf("another goroutine has submitted it: %v", k.refused)
		}
		if err := k.added("Go", granted); !errors.Is(err, ErrOutOfMemory) {
			t.Errorf("Go = %v", err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestLostBeforeAdded: HL-17, a task that Go adds when its context has just failed, and that finds no room, is told so all the same.
func TestLostBeforeAdded(t *testing.T) {
	dev := taskingDevice(t)
	d, k := dev.drv, beganTask(t, dev.DefaultStream())
	other := &hold{lane: laneKey{ctx: &Context{device: dev.device}, raw: 9}, granted: func() {}} // of another context of the device
	if !d.held.begin(other) {
		t.Fatal("no room")
	}
	dev.fail(driver.ErrorIllegalAddress)
	time.Sleep(20 * time.Millisecond) // until its tasks are told
	if err := k.queue("Go"); err != nil {
		t.Error(err)
	}
	select {
	case <-k.Done():
		if !errors.Is(k.Err(), ErrDeviceLost) {
			t.Errorf("Err = %v", k.Err())
		}
	case <-time.After(5 * time.Second):
		t.Error("not told")
	}
	d.held.end(other)
	<-k.Done()
}

// graphful is a driver whose graphs have one host node, which runs at once.
type graphful struct {
	eventful
	node hostfn.Handle
}

func (*graphful) HardwareQueues() int { return 0 }
func (d *graphful) GraphLaunch(driver.Context, driver.GraphExec, driver.Stream) driver.Result {
	d.up.HostFunc(uint64(d.node))
	return 0
}

// TestUpdatedBeforeLaunch: a launch that found no tasks about, when an update gives the executable the first one, has that counted too.
func TestUpdatedBeforeLaunch(t *testing.T) {
	impl := new(graphful)
	dev := deviceOf(t, impl)
	d, s := dev.drv, dev.DefaultStream()
	g := &graphTask{by: s, opts: new(hostOptions), fn: func(context.Context) error { return nil }}
	impl.node = d.funcs.Keep(hostfn.Func{Run: func() {}, More: &hostOptions{graph: g, name: "task"}, Group: &dev.funcs})
	x := &GraphExec{ctx: dev.Context, state: &execState{ctx: dev.Context}}
	x.res = newResource(dev.Context, "GraphExec", 0, func() driver.Result { return 0 })
	x.state.mu.Lock()
	launched := make(chan error)
	go func() { launched <- x.Launch(s) }()
	time.Sleep(50 * time.Millisecond) // until it waits
	d.tasks.ofGraphs.Store(true)      // GraphBuilder.Task
	x.state.hosts = []hostfn.Handle{impl.node}
	x.state.mu.Unlock()
	if err := <-launched; err != nil {
		t.Error(err)
	}
	if n := d.held.n.Load(); n != 0 {
		t.Errorf("%d streams are held", n)
	}
	d.held.n.Store(0)
	d.funcs.Drop(impl.node)
}

// TestRetiringKept: what former versions of nodes use stays, if the driver will not tell when the launch that may use it is done.
func TestRetiringKept(t *testing.T) {
	impl := &eventful{notify: driver.ErrorUnknown}
	dev, _ := eventOf(t, impl)
	x := &execState{ctx: dev.Context, retiring: []*owner{new(owner)}}
	x.launched(dev.DefaultStream())
	if len(x.retiring) != 1 || dev.drv.endings.count() != 0 {
		t.Errorf("%d are kept, and %d endings are waited for", len(x.retiring), dev.drv.endings.count())
	}
}
