package softcuda_test

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/testkernels"
)

// ask is the error of a call whose answer does not matter.
func ask[T any](_ T, err error) error { return err }

// kernel is one of the test kernels.
func (p *called) kernel(name string) *cuda.Kernel {
	mod, e1 := p.dev.LoadModule(testkernels.PTX)
	k, e2 := mod.Kernel(name)
	p.do(e1, e2)
	return k
}

// stream is a new stream.
func (p *called) stream(opts ...cuda.StreamOption) *cuda.Stream {
	s, err := p.dev.NewStream(opts...)
	p.do(err)
	return s
}

// memory is new device memory and pinned memory of a size.
func (p *called) memory(n int) (*cuda.Buffer, *cuda.PinnedBuffer) {
	b, e1 := p.dev.Alloc(n)
	pinned, e2 := p.dev.AllocPinned(n)
	p.do(e1, e2)
	return b, pinned
}

var oneThread = cuda.Grid1D(1, 1)

func streamsProgram(p *called) {
	s, other := p.stream(cuda.Priority(-1)), p.stream(cuda.Blocking())
	ev, e1 := p.dev.NewEvent(cuda.WithTiming())
	last, e2 := p.dev.NewEvent(cuda.WithTiming())
	p.do(e1, e2)
	b, pinned := p.memory(4096)
	k := p.kernel("increment")
	p.do(s.Memset(b, 0))
	p.do(s.Record(ev))
	p.queue(cuda.HostLaunch(s, func() {}, p.done()))
	p.queue(cuda.AddCallback(s, func(error) {}, p.done()))
	p.do(s.Launch(k, oneThread, b, uint32(1)))
	p.do(other.WaitEvent(ev))
	p.do(other.WaitStream(s))
	legacy := p.dev.DefaultStream()
	p.do(legacy.WaitStream(other))
	p.do(legacy.Memset32(b, 1))
	p.do(cuda.CopyToHost(other, pinned.Bytes(), b))
	p.do(other.Record(last))
	p.do(ask(other.Query()))
	p.do(ask(ev.Query()))
	p.do(ev.Sync())
	p.do(last.Wait(context.Background()))
	p.do(ask(last.Elapsed(ev)))
	p.do(s.Wait(context.Background()))
	p.do(p.dev.WithThreadStream(func(own *cuda.Stream) error {
		return errors.Join(own.Memset(b, 2), own.Sync())
	}))
	p.do(other.Sync())
	p.do(other.Close())
	p.do(s.Close())
	p.do(ev.Close())
	p.do(b.Close())
}

func attributesProgram(p *called) {
	_, _, e1 := p.dev.ComputeCapability()
	_, _, e2 := p.dev.StreamPriorities()
	p.do(ask(p.dev.TotalMemory()), e1, e2)
	s, other := p.stream(cuda.Priority(-100), cuda.Clamp()), p.stream()
	p.do(ask(s.ID()))
	p.do(ask(s.Flags()))
	p.do(ask(s.DeviceOrdinal()))
	p.do(ask(s.Priority()))
	p.do(s.SetPriority(0))
	p.do(s.SetSynchronizationPolicy(cuda.SyncAuto))
	p.do(ask(s.SynchronizationPolicy()))
	p.do(s.SetMemSyncDomain(cuda.DomainDefault))
	p.do(ask(s.MemSyncDomain()))
	domains, err := s.MemSyncDomainMap()
	p.do(err)
	p.do(s.SetMemSyncDomainMap(domains))
	p.do(s.SetAccessPolicyWindow(cuda.AccessPolicyWindow{}))
	p.do(ask(s.AccessPolicyWindow()))
	p.do(other.CopyAttributes(s))
	_, _, err = s.Contexts()
	p.do(err)
	if s == nil { // there is nothing to borrow
		return
	}
	borrowed, err := p.dev.BorrowStream(s.CUDAStream())
	p.do(err)
	p.do(borrowed.Sync())
	of, err := p.dev.StreamOf(s)
	p.do(err)
	p.queue(cuda.HostLaunch(of, func() {}, p.done()))
	p.do(of.Close(), borrowed.Close())
	p.do(s.Sync())
	p.do(s.Close())
}

// add adds a node.
func (p *called) add(g *cuda.Graph, params cuda.NodeParams, after ...cuda.GraphNode) cuda.GraphNode {
	n, err := g.AddNode(params, after...)
	p.do(err)
	return n
}

func nothing() cuda.NodeParams { return cuda.HostParams(func() {}) }

