package cuda

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/driver"
)

// resource is the lifetime of one driver handle. The public object points to its resource and never the other way, so that
// the garbage collector sees when a program has dropped the object.
//
// A call that uses the handle holds a reference for as long. Close forbids new references; whoever drops the last one frees
// the handle. So a handle is never freed under a call, and no lock is held across one (DESIGN decision 7).
type resource struct {
	ctx     *Context
	kind    string           // "Stream", "Event", ...
	bytes   int64            // of memory
	memory  driver.DevicePtr // where it is, if the program has allocated it
	waits   bool             // freeing it may make the driver wait until no stream is held
	urgent  bool             // it is to be closed even while something is captured: it may be what captures
	free    func() driver.Result
	refs    atomic.Int64 // references, and closedBit once closed
	cleanup runtime.Cleanup
}

const closedBit = 1 << 62

// newResource registers a handle of ctx, with the size of its memory if it is some. free is called once, when it is closed
// and out of use.
func newResource(ctx *Context, kind string, bytes int, free func() driver.Result) *resource {
	r := &resource{ctx: ctx, kind: kind, bytes: int64(bytes), free: free, waits: freedLater[kind]}
	if g := ctx.green; g != nil { // which the call that makes r holds
		g.retain()
		r.free = func() driver.Result {
			defer g.release()
			return free()
		}
	}
	ctx.drv.resources.add(r)
	return r
}

// dropped has r closed when owner, the public object, is garbage. The cleanup only puts r on a list: it may run at any time
// and, under synctest, outside the bubble.
func dropped[T any](owner *T, r *resource) {
	r.cleanup = runtime.AddCleanup(owner, func(r *resource) { r.ctx.drv.retired.push(retired{r, false}) }, r)
}

// acquire takes a reference; false: r is closed.
func (r *resource) acquire() bool {
	if r.refs.Add(1)&closedBit != 0 {
		r.release()
		return false
	}
	return true
}

// retain takes one more reference for a caller who has one; so it does not mind if r has been closed since.
func (r *resource) retain() { r.refs.Add(1) }

func (r *resource) release() {
	if r.refs.Add(-1) == closedBit {
		r.destroy()
	}
}

// releaseSoon is release for who must not wait for the driver: the last reference goes to the retire list.
func (r *resource) releaseSoon() {
	for {
		n := r.refs.Load()
		if n == closedBit+1 {
			r.ctx.drv.retired.push(retired{r, true})
			r.ctx.drv.drainSoon()
			return
		}
		if r.refs.CompareAndSwap(n, n-1) {
			return
		}
	}
}

func (r *resource) closed() bool { return r.refs.Load()&closedBit != 0 }

// close forbids new references and frees the handle, now or when the last reference goes. Later calls do nothing.
func (r *resource) close() error {
	for {
		n := r.refs.Load()
		if n&closedBit != 0 {
			return nil
		}
		if r.refs.CompareAndSwap(n, n|closedBit) {
			r.cleanup.Stop()
			if n == 0 {
				return r.destroy()
			}
			return nil
		}
	}
}

// freedLater are the kinds whose freeing may make the driver wait until no stream is held, measured or to be feared.
var freedLater = map[string]bool{
	"Buffer": true, "PinnedBuffer": true, "PinnedPool": true, "ManagedBuffer": true,
	"Module": true, "Stream": true, "GraphExec": true, "GreenContext": true,
}

// destroy frees the handle, or has it freed when no stream is held any more (CONTRACT TK-03).
func (r *resource) destroy() (err error) {
	if !r.waits {
		return r.destroyNow()
	}
	held := &r.ctx.drv.held
	if !held.quietly(func() { err = r.destroyNow() }) {
		held.whenNone(r.destroyLater)
	}
	return err
}

// destroyLater is destroyNow, unless something is captured (CONTRACT CP-12): then the retire list sees to r.
func (r *resource) destroyLater() {
	if d := r.ctx.drv; d.capturing.n.Load() > 0 {
		r.retain()
		d.retired.push(retired{r, true})
		return
	}
	r.destroyNow()
}

