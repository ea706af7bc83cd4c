package cuda

import (
	"github.com/hostlaunch/cuda/internal/driver"
)

// SMResource is a number of streaming multiprocessors of a device, to make green contexts of. It is a value.
type SMResource struct {
	dev *Context
	raw driver.DevResource
}

// Count is how many multiprocessors there are.
func (r SMResource) Count() int { return int(r.raw.SM.Count) }

// MinPartition is how many multiprocessors a part has at least when r is split.
func (r SMResource) MinPartition() int { return int(r.raw.SM.MinPartitionSize) }

// Alignment is what the number of multiprocessors of a part is a multiple of when r is split.
func (r SMResource) Alignment() int { return int(r.raw.SM.CoscheduledAligned) }

// SMResource is all multiprocessors of the device. CUDA 12.4; cuDeviceGetDevResource.
func (d *Device) SMResource() (SMResource, error) {
	const op = "Device.SMResource"
	if d == nil {
		return SMResource{}, failf(op, ErrInvalidValue, "the device is nil")
	}
	if err := d.enter(op); err != nil {
		return SMResource{}, err
	}
	defer d.drv.leave()
	raw, r := d.drv.drv.DeviceGetDevResource(d.device, driver.DevResourceSM)
	return SMResource{d.Context, raw}, d.needs(op, r, "cuDeviceGetDevResource", "")
}

// SplitFlags say how multiprocessors are split.
type SplitFlags uint32

// Split flags, by the driver's numbers (CUdevSmResourceSplit_flags).
const (
	// SplitIgnoreCoscheduling lowers the least size and the alignment of parts, at the cost of large clusters.
	SplitIgnoreCoscheduling SplitFlags = SplitFlags(driver.SMSplitIgnoreCoscheduling)
	// SplitMaxClusterSize tries for parts that allow the largest thread clusters.
	SplitMaxClusterSize SplitFlags = SplitFlags(driver.SMSplitMaxClusterSize)
)

// Split splits r into at most groups parts of equal size, minCount multiprocessors at least: the driver rounds that up, to
// MinPartition and Alignment, so fewer parts may come out. rest is what is left, possibly none. A part cannot be split again
// before it is a green context's (GreenContext.SMResource).
//
// Errors: ErrInvalidValue, and ErrInvalidResourceConfiguration where not one part comes out. CUDA 12.4;
// cuDevSmResourceSplitByCount.
func (r SMResource) Split(groups, minCount int, flags SplitFlags) (parts []SMResource, rest SMResource, err error) {
	const op = "SMResource.Split"
	c := r.dev
	if c == nil {
		return nil, SMResource{}, failf(op, ErrInvalidValue, "the resource is empty; take a device's (Device.SMResource)")
	}
	if err := c.enter(op); err != nil {
		return nil, SMResource{}, err
	}
	defer c.leave()
	if groups < 1 || groups > r.Count() {
		return nil, SMResource{}, failf(op, ErrInvalidValue, "groups %d: ask for 1 to %d, the number of multiprocessors", groups, r.Count())
	}
	if minCount < 0 || minCount > r.Count() {
		return nil, SMResource{}, failf(op, ErrInvalidValue, "minCount %d: there are %d multiprocessors", minCount, r.Count())
	}
	if unknown := flags &^ (SplitIgnoreCoscheduling | SplitMaxClusterSize); unknown != 0 {
		return nil, SMResource{}, failf(op, ErrInvalidValue,
			"flags %#x: there are SplitIgnoreCoscheduling and SplitMaxClusterSize", uint32(flags))
	}
	raws, left, res := c.drv.drv.DevSmResourceSplitByCount(&r.raw, groups, uint32(flags), uint32(minCount))
	if res != driver.Success {
		return nil, SMResource{}, c.needs(op, res, "cuDevSmResourceSplitByCount",
			"%d multiprocessors into parts of %d, where a part has at least %d, in steps of %d",
			r.Count(), minCount, r.MinPartition(), r.Alignment())
	}
	for _, raw := range raws {
		parts = append(parts, SMResource{c, raw})
	}
	return parts, SMResource{c, left}, nil
}

// GreenContext is a part of a device: streams made in it run their kernels on its multiprocessors only. Memory, modules and
// events are those of the device, and its streams take them. One that the program no longer refers to is closed by the garbage
// collector, unless its Context has been asked for.
type GreenContext struct {
	dev *Context // the primary context
	raw driver.GreenContext
	ctx *Context  // what stands for it as a context
	res *resource // nil for a green context that is not ours
}

