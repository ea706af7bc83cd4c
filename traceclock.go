package cuda

import (
	"sync"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// traceClock takes the times of a context's streams with events, for drivers that are no driver.Stamper. A pair of events stands around
// each operation; when the second is complete, both are compared with a base: an event that was recorded at a moment that the host knows.
type traceClock struct {
	t   *Tracer
	ctx *Context

	work   sync.Mutex // held while somebody collects or shuts: across driver calls that wait for nothing
	stream driver.Stream
	bases  []traceBase // the newest last
	spare  []driver.Event
	worst  time.Duration // of the bases that were used

	mu      sync.Mutex // guards what follows; never held across a driver call
	pairs   []eventPair
	free    []int32 // of pairs
	pending map[*traceLane][]int32
	waiting int // pairs that are pending
	shutted bool
}

// eventPair is recorded around an operation.
type eventPair struct {
	start, end driver.Event
	rec        *spanRecord
}

// traceBase is an event and when it was recorded.
type traceBase struct {
	event    driver.Event
	at       int64
	accuracy time.Duration
}

const (
	mostPairs    = 16384
	morePairs    = 32 // made at a time
	manyPairs    = 1024
	mostBases    = 4
	baseAge      = 2 * time.Second // float32 milliseconds are good to some 100 ns then
	pings        = 16
	longestPing  = time.Millisecond
	collectPause = 10 * time.Millisecond
)

// begins records the first event of a pair for rec, if there is one left.
func (c *traceClock) begins(s *Stream, rec *spanRecord) {
	i, start := c.take()
	if i < 0 {
		rec.state.Or(spanUntimed)
		return
	}
	if c.ctx.drv.drv.EventRecord(c.ctx.raw, start, s.raw) != driver.Success {
		rec.state.Or(spanUntimed)
		c.put(i)
		return
	}
	rec.pair = i + 1
}

// ends records the second one, if the operation was queued.
func (c *traceClock) ends(s *Stream, l *traceLane, rec *spanRecord, queued bool) {
	i := rec.pair - 1
	if i < 0 {
		return
	}
	c.mu.Lock()
	end := c.pairs[i].end
	c.mu.Unlock()
	if !queued || c.ctx.drv.drv.EventRecord(c.ctx.raw, end, s.raw) != driver.Success {
		rec.pair = 0
		rec.state.Or(spanUntimed)
		c.put(i)
		return
	}
	c.mu.Lock()
	if c.shutted {
		c.mu.Unlock()
		rec.state.Or(spanUntimed)
		c.put(i)
		return
	}
	c.pairs[i].rec = rec
	c.pending[l] = append(c.pending[l], i)
	c.waiting++
	many := c.waiting%manyPairs == 0
	c.mu.Unlock()
	c.t.collectSoon(many)
}

// take takes a pair, or -1.
func (c *traceClock) take() (int32, driver.Event) {
	c.mu.Lock()
	for {
		if c.shutted {
			break
		}
		if last := len(c.free) - 1; last >= 0 {
			i := c.free[last]
			c.free = c.free[:last]
			start := c.pairs[i].start
			c.mu.Unlock()
			return i, start
		}
		if len(c.pairs) >= mostPairs {
			break
		}
		c.mu.Unlock()
		made := c.make()
		c.mu.Lock()
		if c.shutted {
			c.mu.Unlock()
			c.ctx.drv.relaxed(func() { c.destroy(made...) })
			return -1, 0
		}
		for _, p := range made {
			c.free = append(c.free, int32(len(c.pairs)))
			c.pairs = append(c.pairs, p)
		}
		if len(made) == 0 {
			break
		}
	}
	c.mu.Unlock()
	return -1, 0
}

// make makes some pairs.
func (c *traceClock) make() (made []eventPair) {
	d := c.ctx.drv
	d.relaxed(func() {
		for range morePairs {
			start, r := d.drv.EventCreate(c.ctx.raw, driver.EventDefault)
			if r != driver.Success {
				return
			}
			end, r := d.drv.EventCreate(c.ctx.raw, driver.EventDefault)
			if r != driver.Success {
				d.drv.EventDestroy(c.ctx.raw, start)
				return
			}
			made = append(made, eventPair{start: start, end: end})
		}
	})
	return made
}

// put gives a pair back that take gave. If the clock has been shut meanwhile, it is the end of the pair.
func (c *traceClock) put(i int32) {
	c.mu.Lock()
	shut, p := c.shutted, c.pairs[i]
	if !shut {
		c.pairs[i].rec = nil
		c.free = append(c.free, i)
	}
	c.mu.Unlock()
	if shut {
		c.ctx.drv.relaxed(func() { c.destroy(p) })
	}
}

func (c *traceClock) destroy(pairs ...eventPair) {
	for _, p := range pairs {
		c.ctx.drv.drv.EventDestroy(c.ctx.raw, p.start)
		c.ctx.drv.drv.EventDestroy(c.ctx.raw, p.end)
	}
}

// collect takes the times of what is done. The calling thread is in Relaxed capture mode.
func (c *traceClock) collect() {
	c.work.Lock()
	defer c.work.Unlock()
	for _, l := range c.busy() {
		for {
			i, p := c.first(l)
			if i < 0 {
				break
			}
			r := c.ctx.drv.drv.EventQuery(c.ctx.raw, p.end)
			if r == driver.ErrorNotReady || r == driver.Success && !c.based() {
				break
			}
			if r != driver.Success {
				c.ctx.result("Tracer", r)
			}
			if r != driver.Success || !c.read(p) {
				p.rec.state.Or(spanUntimed)
			}
			c.next(l)
			c.put(i)
		}
	}
}

// busy are the lanes where something is pending.
func (c *traceClock) busy() (lanes []*traceLane) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for l := range c.pending {
		lanes = append(lanes, l)
	}
	return lanes
}

