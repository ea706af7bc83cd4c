package graphtest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/hostlaunch/cuda"
)

const maxNodes = 200

// rig is what graphs are made and run with.
type rig struct {
	dev    *cuda.Device
	s      *cuda.Stream
	add    *cuda.Kernel
	pinned *cuda.PinnedBuffer
	device *cuda.Buffer
	cells  []uint32 // of pinned
	copied []uint32 // of device
	passed *cuda.Event
	marked *cuda.Event

	mu    sync.Mutex
	wrong error // what a host function saw first
}

func newRig(drv *cuda.Driver, ptx []byte) (*rig, error) {
	r := new(rig)
	var m *cuda.Module
	var errs [8]error
	if r.dev, errs[0] = drv.Device(0); errs[0] != nil {
		return nil, errs[0]
	}
	r.s, errs[1] = r.dev.NewStream()
	m, errs[2] = r.dev.LoadModule(ptx)
	r.pinned, errs[3] = r.dev.AllocPinned(4 * maxNodes)
	r.device, errs[4] = r.dev.Alloc(4 * maxNodes)
	r.passed, errs[5] = r.dev.NewEvent()
	r.marked, errs[6] = r.dev.NewEvent()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	r.cells, r.copied = cuda.PinnedSlice[uint32](r.pinned), make([]uint32, maxNodes)
	var err error
	r.add, err = m.Kernel("increment")
	return r, errors.Join(err, r.s.Record(r.passed), r.s.Sync())
}

// run is one version of a plan at work: the functions of its host nodes.
type run struct {
	rig  *rig
	plan *plan
	runs []uint32 // of each host node; host functions of a context run one at a time
}

func (r *rig) newRun(p *plan) *run { return &run{rig: r, plan: p, runs: make([]uint32, len(p.nodes))} }

// reset begins anew: all cells are 0.
func (v *run) reset() error {
	clear(v.rig.cells)
	clear(v.runs)
	if err := v.rig.s.Memset(v.rig.device, 0); err != nil {
		return err
	}
	return v.rig.s.Sync()
}

// function is that of host node i: what is before the node has happened, what is behind it has not.
func (v *run) function(i int) func() {
	return func() {
		v.runs[i]++
		n, p := v.runs[i], v.plan
		for other := range p.nodes {
			switch want, ok := p.pinned(other, n); {
			case !ok:
			case p.before[i].has(other) && v.rig.cells[other] != want:
				v.fail("run %d of host node %d finds %d of node %d before it, want %d", n, i, v.rig.cells[other], other, want)
			case p.before[other].has(i) && p.changing(other):
				if was := n - 1; v.rig.cells[other] != was {
					v.fail("run %d of host node %d finds %d of node %d behind it, want %d", n, i, v.rig.cells[other], other, was)
				}
			}
		}
		v.rig.cells[i] = n
	}
}

func (v *run) fail(format string, args ...any) {
	v.rig.mu.Lock()
	defer v.rig.mu.Unlock()
	if v.rig.wrong == nil {
		v.rig.wrong = fmt.Errorf(format, args...)
	}
}

// launch runs x a few times, queued at once, and compares all cells.
func (v *run) launch(x *cuda.GraphExec, times uint32) error {
	if err := v.reset(); err != nil {
		return err
	}
	for range times {
		if err := x.Launch(v.rig.s); err != nil {
			return err
		}
	}
	err := cuda.CopyToHost(v.rig.s, v.rig.copied, v.rig.device)
	if err = errors.Join(err, v.rig.s.Sync()); err != nil {
		return err
	}
	v.rig.mu.Lock()
	err, v.rig.wrong = v.rig.wrong, nil
	v.rig.mu.Unlock()
	if err != nil {
		return err
	}
	for i, n := range v.plan.nodes {
		if want, ok := v.plan.pinned(i, times); ok && v.rig.cells[i] != want {
			return fmt.Errorf("after %d launches the %s node %d has left %d, want %d", times, kindNames[n.kind], i, v.rig.cells[i], want)
		}
		if k := n.kind; (k == counter || k == memset) && v.rig.copied[i] != v.plan.device(i, times) {
			return fmt.Errorf("after %d launches the %s node %d has left %d, want %d", times, kindNames[k], i, v.rig.copied[i], v.plan.device(i, times))
		}
	}
	return nil
}
