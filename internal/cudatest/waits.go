package cudatest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// waitCases: waiting that scales.
var waitCases = []Case{
	{ID: "EV-03", Name: "ten thousand goroutines, a thousand streams", Run: eventsOfManyStreams},
	{ID: "EV-03", Name: "ten thousand waits given up", Run: manyWaitsGivenUp},
	{ID: "EV-03", Name: "given up beside others", Run: givenUpBesideOthers},
	{ID: "ST-04", Name: "two thousand goroutines in Wait", Run: manyStreamWaits},
}

// mostThreads is how many OS threads very many waiting goroutines may add: those of the runtime and of the driver.
const mostThreads = 50

// heldStreams makes streams that are all held by one gate, and records an event in each.
func (t *T) heldStreams(n int) (g *Gate, streams []*cuda.Stream, events []*cuda.Event) {
	t.Helper()
	gated, behind := t.Stream(), t.Event()
	for range n {
		streams, events = append(streams, t.Stream()), append(events, t.Event())
	}
	g = t.Gate(gated)
	t.OK(gated.Record(behind))
	for i, s := range streams {
		t.OK(s.WaitEvent(behind))
		t.OK(s.Record(events[i]))
	}
	return g, streams, events
}

func eventsOfManyStreams(t *T) {
	const streams, each = 1000, 10
	g, held, events := t.heldStreams(streams)
	<-g.Entered
	before := threads()
	var ended sync.WaitGroup
	var woken, failed atomic.Int32
	times := make([]atomic.Int32, streams*each)
	for i := range times {
		e, wait := events[i%streams], i < streams*each/2
		ended.Go(func() {
			if !wait {
				<-e.Done()
			} else if e.Wait(t.Context()) != nil {
				failed.Add(1)
			}
			times[i].Add(1)
			woken.Add(1)
		})
	}
	time.Sleep(100 * time.Millisecond)
	if more := threads() - before; more > mostThreads {
		t.Errorf("%d waiting goroutines took %d OS threads", len(times), more)
	}
	t.Logf("%d OS threads, %d of them since %d goroutines wait", threads(), threads()-before, len(times))
	if w := woken.Load(); w > 0 {
		t.Errorf("%d woke before their events", w)
	}
	g.Open()
	for _, s := range held {
		t.Sync(s)
	}
	last := time.Now() // the last event is complete
	t.Eventually("all are awake", func() bool { return woken.Load() == int32(len(times)) })
	t.Logf("the last one woke %v after the last event was known to be complete", time.Since(last))
	ended.Wait()
	for i := range times {
		if n := times[i].Load(); n != 1 {
			t.Fatalf("goroutine %d woke %d times", i, n)
		}
	}
	if failed.Load() > 0 {
		t.Errorf("%d waits failed", failed.Load())
	}
}

// manyWaitsGivenUp: a wait whose context has ended leaves nothing behind, although the event is still held: the case's census
// finds the events closed, and closing them frees them at once.
func manyWaitsGivenUp(t *T) {
	const streams, each = 100, 100
	g, _, events := t.heldStreams(streams)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ended sync.WaitGroup
	var wrong atomic.Int32
	for i := range streams * each {
		ended.Go(func() {
			if err := events[i%streams].Wait(ctx); !errors.Is(err, context.Canceled) {
				wrong.Add(1)
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	cancel()
	ended.Wait()
	if wrong.Load() > 0 {
		t.Errorf("%d waits ended otherwise than with their context", wrong.Load())
	}
	before := t.Driver.Stats().Events
	for _, e := range events {
		t.OK(e.Close())
	}
	t.Eventually("the events are free although their streams are held", func() bool { return t.Driver.Stats().Events == before-streams })
	g.Open()
}

// givenUpBesideOthers: who gives up takes nobody along.
func givenUpBesideOthers(t *T) {
	s, e := t.Stream(), t.Event()
	g := t.Gate(s)
	t.OK(s.Record(e))
	done, patient := e.Done(), make(chan error, 1)
	go func() { patient <- e.Wait(t.Context()) }()
	for range 200 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Microsecond)
		if err := e.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Wait = %v", err)
		}
		cancel()
	}
	select {
	case <-done:
		t.Error("Done before the work was")
	case err := <-patient:
		t.Errorf("Wait = %v before the work was done", err)
	default:
	}
	g.Open()
	Receive(t, "Done", done)
	t.OK(Receive(t, "Wait", patient))
	t.OK(e.Wait(t.Context()))
}

func manyStreamWaits(t *T) {
	const streams, each = 64, 32
	g, held, _ := t.heldStreams(streams)
	<-g.Entered
	before := threads()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ended sync.WaitGroup
	var woken, cancelled, wrong atomic.Int32
	for i := range streams * each {
		s, gone := held[i%streams], i < streams*each/2
		ended.Go(func() {
			if gone {
				if err := s.Wait(ctx); errors.Is(err, context.Canceled) {
					cancelled.Add(1)
				}
			} else if s.Wait(t.Context()) != nil {
				wrong.Add(1)
			}
			woken.Add(1)
		})
	}
	time.Sleep(50 * time.Millisecond)
	t.Logf("%d goroutines in Stream.Wait added %d OS threads", streams*each, threads()-before)
	if w := woken.Load(); w > 0 {
		t.Errorf("%d woke while their streams were held", w)
	}
	cancel()
	t.Eventually("those that gave up are back", func() bool { return woken.Load() == streams*each/2 })
	g.Open()
	ended.Wait()
	if wrong.Load() > 0 || cancelled.Load() != streams*each/2 {
		t.Errorf("%d waits failed; %d of %d ended with their context", wrong.Load(), cancelled.Load(), streams*each/2)
	}
}