// destroyNow frees the handle. References taken and dropped again by acquires that failed may bring the count back to
// closedBit; the registry lets only the first through.
func (r *resource) destroyNow() error {
	r.ctx.uses.Add(1) // so that the context is not closed in between; whether it is closed does not matter here
	defer r.ctx.uses.Add(-1)
	if !r.ctx.drv.resources.remove(r) {
		return nil
	}
	err := r.ctx.result(r.kind+".Close", r.free())
	r.ctx.drv.resources.left.done()
	if r.ctx.lost() != driver.Success {
		return nil // nothing of a lost context can be freed, and nothing needs to be
	}
	return err
}

// registry knows every open resource of a driver, for Close.
type registry struct {
	mu   sync.Mutex
	open map[*resource]struct{}
	left tally // resources open or being freed
}

func (g *registry) add(r *resource) {
	g.left.add()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.open = map[*resource]struct{}{}
	}
	g.open[r] = struct{}{}
}

// remove takes r out, to be freed; left.done must follow if it reports true.
func (g *registry) remove(r *resource) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.open[r]
	delete(g.open, r)
	return ok
}

// all returns the open resources.
func (g *registry) all() []*resource {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Keys(g.open))
}

// retireList holds resources that an ordinary goroutine is to close: dropped ones, and those closed inside a host function.
type retireList struct {
	n      atomic.Int32
	urgent atomic.Int32 // of n
	coming atomic.Bool  // a goroutine is, that will take what is on the list
	urging atomic.Bool  // the same for the urgent
	mu     sync.Mutex
	list   []retired
}

type retired struct {
	*resource
	held bool // the list holds a reference, perhaps the last of a closed one
}

func (l *retireList) push(r retired) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, r)
	l.n.Store(int32(len(l.list)))
	if r.urgent {
		l.urgent.Add(1)
	}
}

// take empties the list, but for what can wait if only the urgent is wanted.
func (l *retireList) take(onlyUrgent bool) (list []retired) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var left []retired
	for _, r := range l.list {
		switch {
		case r.urgent:
			l.urgent.Add(-1)
			list = append(list, r)
		case onlyUrgent:
			left = append(left, r)
		default:
			list = append(list, r)
		}
	}
	l.list = left
	l.n.Store(int32(len(left)))
	return list
}

// drain closes what is on the list, or only the urgent.
func (l *retireList) drain(onlyUrgent bool) {
	list := l.take(onlyUrgent)
	for _, r := range list {
		if r.held {
			r.release()
		} else {
			r.close()
		}
	}
}

// closeHandle is the Close of every public object. Inside a host function the handle is freed later, by an ordinary
// goroutine (CONTRACT HL-06); either way the object is closed when it returns.
func closeHandle(r *resource) error {
	if r == nil {
		return nil // a zero value of the public type
	}
	d := r.ctx.drv
	if !d.inHostFunction() {
		return r.close()
	}
	if r.acquire() {
		r.close()
		d.retired.push(retired{r, true})
		d.drainSoon()
	}
	return nil
}

// drainSoon has an ordinary goroutine close what is on the retire list. What frees memory waits until none of the library's
// captures is in progress (CONTRACT CP-12); what may itself be capturing does not wait.
func (d *Driver) drainSoon() {
	if d.retired.urgent.Load() > 0 {
		d.startDrain(&d.retired.urging, true)
	}
	if d.retired.n.Load() > 0 && d.capturing.n.Load() == 0 {
		d.startDrain(&d.retired.coming, false)
	}
}

// startDrain starts a goroutine unless one is on its way, as coming says: each needs a thread.
func (d *Driver) startDrain(coming *atomic.Bool, onlyUrgent bool) {
	if !coming.CompareAndSwap(false, true) {
		return
	}
	d.inBackground(func() {
		coming.Store(false) // before it looks, so that nothing is overlooked
		d.retired.drain(onlyUrgent || d.capturing.n.Load() > 0)
	})
}
