//go:build linux && (amd64 || arm64)

package libcuda

import (
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// host stands in for the library above: it counts what is pending and what is lost.
type host struct {
	pending atomic.Int64
	ran     atomic.Int64
	losses  atomic.Int64
	inside  atomic.Int64
	nv      atomic.Pointer[nvidia]
}

func (h *host) upcalls() driver.Upcalls {
	return driver.Upcalls{
		HostFunc: func(data uint64) {
			if nv := h.nv.Load(); nv != nil && nv.InHostFunction() {
				h.inside.Add(1)
			}
			h.ran.Add(int64(data))
			h.pending.Add(-1)
		},
		Pending: func(driver.Context) int { return int(h.pending.Load()) },
		Lost: func(c driver.Context, r driver.Result) {
			if c == ctx && r == driver.ErrorIllegalAddress {
				h.losses.Add(1)
			}
		},
	}
}

func (h *host) launch(t *testing.T, nv *nvidia, data uint64) {
	t.Helper()
	h.pending.Add(1)
	if r := nv.LaunchHostFunc(ctx, stream, data); r != driver.Success {
		t.Fatal(r)
	}
}

// serving reports whether the service's goroutine runs.
func serving() bool {
	b := make([]byte, 1<<20)
	return strings.Contains(string(b[:runtime.Stack(b, true)]), "libcuda.(*service).run(")
}

func threads(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestHostFunctions(t *testing.T) {
	f, h := newFake(t), new(host)
	nv := f.open(h.upcalls())
	h.nv.Store(nv)
	const n = 1000
	for i := range n { // the fake is a driver that wants a context to be current, as older ones may
		h.launch(t, nv, uint64(i))
	}
	eventually(t, 10*time.Second, "all host functions run", func() bool { return h.pending.Load() == 0 })
	if got := h.ran.Load(); got != n*(n-1)/2 {
		t.Errorf("sum of data %d", got)
	}
	if h.inside.Load() != n || nv.InHostFunction() {
		t.Errorf("inside %d times; now %v", h.inside.Load(), nv.InHostFunction())
	}
	// The watch has nothing more to do.
	eventually(t, time.Second, "the service ends", func() bool { return !serving() })
}

func TestNotifyEvent(t *testing.T) {
	f := newFake(t)
	nv := f.open(driver.Upcalls{})
	f.set(knobEvent, int64(driver.ErrorNotReady))
	var told sync.WaitGroup
	var first, times atomic.Int64
	for range 10 {
		told.Add(1)
		_, r := nv.NotifyEvent(ctx, event, func(r driver.Result) {
			first.Add(int64(r))
			times.Add(1)
			told.Done()
		})
		if r != driver.Success {
			t.Fatal(r)
		}
	}
	time.Sleep(20 * time.Millisecond)
	if n := times.Load(); n != 0 {
		t.Fatalf("told %d times of an event that has not completed", n)
	}
	f.set(knobEvent, 0)
	told.Wait()
	eventually(t, time.Second, "the service ends", func() bool { return !serving() })
	if first.Load() != 0 || times.Load() != 10 {
		t.Errorf("told %d times, results %d", times.Load(), first.Load())
	}
	if n := f.get(knobUnrelaxed); n != 0 {
		t.Errorf("%d queries outside Relaxed capture mode", n)
	}
	polls := f.get(knobPolls)
	time.Sleep(20 * time.Millisecond)
	if now := f.get(knobPolls); now != polls {
		t.Errorf("%d queries while idle", now-polls)
	}
}

// TestNotifyFailure: an event that can no longer complete says so.
func TestNotifyFailure(t *testing.T) {
	f := newFake(t)
	nv := f.open(driver.Upcalls{})
	f.set(knobLost, 700)
	got := make(chan driver.Result, 2)
	nv.NotifyEvent(ctx, event, func(r driver.Result) { got <- r })
	if r := <-got; r != driver.ErrorIllegalAddress {
		t.Error(r)
	}
}

// TestNotifyShut: who waits when the driver is shut is told, and nobody is taken on afterwards.
func TestNotifyShut(t *testing.T) {
	f := newFake(t)
	nv := f.open(driver.Upcalls{})
	f.set(knobEvent, int64(driver.ErrorNotReady))
	var got atomic.Int64
	nv.NotifyEvent(ctx, event, func(r driver.Result) { got.Add(int64(r)) })
	nv.Shut()
	if got.Load() != int64(driver.ErrorDeinitialized) {
		t.Errorf("told %d", got.Load())
	}
	if _, r := nv.NotifyEvent(ctx, event, func(driver.Result) { t.Error("told") }); r != driver.ErrorDeinitialized {
		t.Errorf("after Shut: %d", r)
	}
	if serving() {
		t.Error("the service runs on")
	}
}

// TestNotifyShares: an event that very many wait for is asked as often as if one did.
func TestNotifyShares(t *testing.T) {
	f := newFake(t)
	nv := f.open(driver.Upcalls{})
	f.set(knobEvent, int64(driver.ErrorNotReady))
	var told atomic.Int64
	for range 1000 {
		nv.NotifyEvent(ctx, event, func(driver.Result) { told.Add(1) })
	}
	time.Sleep(50 * time.Millisecond)
	before := f.get(knobPolls)
	const long = 100
	time.Sleep(long * time.Millisecond)
	if n := f.get(knobPolls) - before; n == 0 || n > long+10 {
		t.Errorf("asked %d times in %d ms", n, long)
	}
	f.set(knobEvent, 0)
	eventually(t, time.Second, "all are told", func() bool { return told.Load() == 1000 })
}

// TestNotifyMany: asking ten thousand events leaves most of a processor alone, and all are told soon. What it takes of one is
// logged; what is checked is how often they are asked, which without a bound is as often as a processor can.
func TestNotifyMany(t *testing.T) {
	f := newFake(t)
	nv := f.open(driver.Upcalls{})
	f.set(knobEvent, int64(driver.ErrorNotReady))
	const n = 10_000
	var told atomic.Int64
	for i := range driver.Event(n) {
		nv.NotifyEvent(ctx, event+i, func(driver.Result) { told.Add(1) })
	}
	time.Sleep(50 * time.Millisecond)
	const long = 300 * time.Millisecond
	before, asked := processorTime(t), f.get(knobPolls)
	time.Sleep(long)
	used := processorTime(t) - before
	if asked = f.get(knobPolls) - asked; asked > 50*n {
		t.Errorf("asked %d times in %v", asked, long)
	}
	f.set(knobEvent, 0)
	start := time.Now()
	eventually(t, 5*time.Second, "all are told", func() bool { return told.Load() == n })
	t.Logf("%d told within %v; asked %d times, %v of processor time in %v before", n, time.Since(start), asked, used, long)
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestNotifyStop: a wait that is stopped is told so, once, and the event is let go of.
func TestNotifyStop(t *testing.T) {
	f := newFake(t)
	nv := f.open(driver.Upcalls{})
	f.set(knobEvent, int64(driver.ErrorNotReady))
	results := make(chan driver.Result, 10)
	tell := func(r driver.Result) { results <- r }
	stop, _ := nv.NotifyEvent(ctx, event, tell)
	stopOther, _ := nv.NotifyEvent(ctx, event, tell)
	time.Sleep(5 * time.Millisecond)
	stop()
	stop()
	if r := <-results; r != driver.ErrorNotReady {
		t.Error(r)
	}
	time.Sleep(5 * time.Millisecond)
	if len(results) > 0 {
		t.Error("told twice, or the other waiter was")
	}
	stopOther()
	if r := <-results; r != driver.ErrorNotReady {
		t.Error(r)
	}
	eventually(t, time.Second, "the service ends", func() bool { return !serving() })
	f.set(knobEvent, 0)
	stopDone, _ := nv.NotifyEvent(ctx, event, tell)
	if r := <-results; r != driver.Success {
		t.Error(r)
	}
	if stopDone(); len(results) > 0 {
		t.Error("told twice")
	}
}

// TestNotifyStopBeside: however stops, answers and new waits fall together, each is told once.
func TestNotifyStopBeside(t *testing.T) {
	f := newFake(t)
	nv := f.open(driver.Upcalls{})
	var told [4000]atomic.Int32
	var all sync.WaitGroup
	for i := range told {
		if i%100 == 0 {
			f.set(knobEvent, int64(i/100%2)*int64(driver.ErrorNotReady))
		}
		all.Add(1)
		stop, r := nv.NotifyEvent(ctx, event+driver.Event(i%3), func(driver.Result) {
			told[i].Add(1)
			all.Done()
		})
		if r != driver.Success {
			t.Fatal(r)
		}
		go stop()
	}
	all.Wait()
	for i := range told {
		if n := told[i].Load(); n != 1 {
			t.Errorf("waiter %d was told %d times", i, n)
		}
	}
	eventually(t, time.Second, "the service ends", func() bool { return !serving() })
}

// TestNotifyStopWhileAsked: who stops while the event is being asked is told afterwards, for it may then be destroyed.
func TestNotifyStopWhileAsked(t *testing.T) {
	var list polls
	told := 0
	w := &waiter{func(r driver.Result) {
		if told++; r != driver.ErrorNotReady {
			t.Error(r)
		}
	}}
	p, first := list.join(event, w)
	if !first || !p.begin() {
		t.Fatal("nobody waits")
	}
	if p.stop(w); told != 0 {
		t.Error("told while the event was in use")
	}
	other, late := &waiter{func(driver.Result) { t.Error("told too early") }}, false
	if _, late = list.join(event, other); late {
		t.Error("another poll of an event that is in use")
	}
	if done := p.end(driver.ErrorNotReady); done != nil || told != 1 {
		t.Errorf("told %d times; over: %v, while another one waits", told, done != nil)
	}
	other.tell = func(driver.Result) { told++ }
	if p.stop(other); told != 2 || p.begin() || len(list.by) != 0 {
		t.Errorf("told %d times in all, %d polls left", told, len(list.by))
	}
}

// TestPatience: short waits are seen at once, long ones with about a sixteenth of delay, no more often than a thousand times
// a second.
func TestPatience(t *testing.T) {
	for waited, want := range map[time.Duration]time.Duration{
		0: 0, 39 * time.Microsecond: 0, 40 * time.Microsecond: 4 * time.Microsecond, 800 * time.Microsecond: 50 * time.Microsecond,
		time.Second: time.Millisecond,
	} {
		if got := patience(waited); got != want {
			t.Errorf("after %v: %v, want %v", waited, got, want)
		}
	}
}

// TestFair: many tasks are left alone for four times as long as looking at them takes, few not at all.
func TestFair(t *testing.T) {
	for n, want := range map[int]time.Duration{0: 0, 8: 0, 9: 36 * time.Microsecond, 10_000: 40 * time.Millisecond, 1_000_000: 100 * time.Millisecond} {
		s := service{cost: time.Microsecond, queue: make(taskQueue, n)}
		if got := s.fair(); got != want {
			t.Errorf("%d tasks: %v, want %v", n, got, want)
		}
	}
}

// TestFailureWatch: a context that fails while host functions wait is reported within a second, once, with nobody calling
// (CONTRACT HL-17).
func TestFailureWatch(t *testing.T) {
	for name, retained := range map[string]bool{"retained": true, "borrowed": false} {
		t.Run(name, func(t *testing.T) {
			f, h := newFake(t), new(host)
			nv := f.open(h.upcalls())
			if retained {
				if c, r := nv.DevicePrimaryCtxRetain(0); c != ctx || r != driver.Success {
					t.Fatal(c, r)
				}
			}
			f.set(knobHold, 1)
			h.launch(t, nv, 1)
			h.launch(t, nv, 1)
			time.Sleep(250 * time.Millisecond)
			if n := h.losses.Load(); n != 0 {
				t.Fatal("lost too early")
			}
			f.set(knobLost, 700)
			f.set(knobHold, 0)
			eventually(t, time.Second, "the loss is reported", func() bool { return h.losses.Load() > 0 })
			eventually(t, time.Second, "the service ends", func() bool { return !serving() })
			if r := nv.LaunchHostFunc(ctx, stream, 1); r != driver.ErrorIllegalAddress {
				t.Errorf("launch in a lost context: %d", r)
			}
			time.Sleep(250 * time.Millisecond)
			if n := h.losses.Load(); n != 1 {
				t.Errorf("reported %d times", n)
			}
			if n := f.get(knobUnrelaxed); n != 0 {
				t.Errorf("%d queries outside Relaxed capture mode", n)
			}
			if retained {
				nv.DevicePrimaryCtxRelease(0)
			}
			nv.Shut()
			if n := f.get(knobStreams); n != 0 {
				t.Errorf("%d private streams left", n)
			}
		})
	}
}

// TestWatchWakes: a function that is launched just when the watch finds none and is about to end is watched all the same.
func TestWatchWakes(t *testing.T) {
	f, h := newFake(t), new(host)
	up := h.upcalls()
	var nv *nvidia
	var counts atomic.Int64
	up.Pending = func(driver.Context) int {
		if counts.Add(1) > 1 {
			return int(h.pending.Load())
		}
		h.launch(t, nv, 1)
		return 0
	}
	nv = f.open(up)
	f.set(knobHold, 1)
	defer f.set(knobHold, 0)
	nv.watch(ctx)
	eventually(t, time.Second, "the context is looked at", func() bool { return f.get(knobPolls) > 0 })
}

// TestWatchAlways: whenever a function waits, the context is watched, however launches and the watch's end fall together.
func TestWatchAlways(t *testing.T) {
	f, h := newFake(t), new(host)
	nv := f.open(h.upcalls())
	w := nv.contexts.get(ctx)
	for end := time.Now().Add(400 * time.Millisecond); time.Now().Before(end); {
		h.launch(t, nv, 1)
		// The watch may be between its two counts; it has then seen the launch a moment later.
		eventually(t, time.Second, "a waiting function is watched", func() bool { return w.active.Load() || h.pending.Load() == 0 })
	}
	eventually(t, 10*time.Second, "all host functions run", func() bool { return h.pending.Load() == 0 })
}

// TestRelaxed: a thread has its capture mode changed for a while, and then back.
func TestRelaxed(t *testing.T) {
	nv := newFake(t).open(driver.Upcalls{})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const threadLocal = 1
	before, _ := nv.exchangeCaptureMode(threadLocal)
	defer nv.exchangeCaptureMode(before)
	nv.relaxed(func() {
		if mode, _ := nv.exchangeCaptureMode(captureModeRelaxed); mode != captureModeRelaxed {
			t.Errorf("mode %d inside", mode)
		}
	})
	if mode, _ := nv.exchangeCaptureMode(threadLocal); mode != threadLocal {
		t.Errorf("mode %d afterwards", mode)
	}
}

// TestReleaseWhileWatched: letting go of a context ends its watch.
func TestReleaseWhileWatched(t *testing.T) {
	f, h := newFake(t), new(host)
	nv := f.open(h.upcalls())
	for range 2 {
		nv.DevicePrimaryCtxRetain(0)
	}
	f.set(knobHold, 1)
	defer f.set(knobHold, 0)
	h.launch(t, nv, 1)
	nv.DevicePrimaryCtxRelease(0)
	if n := f.get(knobStreams); n != 1 {
		t.Errorf("%d private streams while retained", n)
	}
	nv.DevicePrimaryCtxRelease(0)
	if n := f.get(knobStreams); n != 0 {
		t.Errorf("%d private streams left", n)
	}
	polls := f.get(knobPolls)
	eventually(t, time.Second, "the service ends", func() bool { return !serving() })
	if now := f.get(knobPolls); now != polls {
		t.Error("the context was looked at after its release")
	}
}

// TestRetainFailure: a context that cannot be had is not kept either.
func TestRetainFailure(t *testing.T) {
	f := newFake(t)
	nv := f.open(driver.Upcalls{})
	f.set(knobLost, 700)
	if c, r := nv.DevicePrimaryCtxRetain(0); c != 0 || r != driver.ErrorIllegalAddress {
		t.Error(c, r)
	}
	if n := len(nv.contexts.all()); n != 0 {
		t.Errorf("%d contexts kept", n)
	}
}
