package cuda

import (
	"slices"
	"sync"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
)

// execState is what an executable has beside the driver's: the functions that a launch runs, and the owners of parameters that
// were set in it directly, which no graph has. A user object carries it: when the driver lets go of that, the executable is
// closed, its last launch is done, and nothing of it is needed any more.
type execState struct {
	carried
	ctx    *Context
	object driver.UserObject

	mu       sync.Mutex // held across a launch or an update: the driver wants one at a time
	hosts    []hostfn.Handle
	made     []node                // of the graph, when the executable was made of it
	era      int                   // of the graph's nodes, at that time
	versions map[GraphNode]version // the parameters that nodes have been given
	launches uint64
	retiring []*owner // of former versions, which launches so far may use
	updated  bool     // as a whole, since it was made: which node has which function is not known any more

	turn   *later  // of the latest launch, if tasks were about; guarded by tasks.mu
	behind []*Task // that the latest launch's end is behind; guarded by tasks.mu
}

// version is one node's parameters, since a number of launches.
type version struct {
	owner *owner
	hosts []hostfn.Handle
	since uint64
	was   []hostfn.Handle // the functions that the node was made with
}

// release lets go of everything; it is called by the user object's destructor.
func (x *execState) release() {
	for _, v := range x.versions {
		v.drop()
	}
	for _, o := range x.retiring {
		o.release()
	}
	x.versions, x.retiring = nil, nil
}

func (v version) drop() {
	if v.owner != nil {
		v.owner.release()
	}
}

// supersede has a version go when no launch can use it: at once if there was none since. mu is held.
func (x *execState) supersede(v version) {
	switch {
	case v.owner == nil:
	case v.since == x.launches:
		v.owner.release()
	default:
		x.retiring = append(x.retiring, v.owner)
	}
}

// inside calls visit for each version of a node that is inside node n, at any depth.
func (x *execState) inside(n GraphNode, visit func(GraphNode, version)) {
	for m, v := range x.versions {
		if m.inside(n) {
			visit(m, v)
		}
	}
}

// launched counts a launch on s. Launches of one executable do not overlap; so when this one is done, former versions are not
// used any more. Only then an event is recorded. mu is held.
func (x *execState) launched(s *Stream) {
	x.launches++
	if len(x.retiring) == 0 {
		return
	}
	c := x.ctx
	event, err := s.behind("GraphExec.Launch")
	if err != nil {
		return // they go later
	}
	former := x.retiring
	x.retiring = nil
	c.drv.endings.add()
	_, r := c.drv.drv.NotifyEvent(c.raw, event, func(driver.Result) {
		for _, o := range former {
			o.release()
		}
		c.events.put(event)
		c.drv.endings.done()
	})
	if r != driver.Success { // they go later
		x.retiring = former
		c.events.put(event)
		c.drv.endings.done()
	}
}

// replace has launches run other functions in place of former ones. mu is held.
func (x *execState) replace(former, now []hostfn.Handle) {
	x.hosts = append(without(x.hosts, former), now...)
}

// without takes some of the functions out of list, each once.
func without(list, some []hostfn.Handle) []hostfn.Handle {
	for _, h := range some {
		if i := slices.Index(list, h); i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
	}
	return list
}
