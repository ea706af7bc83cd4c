package cuda

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// eventful is a driver with streams that are always idle and events that are always complete.
type eventful struct {
	refusing
	create driver.Result // of events
	notify driver.Result
}

func (d *eventful) EventCreate(driver.Context, uint32) (driver.Event, driver.Result) {
	return 8, d.create
}
func (*eventful) EventDestroy(driver.Context, driver.Event) driver.Result               { return 0 }
func (*eventful) EventRecord(driver.Context, driver.Event, driver.Stream) driver.Result { return 0 }
func (d *eventful) NotifyEvent(_ driver.Context, _ driver.Event, done func(driver.Result)) (func(), driver.Result) {
	if d.notify != driver.Success {
		return nil, d.notify
	}
	go done(driver.Success)
	return func() {}, 0
}

func eventOf(t *testing.T, impl *eventful) (*Device, *Event) {
	t.Helper()
	dev := deviceOf(t, impl)
	e, err := dev.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	return dev, e
}

// TestEventDoneRecordedAnew: whoever waits for a record that waits in the library does so though the event is recorded anew meanwhile.
func TestEventDoneRecordedAnew(t *testing.T) {
	_, e := eventOf(t, new(eventful))
	it := &later{done: make(chan struct{})}
	for range 100 {
		e.pending.Store(it)
		done := e.Done()
		e.pending.Store(nil) // as a record does while no tasks are about
		select {
		case <-done:
			t.Fatal("done before the record was made")
		default:
		}
		defer func() { <-done }()
	}
	close(it.done)
}

// TestEventMayWaitRecordedAnew: the tasks that an event is behind may be forgotten while somebody looks.
func TestEventMayWaitRecordedAnew(t *testing.T) {
	dev, e := eventOf(t, new(eventful))
	dev.drv.tasks.running.Add(1)
	defer dev.drv.tasks.running.Add(-1)
	var stop atomic.Bool
	var forgets sync.WaitGroup
	forgets.Go(func() {
		for list := new([]*Task); !stop.Load(); {
			e.behind.Store(list)
			e.behind.Store(nil)
		}
	})
	for range 1_000_000 {
		w, err := e.mayAwait("Event.Sync", true)
		if err != nil {
			t.Error(err)
			break
		}
		w.end()
	}
	stop.Store(true)
	forgets.Wait()
}

// TestRecordLaterRefused: an event that cannot be recorded is as it was.
func TestRecordLaterRefused(t *testing.T) {
	impl := new(eventful)
	dev, e := eventOf(t, impl)
	s, b := dev.DefaultStream(), &dev.drv.tasks
	l := b.at(s.lane(), true)
	l.items = []*later{{done: make(chan struct{})}} // something waits in the library
	b.active.Add(1)
	c, behind := new(capture), &[]*Task{{}}
	e.captured.Store(c)
	e.behind.Store(behind)
	impl.create = driver.ErrorOutOfMemory
	if err := s.Record(e); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("Record = %v", err)
	}
	if e.recorded.Load() || e.on.Load() != 0 || e.captured.Load() != c || e.behind.Load() != behind {
		t.Errorf("the refused record has left recorded %v, on %#x, captured %p, behind %p", e.recorded.Load(), e.on.Load(), e.captured.Load(), e.behind.Load())
	}
	b.active.Add(-1)
	l.items = nil
}

// TestStoppedMeanwhile: a call that found its stream running, and finds it stopped and nothing in its lane when it is to queue, queues nothing.
func TestStoppedMeanwhile(t *testing.T) {
	dev, _ := eventOf(t, new(eventful))
	s, b, mine := dev.DefaultStream(), &dev.drv.tasks, errors.New("mine")
	if s.waitsTurn() {
		t.Error("a stream without tasks waits for its turn")
	}
	l := b.at(s.lane(), true)
	l.stopped = mine
	b.active.Add(1)
	if !s.waitsTurn() {
		t.Error("a stopped stream has its work queued")
	}
	err := s.later("Stream.Launch", opSpan{}, func() driver.Result {
		t.Error("the driver was called")
		return driver.Success
	})
	if !errors.Is(err, ErrTaskFailed) || !errors.Is(err, mine) {
		t.Errorf("later = %v", err)
	}
	b.active.Add(-1)
	l.stopped = nil
}

// TestEventWaitListed: HL-07, the watchdog finds a Wait whose event's record waits in the library.
func TestEventWaitListed(t *testing.T) {
	dev, e := eventOf(t, new(eventful))
	it := &later{done: make(chan struct{})}
	e.pending.Store(it)
	e.on.Store(77)
	waited := make(chan error, 1)
	go func() { waited <- e.Wait(context.Background()) }()
	listed := func() bool { return strings.Contains(dev.drv.dog.waiters.describe(77), "Event.Wait") }
	for deadline := time.Now().Add(time.Second); !listed(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("the Wait is not listed")
			break
		}
	}
	close(it.done)
	if err := <-waited; err != nil || listed() {
		t.Errorf("Wait = %v; listed afterwards: %v", err, listed())
	}
}
