package cuda

import (
	"sync/atomic"
	"time"
)

// clock is the clock of a context. mu is held.
func (t *Tracer) clock(ctx *Context) *traceClock {
	if t.stamper != nil || t.hostOnly {
		return nil
	}
	c := t.clocks[ctx]
	if c == nil {
		c = &traceClock{t: t, ctx: ctx, pending: map[*traceLane][]int32{}}
		if t.clocks == nil {
			t.clocks = map[*Context]*traceClock{}
		}
		t.clocks[ctx] = c
	}
	return c
}

// collector collects what is done, from time to time, on a goroutine of the library that exists while something is pending.
type collector struct {
	running atomic.Bool   // it exists, or must not any more
	many    chan struct{} // has it collect at once
	stop    chan struct{}
}

// collectSoon has somebody collect, at once if much is pending.
func (t *Tracer) collectSoon(many bool) {
	if !t.collector.running.Load() && t.collector.running.CompareAndSwap(false, true) {
		go t.collectOften()
	}
	if many {
		select {
		case t.collector.many <- struct{}{}:
		default:
		}
	}
}

func (t *Tracer) collectOften() {
	tick := time.NewTicker(collectPause)
	defer tick.Stop()
	for {
		select {
		case <-t.collector.stop:
			t.collector.running.Store(false)
			return
		case <-tick.C:
		case <-t.collector.many:
		}
		t.collect()
		if t.pending() {
			continue
		}
		// Whoever adds something now either finds running false, or has added it before the second look.
		t.collector.running.Store(false)
		if !t.pending() || !t.collector.running.CompareAndSwap(false, true) {
			return
		}
	}
}

// stopCollector returns when the collector is gone, for good.
func (t *Tracer) stopCollector() {
	close(t.collector.stop)
	for !t.collector.running.CompareAndSwap(false, true) {
		time.Sleep(20 * time.Microsecond)
	}
}

// pending reports whether there is something to collect.
func (t *Tracer) pending() bool {
	for _, c := range t.allClocks() {
		c.mu.Lock()
		n := c.waiting
		c.mu.Unlock()
		if n > 0 {
			return true
		}
	}
	return false
}

// collect takes the times of what is done.
func (t *Tracer) collect() {
	if clocks := t.allClocks(); len(clocks) > 0 {
		t.drv.relaxed(func() {
			for _, c := range clocks {
				c.collect()
			}
		})
	}
}

// clockOf is the clock of a context, if it has one.
func (t *Tracer) clockOf(ctx *Context) *traceClock {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.clocks[ctx]
}

func (t *Tracer) allClocks() (list []*traceClock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.clocks {
		list = append(list, c)
	}
	return list
}

// shutClocks is the end of all clocks. It returns how near their times are to the host's.
func (t *Tracer) shutClocks() (worst time.Duration) {
	t.stopCollector()
	for _, c := range t.allClocks() {
		t.drv.relaxed(c.shut)
		worst = max(worst, c.worst)
	}
	return worst
}

// dropContext is the end of a context that is closed; its work is done.
func (t *Tracer) dropContext(ctx *Context) {
	if t == nil {
		return
	}
	if c := t.clockOf(ctx); c != nil {
		t.drv.relaxed(func() {
			c.collect()
			c.shut()
		})
	}
}
