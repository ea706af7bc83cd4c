package cudatest

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// hostFailureCases: what happens to a host function when something goes wrong.
var hostFailureCases = []Case{
	{ID: "HL-09", Name: "panic to OnDone", Run: panicToOnDone},
	{ID: "HL-09", Name: "panic to OnPanic", Run: panicToHook},
	{ID: "HL-09", Name: "panicking hooks", Run: panickingHooks},
	{ID: "HL-09", Name: "Goexit ends the process, named", Child: true, Exit: "exit status 2", Run: goexitNamed},
	{ID: "HL-16", Name: "refused enqueue", Run: refusedEnqueue},
	{ID: "HL-16", Name: "refused by the driver", Child: true, Run: refusedByDriver},
	{ID: "HL-17", Name: "lost, nobody calling", Child: true, Run: lostNobodyCalling},
	{ID: "HL-17", Name: "lost, seen by Sync", Child: true, Run: lostSeenBySync},
	{ID: "HL-17", Name: "lost, every call says so", Child: true, Run: lostEveryCall},
	{ID: "HL-17", Name: "lost, while a function runs", Child: true, Run: lostWhileRunning},
	{ID: "HL-17", Name: "lost, waiters wake", Child: true, Run: lostWaitersWake},
	{ID: "HL-27", Name: "OnDone after a panic and a loss", Child: true, Run: onDoneFailures},
}

func panicToOnDone(t *T) {
	s := t.Stream()
	ends := make(chan error, 2)
	after := false
	t.OK(cuda.HostLaunch(s, func() { panic("the value") }, cuda.Name("fuse"), cuda.OnDone(func(err error) { ends <- err })))
	t.Host(s, func() { after = true })
	t.Sync(s)
	if !after {
		t.Error("the function behind the panic did not run")
	}
	var p *cuda.PanicError
	if err := Receive(t, "OnDone", ends); !errors.As(err, &p) {
		t.Fatalf("OnDone got %v, want a *PanicError", err)
	}
	if p.Value != "the value" || p.Name != "fuse" || !strings.Contains(p.Site, "hostfail.go:") || !strings.Contains(string(p.Stack), "panicToOnDone") {
		t.Errorf("value %v, name %q, site %q, stack\n%s", p.Value, p.Name, p.Site, p.Stack)
	}
	if len(ends) > 0 {
		t.Error("reported twice")
	}
}

func panicToHook(t *T) {
	reports := make(chan *cuda.PanicError, 2)
	t.OpenDriver(cuda.OnPanic(func(p *cuda.PanicError) { reports <- p }))
	s := t.Stream()
	mine := errors.New("mine")
	t.Host(s, func() { panic(mine) })
	t.Host(s, func() { _ = []int{}[len(mine.Error())] })
	t.Sync(s)
	first, second := Receive(t, "OnPanic", reports), Receive(t, "OnPanic", reports)
	if !errors.Is(first, mine) {
		first, second = second, first
	}
	var fault runtime.Error
	if !errors.Is(first, mine) || !errors.As(second, &fault) || !strings.Contains(first.Name, "panicToHook") {
		t.Errorf("got %v and %v", first, second)
	}
}

func panickingHooks(t *T) {
	called := make(chan string, 4)
	t.OpenDriver(cuda.OnPanic(func(*cuda.PanicError) { called <- "OnPanic"; panic("in OnPanic") }), cuda.Logger(discard))
	s := t.Stream()
	t.Host(s, func() { panic("first") })
	t.Host(s, func() {}, cuda.OnDone(func(error) { called <- "OnDone"; panic("in OnDone") }))
	t.Sync(s)
	Receive(t, "a hook", called)
	Receive(t, "a hook", called)
	t.Host(s, func() {})
	t.Sync(s)
}

