package cuda

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/hostfn"
)

// holding is what nodes of a graph use: host functions, buffers, modules, events, host memory. The graph and every executable
// made of it have a share; an executable keeps its share until its last launch is done. When all shares are gone, what is
// held is released, on an ordinary goroutine (CONTRACT GR-03, GR-08). Once it belongs to a graph, nothing is added.
type holding struct {
	drv       *Driver
	shares    atomic.Int32
	nodes     []hostfn.Handle
	resources []*resource
	memory    []hostRange // Go memory; of pinned memory, the resource is held too
}

func newHolding(d *Driver) *holding {
	h := &holding{drv: d}
	h.shares.Store(1)
	return h
}

// add retains resources that the caller has a reference of.
func (h *holding) add(resources []*resource) {
	for _, r := range resources {
		if !slices.Contains(h.resources, r) {
			r.retain()
			h.resources = append(h.resources, r)
		}
	}
}

// addOpen retains resources unless they are closed.
func (h *holding) addOpen(resources []*resource) {
	for _, r := range resources {
		if !slices.Contains(h.resources, r) && r.acquire() {
			h.resources = append(h.resources, r)
		}
	}
}

// release gives a share back.
func (h *holding) release() {
	if h.shares.Add(-1) > 0 {
		return
	}
	for _, n := range h.nodes {
		h.drv.funcs.Drop(n)
	}
	for _, r := range h.resources {
		h.drv.retired.push(retired{r, true, false})
	}
	h.nodes, h.resources, h.memory = nil, nil, nil
	h.drv.drainSoon()
}

// holdings are those of a graph or an executable.
type holdings struct {
	mu   sync.Mutex
	list []*holding
	gone bool // released
}

// add takes over a share of h. Once the list is released, nothing can use it.
func (l *holdings) add(h *holding) {
	l.mu.Lock()
	gone := l.gone
	if !gone {
		l.list = append(l.list, h)
	}
	l.mu.Unlock()
	if gone {
		h.release()
	}
}

// replace gives all shares back, and takes over one of h.
func (l *holdings) replace(h *holding) {
	l.mu.Lock()
	before := l.list
	l.list = nil
	l.mu.Unlock()
	l.add(h)
	for _, h := range before {
		h.release()
	}
}

// share gives another list a share of each.
func (l *holdings) share() []*holding {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.list {
		h.shares.Add(1)
	}
	return slices.Clone(l.list)
}

// release gives all shares back.
func (l *holdings) release() {
	l.mu.Lock()
	list := l.list
	l.list, l.gone = nil, true
	l.mu.Unlock()
	for _, h := range list {
		h.release()
	}
}
