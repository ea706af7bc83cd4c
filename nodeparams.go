package cuda

import (
	"fmt"
	"slices"
	"sync"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
	"github.com/hostlaunch/cuda/internal/native"
)

// NodeParams say what a node does: a value of KernelParams, MemcpyParams, MemsetParams, HostParams and so on, for
// Graph.AddNode, Graph.SetParams and GraphExec.SetParams. They are checked when they are used, and may be used again. The
// interface is sealed. CUgraphNodeParams.
type NodeParams interface {
	// lower checks the parameters for l's graph, and puts them into l.
	lower(l *lowering) error
}

// lowering makes a driver's parameters of NodeParams.
type lowering struct {
	op     string
	ctx    *Context
	nodes  *nodeTable // of the graph
	params driver.NodeParams
	owner  *owner          // of what the node uses; nil: nothing
	hosts  []hostfn.Handle // that the node runs at a launch
	taken  []*resource     // to be released when the call is over
	packer *packer         // of a kernel node
	deps   []driver.GraphNode
}

// lower makes the driver's parameters of p. end must follow if it returns no error, after owner has been taken over.
func (t *nodeTable) lower(op string, c *Context, p NodeParams) (*lowering, error) {
	if p == nil {
		return nil, failf(op, ErrInvalidValue, "the node's parameters are nil; see KernelParams, HostParams and the like")
	}
	l := lowerings.Get().(*lowering)
	l.op, l.ctx, l.nodes = op, c, t
	err := p.lower(l)
	if err == nil && t.kind == bodyGraph {
		err = l.refuseInBody()
	}
	if err != nil {
		l.drop()
		l.end()
		return nil, err
	}
	return l, nil
}

// drop gives up what the node was to own.
func (l *lowering) drop() {
	if l.owner != nil {
		l.owner.release()
	}
}

// end lets go of what the call used.
func (l *lowering) end() {
	for _, r := range l.taken {
		r.release()
	}
	if l.packer != nil {
		l.packer.put()
	}
	deps := l.deps[:0]
	clear(l.taken)
	*l = lowering{deps: deps, taken: l.taken[:0]}
	lowerings.Put(l)
}

// lowerings are reused: there is one for each node.
var lowerings = sync.Pool{New: func() any { return new(lowering) }}

// use has l hold a resource, of which the caller has a reference that is l's from now on, and the node own it.
func (l *lowering) use(r *resource) {
	l.taken = append(l.taken, r)
	l.own().add(r)
}

func (l *lowering) own() *owner {
	if l.owner == nil {
		l.owner = newOwner(l.ctx.drv)
	}
	return l.owner
}

// buffer uses b as the argument called name.
func (l *lowering) buffer(name string, b *Buffer) error {
	if err := b.acquire(l.op, name, l.ctx); err != nil {
		return err
	}
	l.use(b.res)
	return nil
}

// refuseInBody keeps out of the bodies of conditional nodes what the driver would refuse only when the graph is instantiated.
func (l *lowering) refuseInBody() error {
	switch l.params.Type {
	case driver.NodeKernel, driver.NodeEmpty, driver.NodeGraph, driver.NodeMemset, driver.NodeMemcpy, driver.NodeConditional:
		if len(l.hosts) == 0 {
			return nil
		}
		return failf(l.op, ErrNotSupported, "the child graph has host nodes, which the body of a conditional node cannot have")
	}
	return failf(l.op, ErrNotSupported, "the body of a conditional node can have kernel, empty, child graph, memset, memcpy and conditional nodes, no %s node",
		GraphNodeType(l.params.Type))
}

// EmptyParams are those of a node that does nothing: to gather many nodes before many others with few edges.
func EmptyParams() NodeParams { return emptyParams{} }

type emptyParams struct{}

func (emptyParams) lower(l *lowering) error {
	l.params.Type = driver.NodeEmpty
	return nil
}

// KernelParams launch a kernel of the graph's context. See Stream.Launch for args.
func KernelParams(k *Kernel, cfg LaunchConfig, args ...any) NodeParams {
	return &kernelParams{k, cfg, args}
}

type kernelParams struct {
	kernel *Kernel
	config LaunchConfig
	args   []any
}

