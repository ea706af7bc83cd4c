package cuda

import (
	"fmt"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
)

// Context owns streams, events, memory and modules of one device. Every Device has a primary context, shared with other
// CUDA libraries of the process, and its constructors (NewStream, Alloc, ...) make things there.
type Context struct {
	drv     *Driver
	device  driver.Device
	ordinal int
	raw     driver.Context
	// pageable: the device reads and writes ordinary host memory itself, so a copy may still be at it when the driver returns;
	// we wait then, for Go memory must outlive the copy. Elsewhere the driver has staged or finished such a copy by itself.
	pageable bool
	// concurrent: the host may touch managed memory while the device works (ManagedBuffer.HostAccess).
	concurrent bool
	release    func() // lets go of the driver's context, at shutdown

	// green is the lifetime of the green context that this Context stands for, if it does: what is made in it keeps that alive.
	green *resource
	// handedOut is that green context once the program has c too, and might refer to c alone. The driver's list of contexts refers to c
	// until the green context is destroyed, so the collector leaves both alone.
	handedOut atomic.Pointer[GreenContext]

	funcs  hostfn.Group
	events eventPool
	failed atomic.Int32 // the driver.Result that the context failed with; 0: none

	callbacks   hostfn.Group  // those of AddCallback, which a failure treats differently
	callbackSeq atomic.Uint64 // numbers them, to run in their order those that a driver leaves
	late        lateCallbacks
	memOps      memOpSupport
	cells       holdCells
	streams     streamPool

	copies   atomic.Int64 // staged copies in progress
	stagings stagingList  // what they go through

	own  bool         // made by NewContext
	uses atomic.Int64 // of an own context: calls in progress, and closedBit once it is closed

	ending atomic.Int32 // tasks that are over, and calls in their turn (later), that have not let go of everything
}

// lost is the error that c has failed with, or Success.
func (c *Context) lost() driver.Result { return driver.Result(c.failed.Load()) }

// enter is Driver.enter, and refuses calls on a lost or closed context. If it returns nil, leave must follow.
func (c *Context) enter(op string) error {
	if c == nil {
		return failf(op, ErrInvalidValue, "the context is nil")
	}
	if err := c.drv.enter(op); err != nil {
		return err
	}
	if c.own && !c.hold() {
		c.drv.leave()
		return failf(op, ErrClosed, "the context is closed")
	}
	if c.green != nil && !c.green.acquire() {
		c.drv.leave()
		return failf(op, ErrClosed, "the green context is closed")
	}
	if r := c.lost(); r != driver.Success {
		c.leave()
		return c.lostError(op, r)
	}
	return nil
}

// result makes an error of a driver's answer, nil for Success. An answer that means that c has failed is noted.
func (c *Context) result(op string, r driver.Result) error {
	return c.resultf(op, r, "")
}

// resultf is result with a reason.
func (c *Context) resultf(op string, r driver.Result, format string, args ...any) error {
	switch {
	case r == driver.Success:
		return nil
	case r.Sticky():
		c.fail(r)
		return c.lostError(op, r)
	case format == "":
		return &Error{Op: op, Code: Code(r)}
	}
	return failf(op, Code(r), format, args...)
}

// needs is resultf for a call that older drivers lack: it names the function and the CUDA version that has it.
func (c *Context) needs(op string, r driver.Result, function, format string, args ...any) error {
	if q, ok := c.drv.drv.(driver.Requirements); ok && r == driver.ErrorNotSupported {
		if v := q.Needs(function); v != 0 {
			return failf(op, ErrNotSupported, "%s came with CUDA %v; this driver is for %v", function, Version(v), c.drv.version)
		}
	}
	return c.resultf(op, r, format, args...)
}

// blamed is the context that an answer is of, to a call in c that uses what belongs to others too: the driver answers with the failure of
// any of them. Whoever has not failed is not to be taken for lost.
func (c *Context) blamed(r driver.Result, others ...*Context) *Context {
	if !r.Sticky() {
		return c
	}
	for _, other := range others {
		if other != c && !other.works() && c.works() {
			return other
		}
	}
	return c
}

// works asks the driver whether c has not failed.
func (c *Context) works() bool {
	if c.lost() != driver.Success {
		return false
	}
	d, r := c.drv.drv, driver.Success
	c.drv.relaxed(func() {
		var e driver.Event
		if e, r = d.EventCreate(c.raw, driver.EventDisableTiming); r == driver.Success {
			r = d.EventDestroy(c.raw, e)
		}
	})
	return !r.Sticky()
}

// lostError is the error of every call on a lost context. It is earlier work's error, not the call's (CONTRACT ST-11).
func (c *Context) lostError(op string, r driver.Result) error {
	return &Error{
		Op: op, Code: Code(r), also: ErrDeviceLost,
		Reason: fmt.Sprintf("work queued earlier failed, and device %d is lost to this process; restart the program", c.ordinal),
	}
}

// fail notes that c is lost, once, and resolves the host functions that will now never run (CONTRACT HL-17). On an
// ordinary goroutine: fail may be called anywhere.
func (c *Context) fail(r driver.Result) {
	why := c.lostError("HostLaunch", r)
	d := c.drv
	c.funcs.Fail(why) // before anybody can have been told that c is lost
	natives := d.natives.sweep(&c.funcs)
	first := c.failed.CompareAndSwap(0, int32(r))
	if !first && len(natives) == 0 {
		return
	}
	d.reports.add()
	go func() {
		defer d.reports.done()
		for _, n := range natives {
			d.natives.endSwept(n, why)
		}
		if !first {
			return
		}
		for _, fn := range d.funcs.Sweep(&c.funcs) {
			d.resolve(fn, neverRan(fn, why))
		}
		c.stagings.fail(c.lostError("copy", r))
		d.spin.fail(c)
		d.tasks.fail(c, why)
		c.failCallbacks()
	}()
}

// drain gives back what the library has of the driver's in c for its own use. Nothing of it is in use any more, and c is about to go.
func (c *Context) drain() {
	c.stagings.close()
	c.events.drain(c)
	c.streams.drain(c)
	c.cells.drain(c)
}

// neverRan is the end of a function that why kept from running.
func neverRan(fn hostfn.Func, why error) *LostError {
	return &LostError{Name: funcName(fn), Site: siteName(fn.Site), Err: why, kind: kindOf(fn)}
}
