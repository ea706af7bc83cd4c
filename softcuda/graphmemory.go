package softcuda

import (
	"slices"

	"github.com/hostlaunch/cuda/internal/driver"
)

// reservation is the memory of an allocation node. Its address stays, while a launch takes the memory and something gives it
// back: a free node of the same graph; or, if there is none, the program, another graph, or a later launch that frees first.
type reservation struct {
	block
	dev     *device
	graph   *graph     // that allocates it
	freer   *graphNode // of that graph, that frees it
	outside bool       // no such node can come any more: the memory has been, or can be, freed elsewhere
	taken   bool       // as the program sees it: what frees it has not been queued
	users   int        // launches whose memory has not been given back; it is there while there are any
	holders int        // its node, executables with that node, and taken
}

// nodeSpan is span, for what a node is to use: memory that graphs allocate need not be there yet. mu is held.
func (m *machine) nodeSpan(p driver.DevicePtr, n uintptr) ([]byte, driver.Result) {
	data, r := m.span(p, n)
	if r == driver.Success {
		return data, r
	}
	for _, v := range m.reserved {
		if off := p - v.at; p >= v.at && uint64(off) <= uint64(len(v.data)) && n <= uintptr(len(v.data))-uintptr(off) {
			return v.data[off:][:n:n], driver.Success
		}
	}
	return nil, r
}

// addAllocation makes n a node that allocates memory.
func (m *machine) addAllocation(n *graphNode, p *driver.MemAllocate) driver.Result {
	if n.graph.owner != nil && n.graph.owner.typ == driver.NodeGraph {
		return driver.ErrorNotSupported
	}
	if p == nil || p.Size == 0 {
		return driver.ErrorInvalidValue
	}
	mem := &n.ctx.dev.mem
	if p.Size > uintptr(mem.size) {
		return driver.ErrorOutOfMemory
	}
	v := &reservation{block: block{mem.address(p.Size), words(p.Size)}, dev: n.ctx.dev, graph: n.graph, holders: 1}
	m.reserved[v.at] = v
	n.graph.memory = true
	n.act = &action{kind: opMark, mem: v}
	p.Address = v.at
	return driver.Success
}

// addFree makes n a node that frees memory which a graph allocates: this one or, if this one does not free it, another.
func (m *machine) addFree(n *graphNode, p driver.DevicePtr) driver.Result {
	v := m.reserved[p]
	switch {
	case n.graph.owner != nil && n.graph.owner.typ == driver.NodeGraph:
		return driver.ErrorNotSupported
	case v == nil, v.freer != nil, v.graph == n.graph && v.outside:
		return driver.ErrorInvalidValue
	case v.graph == n.graph:
		v.freer = n
	default:
		v.outside = true
	}
	n.graph.memory = true
	n.act = &action{kind: opMark, mem: v}
	return driver.Success
}

// release lets go of one hold of v.
func (m *machine) release(v *reservation) {
	if v.holders--; v.holders == 0 {
		delete(m.reserved, v.at)
	}
}

// setTaken notes whether the program has the memory.
func (m *machine) setTaken(v *reservation, taken bool) {
	switch {
	case taken == v.taken:
	case taken:
		v.holders++
		m.reserved[v.at] = v
	default:
		m.release(v)
	}
	v.taken = taken
}

// use has the memory be there for one more launch.
func (v *reservation) use() {
	if v.users++; v.users == 1 {
		mem := &v.dev.mem
		i, _ := mem.find(v.at)
		mem.blocks = slices.Insert(mem.blocks, i, v.block)
		mem.used += int64(len(v.data))
	}
}

// unuse takes back one use.
func (v *reservation) unuse() {
	if v.users--; v.users == 0 {
		v.dev.mem.free(v.at)
	}
}

// freeReserved frees memory that a graph has allocated, for the program.
func (m *machine) freeReserved(v *reservation) driver.Result {
	if !v.taken {
		return driver.ErrorInvalidValue
	}
	m.setTaken(v, false)
	v.unuse()
	return driver.Success
}

// memories are the memory nodes of an executable.
type memories struct {
	allocs, frees []*reservation // frees: of memory that other graphs allocate
	auto          bool           // a launch first frees what the former one has left
}

// note adds what n does.
func (x *memories) note(n *graphNode) {
	v := n.act.mem
	switch {
	case n.typ == driver.NodeMemAlloc:
		v.holders++
		v.outside = v.freer == nil
		x.allocs = append(x.allocs, v)
	case v.graph != n.graph:
		x.frees = append(x.frees, v)
	}
}

// launchable answers for a launch: everything that it allocates must be free, or be freed by it, and everything that it frees
// be allocated.
func (x *memories) launchable() driver.Result {
	need := map[*device]int64{}
	for _, v := range x.allocs {
		if v.taken && !x.auto {
			return driver.ErrorInvalidValue
		}
		if v.users == 0 {
			need[v.dev] += int64(len(v.data))
		}
	}
	for d, n := range need {
		if n > d.mem.size-d.mem.used {
			return driver.ErrorOutOfMemory
		}
	}
	for _, v := range x.frees {
		if !v.taken {
			return driver.ErrorInvalidValue
		}
	}
	return driver.Success
}

// launch takes what a launch allocates. What it gives back comes back as its operations are done: left, at its start.
func (x *memories) launch(m *machine) (left []*reservation) {
	for _, v := range x.allocs {
		if v.taken {
			left = append(left, v)
		}
		v.use()
		m.setTaken(v, v.freer == nil)
	}
	for _, v := range x.frees {
		m.setTaken(v, false)
	}
	return left
}

// end lets go of what the executable held.
func (x *memories) end(m *machine) {
	for _, v := range x.allocs {
		m.release(v)
	}
}
