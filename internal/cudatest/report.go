package cudatest

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// reportCases: who is told of what, and who is not.
var reportCases = []Case{
	{ID: "HL-09", Name: "a panic is logged", Run: panicLogged},
	{ID: "HL-09", Name: "panicking logger", Child: true, Run: panickingLogger},
	{ID: "HL-09", Name: "a panic on the way out of Goexit, named", Child: true, Exit: "exit status 2", Run: panicInGoexit},
	{ID: "HL-17", Name: "a loss is logged", Child: true, Run: lossLogged},
	{ID: "HL-17", Name: "lost, functions in a row", Child: true, Run: lostInARow},
	{ID: "HL-27", Name: "OnDone instead of OnPanic", Run: onDoneNotOnPanic},
	{ID: "HL-27", Name: "OnDone instead of OnLost", Child: true, Run: onDoneNotOnLost},
	{ID: "LI-01", Name: "Shutdown names a blocked hook", Run: shutdownNamesHook},
	{ID: "LI-01", Name: "Shutdown again, cancelled", Run: shutdownAgain},
}

// records is a slog.Handler that keeps what is logged.
type records struct {
	mu   sync.Mutex
	list []slog.Record
}

func (*records) Enabled(context.Context, slog.Level) bool { return true }
func (h *records) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h *records) WithGroup(string) slog.Handler          { return h }
func (h *records) Handle(_ context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, r)
	return nil
}

// about are the attributes of the one error that says msg.
func (h *records) about(t *T, msg string) map[string]slog.Value {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []map[string]slog.Value
	for _, r := range h.list {
		if r.Message != msg || r.Level != slog.LevelError {
			continue
		}
		attrs := map[string]slog.Value{}
		r.Attrs(func(a slog.Attr) bool { attrs[a.Key] = a.Value; return true })
		found = append(found, attrs)
	}
	if len(found) != 1 {
		t.Fatalf("%d errors say %q, want one", len(found), msg)
	}
	return found[0]
}

func panicLogged(t *T) {
	h := new(records)
	d := t.OpenDriver(cuda.Logger(slog.New(h)))
	s := t.Stream()
	t.OK(cuda.HostLaunch(s, func() { panic("the value") }, cuda.Name("fuse")))
	t.Sync(s)
	t.OK(d.Close()) // waits for the report
	a := h.about(t, "cuda: host function panicked")
	if a["func"].String() != "fuse" || a["panic"].Any() != "the value" || !strings.Contains(a["site"].String(), "report.go:") ||
		!strings.Contains(a["stack"].String(), "panicLogged") {
		t.Errorf("logged %v", a)
	}
}

func lossLogged(t *T) {
	h := new(records)
	d := t.OpenDriver(cuda.Logger(slog.New(h)))
	s, other := t.Stream(), t.Stream()
	g := t.Gate(other)
	<-g.Entered
	t.OK(cuda.HostLaunch(other, func() { t.Error("ran") }, cuda.Name("mourned")))
	t.Fault(s)
	t.Is(s.Sync(), cuda.ErrDeviceLost)
	g.Open()
	t.OK(d.Close())
	a := h.about(t, "cuda: host function never ran")
	err, _ := a["err"].Any().(error)
	if a["func"].String() != "mourned" || !strings.Contains(a["site"].String(), "report.go:") || !errors.Is(err, cuda.ErrIllegalAddress) {
		t.Errorf("logged %v", a)
	}
}

// angry is a slog.Handler that panics.
type angry struct{ records }

func (*angry) Handle(context.Context, slog.Record) error { panic("in the logger") }

// panickingLogger: a logger that panics where only the library would see it does not end the process.
func panickingLogger(t *T) {
	d := t.OpenDriver(cuda.Logger(slog.New(new(angry))))
	s := t.Stream()
	t.Host(s, func() { panic("first") })
	t.Host(s, func() {}, cuda.OnDone(func(error) { panic("in OnDone") }))
	t.Sync(s)
	t.OK(d.Close())
}

