package cuda

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
	"github.com/hostlaunch/cuda/internal/native"
)

// tasks are the tasks of a Driver that have not ended, and which work is behind them. While there are none, the calls that queue
// and wait look at active and at nothing else.
type tasks struct {
	active  atomic.Int32 // tasks that have not ended, and streams that were stopped
	running atomic.Int32 // tasks whose functions run

	mu          sync.Mutex // guards what follows; never held across a driver call
	list        []*Task    // in the order of their Go calls
	lanes       map[laneKey]*lane
	byGoroutine map[uint64]*Task
	inGraphs    []*Task // those of graphs, while they run
}

// lane is a stream with work behind tasks.
type lane struct {
	blocking bool               // it and the legacy default stream order each other's work
	behind   map[*Task]struct{} // what its latest work is behind, but for what those are behind themselves
	parked   int                // its own tasks that wait in the library
	unparked chan struct{}      // closed when there are none; nil: nobody waits
	stopped  error              // by a task that failed
}

// lane is the key of s.
func (s *Stream) lane() laneKey {
	k := laneKey{ctx: s.ctx, raw: s.raw}
	switch s.raw {
	case 0:
		k.raw = driver.StreamLegacy
	case driver.StreamPerThread:
		k.own = s.res
	}
	return k
}

// at is the lane of a key, made if need be. mu is held.
func (b *tasks) at(k laneKey, blocking bool) *lane {
	l := b.lanes[k]
	if l == nil {
		l = &lane{blocking: blocking, behind: map[*Task]struct{}{}}
		if b.lanes == nil {
			b.lanes = map[laneKey]*lane{}
		}
		b.lanes[k] = l
	}
	return l
}

// blockingLane reports whether s and the legacy default stream order each other's work.
func (s *Stream) blockingLane() bool {
	const no, yes = 1, 2
	switch s.raw {
	case 0, driver.StreamLegacy, driver.StreamPerThread:
		return true
	}
	known := s.ordered.Load()
	if known == 0 {
		known = no
		if flags, r := s.driver().StreamGetFlags(s.ctx.raw, s.raw); r == driver.Success && flags&driver.StreamNonBlocking == 0 {
			known = yes
		}
		s.ordered.Store(known)
	}
	return known == yes
}

// add notes a new task.
func (b *tasks) add(op string, t *Task) error {
	blocking := t.stream.blockingLane()
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.at(t.lane, blocking)
	if l.stopped != nil {
		return stoppedError(op, l.stopped)
	}
	b.link(t.lane, l)
	t.after = slices.Collect(maps.Keys(l.behind))
	l.behind = map[*Task]struct{}{t: {}} // and so behind those of t.after
	l.parked++
	b.list = append(b.list, t)
	b.active.Add(1)
	return nil
}

// link has the latest work of a lane be behind what the legacy stream's rules put before it (CONTRACT ST-03). mu is held.
func (b *tasks) link(k laneKey, l *lane) {
	switch {
	case k.raw == driver.StreamLegacy:
		for other, o := range b.lanes {
			if other.ctx == k.ctx && o.blocking {
				maps.Copy(l.behind, o.behind)
			}
		}
	case l.blocking:
		if legacy := b.lanes[laneKey{ctx: k.ctx, raw: driver.StreamLegacy}]; legacy != nil {
			maps.Copy(l.behind, legacy.behind)
		}
	}
}

// submitted notes that t goes to the driver.
func (b *tasks) submitted(t *Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.state = taskSubmitted
}

// queued notes that t is in its stream: what comes behind it may be queued.
func (b *tasks) queued(t *Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unpark(t)
}

// unpark lets t's stream go on in the library. mu is held.
func (b *tasks) unpark(t *Task) {
	l := b.lanes[t.lane]
	if t.queued {
		return
	}
	t.queued = true
	if l.parked--; l.parked == 0 && l.unparked != nil {
		close(l.unparked)
		l.unparked = nil
	}
}