// goexitNamed checks what nobody can mend: Go ends the process when a thread that it did not make is left by Goexit. The
// software device contains it; there the case ends the process in the same words.
func goexitNamed(t *T) {
	d := t.OpenDriver(cuda.OnPanic(func(p *cuda.PanicError) {
		if errors.Is(p, cuda.ErrGoexit) && p.Name == "leaver" {
			exitLike(p)
		}
	}))
	s := t.Stream()
	t.Host(s, runtime.Goexit, cuda.Name("leaver"))
	t.Sync(s)
	time.Sleep(time.Second)
	t.Errorf("the %s driver went on without a word", d.Name())
}

// refusedEnqueue checks that nothing of a refused function is retained.
func refusedEnqueue(t *T) {
	gone := t.Stream()
	var collected *atomic.Bool
	told := cuda.OnDone(func(error) { t.Error("OnDone of a refused function") })
	func() {
		var data *[8]uint64
		data, collected = collectable()
		t.OK(gone.Close())
		err := cuda.HostLaunch(gone, func() { data[0]++; t.Error("a refused function ran") }, told)
		t.Is(err, cuda.ErrClosed)
	}()
	t.Gone(collected)
	if st := t.Driver.Stats(); st.Waiting != 0 {
		t.Errorf("%d functions wait", st.Waiting)
	}
}

// refusedByDriver launches on a context that has failed unnoticed, since nothing waited and nobody called. (That a sound
// driver's refusal is handled as well, package cuda's own tests show with a driver that refuses.)
func refusedByDriver(t *T) {
	told := lost(t)
	s := t.Stream()
	t.Fault(s)
	time.Sleep(300 * time.Millisecond)
	err := cuda.HostLaunch(s, func() { t.Error("ran") }, cuda.OnDone(func(error) { t.Error("OnDone was called") }))
	t.Is(err, cuda.ErrIllegalAddress, cuda.ErrDeviceLost)
	time.Sleep(300 * time.Millisecond)
	if st := t.Driver.Stats(); st.Waiting != 0 || len(told) != 0 {
		t.Errorf("%d wait, %d were told of", st.Waiting, len(told))
	}
}

// lost is how a child's driver tells of functions that never ran.
func lost(t *T) (told chan *cuda.LostError) {
	told = make(chan *cuda.LostError, 1000)
	t.OpenDriver(cuda.OnLost(func(e *cuda.LostError) { told <- e }))
	return told
}

func lostNobodyCalling(t *T) {
	told := lost(t)
	s, other := t.Stream(), t.Stream()
	g := t.Gate(other)
	<-g.Entered // behind it, the functions wait whatever the fault does
	var ran atomic.Int32
	fault := time.Now().Add(faultDelay)
	t.FaultLater(s)
	for i := range 50 {
		t.OK(cuda.HostLaunch(s, func() { ran.Add(1) }, cuda.Name(fmt.Sprint("f", i))))
		t.OK(cuda.HostLaunch(other, func() { ran.Add(1) }, cuda.Name(fmt.Sprint("g", i))))
	}
	names := map[string]bool{}
	for range 100 { // and meanwhile nobody calls the library
		e := Receive(t, "OnLost", told)
		names[e.Name] = true
		t.Is(unwrap(e), cuda.ErrIllegalAddress, cuda.ErrDeviceLost)
		if !strings.Contains(e.Site, "hostfail.go:") {
			t.Errorf("site %q", e.Site)
		}
	}
	took := time.Since(fault)
	t.Logf("100 functions resolved %v after the fault", took)
	if took > time.Second {
		t.Error("want within a second")
	}
	g.Open()
	time.Sleep(50 * time.Millisecond)
	if len(names) != 100 || ran.Load() != 0 || len(told) != 0 {
		t.Errorf("%d names, %d ran, %d told twice", len(names), ran.Load(), len(told))
	}
}

// unwrap is the library's error in a LostError.
func unwrap(e *cuda.LostError) error { return e.Err }

func lostSeenBySync(t *T) {
	told := lost(t)
	s := t.Stream()
	t.Fault(s)
	err := s.Sync()
	t.Is(err, cuda.ErrIllegalAddress, cuda.ErrDeviceLost)
	t.Contains(err, "earlier", "restart") // whose error it is, and what to do
	t.Is(cuda.HostLaunch(s, func() { t.Error("ran") }), cuda.ErrDeviceLost)
	time.Sleep(20 * time.Millisecond)
	if len(told) > 0 {
		t.Errorf("a refused function was reported lost: %v", <-told)
	}
	t.OK(t.Driver.Close())
}

