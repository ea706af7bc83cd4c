package cuda

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// ContextOption configures NewContext.
type ContextOption func(*contextOptions)

type contextOptions struct{ policy SyncPolicy }

// ContextSync says how a thread waits that waits for the context's work, as in Stream.Sync. The default is SyncAuto.
func ContextSync(p SyncPolicy) ContextOption { return func(o *contextOptions) { o.policy = p } }

// schedule are the driver's context flags of the policies.
var schedule = map[SyncPolicy]uint32{
	SyncAuto: driver.CtxSchedAuto, SyncSpin: driver.CtxSchedSpin, SyncYield: driver.CtxSchedYield, SyncBlock: driver.CtxSchedBlockingSync,
}

// NewContext makes a further context on d, with the same constructors as d's primary context. Streams, events and kernels of
// two contexts do not mix, but for waits; memory does. A context costs hundreds of megabytes of a GPU's memory: few programs
// need one. It is the program's until Close, or until the Driver's Close; the garbage collector does not close it.
//
// Errors: ErrInvalidValue for an unknown policy, ErrOutOfMemory. CONTRACT ST-09; cuCtxCreate.
func (d *Device) NewContext(opts ...ContextOption) (*Context, error) {
	const op = "Device.NewContext"
	if d == nil {
		return nil, failf(op, ErrInvalidValue, "the device is nil")
	}
	if err := d.Context.enter(op); err != nil {
		return nil, err
	}
	defer d.Context.leave()
	o := contextOptions{policy: SyncAuto}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	flags, ok := schedule[o.policy]
	if !ok {
		return nil, failf(op, ErrInvalidValue, "policy %d is unknown; use SyncAuto, SyncSpin, SyncYield or SyncBlock", o.policy)
	}
	drv := d.drv
	var raw driver.Context
	var r driver.Result
	if err := d.whileNoneHeld(op, "make the context before", func() { raw, r = drv.drv.CtxCreate(flags, d.device) }); err != nil {
		return nil, err
	}
	if r != driver.Success {
		return nil, d.resultf(op, r, "no further context on device %d", d.ordinal)
	}
	c := &Context{drv: drv, device: d.device, ordinal: d.ordinal, raw: raw, pageable: d.pageable, concurrent: d.concurrent, own: true}
	c.release = func() { drv.drv.CtxDestroy(raw) }
	drv.mu.Lock()
	defer drv.mu.Unlock()
	drv.contexts[raw] = c
	return c, nil
}

// Close destroys a context that NewContext made. What was made in it must be closed before: otherwise Close is
// ErrIllegalState, names what is open, and changes nothing; so it is while a call in the context is in progress. It waits for
// queued work. Every later use is ErrClosed; closing again does nothing. Inside a host function Close is carried out later.
//
// On a device's primary context, and on the context of a borrowed stream, which are not ours, Close does nothing.
//
// CONTRACT ST-09; cuCtxDestroy.
func (c *Context) Close() error {
	const op = "Context.Close"
	if c == nil || !c.own {
		return nil
	}
	if c.drv.inHostFunction() {
		return c.closeLater(op)
	}
	if err := c.drv.enter(op); err != nil {
		if errors.Is(err, ErrClosed) {
			return nil // with its Driver
		}
		return err
	}
	defer c.drv.leave()
	if t := c.drv.tasks.current(); t != nil {
		return failf(op, ErrDeadlock, "called in a task (%s), when it may wait until all tasks have ended; close the context after the task", t.describe())
	}
	c.drv.natives.collect(math.MaxInt) // those that have run let go of what they held
	c.drv.retired.drain(false)
	if closed, err := c.shut(op); err != nil || !closed {
		return err
	}
	return c.destroy(op)
}

// closeLater is Close inside a host function.
func (c *Context) closeLater(op string) error {
	closed, err := c.shut(op)
	if !closed {
		return err
	}
	if c.drv.calls.Add(1)&closingBit != 0 { // the Driver is being closed, and with it c
		c.drv.leave()
		return nil
	}
	go func() {
		defer c.drv.leave()
		c.destroy(op)
	}()
	return nil
}

// hold is the beginning of a call in an own context, which leave ends; false: it is closed.
func (c *Context) hold() bool {
	if c.uses.Add(1)&closedBit != 0 {
		c.uses.Add(-1)
		return false
	}
	return true
}

// leave is the end of a call that enter let in.
func (c *Context) leave() {
	if c.own {
		c.uses.Add(-1)
	}
	if c.green != nil {
		c.green.release()
	}
	c.drv.leave()
}

// shut forbids calls in c, unless something is open there. closed is false if it was shut before.
func (c *Context) shut(op string) (closed bool, err error) {
	for {
		ending, n := c.ending.Load(), c.uses.Load() // in this order
		switch {
		case n&closedBit != 0:
			return false, nil
		case n != 0 && ending > 0: // who has waited for a task may close at once
			runtime.Gosched()
			continue
		case n != 0:
			return false, failf(op, ErrIllegalState, "a call in the context is in progress; let it return first")
		case !c.uses.CompareAndSwap(0, closedBit):
			continue
		}
		if open := c.drv.resources.openIn(c); open != "" {
			c.uses.Add(-closedBit)
			return false, failf(op, ErrIllegalState, "there are still open: %s; close them first", open)
		}
		return true, nil
	}
}

// openIn lists what is open in c, by kind.
func (g *registry) openIn(c *Context) string {
	count := map[string]int{}
	for _, r := range g.all() {
		if r.ctx == c {
			count[r.kind]++
		}
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d of %s", count[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// destroy waits for c's work and destroys it. Nobody uses it any more.
func (c *Context) destroy(op string) error {
	d := c.drv
	c.result(op, d.drv.CtxSynchronize(c.raw))
	d.tracer.Load().dropContext(c)
	c.stagings.close()
	c.events.settle()
	c.drain()
	d.tasks.forget(laneKey{ctx: c, raw: driver.StreamLegacy})
	d.forget(c)
	err := c.result(op, d.drv.CtxDestroy(c.raw))
	if c.lost() != driver.Success {
		return nil // there is nothing to free in a lost context
	}
	return err
}

// settle waits until all events of the pool are back, which they are soon when the context's work is done.
func (p *eventPool) settle() {
	for !p.settled() {
		time.Sleep(100 * time.Microsecond)
	}
}

func (p *eventPool) settled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made == len(p.free)
}
