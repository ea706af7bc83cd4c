package cuda

import (
	"slices"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
)

// Launch adds a kernel. See Stream.Launch.
func (b *GraphBuilder) Launch(k *Kernel, cfg LaunchConfig, args ...any) error {
	const op = "GraphBuilder.Launch"
	if _, err := b.building(op); err != nil {
		return err
	}
	return b.stream.launch(op, k, cfg, args)
}

// Memset adds filling buf with value.
func (b *GraphBuilder) Memset(buf *Buffer, value byte) error {
	const op = "GraphBuilder.Memset"
	if _, err := b.building(op); err != nil {
		return err
	}
	return b.stream.memset8(op, buf, value)
}

// Memset16 adds filling buf with a value of two bytes.
func (b *GraphBuilder) Memset16(buf *Buffer, value uint16) error {
	const op = "GraphBuilder.Memset16"
	if _, err := b.building(op); err != nil {
		return err
	}
	return b.stream.memset16(op, buf, value)
}

// Memset32 adds filling buf with a value of four bytes.
func (b *GraphBuilder) Memset32(buf *Buffer, value uint32) error {
	const op = "GraphBuilder.Memset32"
	if _, err := b.building(op); err != nil {
		return err
	}
	return b.stream.memset32(op, buf, value)
}

// CopyBuffer adds a copy from src to dst, which must be of one length.
func (b *GraphBuilder) CopyBuffer(dst, src *Buffer) error {
	const op = "GraphBuilder.CopyBuffer"
	if _, err := b.building(op); err != nil {
		return err
	}
	return b.stream.copyBuffer(op, dst, src)
}

// copyToHost implements Queue.
func (b *GraphBuilder) copyToHost(op string, dst hostRange, src *Buffer, o *copyOptions) error {
	if _, err := b.building(op); err != nil {
		return err
	}
	return b.stream.copyToHost(op, dst, src, o)
}

// copyToDevice implements Queue.
func (b *GraphBuilder) copyToDevice(op string, dst *Buffer, src hostRange, o *copyOptions) error {
	if _, err := b.building(op); err != nil {
		return err
	}
	return b.stream.copyToDevice(op, dst, src, o)
}

// Record has e mark the place in the graph where b stands, for WaitEvent of a builder or stream that is to join the capture
// or belongs to it. It adds no node, and e has no time: asking whether it is complete is ErrCapturedEvent (CONTRACT EV-04).
// To record e at every launch see RecordExternal.
func (b *GraphBuilder) Record(e *Event) error {
	const op = "GraphBuilder.Record"
	if _, err := b.building(op); err != nil {
		return err
	}
	return b.stream.record(op, e, driver.EventDefault)
}

// WaitEvent has what b adds next come behind the place that e marks. e must have been recorded in the same capture, else the
// driver refuses it with ErrCaptureIsolation and the capture is invalid; to wait at every launch see WaitEventExternal.
func (b *GraphBuilder) WaitEvent(e *Event) error {
	const op = "GraphBuilder.WaitEvent"
	if _, err := b.building(op); err != nil {
		return err
	}
	return b.stream.waitEvent(op, e, 0)
}

// WaitStream has what b adds next come behind what other has captured so far. other must belong to the capture: it was forked
// from it with WaitEvent or WaitStream. If it does not, it is ErrCaptureIsolation, and the capture stays valid.
func (b *GraphBuilder) WaitStream(other *Stream) error {
	const op = "GraphBuilder.WaitStream"
	c, err := b.building(op)
	if err != nil {
		return err
	}
	if other != nil && other.capture() != c {
		return failf(op, ErrCaptureIsolation, "other does not belong to the capture; a graph cannot wait for work outside of it")
	}
	return b.stream.waitStream(op, other)
}

// RecordExternal adds a node that records e at every launch, for streams and the program to wait for (CONTRACT CP-09).
// cuEventRecordWithFlags.
func (b *GraphBuilder) RecordExternal(e *Event) error {
	const op = "GraphBuilder.RecordExternal"
	if _, err := b.building(op); err != nil {
		return err
	}
	return b.stream.record(op, e, driver.EventRecordExternal)
}

// WaitEventExternal adds a node that waits, at every launch, for e's latest record (CONTRACT CP-09). cuStreamWaitEvent.
func (b *GraphBuilder) WaitEventExternal(e *Event) error {
	const op = "GraphBuilder.WaitEventExternal"
	if _, err := b.building(op); err != nil {
		return err
	}
	return b.stream.waitEvent(op, e, driver.EventWaitExternal)
}

// hostLaunch implements Queue: it adds a host node, whose function stays until nothing can run it any more.
func (b *GraphBuilder) hostLaunch(fn func(), site uintptr, opts []HostOption) error {
	const op = "HostLaunch"
	c, err := b.building(op)
	if err != nil {
		return err
	}
	s := b.stream
	if err := s.begin(op); err != nil {
		return err
	}
	defer s.end()
	if fn == nil {
		return failf(op, ErrInvalidValue, "fn is nil")
	}
	if err := c.nodes.mayHaveHosts(op); err != nil {
		return err
	}
	kept := hostfn.Func{Run: fn, Site: site, Group: &s.ctx.funcs}
	if len(opts) > 0 {
		o, err := newHostOptions(op, opts)
		if err != nil {
			return err
		}
		kept.More = o
	}
	h := s.ctx.drv.funcs.Keep(kept)
	if h == 0 {
		return tooManyHosts(op)
	}
	r, err := c.addHost(op, h, func() driver.Result { return s.ctx.launch(s.raw, h, kept) })
	if err != nil {
		return err
	}
	return s.ctx.resultf(op, r, "the driver refused the host function; it is not in the graph")
}

// addHost has launch capture the host node of a kept function, which is the capture's from then on. An error: there was no call.
func (c *capture) addHost(op string, h hostfn.Handle, launch func() driver.Result) (driver.Result, error) {
	if !c.keepNode(h) {
		c.origin.ctx.drv.funcs.Drop(h)
		return 0, failf(op, ErrNotBuilding, "the graph builder has ended")
	}
	r := launch()
	if r != driver.Success {
		c.dropNode(h)
	}
	return r, nil
}

// tooManyHosts is the error of a host node for whose function there is no room.
func tooManyHosts(op string) error {
	return failf(op, ErrOutOfMemory, "there are 16 million host nodes; close graphs that are not needed")
}

// keepNode has the capture own a host function, unless it is over.
func (c *capture) keepNode(h hostfn.Handle) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.owner.hosts = append(c.owner.hosts, h)
	}
	return !c.over
}

// dropNode takes a host function back that the driver refused.
func (c *capture) dropNode(h hostfn.Handle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owner.hosts = slices.DeleteFunc(c.owner.hosts, func(other hostfn.Handle) bool { return other == h })
	c.origin.ctx.drv.funcs.Drop(h)
}

func (c *capture) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}
