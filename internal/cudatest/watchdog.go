package cudatest

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hostlaunch/cuda"
)

// watchdogCases: functions that wait for what they must not are told of.
var watchdogCases = []Case{
	{ID: "HL-07", Name: "a call that would wait, inside", Run: waitInside},
	{ID: "HL-07", Name: "the watchdog names function and waiters", Run: watchdogNames},
	{ID: "HL-07", Name: "the watchdog names a task", Run: watchdogNamesTask},
	{ID: "HL-07", Name: "the watchdog is silent", Run: watchdogSilent},
}

func waitInside(t *T) {
	s, other, e := t.Stream(), t.Stream(), t.Event()
	t.OK(s.Record(e))
	var errs []error
	t.Host(s, func() {
		errs = append(errs, s.Sync(), s.Wait(t.Context()), other.Sync(), e.Sync(), e.Wait(t.Context()))
	}, cuda.Name("waiter"))
	t.Sync(s)
	for _, err := range errs {
		t.Log(err)
		t.Is(err, cuda.ErrDeadlock, cuda.ErrNotPermitted)
		t.Contains(err, "waiter", "t.go:")
	}
	if len(errs) != 5 || !strings.Contains(errs[0].Error(), "stream 0x") {
		t.Errorf("errors %v", errs)
	}
}

// logBook keeps what a driver logs.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *logBook) logger() cuda.Option { return cuda.Logger(slog.New(slog.NewTextHandler(b, nil))) }

func watchdogNames(t *T) {
	log := new(logBook)
	t.OpenDriver(cuda.Watchdog(40*time.Millisecond), log.logger())
	s := t.Stream()
	g := t.Gate(s, cuda.Name("stuck"))
	synced := make(chan error, 2)
	go func() { synced <- s.Sync() }()
	go func() { synced <- s.Wait(context.Background()) }()
	t.Eventually("the watchdog's word", func() bool { return strings.Contains(log.String(), "stuck") })
	time.Sleep(100 * time.Millisecond)
	g.Open() // which those wait for: had the function waited for them, this would never come
	t.OK(Receive(t, "Sync", synced))
	t.OK(Receive(t, "Wait", synced))
	got := log.String()
	t.Log(got)
	for _, word := range []string{"level=WARN", "t.go:", "Stream.Sync at watchdog.go:", "Stream.Wait at watchdog.go:", "for at least"} {
		if !strings.Contains(got, word) {
			t.Errorf("%q is not in it", word)
		}
	}
	if n := strings.Count(got, "func=stuck"); n != 1 {
		t.Errorf("reported %d times", n)
	}
}

func watchdogNamesTask(t *T) {
	log := new(logBook)
	t.OpenDriver(cuda.Watchdog(40*time.Millisecond), log.logger())
	s, e := t.Stream(), t.Event()
	g := t.newGate()
	task := t.Task(s, g.task, cuda.Name("slow"))
	t.OK(s.Record(e))
	synced := make(chan error, 1)
	go func() { synced <- e.Sync() }()
	t.Eventually("the watchdog's word", func() bool { return strings.Contains(log.String(), "slow") })
	g.Open()
	t.Ends(task)
	t.OK(Receive(t, "Sync", synced))
	got := log.String()
	t.Log(got)
	if !strings.Contains(got, "Event.Sync at watchdog.go:") || !strings.Contains(got, "task.go:") {
		t.Error("the waiter or the task's site is not in it")
	}
}

func watchdogSilent(t *T) {
	log := new(logBook)
	t.OpenDriver(cuda.Watchdog(80*time.Millisecond), log.logger())
	s := t.Stream()
	for range 10 {
		t.Host(s, func() { time.Sleep(20 * time.Millisecond) })
		t.Task(s, func(context.Context) error { time.Sleep(20 * time.Millisecond); return nil })
	}
	t.Sync(s)
	off := t.OpenDriver(cuda.Watchdog(-1), log.logger())
	s = t.Stream()
	t.Host(s, func() { time.Sleep(200 * time.Millisecond) })
	t.Sync(s)
	t.OK(off.Close())
	if got := log.String(); got != "" {
		t.Errorf("the watchdog said %s", got)
	}
}