func (k *kernelParams) lower(l *lowering) error {
	if err := k.kernel.acquire(l.op, l.ctx); err != nil {
		return err
	}
	l.use(k.kernel.mod.res)
	l.packer = packers.Get().(*packer)
	if err := l.packer.config(l.op, k.config); err != nil {
		return err
	}
	if err := l.packer.arguments(l.op, l.ctx, k.kernel, k.args); err != nil {
		return err
	}
	l.own().add(l.packer.held...)
	l.params.Type, l.params.Func, l.params.Launch = driver.NodeKernel, k.kernel.raw, &l.packer.launch
	return nil
}

// HostParams run a Go function on a thread of the driver, once for every launch of the graph: a host node. See HostLaunch for
// what holds of fn, and for opts.
//
//go:noinline
func HostParams(fn func(), opts ...HostOption) NodeParams {
	return &hostParams{fn, native.CallerPC(), opts}
}

type hostParams struct {
	fn   func()
	site uintptr
	opts []HostOption
}

func (h *hostParams) lower(l *lowering) error {
	if h.fn == nil {
		return failf(l.op, ErrInvalidValue, "the host function is nil")
	}
	c := l.ctx
	fn := hostfn.Func{Run: h.fn, Site: h.site, Group: &c.funcs}
	if len(h.opts) > 0 {
		o, err := newHostOptions(l.op, h.opts)
		if err != nil {
			return err
		}
		fn.More, l.params.Mode = o, uint32(o.mode)
	}
	if l.owner = newHostOwner(c.drv, fn); l.owner == nil {
		return tooManyHosts(l.op)
	}
	l.hosts = l.owner.hosts
	l.params.Type, l.params.Data = driver.NodeHost, uint64(l.hosts[0])
	return nil
}

// NativeParams run a compiled function `void f(void *)` on a thread of the driver, once for every launch of the graph: a host node. See
// HostLaunchNative for fn, data and opts. NativeBytes are copied when a node gets the parameters. The data is owned as long as anything
// can run the node (CONTRACT HL-12).
//
//go:noinline
func NativeParams(fn NativeFunc, data NativeData, opts ...HostOption) NodeParams {
	return &nativeParams{nativeLaunch{"", fn, data, native.CallerPC()}, opts, nil}
}

// HostCopyParams copy src to dst, ranges of host memory of one length, in a host node that does not enter Go. See HostCopy for dst, src and
// opts. Both are kept, and stay where they are, as long as anything can run the node (CONTRACT CY-03).
//
//go:noinline
func HostCopyParams(dst, src HostMemory, opts ...HostOption) NodeParams {
	site := native.CallerPC()
	l := nativeLaunch{"", NativeFunc(native.CopyFunc()), NativeData{}, site}
	return &nativeParams{l, opts, func(op string) (NativeData, error) { return hostEnds(op, dst, src) }}
}

type nativeParams struct {
	launch nativeLaunch
	opts   []HostOption
	data   func(op string) (NativeData, error) // makes the launch's, if it is not nil
}

func (p *nativeParams) lower(l *lowering) (err error) {
	launch := p.launch
	launch.op = l.op
	if p.data != nil {
		if launch.data, err = p.data(l.op); err != nil {
			return err
		}
	}
	o, err := launch.options(p.opts)
	if err != nil {
		return err
	}
	if o == nil {
		o = &hostOptions{native: launch.fn}
	}
	h, call, err := l.ctx.keepNative(&launch, o)
	if err != nil {
		return err
	}
	l.own().hosts = append(l.owner.hosts, h)
	l.hosts = l.owner.hosts
	l.params.Type, l.params.Entry, l.params.Data, l.params.Mode = driver.NodeHost, native.CellEntry(), uint64(call.cell.Address()), uint32(o.mode)
	return nil
}

// EventRecordParams record e, an event of the graph's context, at every launch.
func EventRecordParams(e *Event) NodeParams { return &eventParams{e, driver.NodeEventRecord} }

// EventWaitParams wait, at every launch, for what e's latest record captured.
func EventWaitParams(e *Event) NodeParams { return &eventParams{e, driver.NodeWaitEvent} }

type eventParams struct {
	event *Event
	kind  driver.NodeType
}

