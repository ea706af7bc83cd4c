package cuda

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// arena is pinned memory that is handed out in pieces: at most limit bytes, taken from the driver segment by segment as they are
// needed and given back only all at once. So nothing is freed while streams are held, when the driver would make that wait
// (CONTRACT TK-03).
type arena struct {
	limit   uintptr
	segment uintptr // how much to take from the driver at a time, if so much is left
	take    func(n uintptr) (unsafe.Pointer, driver.Result)

	mu       sync.Mutex // guards what follows; never held across a driver call
	taken    uintptr    // from the driver, or about to be
	used     uintptr    // handed out
	segments []span
	free     []span // by address
	more     chan struct{}
}

// span is memory within a segment.
type span struct {
	at unsafe.Pointer
	n  uintptr
}

// arenaUnit is what sizes are rounded up to, so that pieces begin on pages.
const arenaUnit = 4 << 10

func roundUp(n, unit uintptr) uintptr { return (n + unit - 1) / unit * unit }

// get hands out n bytes. nil: they are not there now; r says why more was not to be had from the driver, if it was asked.
func (a *arena) get(n uintptr) (p unsafe.Pointer, r driver.Result) {
	n = roundUp(n, arenaUnit)
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		if p := a.fit(n); p != nil {
			a.used += n
			return p, driver.Success
		}
		if a.limit-a.taken < n {
			return nil, r
		}
		if r = a.grow(n); r != driver.Success {
			return nil, r
		}
	}
}

// fit takes n bytes from the smallest free span that has them, which leaves the large ones whole. mu is held.
func (a *arena) fit(n uintptr) unsafe.Pointer {
	best := -1
	for i, s := range a.free {
		if s.n >= n && (best < 0 || s.n < a.free[best].n) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	s := &a.free[best]
	p := s.at
	if s.n == n {
		a.free = slices.Delete(a.free, best, best+1)
	} else {
		s.at, s.n = unsafe.Add(s.at, n), s.n-n
	}
	return p
}

// grow takes a segment from the driver, or as much of one as it gives. mu is held, but not during the call.
func (a *arena) grow(n uintptr) driver.Result {
	size := min(max(n, a.segment), a.limit-a.taken)
	for {
		a.taken += size
		a.mu.Unlock()
		p, r := a.take(size)
		a.mu.Lock()
		if r == driver.Success {
			a.segments = append(a.segments, span{p, size})
			a.insert(span{p, size})
			return r
		}
		a.taken -= size
		if r != driver.ErrorOutOfMemory || size == n {
			return r
		}
		size = max(n, roundUp(size/2, arenaUnit))
	}
}

// insert makes a span free. It is joined with its neighbours, but not across segments: the driver would refuse a copy to two
// allocations, although they happen to touch. mu is held.
func (a *arena) insert(s span) {
	i, _ := slices.BinarySearchFunc(a.free, uintptr(s.at), func(f span, at uintptr) int {
		if uintptr(f.at) < at {
			return -1
		}
		return 1
	})
	if i < len(a.free) && a.touch(s, a.free[i]) {
		s.n += a.free[i].n
		a.free = slices.Delete(a.free, i, i+1)
	}
	if i > 0 && a.touch(a.free[i-1], s) {
		a.free[i-1].n += s.n
		return
	}
	a.free = slices.Insert(a.free, i, s)
}

// touch reports whether behind begins where before ends, in the same segment. mu is held.
func (a *arena) touch(before, behind span) bool {
	return uintptr(before.at)+before.n == uintptr(behind.at) &&
		!slices.ContainsFunc(a.segments, func(segment span) bool { return segment.at == behind.at })
}

// put takes back what get handed out, and tells who waits for memory.
func (a *arena) put(p unsafe.Pointer, n uintptr) {
	n = roundUp(n, arenaUnit)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used -= n; a.taken == 0 {
		return // all has gone back to the driver
	}
	a.insert(span{p, n})
	a.tell()
}

// wake tells who waits for memory to look again.
func (a *arena) wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tell()
}

// tell is wake with mu held.
func (a *arena) tell() {
	if a.more != nil {
		close(a.more)
		a.more = nil
	}
}

// changed returns a channel that is closed when something is put back next, or at wake.
func (a *arena) changed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.more == nil {
		a.more = make(chan struct{})
	}
	return a.more
}

// room is how much can still be handed out, if it can be had from the driver.
func (a *arena) room() uintptr {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.limit - a.used
}

// size is how much has been taken from the driver.
func (a *arena) size() uintptr {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.taken
}

// drop gives all memory back to the driver, once. Who waits for some looks again, and finds that there is none.
func (a *arena) drop(free func(unsafe.Pointer) driver.Result) (first driver.Result) {
	a.mu.Lock()
	list := a.segments
	a.segments, a.free, a.limit, a.taken = nil, nil, 0, 0
	a.tell()
	a.mu.Unlock()
	for _, segment := range list {
		if r := free(segment.at); first == driver.Success {
			first = r
		}
	}
	return first
}
