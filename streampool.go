package cuda

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/driver"
)

// streamPool keeps streams of a context that were made beforehand, for the time that streams are held: then the driver may make none
// until they are let go of (CONTRACT TK-03). They are non-blocking and of priority 0.
type streamPool struct {
	ready atomic.Bool // it has been filled, or will be

	mu   sync.Mutex // guards what follows; never held across a driver call
	size int
	free []driver.Stream
	gone []driver.Stream // closed with work queued; to be destroyed when no stream is held

	work    tally // calls of the driver for the pool, which no call of the program's is
	drained bool
}

// begin is the beginning of work for the pool; work.done must follow. It reports false once the pool has been drained: the context goes.
func (p *streamPool) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.drained {
		p.work.add()
	}
	return !p.drained
}

// fill makes streams until the pool has its size. No stream is held. What the driver refuses is made with a later task.
func (p *streamPool) fill(c *Context) {
	if !p.begin() {
		return
	}
	defer p.work.done()
	for p.missing() {
		raw, r := c.drv.drv.StreamCreateWithPriority(c.raw, driver.StreamNonBlocking, 0)
		if c.result("Go", r) != nil {
			p.ready.Store(false)
			return
		}
		p.put(raw)
	}
}

func (p *streamPool) resize(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.size = n
}

func (p *streamPool) missing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.free) < p.size
}

func (p *streamPool) put(raw driver.Stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, raw)
}

// take takes a stream, unless that would leave fewer than reserve.
func (p *streamPool) take(reserve int) (raw driver.Stream, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.free) - 1
	if last < reserve || last < 0 {
		return 0, false
	}
	raw = p.free[last]
	p.free = p.free[:last]
	return raw, true
}

// giveBack is the end of a stream that take gave. If work is still queued on it, it is of no use to others, and is destroyed.
func (p *streamPool) giveBack(c *Context, raw driver.Stream, altered bool) {
	d := c.drv
	idle := false
	if !altered {
		d.relaxed(func() { idle = d.drv.StreamQuery(c.raw, raw) == driver.Success })
	}
	if idle {
		p.put(raw)
		return
	}
	p.mu.Lock()
	p.gone = append(p.gone, raw)
	p.mu.Unlock()
	d.held.whenNone(func() { p.settle(c) })
}

// settle destroys what could not be destroyed and makes the pool whole. No stream is held.
func (p *streamPool) settle(c *Context) {
	if !p.begin() {
		return
	}
	defer p.work.done()
	p.mu.Lock()
	gone := p.gone
	p.gone = nil
	p.mu.Unlock()
	for _, raw := range gone {
		c.drv.drv.StreamDestroy(c.raw, raw)
	}
	p.fill(c)
}

// drain destroys all, those too that are just being made, when c is about to go.
func (p *streamPool) drain(c *Context) {
	p.mu.Lock()
	p.drained = true
	p.mu.Unlock()
	<-p.work.idle()
	p.mu.Lock()
	all := append(p.free, p.gone...)
	p.free, p.gone, p.size = nil, nil, 0
	p.mu.Unlock()
	for _, raw := range all {
		c.drv.drv.StreamDestroy(c.raw, raw)
	}
}

const (
	usualHeld        = 8
	usualTaskStreams = 32
)

// readyForTasks makes what tasks of c need, the first time.
func (d *Driver) readyForTasks(c *Context) {
	if !c.streams.ready.CompareAndSwap(false, true) {
		return
	}
	d.held.most.Store(int32(d.mostHeld()))
	c.streams.resize(cmp.Or(d.opts.taskStreams, usualTaskStreams))
	d.held.whenNone(func() { d.relaxed(func() { c.streams.fill(c) }) })
}

// mostHeld is how many streams of a device may be held at once: so many that one hardware queue is left to the others.
func (d *Driver) mostHeld() int {
	if d.opts.maxHeld > 0 {
		return d.opts.maxHeld
	}
	if n := d.drv.HardwareQueues(); n > 0 {
		return max(min(usualHeld, n-1), 1)
	}
	return usualHeld
}

// createStream makes a stream, or takes one that was made beforehand if streams are held.
func (c *Context) createStream(op string, o streamOptions) (raw driver.Stream, pooled bool, err error) {
	d := c.drv
	var r driver.Result
	create := func() { raw, r = d.drv.StreamCreateWithPriority(c.raw, uint32(o.flags), int32(o.priority)) }
	if d.held.n.Load() == 0 && d.held.quietly(create) {
		return raw, false, c.result(op, r)
	}
	task := d.tasks.current()
	plain := o.flags == StreamNonBlocking && o.priority == 0
	reserve := int(d.held.most.Load())
	if task != nil {
		reserve = 0
	}
	if plain {
		if raw, ok := c.streams.take(reserve); ok {
			return raw, true, nil
		}
	}
	switch {
	case task != nil && !plain:
		return 0, false, failf(op, ErrDeadlock, "called in a task (%s), when the driver may make no stream until all tasks have ended; those made beforehand are NonBlocking() and of priority 0: take one, or make the stream before", task.describe())
	case task != nil:
		return 0, false, failf(op, ErrDeadlock, "called in a task (%s), when the driver may make no stream until all tasks have ended, and those made beforehand are used up; close some, or raise TaskStreams", task.describe())
	}
	d.held.waitNone(create)
	return raw, false, c.result(op, r)
}

// whileNoneHeld runs fn, which may make the driver wait until no stream is held, when none is. In a task, which would wait for
// itself, it is ErrDeadlock: what says what to do instead.
func (c *Context) whileNoneHeld(op, what string, fn func()) error {
	d := c.drv
	if d.held.n.Load() == 0 && d.held.quietly(fn) {
		return nil
	}
	if t := d.tasks.current(); t != nil {
		return failf(op, ErrDeadlock, "called in a task (%s), when the driver may wait until all tasks have ended; %s", t.describe(), what)
	}
	d.held.waitNone(fn)
	return nil
}

// newStream makes the Stream of a handle that createStream gave.
func (c *Context) newStream(raw driver.Stream, pooled bool) *Stream {
	d, lane := c.drv, laneKey{ctx: c, raw: raw}
	if !pooled {
		d.tasks.renew(lane)
	}
	s := &Stream{ctx: c, raw: raw, altered: new(atomic.Bool)}
	altered := s.altered // and not s, which the collector must see dropped
	destroy := func() driver.Result {
		d.tasks.forget(lane)
		if pooled {
			c.streams.giveBack(c, raw, altered.Load())
			return driver.Success
		}
		return d.drv.StreamDestroy(c.raw, raw)
	}
	s.res = newResource(c, "Stream", 0, destroy)
	s.res.waits = !pooled
	dropped(s, s.res)
	return s
}
