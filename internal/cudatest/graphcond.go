package cudatest

import (
	"slices"

	"github.com/hostlaunch/cuda"
)

var graphCondCases = []Case{
	{ID: "GR-11", Name: "if", Run: conditionalIf},
	{ID: "GR-11", Name: "if and else", Run: conditionalElse},
	{ID: "GR-11", Name: "while", Run: conditionalWhile},
	{ID: "GR-11", Name: "switch", Run: conditionalSwitch},
	{ID: "GR-11", Name: "nested", Run: conditionalNested},
	{ID: "GR-11", Name: "captured body", Run: conditionalCaptured},
	{ID: "GR-11", Name: "refused", Run: conditionalRefused},
	{ID: "GR-12", Name: "allocate and free", Run: graphAllocates},
	{ID: "GR-12", Name: "used behind the launch", Run: allocationOutlives},
	{ID: "GR-12", Name: "refused", Run: allocationRefused},
}

// condKernels loads the kernels that set conditions, or skips the case where the driver has no conditional nodes.
func (t *T) condKernels() (set, countdown *cuda.Kernel) {
	t.Helper()
	if v := t.Driver.Version(); v < 12080 {
		t.Skipf("conditional nodes with all that they can came with CUDA 12.8; this driver is of %v", v)
	}
	m, err := t.Device(0).LoadModule(t.cfg.ConditionalPTX)
	t.OK(err)
	t.Cleanup(func() { m.Close() })
	set, err = m.Kernel("setcond")
	t.OK(err)
	countdown, err = m.Kernel("countdown")
	t.OK(err)
	return set, countdown
}

// Condition makes a condition of g.
func (t *T) Condition(g *cuda.Graph, opts ...cuda.ConditionOption) cuda.Condition {
	t.Helper()
	c, err := g.NewCondition(opts...)
	t.OK(err)
	return c
}

// Bytes are the contents of b, behind s.
func (t *T) Bytes(s *cuda.Stream, b *cuda.Buffer) []byte {
	t.Helper()
	out := make([]byte, b.Len())
	t.OK(cuda.CopyToHost(s, out, b))
	t.Sync(s)
	return out
}

func conditionalIf(t *T) {
	set, _ := t.condKernels()
	s, v := t.Stream(), t.Buffer(2)
	first, err := v.Slice(0, 1)
	t.OK(err)
	second, err := v.Slice(1, 1)
	t.OK(err)
	for value := range uint32(2) {
		g := t.Graph()
		cond := t.Condition(g)
		a := t.Node(g, cuda.KernelParams(set, one, cond, value))
		n, then, err := g.AddIf(cond, a)
		t.OK(err)
		t.Node(then, cuda.MemsetParams(first, 1))
		t.Node(g, cuda.MemsetParams(second, 1), n)
		x := t.Exec(g)
		for range 2 {
			t.OK(s.Memset(v, 9))
			t.Run(x, s)
			if got, want := t.Bytes(s, v), []byte{9 - 8*byte(value), 1}; !slices.Equal(got, want) {
				t.Errorf("condition %d: %v, want %v", value, got, want)
			}
		}
	}
}

func conditionalElse(t *T) {
	t.condKernels()
	s, v := t.Stream(), t.Buffer(1)
	for value := range uint32(2) {
		g := t.Graph()
		_, then, otherwise, err := g.AddIfElse(t.Condition(g, cuda.AtLaunch(value)))
		t.OK(err)
		t.Node(then, cuda.MemsetParams(v, 1))
		t.Node(otherwise, cuda.MemsetParams(v, 0))
		t.OK(s.Memset(v, 9))
		t.Run(t.Exec(g), s)
		if got := t.Bytes(s, v)[0]; uint32(got) != value {
			t.Errorf("condition %d: %d", value, got)
		}
	}
}

func conditionalWhile(t *T) {
	_, countdown := t.condKernels()
	s, n, count := t.Stream(), t.Buffer(4), t.Buffer(4)
	g := t.Graph()
	cond := t.Condition(g, cuda.AtLaunch(1))
	a := t.Node(g, cuda.Memset32Params(n, 5))
	loop, body, err := g.AddWhile(cond, a)
	t.OK(err)
	i := t.Node(body, cuda.KernelParams(t.Kernel("increment"), one, count, uint32(1)))
	t.Node(body, cuda.KernelParams(countdown, one, cond, n), i)
	t.Node(g, cuda.KernelParams(t.Kernel("increment"), one, count, uint32(1)), loop)
	x := t.Exec(g)
	t.OK(s.Memset(count, 0))
	for i := range 3 {
		t.Run(x, s)
		if got := t.Bytes(s, count)[0]; got != byte(6*(i+1)) {
			t.Fatalf("%d increments after %d launches of 5 iterations and one more", got, i+1)
		}
	}
}