// begin notes that t begins, on the calling goroutine. It says why if t must not.
func (b *tasks) begin(t *Task) error {
	id := native.GoroutineID()
	b.mu.Lock()
	defer b.mu.Unlock()
	if why := b.lanes[t.lane].stopped; why != nil {
		return &LostError{Name: t.name, Site: siteName(t.site), Err: stoppedError("Go", why)}
	}
	b.run(t, id)
	return nil
}

// leave is the end of what begin began.
func (b *tasks) leave(t *Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.byGoroutine, t.goroutine)
	b.running.Add(-1)
}

// end takes t off. A task that is to stop its stream does so if err is its failure.
func (b *tasks) end(t *Task, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.lanes[t.lane]
	if err != nil && t.opts.stop && t.state == taskRuns && own.stopped == nil {
		own.stopped = err
		b.active.Add(1)
	}
	t.state = taskEnded
	b.unpark(t)
	for k, l := range b.lanes {
		delete(l.behind, t)
		if len(l.behind) == 0 && l.stopped == nil {
			delete(b.lanes, k)
		}
	}
	b.list = without(b.list, t)
	b.active.Add(-1)
}

func without(list []*Task, t *Task) []*Task {
	return slices.DeleteFunc(list, func(other *Task) bool { return other == t })
}

// forget takes a stream off that is about to be destroyed: its handle may come again.
func (b *tasks) forget(c *Context, raw driver.Stream) {
	if b.active.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	k := laneKey{ctx: c, raw: raw}
	if l := b.lanes[k]; l != nil && l.stopped != nil {
		b.active.Add(-1)
	}
	delete(b.lanes, k)
}

// pending is how many tasks of c have not ended.
func (b *tasks) pending(c *Context) (n int) {
	if b.active.Load() == 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.list {
		if t.stream.ctx == c {
			n++
		}
	}
	return n
}

// current is the task that the calling goroutine is the function of, or nil.
func (b *tasks) current() *Task {
	if b.running.Load() == 0 || !native.OnStack(inCallTask) {
		return nil
	}
	id := native.GoroutineID()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byGoroutine[id]
}

// all are the tasks that have not ended.
func (b *tasks) all() []*Task {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.list)
}

// fail ends the tasks of c that wait in the library: c has failed.
func (b *tasks) fail(c *Context, why error) {
	for _, t := range b.all() {
		if t.stream.ctx == c {
			t.lose(why)
		}
	}
}

// stoppedError is the error of what is queued on a stream that a failed task has stopped.
func stoppedError(op string, why error) error {
	return &Error{Op: op, Code: ErrTaskFailed, Reason: "a task has failed and stopped the stream (" + why.Error() + "); close the stream and make another", cause: why}
}

// stoppedAt is why a function that was queued on a stream must not run, or nil.
func (b *tasks) stoppedAt(fn hostfn.Func) error {
	if b.active.Load() == 0 || fn.On == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, l := range b.lanes {
		if l.stopped != nil && uintptr(k.raw) == fn.On && (fn.Group == &k.ctx.funcs || fn.Group == &k.ctx.callbacks) {
			return stoppedError("HostLaunch", l.stopped)
		}
	}
	return nil
}

// queueTurn is called before something is queued on s: it waits while tasks that were queued there before wait in the library, and
// refuses a stream that is stopped.
func (b *tasks) queueTurn(op string, s *Stream, ctx context.Context) error {
	k, blocking := s.lane(), s.blockingLane()
	for {
		b.mu.Lock()
		parked, wait, err := b.enterLane(op, k, blocking)
		b.mu.Unlock()
		if wait == nil {
			return err
		}
		end, err := b.mayWait(op, fmt.Sprintf("stream %#x", uintptr(s.raw)), nil, parked)
		if err != nil {
			return err
		}
		place := s.ctx.drv.dog.waiters.add(op+" for its turn", 0, forTurn)
		select {
		case <-wait:
		case <-ctx.Done():
			err = endedError(op, ctx, "")
		}
		place.Store(nil)
		end()
		if err != nil {
			return err
		}
	}
}