func (e *eventParams) lower(l *lowering) error {
	if err := e.event.acquire(l.op, "the event"); err != nil {
		return err
	}
	l.use(e.event.res)
	c := l.ctx
	switch {
	case e.event.ctx.drv != c.drv:
		return failf(l.op, ErrInvalidValue, "the event belongs to %s and the graph to %s; use one Driver for both", e.event.ctx.describe(), c.describeBeside(e.event.ctx))
	case e.kind == driver.NodeEventRecord && e.event.ctx != c:
		return failf(l.op, ErrInvalidHandle, "the event belongs to %s and the graph to %s; record an event in the context that made it", e.event.ctx.describe(), c.describe())
	}
	if e.kind == driver.NodeEventRecord {
		e.event.recordedByGraph()
	}
	l.params.Type, l.params.Event = e.kind, e.event.raw
	return nil
}

// ChildGraphParams run a copy of g as one node. Later changes of g do not reach the copy; what its nodes use lives as long as
// the copy can run (CONTRACT GR-03). g must not have memory allocation, memory free or conditional nodes.
func ChildGraphParams(g *Graph) NodeParams { return &childParams{g} }

type childParams struct{ graph *Graph }

func (p *childParams) lower(l *lowering) error {
	child := p.graph
	if err := child.acquire(l.op); err != nil {
		return err
	}
	l.taken = append(l.taken, child.res)
	c := l.ctx
	switch {
	case child.ctx.drv != c.drv:
		return failf(l.op, ErrInvalidValue, "the child graph belongs to %s and the graph to %s; use one Driver for both", child.ctx.describe(), c.describeBeside(child.ctx))
	case child.outer != nil:
		return failf(l.op, ErrNotSupported, "the child graph is itself inside a node; embed a Clone of it")
	case child.res == l.nodes.graph:
		return failf(l.op, ErrInvalidValue, "a graph cannot be embedded in itself; embed a Clone")
	}
	if err := child.complete(l.op, "the child graph"); err != nil {
		return err
	}
	l.params.Type, l.params.Child, l.hosts = driver.NodeGraph, child.raw, child.nodes.hosts()
	if child.ctx != c && len(l.hosts) > 0 { // whose end would not be told when the launch's context is lost
		return failf(l.op, ErrInvalidContext, "the child graph has host nodes and belongs to %s, and the graph to %s; use one context for both", child.ctx.describe(), c.describe())
	}
	return nil
}

// BatchMemOpParams do memory operations in their order, at most 255. See Stream.Batch.
func BatchMemOpParams(ops ...MemOp) NodeParams { return batchParams(slices.Clone(ops)) }

type batchParams []MemOp

func (b batchParams) lower(l *lowering) error {
	switch {
	case len(b) == 0:
		return failf(l.op, ErrInvalidValue, "no operations: a batch needs at least one")
	case len(b) > driver.MaxBatchMemOps:
		return failf(l.op, ErrInvalidValue, "%d operations: a batch has at most %d; add several nodes", len(b), driver.MaxBatchMemOps)
	}
	raw := make([]driver.MemOp, len(b))
	for i := range b {
		if err := b[i].acquire(l.op, l.ctx); err != nil {
			return err
		}
		raw[i] = b[i].raw
		if b[i].size != 0 {
			raw[i].Address = b[i].at.address()
			l.use(b[i].at.res)
		}
	}
	l.params.Type, l.params.Ops = driver.NodeBatchMemOp, raw
	return nil
}

// MemFreeParams free memory that a node of AddAlloc allocated, of this graph or another one that is launched before.
func MemFreeParams(b *Buffer) NodeParams { return &freeParams{b} }

type freeParams struct{ buffer *Buffer }

func (f *freeParams) lower(l *lowering) error {
	if err := l.buffer("the buffer", f.buffer); err != nil {
		return err
	}
	if f.buffer.res.kind != graphMemory || f.buffer.whole != nil {
		return failf(l.op, ErrInvalidValue, "the buffer is not what AddAlloc gave; close it instead")
	}
	l.params.Type, l.params.Free = driver.NodeMemFree, f.buffer.ptr
	return nil
}

// nodeArgument names node i of n in an error.
func nodeArgument(i, n int) string {
	if n == 1 {
		return "the node"
	}
	return fmt.Sprintf("node %d", i)
}
