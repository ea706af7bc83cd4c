package softcuda

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// node is an operation of a random program, with all that it is ordered behind.
type node struct {
	kind   opKind
	stream int
	before map[*node]bool
	seen   bool // by the host
	ran    bool // a host function
}

// program is a random stream program beside the plainest model of activity: sets of operations.
type program struct {
	*testing.T
	m       *machine
	ctx     driver.Context
	streams []driver.Stream // 0 is the legacy one, 1 and 2 are blocking
	ends    []map[*node]bool
	works   []*node
	hosts   []*node // by data
	event   driver.Event
	record  map[*node]bool
	p       driver.DevicePtr   // managed, global
	single  []driver.DevicePtr // attached to each stream
	blocks  []driver.DevicePtr // for memsets, one a stream
	started chan uint64
	resume  chan struct{}
	running *node
}

func newProgram(t *testing.T) *program {
	p := &program{T: t, started: make(chan uint64, 100), resume: make(chan struct{}), streams: []driver.Stream{driver.StreamLegacy}, record: map[*node]bool{}}
	p.m = newMachine(Options{NoConcurrentManagedAccess: true})
	p.m.Attach(driver.Upcalls{HostFunc: func(data uint64) { p.started <- data; <-p.resume }})
	p.ctx, _ = p.m.DevicePrimaryCtxRetain(0)
	p.event, _ = p.m.EventCreate(p.ctx, 0)
	p.p, _ = p.m.MemAllocManaged(p.ctx, 8, driver.MemAttachGlobal)
	for i := range 5 {
		s, _ := p.m.StreamCreateWithPriority(p.ctx, uint32(i/2+1)/2, 0)
		p.streams = append(p.streams, s)
	}
	for range p.streams {
		p.ends = append(p.ends, map[*node]bool{})
		b, _ := p.m.MemAlloc(p.ctx, 8)
		p.blocks = append(p.blocks, b)
	}
	for _, s := range p.streams[1:] {
		a, _ := p.m.MemAllocManaged(p.ctx, 8, driver.MemAttachGlobal)
		want(t, "attach", p.m.StreamAttachMemAsync(p.ctx, s, a, 0, driver.MemAttachSingle), driver.Success)
		p.single = append(p.single, a)
	}
	return p
}

// pending reports whether the event has been recorded and is not complete.
func (p *program) pending() bool {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	latest := p.m.events[p.event].latest
	return latest != nil && !latest.done
}

// blocking reports whether a stream is ordered with the legacy one.
func (p *program) blocking(s int) bool { return p.m.streams[p.streams[s]].blocking() }

func include(to, from map[*node]bool) {
	for n := range from {
		to[n] = true
	}
}

// fence applies the legacy stream's rules to the end of s.
func (p *program) fence(s int) {
	for other := range p.streams[1:] {
		if s == 0 && p.blocking(other+1) {
			include(p.ends[0], p.ends[other+1])
		}
	}
	if s != 0 && p.blocking(s) {
		include(p.ends[s], p.ends[0])
	}
}

// add puts an operation at the end of s.
func (p *program) add(kind opKind, s int) *node {
	p.fence(s)
	n := &node{kind: kind, stream: s, before: map[*node]bool{}}
	include(n.before, p.ends[s])
	p.ends[s][n] = true
	return n
}

func (p *program) see(what map[*node]bool) {
	for n := range what {
		n.seen = true
	}
}

// step does something at random.
func (p *program) step(r *rand.Rand) {
	s := r.IntN(len(p.streams))
	raw := p.streams[s]
	switch r.IntN(9) {
	case 0, 1:
		p.works = append(p.works, p.add(opWork, s))
		want(p.T, "memset", p.m.MemsetD8Async(p.ctx, p.blocks[s], 1, 8, raw), driver.Success)
	case 2:
		p.hosts = append(p.hosts, p.add(opHost, s))
		want(p.T, "function", p.m.LaunchHostFunc(p.ctx, raw, uint64(len(p.hosts)-1)), driver.Success)
	case 3:
		p.fence(s)
		p.record = map[*node]bool{}
		include(p.record, p.ends[s])
		want(p.T, "record", p.m.EventRecord(p.ctx, p.event, raw), driver.Success)
	case 4, 5:
		if p.pending() { // else nothing is queued, and nothing ordered behind the legacy stream
			p.fence(s)
		}
		include(p.ends[s], p.record)
		want(p.T, "wait", p.m.StreamWaitEvent(p.ctx, raw, p.event, 0), driver.Success)
	case 6:
		if p.m.StreamQuery(p.ctx, raw) == driver.Success {
			if s == 0 {
				p.fence(0)
			}
			p.see(p.ends[s])
		}
	case 7:
		if p.m.EventQuery(p.ctx, p.event) == driver.Success {
			p.see(p.record)
		}
	case 8:
		p.release()
	}
	p.settle()
}

// release lets the running function return.
func (p *program) release() {
	if p.running != nil {
		p.resume <- struct{}{}
		p.running.ran, p.running = true, nil
	}
}

// settle waits until nothing moves: all device work that can be done is, and a function runs, or none can.
func (p *program) settle() {
	for deadline := time.Now().Add(5 * time.Second); ; runtime.Gosched() {
		if p.running == nil && len(p.started) > 0 {
			p.running = p.hosts[<-p.started]
			p.see(p.running.before)
		}
		if p.still() {
			return
		}
		if time.Now().After(deadline) {
			p.Fatal("it does not settle")
		}
	}
}

func (p *program) still() bool {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	c := p.m.contexts[p.ctx]
	for s := range c.busy {
		if s.first.kind != opHost && s.first.waits == 0 {
			return false
		}
	}
	return c.host.served == (p.running != nil) && len(p.started) == 0
}

// active is the model's answer.
func (p *program) active(s int) bool {
	for _, w := range p.works {
		if w.stream != s || w.seen {
			continue
		}
		held := false
		for n := range w.before {
			held = held || n.kind == opHost && !n.ran
		}
		if !held {
			return true
		}
	}
	return false
}

// check compares.
func (p *program) check(seed, step int) {
	p.Helper()
	any := false
	for s := range p.streams {
		active := p.active(s)
		any = any || active
		if s == 0 {
			continue
		}
		if _, r := p.m.HostAccess(p.ctx, p.single[s-1]); (r == driver.ErrorNotReady) != active {
			p.Fatalf("seed %d, step %d: stream %d: %s, active in the model: %v", seed, step, s, r.Name(), active)
		}
	}
	if _, r := p.m.HostAccess(p.ctx, p.p); (r == driver.ErrorNotReady) != any {
		p.Fatalf("seed %d, step %d: global memory: %s, some stream active in the model: %v", seed, step, r.Name(), any)
	}
}

// TestActivityModel runs random programs: the checker says at every step what sets of operations say (CONTRACT HL-19, HL-20).
func TestActivityModel(t *testing.T) {
	programs := 300
	if testing.Short() {
		programs = 50
	}
	for seed := range programs {
		p := newProgram(t)
		r := rand.New(rand.NewPCG(uint64(seed), 0))
		for step := range 60 {
			p.step(r)
			p.check(seed, step)
		}
		for p.settle(); p.running != nil; p.settle() {
			p.release()
		}
		want(t, "sync", p.m.CtxSynchronize(p.ctx), driver.Success)
		p.m.Shut()
	}
}