func graphsProgram(p *called) {
	s := p.stream()
	b, pinned := p.memory(64)
	ev, e1 := p.dev.NewEvent()
	g, e2 := p.dev.NewGraph()
	inner, e3 := p.dev.NewGraph()
	small, e4 := b.Slice(0, 16)
	other, e5 := b.Slice(16, 16)
	p.do(e1, e2, e3, e4, e5)
	p.add(inner, nothing())
	host := p.add(g, nothing())
	kernel := p.add(g, cuda.KernelParams(p.kernel("increment"), oneThread, b, uint32(1)), host)
	set := p.add(g, cuda.MemsetParams(b, 1), kernel)
	p.add(g, cuda.MemcpyParams(other, small), set)
	p.add(g, cuda.MemcpyToHostParams(pinned.Bytes(), b), set)
	p.add(g, cuda.BatchMemOpParams(cuda.Write32(pinned.Word(0), 1)), set)
	p.add(g, cuda.EventRecordParams(ev), set)
	child := p.add(g, cuda.ChildGraphParams(inner), set)
	last := p.add(g, cuda.EmptyParams(), child)
	p.do(g.AddEdges(cuda.GraphEdge{From: host, To: last}))
	p.do(g.RemoveEdges(cuda.GraphEdge{From: host, To: last}))
	p.do(g.DOT(io.Discard))
	p.do(ask(g.Nodes()))
	p.do(ask(g.Edges()))
	p.do(ask(g.NodeType(child)))
	clone, err := g.Clone()
	p.do(err)
	copied, err := g.FindInClone(host, clone)
	p.do(err)
	p.do(clone.SetParams(copied, nothing()))
	x, err := g.Instantiate(cuda.UploadOn(s))
	p.do(err)
	p.do(x.Upload(s))
	p.do(x.Launch(s))
	p.do(x.SetParams(host, nothing()))
	p.do(x.SetParams(set, cuda.MemsetParams(b, 2)))
	p.do(x.SetParams(child, cuda.ChildGraphParams(inner)))
	p.do(x.SetEnabled(set, false))
	p.do(ask(x.Enabled(set)))
	p.do(x.Launch(s))
	inside, err := g.ChildGraph(child)
	p.do(err)
	p.do(ask(inside.Nodes()))
	p.do(g.SetParams(host, nothing()))
	p.do(g.SetParams(child, cuda.ChildGraphParams(inner)))
	p.do(x.Update(g))
	p.do(x.Launch(s))
	p.do(g.RemoveNode(last))
	p.do(g.RemoveNode(child))
	p.do(s.Sync())
	p.do(x.Close())
	p.do(clone.Close())
	p.do(inner.Close())
	p.do(g.Close())
}

func graphMemoryProgram(p *called) {
	s := p.stream()
	b, _ := p.memory(16)
	k := p.kernel("store")
	g, err := p.dev.NewGraph()
	p.do(err)
	alloc, mem, err := g.AddAlloc(1024)
	p.do(err)
	use := p.add(g, cuda.KernelParams(k, oneThread, mem, uint32(7)), alloc)
	p.add(g, cuda.MemFreeParams(mem), use)
	x, err := g.Instantiate()
	p.do(err)
	p.do(x.Launch(s))
	p.do(s.Sync())
	p.do(x.Close())
	p.do(g.Close())

	g, err = p.dev.NewGraph()
	p.do(err)
	cond, err := g.NewCondition(cuda.AtLaunch(1))
	p.do(err)
	_, then, otherwise, err := g.AddIfElse(cond)
	p.do(err)
	p.add(then, cuda.KernelParams(k, oneThread, b, uint32(1)))
	p.add(otherwise, cuda.MemsetParams(b, 1))
	p.do(g.DOT(io.Discard))
	x, err = g.Instantiate()
	p.do(err)
	p.do(x.Launch(s))
	p.do(s.Sync())
	p.do(x.Close())
	p.do(g.Close())
}

func capturesProgram(p *called) {
	s := p.stream()
	b, pinned := p.memory(4096)
	k := p.kernel("increment")
	ev, e1 := p.dev.NewEvent()
	inner, e2 := p.dev.NewGraph()
	p.do(e1, e2)
	p.add(inner, nothing())
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(b2 *cuda.GraphBuilder) error {
		forks, err := b2.Split(2)
		if err != nil {
			return err
		}
		return errors.Join(b2.Memset(b, 0), cuda.HostLaunch(forks[0], func() {}), forks[1].Memset16(b, 1), b2.Join(forks...))
	})
	p.do(err)
	builder, err := p.dev.NewGraphBuilder()
	p.do(err)
	p.do(builder.Begin(cuda.CaptureRelaxed))
	p.do(cuda.HostLaunch(builder, func() {}, cuda.SyncMode(cuda.Spin)))
	p.do(cuda.HostCopy(builder, pinned, cuda.HostSlice(make([]byte, 4096))))
	p.do(builder.Launch(k, oneThread, b, uint32(1)))
	p.do(builder.WriteValue64(pinned.Word(0), 1))
	p.do(builder.WaitValue64(pinned.Word(0), cuda.ValueGEQ, 0))
	p.do(builder.Batch(cuda.Write32(pinned.Word(8), 1)))
	p.do(builder.RecordExternal(ev))
	p.do(builder.WaitEventExternal(ev))
	p.do(builder.Embed(inner))
	p.do(builder.Task(func(context.Context) error { return nil }))
	p.do(cuda.CopyToHost(builder, pinned.Bytes(), b))
	info, err := builder.CaptureInfo()
	p.do(err)
	p.do(builder.SetDependencies(info.Dependencies...))
	p.do(builder.AddDependencies(info.Dependencies...))
	whole, err := builder.End()
	p.do(err)
	for _, g := range []*cuda.Graph{g, whole} {
		x, err := g.Instantiate()
		p.do(err)
		p.do(x.Launch(s))
		p.do(s.Sync())
		p.do(x.Close())
		p.do(g.Close())
	}
	p.do(builder.Close())
	p.do(inner.Close())
}