func conditionalSwitch(t *T) {
	set, _ := t.condKernels()
	s, v := t.Stream(), t.Buffer(1)
	for value := range uint32(4) {
		g := t.Graph()
		cond := t.Condition(g)
		a := t.Node(g, cuda.KernelParams(set, one, cond, value))
		_, cases, err := g.AddSwitch(cond, 3, a)
		t.OK(err)
		for i, c := range cases {
			t.Node(c, cuda.MemsetParams(v, byte(i)))
		}
		t.OK(s.Memset(v, 3))
		t.Run(t.Exec(g), s)
		if got := t.Bytes(s, v)[0]; uint32(got) != value {
			t.Errorf("case %d: %d", value, got)
		}
	}
}

// conditionalNested: a loop of 3 turns, each of which runs a loop of 4.
func conditionalNested(t *T) {
	_, countdown := t.condKernels()
	s, outer, inner, count := t.Stream(), t.Buffer(4), t.Buffer(4), t.Buffer(4)
	g := t.Graph()
	out, in := t.Condition(g, cuda.AtLaunch(1)), t.Condition(g, cuda.AtLaunch(1))
	a := t.Node(g, cuda.Memset32Params(outer, 3))
	_, body, err := g.AddWhile(out, a)
	t.OK(err)
	set, _ := t.condKernels()
	b := t.Node(body, cuda.Memset32Params(inner, 4))
	c := t.Node(body, cuda.KernelParams(set, one, in, uint32(1)), b)
	loop, turns, err := body.AddWhile(in, c)
	t.OK(err)
	d := t.Node(turns, cuda.KernelParams(t.Kernel("increment"), one, count, uint32(1)))
	t.Node(turns, cuda.KernelParams(countdown, one, in, inner), d)
	t.Node(body, cuda.KernelParams(countdown, one, out, outer), loop)
	t.OK(s.Memset(count, 0))
	t.Run(t.Exec(g), s)
	if got := t.Bytes(s, count)[0]; got != 12 {
		t.Errorf("%d turns, want 12", got)
	}
}

func conditionalCaptured(t *T) {
	t.condKernels()
	s, v := t.Stream(), t.Buffer(4)
	g := t.Graph()
	_, then, err := g.AddIf(t.Condition(g, cuda.AtLaunch(1)))
	t.OK(err)
	b, err := t.Device(0).NewGraphBuilder()
	t.OK(err)
	t.Cleanup(func() { b.Close() })
	t.OK(b.BeginToGraph(then, nil, cuda.CaptureRelaxed))
	t.OK(b.Memset(v, 4))
	t.Is(cuda.HostLaunch(b, func() {}), cuda.ErrNotSupported)
	_, err = b.End()
	t.OK(err)
	t.OK(s.Memset(v, 9))
	t.Run(t.Exec(g), s)
	if got := t.Bytes(s, v)[0]; got != 4 {
		t.Errorf("the captured body gives %d", got)
	}
}

