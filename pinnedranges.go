package cuda

import (
	"sync"
	"unsafe"
)

// pinnedRanges finds the PinnedBuffer that host memory belongs to: a copy is given a slice, and a graph must hold the buffer.
type pinnedRanges struct{ byAddress sync.Map } // uintptr -> pinnedRange

type pinnedRange struct {
	n   uintptr
	res *resource
}

func (p *pinnedRanges) add(at unsafe.Pointer, n int, res *resource) {
	p.byAddress.Store(uintptr(at), pinnedRange{uintptr(n), res})
}

func (p *pinnedRanges) remove(at unsafe.Pointer) { p.byAddress.Delete(uintptr(at)) }

// at is the resource of the buffer that host lies in, if there is one.
func (p *pinnedRanges) at(host hostRange) (found []*resource) {
	p.byAddress.Range(func(base, r any) bool {
		if off := uintptr(host.ptr) - base.(uintptr); off < r.(pinnedRange).n {
			found = append(found, r.(pinnedRange).res)
		}
		return found == nil
	})
	return found
}
