package cuda

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// pinnedRanges finds the pinned memory that host memory belongs to: a copy is given a slice; of pinned memory the copy engine
// reads and writes it directly, and a graph must hold the buffer.
type pinnedRanges struct {
	mu   sync.Mutex                    // held to change list
	list atomic.Pointer[[]pinnedRange] // by address; replaced, never changed
}

type pinnedRange struct {
	base, n uintptr
	res     *resource
}

func (p *pinnedRanges) all() []pinnedRange {
	if list := p.list.Load(); list != nil {
		return *list
	}
	return nil
}

// add notes a range. overlaps: it meets one that is there already, and is not noted.
func (p *pinnedRanges) add(at unsafe.Pointer, n int, res *resource) (overlaps bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	base, list := uintptr(at), p.all()
	i, found := search(list, base)
	if found || i < len(list) && list[i].base-base < uintptr(n) {
		return true
	}
	if i > 0 && base-list[i-1].base < list[i-1].n {
		return true
	}
	list = slices.Insert(slices.Clone(list), i, pinnedRange{base, uintptr(n), res})
	p.list.Store(&list)
	return false
}

func (p *pinnedRanges) remove(at unsafe.Pointer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.all()
	if i, found := search(list, uintptr(at)); found {
		list = slices.Delete(slices.Clone(list), i, i+1)
		p.list.Store(&list)
	}
}

// search finds the place of a range that begins at base.
func search(list []pinnedRange, base uintptr) (int, bool) {
	return slices.BinarySearchFunc(list, base, func(r pinnedRange, base uintptr) int { return cmp.Compare(r.base, base) })
}

// find is the resource of the pinned memory that host lies in, or nil. Memory that is pinned only in part counts as ordinary.
func (p *pinnedRanges) find(host hostRange) *resource {
	list := p.all()
	i, found := search(list, uintptr(host.ptr))
	if !found {
		i--
	}
	if i < 0 {
		return nil
	}
	if off := uintptr(host.ptr) - list[i].base; off <= list[i].n && host.n <= list[i].n-off {
		return list[i].res
	}
	return nil
}
