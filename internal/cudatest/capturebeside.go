package cudatest

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// captureBesideCases: what else the program and the library do while something is captured.
var captureBesideCases = []Case{
	{ID: "CP-12", Name: "thousands of waits and closers elsewhere", Run: crowdBesideCapture},
}

// crowd is what is at work beside a capture. Nothing of it allocates, nor asks the driver anything in a mode that minds: that
// would be the program's own unsafe call.
type crowd struct {
	t       *T
	streams []*cuda.Stream
	events  [][]*cuda.Event // of each stream
	stop    chan struct{}
	ended   sync.WaitGroup

	woken, launched, ran, told, closed, failed atomic.Int32
}

func crowdBesideCapture(t *T) {
	const streams, each, rounds = 16, 12, 6
	before := t.Driver.Stats()
	c := &crowd{t: t}
	for range streams {
		var events []*cuda.Event
		for range each {
			events = append(events, t.Event())
		}
		c.streams, c.events = append(c.streams, t.Stream()), append(c.events, events)
	}
	for round := range rounds {
		c.round(round)
	}
	t.Logf("%d waits, %d host functions and %d closed objects beside %d captures", c.woken.Load(), c.launched.Load(), c.closed.Load(), rounds)
	if l, r, d := c.launched.Load(), c.ran.Load(), c.told.Load(); l != r || l != d || c.failed.Load() > 0 {
		t.Errorf("%d functions launched, %d ran, %d were told to be done; %d calls failed", l, r, d, c.failed.Load())
	}
	t.Eventually("what was dropped is freed", func() bool {
		runtime.GC()
		c.streams[0].Query()
		now := t.Driver.Stats()
		return now.DeviceBytes == before.DeviceBytes && now.Streams == before.Streams+streams && now.Events == before.Events+streams*each
	})
}

// round captures in Global mode with the crowd at work, until all of its waits are over.
func (c *crowd) round(n int) {
	t := c.t
	const waiters, least = 3000, 60 * time.Millisecond
	begin, woken := time.Now(), c.woken.Load()
	for i, s := range c.streams {
		for j, e := range c.events[i] {
			t.Spin(s, time.Duration(500+250*((i+j)%8))*time.Microsecond)
			t.OK(s.Record(e))
		}
	}
	closers := c.closers() // made before anything is captured
	c.stop = make(chan struct{})
	for i := range waiters / 2 { // half of the waits begin before the capture, half of them in the middle
		c.waiter(i)
	}
	elsewhere(func() {
		b, nodes := t.Begin(cuda.CaptureGlobal), 0
		for i := range waiters / 2 {
			c.waiter(i)
		}
		for _, work := range closers {
			c.ended.Go(work)
		}
		for i := range 2 {
			c.ended.Go(func() { c.launcher(c.streams[i:]) })
		}
		for time.Since(begin) < least || c.woken.Load()-woken < waiters && time.Since(begin) < 5*time.Second {
			t.Host(b, func() {})
			nodes++
			time.Sleep(200 * time.Microsecond)
		}
		g, err := b.End()
		if err != nil {
			t.Errorf("round %d: after %d nodes the capture ends with %v", n, nodes, err)
		} else if got, err := g.Nodes(); len(got) != nodes || err != nil {
			t.Errorf("round %d: %d nodes, %v; want %d", n, len(got), err, nodes)
		}
		t.OK(g.Close())
		t.OK(b.Close())
	})
	close(c.stop)
	c.ended.Wait()
	for _, s := range c.streams {
		t.Sync(s)
	}
	t.Eventually("every OnDone has been told", func() bool { return c.told.Load() == c.launched.Load() })
	if w := c.woken.Load() - woken; w != waiters {
		t.Errorf("round %d: %d of %d waits ended", n, w, waiters)
	}
}

// waiter waits for an event, by Wait or by Done.
func (c *crowd) waiter(i int) {
	events := c.events[i%len(c.events)]
	e := events[i/len(c.events)%len(events)]
	c.ended.Go(func() {
		if i%2 == 0 {
			<-e.Done()
		} else {
			c.check(e.Wait(c.t.Context()))
		}
		c.woken.Add(1)
	})
}

func (c *crowd) check(err error) {
	if err != nil {
		c.failed.Add(1)
		c.t.Error(err)
	}
}

// launcher queues host functions until the round is over.
func (c *crowd) launcher(streams []*cuda.Stream) {
	for i := 0; ; i++ {
		select {
		case <-c.stop:
			return
		case <-time.After(100 * time.Microsecond):
		}
		c.launched.Add(1)
		c.check(cuda.HostLaunch(streams[i%len(streams)], func() { c.ran.Add(1) }, cuda.OnDone(func(err error) {
			c.check(err)
			c.told.Add(1)
		})))
	}
}

// closers make objects, and give what closes them: the program itself, in Relaxed mode; host functions, whose closing an
// ordinary goroutine of the library carries out; and the collector, when they are dropped.
func (c *crowd) closers() []func() {
	const many = 24
	t := c.t
	var mine, inside []func() error
	for range many {
		s, e := c.made()
		mine = append(mine, s.Close, e.Close)
		s, e = c.made()
		b, err := t.Device(0).Alloc(1 << 10)
		t.OK(err)
		inside = append(inside, s.Close, e.Close, b.Close)
		c.made() // and dropped
		_, err = t.Device(0).Alloc(1 << 10)
		t.OK(err)
	}
	return []func(){
		func() {
			for _, end := range mine {
				c.check(t.Driver.WithCaptureMode(cuda.CaptureRelaxed, end))
				c.closed.Add(1)
			}
		},
		func() {
			for i, end := range inside {
				c.launched.Add(1)
				c.check(cuda.HostLaunch(c.streams[i%len(c.streams)], func() {
					c.check(end())
					c.closed.Add(1)
					c.ran.Add(1)
				}, cuda.OnDone(func(error) { c.told.Add(1) })))
			}
		},
		func() { runtime.GC() },
	}
}

func (c *crowd) made() (*cuda.Stream, *cuda.Event) {
	s, err := c.t.Device(0).NewStream()
	c.t.OK(err)
	e, err := c.t.Device(0).NewEvent()
	c.t.OK(err)
	return s, e
}
