package cuda

import (
	"maps"
	"slices"
	"sync"
)

// stagingList is what a context's copies go through: its own ring, made when the first copy needs it, and those of its
// PinnedPools.
type stagingList struct {
	mu   sync.Mutex
	ring *staging
	all  map[*staging]struct{}
}

// stagingOf is what a copy with options o goes through.
func (c *Context) stagingOf(o *copyOptions) *staging {
	if o != nil && o.pool != nil {
		return o.pool.st
	}
	l := &c.stagings
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ring == nil {
		tune := newStagingTune()
		l.ring = newStaging(c, tune, tune.ring)
		l.put(l.ring)
	}
	return l.ring
}

func (l *stagingList) add(st *staging) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(st)
}

// put is add with mu held.
func (l *stagingList) put(st *staging) {
	if l.all == nil {
		l.all = map[*staging]struct{}{}
	}
	l.all[st] = struct{}{}
}

func (l *stagingList) remove(st *staging) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, st)
	if l.ring == st {
		l.ring = nil
	}
}

func (l *stagingList) list() []*staging {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.all))
}

// fail ends all copies of a context that has failed.
func (l *stagingList) fail(why error) {
	for _, st := range l.list() {
		st.fail(why)
	}
}

// close gives the context's memory back. No copy is in progress, and every pool is closed.
func (l *stagingList) close() {
	for _, st := range l.list() {
		st.close()
	}
}

// size is the pinned memory of the ring.
func (l *stagingList) size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ring == nil {
		return 0
	}
	return int64(l.ring.mem.size())
}