// first is the oldest pair that is pending in a lane, or -1.
func (c *traceClock) first(l *traceLane) (int32, eventPair) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if list := c.pending[l]; len(list) > 0 {
		return list[0], c.pairs[list[0]]
	}
	return -1, eventPair{}
}

// next takes it off.
func (c *traceClock) next(l *traceLane) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting--
	if c.pending[l] = c.pending[l][1:]; len(c.pending[l]) == 0 {
		delete(c.pending, l)
	}
}

// read takes the times of a pair that is complete, if the driver tells them.
func (c *traceClock) read(p eventPair) bool {
	base := c.bases[len(c.bases)-1]
	at, r := c.since(base, p.start)
	for _, other := range c.bases {
		if r == driver.Success && distance(other.at, at) < distance(base.at, at) {
			base = other
			at, r = c.since(base, p.start)
		}
	}
	took, r2 := c.ctx.drv.drv.EventElapsedTime(c.ctx.raw, p.start, p.end)
	if r != driver.Success || r2 != driver.Success {
		return false
	}
	c.worst = max(c.worst, base.accuracy)
	at = max(at, 1)
	p.rec.start.Store(at)
	p.rec.end.Store(at + int64(float64(took)*1e6))
	return true
}

// since is when e was recorded, by a base.
func (c *traceClock) since(base traceBase, e driver.Event) (int64, driver.Result) {
	ms, r := c.ctx.drv.drv.EventElapsedTime(c.ctx.raw, base.event, e)
	return base.at + int64(float64(ms)*1e6), r
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// based sees to it that there is a base that is not old, and reports whether there is one. work is held.
func (c *traceClock) based() bool {
	n := len(c.bases)
	if n > 0 && time.Duration(c.t.now()-c.bases[n-1].at) < baseAge {
		return true
	}
	if base, ok := c.ping(); ok {
		if n == mostBases {
			c.spare = append(c.spare, c.bases[0].event)
			c.bases = append(c.bases[:0], c.bases[1:]...)
		}
		c.bases = append(c.bases, base)
	}
	return len(c.bases) > 0
}

// ping makes a base: it records an event on a stream of its own some times, and keeps the one of which the host knows best when.
func (c *traceClock) ping() (best traceBase, ok bool) {
	if !c.openStream() {
		return best, false
	}
	for range pings {
		e, r := c.spareEvent()
		if r != driver.Success {
			break
		}
		before := c.t.now()
		r = c.ctx.drv.drv.EventRecord(c.ctx.raw, e, c.stream)
		for r == driver.Success {
			if r = c.ctx.drv.drv.EventQuery(c.ctx.raw, e); r != driver.ErrorNotReady {
				break
			}
			if r = driver.Success; c.t.now()-before > int64(longestPing) {
				r = driver.ErrorNotReady // something holds the hardware up
			}
		}
		after := c.t.now()
		if half := time.Duration(after-before+1) / 2; r == driver.Success && (!ok || half < best.accuracy) {
			e, best.event = best.event, e
			best.at, best.accuracy, ok = before+int64(half), half, true
		}
		if e != 0 {
			c.spare = append(c.spare, e)
		}
		if r != driver.Success {
			break
		}
	}
	return best, ok
}

func (c *traceClock) spareEvent() (driver.Event, driver.Result) {
	if last := len(c.spare) - 1; last >= 0 {
		e := c.spare[last]
		c.spare = c.spare[:last]
		return e, driver.Success
	}
	return c.ctx.drv.drv.EventCreate(c.ctx.raw, driver.EventDefault)
}

// openStream makes a stream for pings, or takes one that was made beforehand while streams are held.
func (c *traceClock) openStream() (ok bool) {
	if c.stream != 0 {
		return true
	}
	d := c.ctx.drv
	r := driver.ErrorNotReady
	d.held.quietly(func() { c.stream, r = d.drv.StreamCreateWithPriority(c.ctx.raw, driver.StreamNonBlocking, 0) })
	if r == driver.ErrorNotReady {
		c.stream, ok = c.ctx.streams.take(0)
		return ok
	}
	return r == driver.Success
}

// shut destroys the events, also of what has not ended. The calling thread is in Relaxed capture mode.
func (c *traceClock) shut() {
	c.work.Lock()
	defer c.work.Unlock()
	c.mu.Lock()
	if c.shutted {
		c.mu.Unlock()
		return
	}
	c.shutted = true
	var pairs []eventPair
	for _, i := range c.free {
		pairs = append(pairs, c.pairs[i])
	}
	for _, list := range c.pending {
		for _, i := range list {
			pairs = append(pairs, c.pairs[i])
		}
	}
	c.free, c.pending, c.waiting = nil, nil, 0
	c.mu.Unlock()
	c.destroy(pairs...)
	d := c.ctx.drv
	for _, b := range c.bases {
		c.spare = append(c.spare, b.event)
	}
	for _, e := range c.spare {
		d.drv.EventDestroy(c.ctx.raw, e)
	}
	c.bases, c.spare = nil, nil
	if s := c.stream; s != 0 && !d.held.quietly(func() { d.drv.StreamDestroy(c.ctx.raw, s) }) {
		c.ctx.streams.giveBack(c.ctx, s, false)
	}
	c.stream = 0
}
