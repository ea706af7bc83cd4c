package softcuda

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// written says which bytes of an allocation of device memory have ever been written: sorted ranges that do not touch.
type written struct{ ranges [][2]int }

func (w *written) add(from, to int) {
	kept := w.ranges[:0:0]
	for _, r := range w.ranges {
		if r[1] < from || r[0] > to {
			kept = append(kept, r)
			continue
		}
		from, to = min(from, r[0]), max(to, r[1])
	}
	w.ranges = append(kept, [2]int{from, to})
}

func (w *written) covers(from, to int) bool {
	return slices.ContainsFunc(w.ranges, func(r [2]int) bool { return r[0] <= from && to <= r[1] })
}

// allocated notes an allocation. data is nil for host memory, which Go has zeroed.
func (k *checker) allocated(at uintptr, n int, device []byte, p driver.DevicePtr) {
	if k == nil {
		return
	}
	if site, by := callOf(); site != "" && strings.Contains(by, "Alloc") { // and not for the library's own use
		what := "pinned memory"
		if device != nil {
			what = "device memory"
		}
		k.allocations[at] = fmt.Sprintf("%d bytes of %s, allocated at %s", n, what, site)
	}
	if device != nil {
		delete(k.freed, p)
		k.written[unsafe.SliceData(device)] = &written{}
	}
}

// released notes that memory has been freed.
func (k *checker) released(at uintptr, device []byte, p driver.DevicePtr) {
	if k == nil {
		return
	}
	delete(k.allocations, at)
	if device != nil {
		delete(k.written, unsafe.SliceData(device))
		k.freed[p] = callSite()
	}
}

// initialised notes a write, and reports a read of device memory that nothing has ever been written to.
func (k *checker) initialised(a access) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(a.data)))
	block, from := k.blockOf(at)
	switch {
	case block == nil:
	case a.write:
		block.add(from, from+len(a.data))
	case a.read && !block.covers(from, from+len(a.data)):
		k.out.report(Report{Kind: "uninitialised read", First: a.String() + " of device memory, not all of which has been written", Advice: "write it first, with a copy or Memset"})
	}
}

// blockOf finds the device memory that an address is in.
func (k *checker) blockOf(at uintptr) (*written, int) {
	for _, d := range k.out.m.devices {
		for _, b := range d.mem.blocks {
			begin := uintptr(unsafe.Pointer(unsafe.SliceData(b.data)))
			if at >= begin && at < begin+uintptr(len(b.data)) {
				return k.written[unsafe.SliceData(b.data)], int(at - begin)
			}
		}
	}
	return nil, 0
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

// watch looks whether the program changes host memory that a queued copy reads.
type watch struct {
	by   *actor
	data []byte
	sum  uint64
}

const mostWatched = 1 << 20 // bytes

// watch begins to watch what o reads of host memory, unless something else may yet write there.
func (k *checker) watch(o *op, a *actor) {
	if a.site == "" || o.kind != opWork {
		return
	}
	for _, t := range o.notes().touches {
		if t.host && !t.write && len(t.data) <= mostWatched && !k.writable(t.data) {
			k.watches = append(k.watches, &watch{a, t.data, maphash.Bytes(k.seed, t.data)})
		}
	}
}

// writable reports whether an operation that is not done may write to host memory.
func (k *checker) writable(data []byte) bool {
	for o, a := range k.live {
		if a.kind != opWork || o.notes().kernel != "" || slices.ContainsFunc(o.notes().writes(), func(to []byte) bool { return overlap(to, data) }) {
			return true
		}
	}
	return false
}

// writes is the memory that the operation writes to, kernels aside.
func (x *notes) writes() (list [][]byte) {
	for _, t := range x.touches {
		if t.write {
			list = append(list, t.data)
		}
	}
	if x.word != nil {
		list = append(list, x.word)
	}
	return list
}

// lookAt looks at what o reads, before it does. mu is held.
func (k *checker) lookAt(o *op) {
	for _, w := range k.watches {
		if w.by == o.notes().actor {
			k.look(w)
		}
	}
}

// look reports w if its memory has changed, and reports whether it has.
func (k *checker) look(w *watch) {
	if w.data == nil || k.wild > w.by.number || maphash.Bytes(k.seed, w.data) == w.sum {
		return
	}
	k.out.report(Report{
		Kind: "unordered access", First: access{w.by, touch{data: w.data}}.String(), Second: "the program writes there after that was queued",
		Advice: "wait for the first before the program goes on (Sync, Wait, or an event recorded behind it)",
	})
	w.data = nil
}

// settleWatches ends the watches over what the program has now seen to be done.
func (k *checker) settleWatches() {
	k.watches = slices.DeleteFunc(k.watches, func(w *watch) bool {
		if !behind(k.sees, w.by) {
			return false
		}
		k.look(w)
		return true
	})
}

// overwrites ends the watches over memory that o, which is about to be queued, writes to. What the program has changed there before
// is still told.
func (k *checker) overwrites(o *op) {
	for _, to := range o.notes().writes() {
		for _, w := range k.watches {
			if overlap(w.data, to) {
				k.look(w)
			}
		}
		k.rewritten(to)
	}
}

// rewritten ends the watches over memory that is written to from now on, by an operation or by a program that tells.
func (k *checker) rewritten(data []byte) {
	k.watches = slices.DeleteFunc(k.watches, func(w *watch) bool { return w.data == nil || overlap(w.data, data) })
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
		id := goroutineID()
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