func conditionalRefused(t *T) {
	t.condKernels()
	g, other := t.Graph(), t.Graph()
	foreign := t.Condition(other)
	for _, cond := range []cuda.Condition{{}, foreign} {
		_, _, err := g.AddIf(cond)
		t.Is(err, cuda.ErrInvalidValue)
	}
	_, err := other.Instantiate() // with a condition that no node uses
	t.Is(err, cuda.ErrInvalidValue)
	t.Contains(err, "Condition")
	_, _, err = g.AddSwitch(t.Condition(g), 0)
	t.Is(err, cuda.ErrInvalidValue)
	n, body, err := g.AddIf(t.Condition(g, cuda.AtLaunch(1)))
	t.OK(err)
	for _, p := range []cuda.NodeParams{cuda.HostParams(func() {}), cuda.EventRecordParams(t.Event()), cuda.BatchMemOpParams(cuda.Write32(t.Buffer(4).Word(0), 1))} {
		_, err := body.AddNode(p)
		t.Is(err, cuda.ErrNotSupported)
	}
	_, _, err = body.AddAlloc(16)
	t.Is(err, cuda.ErrNotSupported)
	hosts := t.Graph()
	t.Node(hosts, cuda.HostParams(func() {}))
	_, err = body.AddNode(cuda.ChildGraphParams(hosts))
	t.Is(err, cuda.ErrNotSupported)
	_, err = body.Instantiate()
	t.Is(err, cuda.ErrInvalidValue)
	t.OK(body.Close()) // does nothing
	t.Node(body, cuda.EmptyParams())
	_, err = g.Clone()
	t.Is(err, cuda.ErrNotSupported)
	_, err = t.Graph().AddNode(cuda.ChildGraphParams(g))
	t.Is(err, cuda.ErrNotSupported)
	if err := g.RemoveNode(n); err == nil {
		_, err = body.AddNode(cuda.EmptyParams())
		t.Is(err, cuda.ErrClosed)
	} else {
		t.Is(err, cuda.ErrNotSupported)
	}
}

func graphAllocates(t *T) {
	s, out := t.Stream(), t.Pinned(16).Bytes()
	g := t.Graph()
	a, b, err := g.AddAlloc(16)
	t.OK(err)
	set := t.Node(g, cuda.MemsetParams(b, 5), a)
	cp := t.Node(g, cuda.MemcpyToHostParams(out, b), set)
	t.Node(g, cuda.MemFreeParams(b), cp)
	_, err = g.AddNode(cuda.MemFreeParams(b), cp) // twice
	t.Is(err, cuda.ErrInvalidValue)
	x := t.Exec(g)
	for range 3 {
		clear(out)
		t.Run(x, s)
		if out[15] != 5 {
			t.Fatalf("copied %d", out[15])
		}
	}
}

func allocationOutlives(t *T) {
	s, out := t.Stream(), t.Pinned(16).Bytes()
	g, free := t.Graph(), t.Graph()
	a, b, err := g.AddAlloc(16)
	t.OK(err)
	t.Node(g, cuda.MemsetParams(b, 6), a)
	x := t.Exec(g)
	t.OK(x.Launch(s))
	t.OK(cuda.CopyToHost(s, out, b)) // the stream's own work may use it
	err = x.Launch(s)
	t.Is(err, cuda.ErrInvalidValue)
	t.Contains(err, "AutoFreeOnLaunch")
	t.Node(free, cuda.MemFreeParams(b))
	freed := t.Exec(free)
	t.OK(freed.Launch(s))
	t.OK(x.Launch(s))
	t.Sync(s)
	if out[0] != 6 {
		t.Errorf("copied %d", out[0])
	}
	t.OK(freed.Launch(s))
	t.Sync(s)
	t.OK(x.Close())
	auto, err := g.Instantiate(cuda.AutoFreeOnLaunch())
	t.OK(err)
	t.Cleanup(func() { auto.Close() })
	for range 3 {
		t.OK(auto.Launch(s))
	}
	t.OK(freed.Launch(s))
	t.Sync(s)
}

func allocationRefused(t *T) {
	g := t.Graph()
	a, b, err := g.AddAlloc(1 << 16)
	t.OK(err)
	set := t.Node(g, cuda.MemsetParams(b, 1), a)
	_, _, err = g.AddAlloc(0)
	t.Is(err, cuda.ErrInvalidValue)
	_, err = g.Clone()
	t.Is(err, cuda.ErrNotSupported)
	_, err = t.Graph().AddNode(cuda.ChildGraphParams(g))
	t.Is(err, cuda.ErrNotSupported)
	t.Is(g.RemoveNode(a), cuda.ErrNotSupported)
	t.Is(g.RemoveEdges(cuda.GraphEdge{From: a, To: set}), cuda.ErrNotSupported)
	half, err := b.Slice(0, 8)
	t.OK(err)
	_, err = g.AddNode(cuda.MemFreeParams(half), a)
	t.Is(err, cuda.ErrInvalidValue)
	x := t.Exec(g)
	_, err = g.Instantiate()
	t.Is(err, cuda.ErrNotSupported)
	t.OK(x.Close())
	t.OK(b.Close())
	_, err = g.AddNode(cuda.MemsetParams(b, 1), a)
	t.Is(err, cuda.ErrClosed)
}