func intoGraphProgram(p *called) {
	s := p.stream()
	b, _ := p.memory(64)
	g, e1 := p.dev.NewGraph()
	builder, e2 := p.dev.NewGraphBuilder()
	p.do(e1, e2)
	first := p.add(g, nothing())
	p.do(builder.BeginToGraph(g, []cuda.GraphNode{first}, cuda.CaptureThreadLocal))
	p.do(builder.Memset(b, 1))
	p.do(cuda.HostLaunch(builder, func() {}))
	p.do(ask(builder.End()))
	x, err := g.Instantiate()
	p.do(err)
	p.do(x.Launch(s))
	p.do(s.Sync())
	p.do(x.Close())
	p.do(builder.Close())
	p.do(g.Close())
	dropped, err := p.dev.NewGraphBuilder()
	p.do(err)
	p.do(dropped.Begin(cuda.CaptureThreadLocal))
	p.do(dropped.Memset(b, 3))
	p.do(dropped.Close())
}

// task queues a task that must be told of if it is queued.
func (p *called) task(s *cuda.Stream, fn func(context.Context) error, opts ...cuda.HostOption) *cuda.Task {
	t, err := cuda.Go(s, fn, append(opts, p.done())...)
	p.queue(err)
	return t
}

// short is a task that takes some time.
func short(context.Context) error {
	time.Sleep(time.Millisecond)
	return nil
}

func tasksProgram(p *called) {
	s, other := p.stream(), p.stream()
	b, pinned := p.memory(64)
	ev, err := p.dev.NewEvent()
	p.do(err)
	t := p.task(s, func(context.Context) error {
		return errors.Join(other.Memset(b, 1), other.Record(ev), other.Sync(), ev.Sync())
	})
	p.do(s.Memset(b, 2))
	p.do(cuda.CopyToHost(s, pinned.Bytes(), b))
	if t != nil {
		p.do(t.Wait(context.Background()))
	}
	p.do(s.Sync())
	more, err := p.dev.Alloc(64)
	p.do(err)
	p.task(s, short)
	p.do(more.Close(), ask(p.dev.LoadModule(testkernels.PTX)))
	p.do(s.Sync())
	p.do(p.dev.WithThreadStream(func(own *cuda.Stream) error {
		p.task(own, short)
		return own.Sync()
	}))
	p.do(s.Close())
	p.do(other.Close())
}

// lineProgram has more streams with tasks than can be held, so that most of what it queues waits in the library.
func lineProgram(p *called) {
	b, pinned := p.memory(64)
	k := p.kernel("increment")
	ev, err := p.dev.NewEvent()
	p.do(err)
	var streams []*cuda.Stream
	for range 5 {
		s := p.stream()
		streams = append(streams, s)
		p.task(s, short)
		p.do(s.Memset(b, 1))
		p.do(s.Launch(k, oneThread, b, uint32(1)))
		p.queue(cuda.HostLaunch(s, func() {}, p.done()))
		p.do(s.WriteValue32(pinned.Word(0), 1))
		p.do(s.Record(ev))
		p.do(s.WaitEvent(ev))
		p.do(s.WaitStream(streams[0]))
		p.task(s, short)
	}
	p.do(ev.Wait(context.Background()))
	p.do(cuda.CopyToHost(streams[4], pinned.Bytes(), b))
	for _, s := range streams {
		p.do(s.Sync())
		p.do(s.Close())
	}
	p.do(b.Close())
}