func lostEveryCall(t *T) {
	lost(t)
	s, other, b := t.Stream(), t.Stream(), t.Buffer(64)
	calls := everyCall(t, s, other)
	t.covered(calls, notOfEveryCall)
	for _, name := range []string{"Driver.Device", "Driver.Shutdown", "Device.TotalMemory", "Device.ComputeCapability", "Device.SMResource", "Driver.WithCaptureMode", "Task.Wait"} {
		delete(calls, name) // these ask for nothing of the context that is lost
	}
	t.Fault(s)
	t.Is(s.Sync(), cuda.ErrDeviceLost)
	for name, call := range calls {
		err := call()
		if e := new(cuda.Error); !errors.Is(err, cuda.ErrDeviceLost) || !errors.Is(err, cuda.ErrIllegalAddress) || !errors.As(err, &e) || e.Op != name {
			t.Errorf("%s on a lost device: %v", name, err)
		}
	}
	t.OK(b.Close())
	t.OK(s.Close())
}

// lostWhileRunning: the function that runs when the context fails returns normally; those behind it never run.
func lostWhileRunning(t *T) {
	told := lost(t)
	s, other := t.Stream(), t.Stream()
	ends := make(chan error, 2)
	g := t.Gate(other, cuda.OnDone(func(err error) { ends <- err }))
	<-g.Entered
	t.Host(other, func() { t.Error("ran after the loss") })
	t.Fault(s)
	Receive(t, "OnLost", told)
	if len(ends) > 0 {
		t.Errorf("OnDone of the running function: %v", <-ends)
	}
	g.Open()
	if err := Receive(t, "OnDone of the function that ran", ends); err != nil {
		t.Errorf("the function that ran to its end is told %v", err)
	}
	t.OK(t.Driver.Close())
	if len(told) > 0 || len(ends) > 0 {
		t.Error("something was told twice")
	}
}

func lostWaitersWake(t *T) {
	lost(t)
	s, other, e := t.Stream(), t.Stream(), t.Event()
	g := t.Gate(other)
	<-g.Entered
	t.OK(other.Record(e))
	errs := make(chan error, 4)
	go func() { errs <- other.Wait(t.Context()) }()
	go func() { errs <- e.Wait(t.Context()) }()
	go func() { <-e.Done(); errs <- e.Sync() }()
	time.Sleep(20 * time.Millisecond)
	t.Fault(s)
	for range 3 {
		t.Is(Receive(t, "a waiter", errs), cuda.ErrDeviceLost)
	}
	g.Open()
}

func onDoneFailures(t *T) {
	lost(t)
	s := t.Stream()
	type end struct {
		what string
		err  error
	}
	ends := make(chan end, 100)
	say := func(what string) cuda.HostOption {
		return cuda.OnDone(func(err error) { ends <- end{what, err} })
	}
	t.Host(s, func() {}, say("ran"))
	t.Host(s, func() { panic(1) }, say("panicked"))
	t.Sync(s)
	t.FaultLater(s)
	for range 10 {
		t.Host(s, func() { t.Error("ran") }, say("lost"))
	}
	count := map[string]int{}
	for range 12 {
		e := Receive(t, "OnDone", ends)
		count[e.what]++
		var p *cuda.PanicError
		var l *cuda.LostError
		if ok := map[string]bool{"ran": e.err == nil, "panicked": errors.As(e.err, &p), "lost": errors.As(e.err, &l)}[e.what]; !ok {
			t.Errorf("a function that %s was told %v", e.what, e.err)
		}
	}
	t.OK(t.Driver.Close())
	if len(ends) > 0 || count["lost"] != 10 || count["ran"] != 1 || count["panicked"] != 1 {
		t.Errorf("told %v, and %d more", count, len(ends))
	}
}