// NewGreenContext makes a green context that owns the multiprocessors of parts: all of d's, or parts that came out of one
// Split, rest included. While streams are held by tasks it waits until none is; in a task it is ErrDeadlock (CONTRACT TK-03): like any
// context and any stream it is made by a call that the driver may hold up until then.
//
// Errors: ErrInvalidValue; ErrInvalidResourceConfiguration for parts of different splits. CUDA 12.4; cuGreenCtxCreate.
func (d *Device) NewGreenContext(parts ...SMResource) (*GreenContext, error) {
	const op = "Device.NewGreenContext"
	if d == nil {
		return nil, failf(op, ErrInvalidValue, "the device is nil")
	}
	if err := d.enter(op); err != nil {
		return nil, err
	}
	defer d.drv.leave()
	if len(parts) == 0 {
		return nil, failf(op, ErrInvalidValue, "no parts; pass what Split returned, or Device.SMResource")
	}
	raws := make([]driver.DevResource, len(parts))
	for i, p := range parts {
		if p.dev != d.Context || p.Count() == 0 {
			return nil, failf(op, ErrInvalidValue, "parts[%d] is empty or not of device %d", i, d.ordinal)
		}
		raws[i] = p.raw
	}
	drv := d.drv.drv
	desc, r := drv.DevResourceGenerateDesc(raws)
	if r != driver.Success {
		return nil, d.needs(op, r, "cuDevResourceGenerateDesc", "several parts must come from one Split")
	}
	var raw driver.GreenContext
	if err := d.whileNoneHeld(op, "make the green context before", func() {
		raw, r = drv.GreenCtxCreate(desc, d.device, driver.GreenCtxDefaultStream)
	}); err != nil {
		return nil, err
	}
	if r != driver.Success {
		return nil, d.needs(op, r, "cuGreenCtxCreate", "")
	}
	return d.greenContext(op, raw)
}

// greenContext takes in a green context just made.
func (c *Context) greenContext(op string, raw driver.GreenContext) (*GreenContext, error) {
	drv := c.drv.drv
	as, r := drv.CtxFromGreenCtx(raw)
	if r != driver.Success {
		drv.GreenCtxDestroy(raw)
		return nil, c.needs(op, r, "cuCtxFromGreenCtx", "")
	}
	own := c.adopt(as)
	res := newResource(c, "GreenContext", 0, func() driver.Result {
		own.drain()
		c.drv.forget(own)
		return drv.GreenCtxDestroy(raw)
	})
	own.green = res
	g := &GreenContext{dev: c, raw: raw, ctx: own, res: res}
	dropped(g, res)
	return g, nil
}

// adopt finds the Context of a green context of c's device by its handle, and takes it in if it is new here.
func (c *Context) adopt(raw driver.Context) *Context {
	return c.drv.takeIn(&Context{device: c.device, ordinal: c.ordinal, raw: raw, pageable: c.pageable, concurrent: c.concurrent})
}

// takeIn has d know c, a context that is not ours to release, unless it knows one of that handle: that is the answer then.
func (d *Driver) takeIn(c *Context) *Context {
	c.drv, c.release = d, func() {}
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.contexts[c.raw]; known != nil {
		return known
	}
	d.contexts[c.raw] = c
	return c
}

// forget takes out a context that is about to go.
func (d *Driver) forget(c *Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.contexts, c.raw)
}

// begin is the beginning of every call on g; end must follow if it returns nil.
func (g *GreenContext) begin(op string) error {
	if g == nil {
		return failf(op, ErrInvalidValue, "the green context is nil")
	}
	if err := g.dev.enter(op); err != nil {
		return err
	}
	if g.res != nil && !g.res.acquire() {
		g.dev.leave()
		return failf(op, ErrClosed, "the green context is closed")
	}
	return nil
}

func (g *GreenContext) end() {
	if g.res != nil {
		g.res.release()
	}
	g.dev.leave()
}

// SMResource is the multiprocessors that g owns. cuGreenCtxGetDevResource.
func (g *GreenContext) SMResource() (SMResource, error) {
	const op = "GreenContext.SMResource"
	if err := g.begin(op); err != nil {
		return SMResource{}, err
	}
	defer g.end()
	raw, r := g.dev.drv.drv.GreenCtxGetDevResource(g.raw, driver.DevResourceSM)
	return SMResource{g.dev, raw}, g.dev.needs(op, r, "cuGreenCtxGetDevResource", "")
}

// Context stands for g, by its handle. What is made in it keeps g's handle, but once g is closed can only be closed too. Only Close and
// Driver.Close close a g whose Context has been asked for: the garbage collector no longer does. The driver wants a green context to be
// current to one thread at a time: use the device's own context for everything that is not about g. cuCtxFromGreenCtx.
func (g *GreenContext) Context() *Context {
	if g == nil {
		return nil
	}
	if g.res != nil {
		g.ctx.handedOut.Store(g)
	}
	return g.ctx
}

// Close destroys g when the last of its streams is closed. Close twice is fine. cuGreenCtxDestroy.
func (g *GreenContext) Close() error {
	if g == nil || g.res == nil {
		return nil
	}
	return closeHandle(g.res)
}
