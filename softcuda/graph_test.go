package softcuda

import (
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// graphRig is a machine whose host functions are noted by their data, with some kernels.
type graphRig struct {
	*captureRig
	mu   sync.Mutex
	ran  []uint64
	hook map[uint64]func() // what a host function does
	m    driver.Module
}

const graphPTX = `.version 8.3
.target sm_70
.entry note(.param .u64 v)
.entry setcond(.param .u64 h, .param .u32 v)
.entry countdown(.param .u64 h, .param .u64 n)
.entry fault()
.entry missing()
`

func newGraphRig(t *testing.T) *graphRig {
	g := &graphRig{hook: map[uint64]func(){}}
	m := newMachine(Options{Memory: 1 << 24, Kernels: Kernels{
		"note":    func(l *Launch) { g.note(Arg[uint64](l, 0)) },
		"setcond": func(l *Launch) { l.SetConditional(Arg[uint64](l, 0), Arg[uint32](l, 1)) },
		"countdown": func(l *Launch) {
			n := Slice[int32](l, 1, 1)
			n[0]--
			l.SetConditional(Arg[uint64](l, 0), uint32(max(n[0], 0)))
		},
		"fault": func(*Launch) { panic("a fault") },
	}})
	m.Attach(driver.Upcalls{
		HostFunc: func(data uint64) {
			g.mu.Lock()
			do := g.hook[data]
			g.mu.Unlock()
			if do != nil {
				do()
			}
			g.note(data)
		},
		Lost: func(driver.Context, driver.Result) {}, Log: func(string, ...any) {},
	})
	g.captureRig = &captureRig{machine: m, t: t}
	t.Cleanup(m.Shut)
	g.ctx, _ = m.DevicePrimaryCtxRetain(0)
	g.a, _ = m.StreamCreateWithPriority(g.ctx, driver.StreamNonBlocking, 0)
	g.b, _ = m.StreamCreateWithPriority(g.ctx, driver.StreamNonBlocking, 0)
	g.e, _ = m.EventCreate(g.ctx, driver.EventDisableTiming)
	var r driver.Result
	g.m, _, r = m.ModuleLoadData(g.ctx, []byte(graphPTX))
	g.want("load", r, 0)
	return g
}

func (g *graphRig) note(v uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ran = append(g.ran, v)
}

// noted gives what has been noted since the last call.
func (g *graphRig) noted() []uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	ran := g.ran
	g.ran = nil
	return ran
}

// expect wants to have noted exactly these, in order.
func (g *graphRig) expect(what string, want ...uint64) {
	g.t.Helper()
	if got := g.noted(); !slices.Equal(got, want) {
		g.t.Errorf("%s: noted %v, want %v", what, got, want)
	}
}

func (g *graphRig) graph() driver.Graph {
	g.t.Helper()
	raw, r := g.GraphCreate(g.ctx, 0)
	g.want("create", r, 0)
	return raw
}

// add adds a node that must be accepted.
func (g *graphRig) add(to driver.Graph, p *driver.NodeParams, deps ...driver.GraphNode) driver.GraphNode {
	g.t.Helper()
	n, r := g.GraphAddNode(g.ctx, to, deps, nil, p)
	g.want("add node", r, 0)
	return n
}

// refused wants a node not to be accepted.
func (g *graphRig) refused(what string, want driver.Result, to driver.Graph, p *driver.NodeParams, deps ...driver.GraphNode) {
	g.t.Helper()
	n, r := g.GraphAddNode(g.ctx, to, deps, nil, p)
	g.want(what, r, want)
	if n != 0 {
		g.t.Errorf("%s: node %d", what, n)
	}
}

func (g *graphRig) host(to driver.Graph, data uint64, deps ...driver.GraphNode) driver.GraphNode {
	g.t.Helper()
	return g.add(to, hostNode(data), deps...)
}

func hostNode(data uint64) *driver.NodeParams {
	return &driver.NodeParams{Type: driver.NodeHost, Data: data}
}

var emptyNode = &driver.NodeParams{Type: driver.NodeEmpty}

// kernelNode is a launch of a kernel with arguments of 8 and 4 bytes.
func (g *graphRig) kernelNode(name string, args ...any) *driver.NodeParams {
	g.t.Helper()
	f, r := g.ModuleGetFunction(g.ctx, g.m, name)
	g.want("function", r, 0)
	l := &driver.Launch{Grid: [3]uint32{1, 2, 3}, Block: [3]uint32{4, 5, 6}}
	for _, a := range args {
		l.Offsets = append(l.Offsets, uint32(len(l.Params)))
		l.Params, _ = binary.Append(l.Params, binary.NativeEndian, a)
	}
	return &driver.NodeParams{Type: driver.NodeKernel, Func: f, Launch: l}
}

func (g *graphRig) instantiate(raw driver.Graph, flags uint64, want driver.Result) driver.GraphExec {
	g.t.Helper()
	x, r := g.GraphInstantiateWithParams(g.ctx, raw, &driver.Instantiation{Flags: flags})
	g.want("instantiate", r, want)
	return x
}

// run launches x on a and waits.
func (g *graphRig) run(x driver.GraphExec) {
	g.t.Helper()
	g.want("launch", g.GraphLaunch(g.ctx, x, g.a), 0)
	g.want("synchronise", g.StreamSynchronize(g.ctx, g.a), 0)
}

func (g *graphRig) alloc(n uintptr) driver.DevicePtr {
	g.t.Helper()
	p, r := g.MemAlloc(g.ctx, n)
	g.want("alloc", r, 0)
	return p
}

// memory is what is at p.
func (g *graphRig) memory(p driver.DevicePtr, n int) []byte {
	g.t.Helper()
	out := make([]byte, n)
	g.want("read", g.MemcpyDtoH(g.ctx, unsafe.Pointer(&out[0]), p, uintptr(n)), 0)
	return out
}

// eventually waits for something that another goroutine is about to do.
func (g *graphRig) eventually(what string, ok func() bool) {
	g.t.Helper()
	for start := time.Now(); !ok(); time.Sleep(100 * time.Microsecond) {
		if time.Since(start) > 10*time.Second {
			g.t.Fatal("never: ", what)
		}
	}
}

// gate is a host function that waits until it is let go.
func (g *graphRig) gate(data uint64) (started, release chan struct{}) {
	started, release = make(chan struct{}, 1), make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hook[data] = func() { started <- struct{}{}; <-release }
	return started, release
}

// empty wants the machine to have forgotten everything about graphs.
func (g *graphRig) empty() {
	g.t.Helper()
	g.machine.mu.Lock()
	defer g.machine.mu.Unlock()
	if n := len(g.graphs) + len(g.nodes) + len(g.execs) + len(g.conds) + len(g.objects) + len(g.reserved); n != 0 {
		g.t.Errorf("left: %d graphs, %d nodes, %d executables, %d conditionals, %d objects, %d reservations",
			len(g.graphs), len(g.nodes), len(g.execs), len(g.conds), len(g.objects), len(g.reserved))
	}
}
