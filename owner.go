package cuda

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
)

// owner is what one node of a graph uses in one version of its parameters, or what all nodes of one capture use: host
// functions, buffers, modules, events, host memory. Once a node has it, nothing is added; to a capture's, as long as that goes on.
//
// A user object of the driver carries it. The graph refers to that object, and so does whatever is made of the graph: clones,
// graphs that embed it, executables until their last launch is done. When the driver has no reference left, it says so on some
// thread of its own, and what is owned is put on the retire list (CONTRACT GR-03, GR-08).
type owner struct {
	carried
	drv       *Driver
	object    driver.UserObject // 0: not attached to any graph
	shares    atomic.Int32      // the user object's, and that of each executable whose node got the parameters directly
	hosts     []hostfn.Handle
	resources []*resource
	memory    []hostRange // Go memory; of pinned memory, the resource is held too
}

// newOwner has one share, which is the caller's.
func newOwner(d *Driver) *owner {
	o := &owner{drv: d}
	o.carried.owner = o
	o.shares.Store(1)
	return o
}

// hostOwner is the owner of a host node: one piece of memory with all that there is of it.
type hostOwner struct {
	owner
	kept hostfn.Kept
	host [1]hostfn.Handle
}

// newHostOwner makes an owner of fn. It is nil if there are too many functions.
func newHostOwner(d *Driver, fn hostfn.Func) *owner {
	o := &hostOwner{owner: owner{drv: d}}
	o.shares.Store(1)
	o.carried.owner = &o.owner
	if o.host[0] = d.funcs.KeepIn(&o.kept, fn); o.host[0] == 0 {
		return nil
	}
	o.hosts = o.host[:]
	return &o.owner
}

// add retains resources that the caller has a reference of.
func (o *owner) add(resources ...*resource) {
	for _, r := range resources {
		if !slices.Contains(o.resources, r) {
			r.retain()
			o.resources = append(o.resources, r)
		}
	}
}

// addMemory keeps host memory, and the pinned memory that it lies in, unless that is closed.
func (o *owner) addMemory(host hostRange) {
	o.memory = append(o.memory, host)
	if r := o.drv.pinned.find(host); r != nil && !slices.Contains(o.resources, r) && r.acquire() {
		o.resources = append(o.resources, r)
	}
}

func (o *owner) empty() bool { return len(o.hosts)+len(o.resources)+len(o.memory) == 0 }

// release gives a share back. It may run on a thread of the driver: it only puts things on lists.
func (o *owner) release() {
	if o.shares.Add(-1) > 0 {
		return
	}
	for _, h := range o.hosts {
		fn, due := o.drv.funcs.Drop(h)
		for range due { // the context was lost, and this came before the sweep
			why := fn.Group.Failure()
			if why == nil {
				why = failf("GraphExec.Launch", ErrClosed, "the graph was destroyed")
			}
			o.drv.resolve(fn, neverRan(fn, why))
		}
	}
	for _, r := range o.resources {
		o.drv.retired.push(retired{r, true})
	}
	o.hosts, o.resources, o.memory = nil, nil, nil
	o.drv.drainSoon()
}

// attach has a graph refer to o, for a share of the caller's, which is gone either way.
func (o *owner) attach(c *Context, g driver.Graph) driver.Result {
	object, r := c.drv.attach(c, g, &o.carried)
	o.object = object
	return r
}

// attach makes a user object that carries v, and has g refer to it. If that fails, v is released.
func (d *Driver) attach(c *Context, g driver.Graph, v *carried) (driver.UserObject, driver.Result) {
	key := d.owners.add(v)
	if key == 0 {
		v.release()
		return 0, driver.ErrorOutOfMemory
	}
	object, r := d.drv.UserObjectCreate(key)
	if r != driver.Success {
		d.owners.gone(key)
		return 0, r
	}
	if r = d.drv.GraphRetainUserObject(c.raw, g, object, 1, driver.UserObjectMove); r != driver.Success {
		d.drv.UserObjectRelease(object, 1) // which says that it is gone
		return 0, r
	}
	return object, driver.Success
}

// detach has g not refer to a user object any more.
func (c *Context) detach(g driver.Graph, object driver.UserObject) {
	if object != 0 {
		c.drv.drv.GraphReleaseUserObject(c.raw, g, object, 1)
	}
}

// carried is what a user object carries: one of the two. It is released when the driver has no reference to the object any more.
type carried struct {
	hostfn.Slot
	owner *owner
	state *execState
}

func (v *carried) release() {
	if v.owner != nil {
		v.owner.release()
	} else {
		v.state.release()
	}
}

// owners knows what the user objects of a driver carry, by the number that the driver has for it.
type owners struct {
	slots hostfn.Slots[carried, *carried]
}

// ownerTag marks the numbers of user objects among what the driver calls back with: no handle of a host function has it.
const ownerTag = 3 << 54

func isOwner(data uint64) bool { return data>>54 == ownerTag>>54 }

func (l *owners) add(v *carried) uint64 {
	if key := l.slots.Put(v); key != 0 {
		return key | ownerTag
	}
	return 0
}

// gone is called by a user object's destructor.
func (l *owners) gone(key uint64) {
	if v := l.slots.Take(key &^ ownerTag); v != nil {
		v.release()
	}
}

// finish waits until the driver has let go of everything, which it does soon after all graphs are gone. What another library
// has a copy of, it never lets go; that is released as if it had, since nothing can run any more.
func (l *owners) finish() {
	const patience = 5 * time.Second
	pause := 100 * time.Microsecond
	for deadline := time.Now().Add(patience); l.slots.Len() > 0 && time.Now().Before(deadline); {
		time.Sleep(pause)
		pause = min(2*pause, 5*time.Millisecond)
	}
	l.slots.Each(func(key uint64, _ *carried) bool {
		l.gone(key | ownerTag)
		return true
	})
}