func spinProgram(p *called) {
	s := p.stream()
	b, _ := p.memory(64)
	spin := cuda.SyncMode(cuda.Spin)
	for range 3 {
		p.do(s.Memset(b, 1))
		p.queue(cuda.HostLaunch(s, func() {}, spin, p.done()))
	}
	p.task(s, func(context.Context) error { return nil }, spin)
	p.queue(cuda.HostLaunch(p.dev.DefaultStream(), func() {}, spin, p.done()))
	p.do(s.Sync())
	p.do(s.Close())
}

func copiesProgram(p *called) {
	s := p.stream()
	const n = 1 << 20
	b, pinned := p.memory(n)
	to, _ := p.memory(n)
	host := make([]byte, n)
	copied := func(opts ...cuda.CopyOption) []cuda.CopyOption { return append(opts, cuda.CopyDone(p.tell)) }
	p.queue(cuda.CopyToDevice(s, b, host, copied()...))
	p.queue(cuda.CopyToHost(s, host, b, copied()...))
	p.queue(cuda.CopyToHost(s, host, b, copied(cuda.Direct())...))
	p.queue(cuda.CopyToDevice(s, b, pinned.Bytes(), copied()...))
	p.do(s.CopyBuffer(to, b))
	rows := cuda.Rows{Width: 100, Height: 50, DstPitch: 200, SrcPitch: 150}
	part, err := to.Slice(0, 50*200)
	p.do(err)
	p.do(s.CopyRows(part, b, rows))
	p.queue(cuda.CopyRowsToHost(s, host, b, rows, copied()...))
	p.queue(cuda.CopyRowsToDevice(s, b, host, rows, copied()...))
	p.queue(cuda.HostCopy(s, pinned, cuda.HostSlice(host), p.done()))
	p.do(s.Sync())
	p.do(ask(b.WriteAt(host[:64], 0)))
	p.do(ask(b.ReadAt(host[:64], 0)))
	p.do(to.Close())
	p.do(b.Close())
	p.do(s.Close())
}

func pinnedProgram(p *called) {
	s := p.stream()
	b, _ := p.memory(4096)
	pool, e1 := p.dev.NewPinnedPool(1 << 16)
	pin, e2 := cuda.Pin(p.dev.Context, make([]byte, 4096))
	managed, e3 := p.dev.AllocManaged(4096, cuda.AttachGlobal)
	p.do(e1, e2, e3)
	block, err := pool.Get(context.Background(), 4096)
	p.do(err)
	if block != nil {
		p.do(cuda.CopyToHost(s, block.Bytes(), b))
		p.do(block.ReleaseAfter(s))
	}
	p.do(cuda.CopyToDevice(s, b, make([]byte, 4096), cuda.Staging(pool)))
	if pin != nil {
		p.do(cuda.CopyToDevice(s, b, pin.Bytes()))
	}
	if managed != nil {
		p.do(s.Attach(managed, cuda.AttachSingle))
		p.do(s.Memset(managed.Buffer(), 1))
		p.do(s.Sync())
		p.do(managed.HostAccess())
	}
	p.do(s.Sync())
	p.do(managed.Close())
	p.do(pin.Close())
	p.do(pool.Close())
}

func memOpsProgram(p *called) {
	s, other := p.stream(), p.stream()
	b, pinned := p.memory(64)
	p.do(s.WriteValue32(b.Word(0), 1))
	p.do(s.WriteValue64(pinned.Word(8), 2))
	if p.err == nil { // what is waited for has been written
		p.do(s.WaitValue32(b.Word(0), cuda.ValueEQ, 1))
		p.do(other.WaitValue64(pinned.Word(8), cuda.ValueGEQ, 2))
	}
	p.do(s.Batch(cuda.Write32(b.Word(16), 1), cuda.Barrier(cuda.SystemScope), cuda.Wait32(b.Word(16), cuda.ValueEQ, 1)))
	p.do(s.Sync())
	p.do(other.Sync())
}

func contextsProgram(p *called) {
	own, err := p.dev.NewContext()
	p.do(err)
	if own != nil {
		s, e1 := own.NewStream()
		b, e2 := own.Alloc(64)
		p.do(e1, e2)
		p.do(s.Memset(b, 1))
		p.queue(cuda.HostLaunch(s, func() {}, p.done()))
		p.do(s.Sync())
		p.do(b.Close())
		p.do(s.Close())
		p.do(own.Close())
	}
	all, e1 := p.dev.SMResource()
	parts, _, e2 := all.Split(2, 8, 0)
	if !p.do(e1, e2) {
		return
	}
	green, err := p.dev.NewGreenContext(parts[0])
	p.do(err)
	if green != nil {
		s, err := green.NewStream()
		p.do(err)
		p.queue(cuda.HostLaunch(s, func() {}, p.done()))
		p.do(s.Sync())
		_, _, err = s.Contexts()
		p.do(err)
		p.do(ask(green.SMResource()))
		p.do(s.Close())
		p.do(green.Close())
	}
}
