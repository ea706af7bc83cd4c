package softcuda

import (
	"slices"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/native"
)

// action is what a node does, with its parameters. It is never changed: other parameters are another action, so a launch keeps
// those that it began with.
type action struct {
	kind  opKind
	work  func() driver.Result
	data  uint64         // of a host node
	event driver.Event   // of an event node
	call  *kernelCall    // of a kernel node
	flat  bool           // of a copy or memset: one row
	ends  [2]place       // of a copy or memset: where its memory is
	load  load           // of a copy or memset; captured ones note it if there is a Cost
	form  any            // of a copy or memset: the parameters, if it was not captured
	batch []driver.MemOp // of a batch of memory operations
	steps []*op          // what the batch does, one after another
	mem   *reservation   // of a memory node

	touches *[]touch // of a copy, a memset or a native function: what it does with memory, if there is a checker
	exact   bool     // of a native function: that is all
}

// place says where one end of a copy is. The zero place is any: captures do not note it.
type place struct {
	typ driver.MemoryType
	dev int // 1 is device 0; 0 is host memory
}

// newAction makes the action of those nodes whose parameters can be set.
func (m *machine) newAction(c *context, p *driver.NodeParams) (*action, driver.Result) {
	switch p.Type {
	case driver.NodeKernel:
		if p.Launch == nil {
			return nil, driver.ErrorInvalidValue
		}
		call, _, r := m.newCall(c, p.Func, p.Launch)
		return call.action(), r
	case driver.NodeMemcpy:
		return m.copyAction(c.dev, p.Copy)
	case driver.NodeMemset:
		return m.memsetAction(c.dev, p.Memset)
	case driver.NodeHost:
		if p.Mode > mostSyncMode {
			return nil, driver.ErrorInvalidValue
		}
		return hostAction(p.Entry, p.Data)
	case driver.NodeEventRecord, driver.NodeWaitEvent:
		if m.events[p.Event] == nil {
			return nil, driver.ErrorInvalidValue
		}
		return &action{kind: opMark, event: p.Event}, driver.Success
	case driver.NodeBatchMemOp:
		return m.batchAction(p.Ops)
	}
	return nil, driver.ErrorInvalidValue
}

// batchAction makes the action of a node of memory operations.
// hostAction calls a host function: of the program in Go, or a compiled one.
func hostAction(entry uintptr, data uint64) (*action, driver.Result) {
	if entry == 0 {
		return &action{kind: opHost, data: data}, driver.Success
	}
	if !native.Callable(entry, uintptr(data)) {
		return nil, driver.ErrorNotSupported
	}
	return &action{kind: opHost, work: callNative(entry, uintptr(data)), data: data}, driver.Success
}

func (m *machine) batchAction(list []driver.MemOp) (*action, driver.Result) {
	if len(list) == 0 {
		return nil, driver.ErrorInvalidValue
	}
	steps, r := m.newMemOps(list)
	return &action{batch: slices.Clone(list), steps: steps}, r
}

// replaces answers whether an executable takes b for a, its node's action: what it has made ready must still fit.
func (b *action) replaces(a *action) bool {
	switch {
	case a.batch != nil:
		return slices.EqualFunc(a.batch, b.batch, sameMemOp)
	case a.mem != nil:
		return a.mem == b.mem
	case a.form != nil && a.form == b.form:
		return true
	}
	return a.flat == b.flat && (a.flat || a.ends == [2]place{}) && sameplace(a.ends[0], b.ends[0]) && sameplace(a.ends[1], b.ends[1])
}

func sameplace(a, b place) bool { return a == b || a == place{} || b == place{} }

// sameMemOp reports whether two memory operations differ in nothing but address, value and condition. A barrier has nothing
// that may differ.
func sameMemOp(a, b driver.MemOp) bool {
	if a.Op == driver.MemOpBarrier {
		return a == b
	}
	return a.Op == b.Op && (a.Flags^b.Flags)&driver.WaitValueFlush == 0
}
