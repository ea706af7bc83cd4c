package softcuda

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/native"
)

// allocation is memory that the program has allocated and not freed.
type allocation struct {
	of   *context
	what string
}

// allocated notes an allocation of a kind of memory, which has an address p.
func (k *checker) allocated(c *context, kind string, data []byte, p driver.DevicePtr) {
	if k == nil {
		return
	}
	at, to := address(data)
	if site, by := callOf(); site != "" && strings.Contains(by, "Alloc") { // and not for the library's own use
		k.allocations[p] = allocation{c, fmt.Sprintf("%d bytes of %s memory, allocated at %s", len(data), kind, site)}
	}
	k.accesses.change(at, to, func(trail) trail { return trail{} })
	if kind == deviceMemory {
		k.device[unsafe.SliceData(data)] = true
	}
}

// Kinds of memory.
const (
	deviceMemory  = "device"
	pinnedMemory  = "pinned"
	managedMemory = "managed"
)

// released notes that memory has been freed, which has an address p. Nothing uses it then.
func (k *checker) released(data []byte, p driver.DevicePtr) {
	if k == nil {
		return
	}
	at, to := address(data)
	delete(k.allocations, p)
	k.accesses.change(at, to, func(trail) trail { return trail{} })
	if k.device[unsafe.SliceData(data)] {
		delete(k.device, unsafe.SliceData(data))
		k.freed[p] = callSite()
	}
}

// Reused implements driver.Checker.
func (m *machine) Reused(p driver.DevicePtr, n uintptr) {
	m.mu.Lock()
	defer m.unlock()
	if k := m.checker; k != nil {
		k.accesses.change(uintptr(p), uintptr(p)+n, func(t trail) trail { return trail{written: t.written} })
	}
}

// left is what has been allocated and not freed.
func (k *checker) left() (list []string) {
	for _, a := range k.allocations {
		if a.of.lost == driver.Success {
			list = append(list, a.what)
		}
	}
	slices.Sort(list)
	return list
}

// LeftOpen implements driver.Checker.
func (m *machine) LeftOpen(memory []driver.DevicePtr) {
	m.mu.Lock()
	defer m.unlock()
	k := m.checker
	if k == nil || k.out.IgnoreLeaks {
		return
	}
	slices.SortFunc(memory, func(a, b driver.DevicePtr) int { return cmp.Compare(k.allocations[a].what, k.allocations[b].what) })
	for _, p := range memory {
		if a, ok := k.allocations[p]; ok && a.of.lost == driver.Success {
			k.out.report(Report{Kind: "leak", First: a.what + ", had not been closed when the Driver was", Advice: "close it when nothing needs it any more (Close)"})
		}
	}
}

// ofDevice reports whether an address is one of device memory that the program has allocated, where it says for itself what is written.
func (k *checker) ofDevice(at uintptr) bool {
	for _, d := range k.out.m.devices {
		for _, b := range d.mem.blocks {
			if from, to := address(b.data); from <= at && at < to {
				return k.device[unsafe.SliceData(b.data)]
			}
		}
	}
	return false
}

// stray reports a kernel's use of memory that has been freed. mu is held.
func (k *checker) stray(l *Launch, p driver.DevicePtr) {
	if k == nil {
		return
	}
	if site, ok := k.freed[p]; ok {
		first := "kernel " + l.Kernel
		if l.op != nil && l.op.notes().actor != nil {
			first = l.op.notes().actor.String()
		}
		k.out.report(Report{Kind: "use after free", First: fmt.Sprintf("%s uses memory that was freed at %s", first, site), Advice: "free it when nothing that uses it can be launched any more"})
	}
}

// ArgKind says what a kernel does with the memory that an argument points to.
type ArgKind uint8

// Kinds of arguments.
const (
	InOut  ArgKind = iota // reads and writes it; not asked whether it has been written before
	In                    // only reads it
	Out                   // only writes to it
	Atomic                // uses it with atomic operations only, which need no order among themselves
)

// touched notes that the kernel of l reaches memory by argument i. mu is held.
func (l *Launch) touched(i int, data []byte) {
	k := l.m.checker
	if k == nil || l.op == nil || l.op.notes().actor == nil {
		return
	}
	kind := InOut
	if kinds := l.m.arguments[l.Kernel]; i < len(kinds) {
		kind = kinds[i]
	}
	k.access(l.op.notes().actor, touch{data: data, write: kind != In, read: kind == In, atomic: kind == Atomic})
}

// touch notes for the operation that is about to be queued that it reads or writes memory. mu is held.
func (m *machine) touch(data []byte, write, host bool) {
	if m.checker != nil && len(data) > 0 {
		m.touching = append(m.touching, touch{data: data, write: write, read: !write && !host, host: host})
	}
}

// touchRows is touch for each row of a box.
func (m *machine) touchRows(b rows, write, host bool) {
	if m.checker != nil {
		b.each(func(y, z uintptr) { m.touch(b.row(y, z), write, host) })
	}
}

// touchNative notes what the native host function o, of a cell, does with memory: a HostCopy what it is told; any other one may read and
// write, from where its data points to, what is pinned or managed there. mu is held.
func (m *machine) touchNative(o *op, cell uintptr) {
	if m.checker == nil {
		return
	}
	fn, data := native.CallOf(cell)
	if fn == native.CopyFunc() {
		c := native.CopyArgsAt(data)
		m.touch(memoryAt(c.Dst, c.N), true, true)
		m.touch(memoryAt(c.Src, c.N), false, true)
		o.note().exact = true
	} else if ofHost(driver.DevicePtr(data)) {
		m.touch(m.reach(driver.DevicePtr(data)), true, true)
	}
	o.note().touches = m.takeTouches()
}

// memoryAt is the memory at an address of host memory, which somebody keeps.
func memoryAt(at, n uintptr) []byte { return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), n) }

// takeTouches hands over what touch has noted.
func (m *machine) takeTouches() []touch {
	list := m.touching
	m.touching = nil
	return list
}

// nodeTouches is takeTouches for a node of a graph; nil if there are none.
func (m *machine) nodeTouches() *[]touch {
	if list := m.takeTouches(); list != nil {
		return &list
	}
	return nil
}

// known is call, a run of the host function o, which the checker knows by its goroutine while it runs.
func (m *machine) known(o *op, call func(uint64)) func(uint64) {
	if m.checker == nil || o == nil || o.extra == nil {
		return call
	}
	who := o.notes().actor
	return func(data uint64) {
		id := native.Goroutine()
		m.mu.Lock()
		m.checker.inside[id] = who
		m.mu.Unlock()
		defer func() {
			m.mu.Lock()
			delete(m.checker.inside, id)
			m.mu.Unlock()
		}()
		call(data)
	}
}