// panicInGoexit: recovering a panic of a deferred function does not stop the Goexit that called it, so this is one too.
func panicInGoexit(t *T) {
	d := t.OpenDriver(cuda.OnPanic(func(p *cuda.PanicError) {
		if errors.Is(p, cuda.ErrGoexit) && p.Name == "leaver" {
			exitLike(p)
		}
	}))
	s := t.Stream()
	t.Host(s, func() {
		defer func() { panic("deferred") }()
		runtime.Goexit()
	}, cuda.Name("leaver"))
	t.Sync(s)
	time.Sleep(time.Second)
	t.Errorf("the %s driver went on without a word", d.Name())
}

// lostInARow: functions that stand one behind the other, with nothing between, might be called in one go. Once Sync has told
// of the loss, none of them begins.
func lostInARow(t *T) {
	t.OpenDriver(cuda.OnLost(func(*cuda.LostError) {}))
	s, other, third := t.Stream(), t.Stream(), t.Stream()
	t.Spin(third, 500*time.Millisecond)
	for range 20_000 { // that have to be resolved too, which takes a while; nobody must run in it
		t.Host(third, func() {})
	}
	var ran atomic.Bool
	ends := make(chan error, 1)
	hold := t.Gate(other)
	running := t.Gate(other)
	t.Host(other, func() { ran.Store(true) }, cuda.OnDone(func(err error) { ends <- err }))
	hold.Open()
	<-running.Entered
	t.Fault(s)
	t.Is(s.Sync(), cuda.ErrDeviceLost)
	running.Open()
	if l := new(cuda.LostError); !errors.As(Receive(t, "OnDone", ends), &l) || !errors.Is(l, cuda.ErrDeviceLost) {
		t.Errorf("OnDone got %v", l)
	}
	t.OK(t.Driver.Close())
	if ran.Load() {
		t.Error("a function ran after Sync had told of the loss")
	}
}

func onDoneNotOnPanic(t *T) {
	var hooks atomic.Int32
	d := t.OpenDriver(cuda.OnPanic(func(*cuda.PanicError) { hooks.Add(1) }))
	s := t.Stream()
	ends := make(chan error, 2)
	t.Host(s, func() { panic(1) }, cuda.OnDone(func(err error) { ends <- err }))
	t.OK(d.Close())
	if p := new(cuda.PanicError); !errors.As(Receive(t, "OnDone", ends), &p) || len(ends) > 0 || hooks.Load() != 0 {
		t.Errorf("OnPanic was called %d times, OnDone %d times more", hooks.Load(), len(ends))
	}
}

func onDoneNotOnLost(t *T) {
	told := lost(t)
	s := t.Stream()
	ends := make(chan error, 2)
	t.FaultLater(s)
	t.Host(s, func() { t.Error("ran") }, cuda.OnDone(func(err error) { ends <- err }))
	t.Is(s.Sync(), cuda.ErrDeviceLost)
	t.OK(t.Driver.Close())
	if l := new(cuda.LostError); !errors.As(Receive(t, "OnDone", ends), &l) || len(ends) > 0 || len(told) > 0 {
		t.Errorf("OnLost was called %d times, OnDone %d times more", len(told), len(ends))
	}
}

func shutdownNamesHook(t *T) {
	d := t.OpenDriver()
	s := t.Stream()
	g := t.newGate()
	t.OK(cuda.HostLaunch(s, func() {}, cuda.Name("bearer"), cuda.OnDone(func(error) { g.pass() })))
	<-g.Entered
	t.Stuck(d, "OnDone of host function bearer, enqueued at report.go:")
	g.Open()
	t.OK(d.Close())
}

// shutdownAgain: what is through is through, whatever became of the context.
func shutdownAgain(t *T) {
	d := t.OpenDriver()
	t.OK(d.Close())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 200 {
		t.OK(d.Shutdown(ctx))
	}
}
