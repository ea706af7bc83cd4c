package native

import (
	"runtime"
	"sync"
	"unsafe"
)

// Pin keeps Go memory alive and where it is while C may use it, until Unpin. Unlike a runtime.Pinner it may be dropped: the
// memory stays pinned then, where a Pinner would end the program. The zero Pin pins nothing.
type Pin struct {
	pinner     runtime.Pinner
	prev, next *Pin
	used       bool
}

// pins are those that pin something, so that the collector finds none of them to be garbage.
var pins struct {
	mu    sync.Mutex
	first *Pin
}

// Add pins what p points to. Memory that is not Go's is left as it is.
func (p *Pin) Add(ptr unsafe.Pointer) {
	if ptr == nil {
		return
	}
	p.pinner.Pin(ptr)
	if p.used {
		return
	}
	p.used = true
	pins.mu.Lock()
	defer pins.mu.Unlock()
	if p.next = pins.first; p.next != nil {
		p.next.prev = p
	}
	pins.first = p
}

// Unpin lets go of everything that was added. The Pin can be used again.
func (p *Pin) Unpin() {
	if !p.used {
		return
	}
	p.used = false
	p.pinner.Unpin()
	pins.mu.Lock()
	defer pins.mu.Unlock()
	if p.next != nil {
		p.next.prev = p.prev
	}
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		pins.first = p.next
	}
	p.prev, p.next = nil, nil
}
