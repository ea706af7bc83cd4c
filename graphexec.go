package cuda

import (
	"sync"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
)

// GraphExec is a graph made ready to run, any number of times. It keeps what its nodes use, until it is closed and its last
// launch is done.
type GraphExec struct {
	ctx   *Context
	raw   driver.GraphExec
	res   *resource
	nodes []hostfn.Handle // its host functions
	runs  *execRuns
}

// execRuns knows when an executable's launches are done: one launch begins when the former has ended, so an event recorded
// behind the latest tells of all.
type execRuns struct {
	mu       sync.Mutex // held across a launch: the driver wants one at a time
	event    driver.Event
	launched bool
	holds    holdings
}

// Instantiate makes an executable of g as it is now. cuGraphInstantiateWithFlags.
//
// Errors: ErrClosed, ErrIllegalState while g is captured into.
func (g *Graph) Instantiate() (*GraphExec, error) {
	const op = "Graph.Instantiate"
	if err := g.acquire(op); err != nil {
		return nil, err
	}
	defer g.res.release()
	c := g.ctx
	if err := c.enter(op); err != nil {
		return nil, err
	}
	defer c.leave()
	if g.building.Load() {
		return nil, failf(op, ErrIllegalState, "the graph is being captured into; end that first")
	}
	if err := g.defined(op); err != nil {
		return nil, err
	}
	event, err := c.events.get(c, op)
	if err != nil {
		return nil, err
	}
	raw, r := c.drv.drv.GraphInstantiateWithFlags(c.raw, g.raw, 0)
	if r != driver.Success {
		c.events.put(event)
		return nil, c.result(op, r)
	}
	runs := &execRuns{event: event, holds: holdings{list: g.holds.share()}}
	x := &GraphExec{ctx: c, raw: raw, runs: runs}
	for _, h := range runs.holds.list {
		x.nodes = append(x.nodes, h.nodes...)
	}
	x.res = newResource(c, "GraphExec", 0, func() driver.Result {
		r := c.drv.drv.GraphExecDestroy(c.raw, raw)
		runs.end(c)
		return r
	})
	dropped(x, x.res)
	return x, nil
}

// Launch queues one run of the whole graph on s, a stream of the graph's context: it begins when everything queued on s before
// is done, and the former launch of x has ended, and what is queued on s later waits for its end (CONTRACT GR-05). Every host
// function of the graph runs once, and its OnDone is told once, for every launch.
//
// Errors: ErrClosed, ErrInvalidContext for a stream of another context, ErrCapturing. On an error nothing was queued.
// cuGraphLaunch.
func (x *GraphExec) Launch(s *Stream) error {
	const op = "GraphExec.Launch"
	if x == nil {
		return failf(op, ErrInvalidValue, "the executable graph is nil")
	}
	if err := s.begin(op); err != nil {
		return err
	}
	defer s.end()
	if !x.res.acquire() {
		return failf(op, ErrClosed, "the executable graph is closed")
	}
	defer x.res.release()
	if s.ctx != x.ctx {
		return failf(op, ErrInvalidContext, "the executable graph belongs to %s and the stream to %s; launch it on a stream of its own context", x.ctx.describe(), s.ctx.describe())
	}
	if err := s.refuseCapturing(op); err != nil {
		return err
	}
	x.runs.mu.Lock()
	defer x.runs.mu.Unlock()
	return x.launch(op, s)
}

// launch has every host function expect a run before the driver can begin one.
func (x *GraphExec) launch(op string, s *Stream) error {
	funcs, d := &x.ctx.drv.funcs, s.driver()
	for i, h := range x.nodes {
		if !funcs.Expect(h) {
			x.unexpect(x.nodes[:i])
			return x.ctx.lostError(op, x.ctx.lost())
		}
	}
	if r := d.GraphLaunch(s.ctx.raw, x.raw, s.raw); r != driver.Success {
		if swept := x.unexpect(x.nodes); swept {
			return nil // the context was lost meanwhile: the functions have been resolved, so it counts as queued
		}
		return x.ctx.resultf(op, r, "the driver refused the launch; nothing of the graph will run")
	}
	x.runs.launched = true
	r := d.EventRecord(x.ctx.raw, x.runs.event, s.raw)
	if r != driver.Success { // then only waiting tells when it is done
		r = d.StreamSynchronize(s.ctx.raw, s.raw)
	}
	return x.ctx.result(op, r)
}

// unexpect takes the expected runs back. It reports whether one had been swept.
func (x *GraphExec) unexpect(nodes []hostfn.Handle) (swept bool) {
	for _, h := range nodes {
		if !x.ctx.drv.funcs.Unexpect(h) {
			swept = true
		}
	}
	return swept
}

// Close destroys x. A launch in flight goes on, and what it uses stays until it is done (CONTRACT GR-04). cuGraphExecDestroy.
func (x *GraphExec) Close() error {
	if x == nil {
		return nil
	}
	return closeHandle(x.res)
}

// end lets go of what the executable holds when its last launch is done.
func (e *execRuns) end(c *Context) {
	d := c.drv
	d.endings.add()
	release := func() {
		e.holds.release()
		c.events.put(e.event)
		d.endings.done()
	}
	if !e.launched {
		release()
		return
	}
	if _, r := c.drv.drv.NotifyEvent(c.raw, e.event, func(driver.Result) { release() }); r != driver.Success {
		release()
	}
}