// enterLane is a look of queueTurn: what to wait for, if the lane cannot be entered now. mu is held.
func (b *tasks) enterLane(op string, k laneKey, blocking bool) (parked []*Task, wait <-chan struct{}, err error) {
	if l := b.lanes[k]; l != nil && l.stopped != nil {
		return nil, nil, stoppedError(op, l.stopped)
	}
	for other, o := range b.lanes {
		if o.parked > 0 && (other == k || k.orders(other, blocking && o.blocking)) {
			if o.unparked == nil {
				o.unparked = make(chan struct{})
			}
			return b.waitingIn(other), o.unparked, nil
		}
	}
	if blocking && len(b.lanes) > 0 {
		b.link(k, b.at(k, true))
	}
	return nil, nil, nil
}

// waitingIn are the tasks of a lane that have yet to be queued. mu is held.
func (b *tasks) waitingIn(k laneKey) []*Task {
	return slices.DeleteFunc(slices.Clone(b.list), func(t *Task) bool { return t.lane != k || t.queued })
}

// behindStream are the tasks that the work of s is behind.
func (b *tasks) behindStream(s *Stream) []*Task {
	if b.active.Load() == 0 {
		return nil
	}
	k := s.lane()
	b.mu.Lock()
	defer b.mu.Unlock()
	set := map[*Task]struct{}{}
	if l := b.lanes[k]; l != nil {
		maps.Copy(set, l.behind)
	}
	if k.raw == driver.StreamLegacy { // whose sync includes the work of all blocking streams
		for other, o := range b.lanes {
			if other.ctx == k.ctx && o.blocking {
				maps.Copy(set, o.behind)
			}
		}
	}
	return slices.Collect(maps.Keys(set))
}

// joinStream has later work of s be behind those of list that have not ended.
func (b *tasks) joinStream(s *Stream, list []*Task) {
	if len(list) == 0 || b.active.Load() == 0 {
		return
	}
	k, blocking := s.lane(), s.blockingLane()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range list {
		if t.state != taskEnded {
			b.at(k, blocking).behind[t] = struct{}{}
		}
	}
}

// waiting reports whether tasks of s have yet to be queued.
func (b *tasks) waiting(s *Stream) bool {
	if b.active.Load() == 0 {
		return false
	}
	k, blocking := s.lane(), s.blockingLane()
	b.mu.Lock()
	defer b.mu.Unlock()
	for other, o := range b.lanes {
		if o.parked > 0 && (other == k || k.orders(other, blocking && o.blocking)) {
			return true
		}
	}
	return false
}

// orders reports whether k or other is the legacy stream, which with both being blocking orders their work.
func (k laneKey) orders(other laneKey, blocking bool) bool {
	return blocking && other.ctx == k.ctx && (k.raw == driver.StreamLegacy || other.raw == driver.StreamLegacy)
}

// setBehind notes what e, recorded in s just now, is behind.
func (e *Event) setBehind(s *Stream) {
	list := s.ctx.drv.tasks.behindStream(s)
	if len(list) > 0 {
		e.behind.Store(&list)
	} else if e.behind.Load() != nil {
		e.behind.Store(nil)
	}
}

// mayWait is tasks.mayWait for a call that waits for the work of s.
func (s *Stream) mayWait(op string) (end func(), err error) {
	b := &s.ctx.drv.tasks
	if b.running.Load() == 0 {
		return noWait, nil
	}
	return b.mayWait(op, fmt.Sprintf("stream %#x", uintptr(s.raw)), b.behindStream(s), nil)
}

// mayWait is tasks.mayWait for a call that waits for e.
func (e *Event) mayWait(op string) (end func(), err error) {
	list := new([]*Task)
	if e != nil && e.behind.Load() != nil {
		list = e.behind.Load()
	}
	if e == nil || e.ctx.drv.tasks.running.Load() == 0 {
		return noWait, nil
	}
	return e.ctx.drv.tasks.mayWait(op, "an event", *list, nil)
}
