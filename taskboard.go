package cuda

import (
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
	active  atomic.Int32 // tasks that have not ended, those of launches too, what waits in the library, and streams that were stopped
	running atomic.Int32 // tasks whose functions run

	ofGraphs atomic.Bool // a graph has had a task

	mu          sync.Mutex // guards what follows; never held across a driver call
	list        []*Task    // in the order of their Go calls
	lanes       map[laneKey]*lane
	number      uint64 // of the latest item of any lane
	byGoroutine map[uintptr]*Task
	inGraphs    map[*Task]struct{} // runs of graphs' tasks: of launches that have been queued, and those in progress
}

// lane is a stream with work behind tasks.
type lane struct {
	blocking bool               // it and the legacy default stream order each other's work
	behind   map[*Task]struct{} // what its latest work is behind, but for what those are behind themselves
	items    []*later           // what waits in the library for its turn
	pumped   bool               // somebody is at them
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
		flags, r := s.driver().StreamGetFlags(s.ctx.raw, s.raw)
		if r != driver.Success { // to keep an order that nobody wants is the lesser evil
			return true
		}
		known = no
		if flags&driver.StreamNonBlocking == 0 {
			known = yes
		}
		s.ordered.Store(known)
	}
	return known == yes
}

// add notes a new task, and takes room to hold its stream if there is any: whoever waits for that does so in the order of list.
func (b *tasks) add(op string, t *Task) (granted bool, err error) {
	blocking := t.stream.blockingLane()
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.at(t.lane, blocking)
	if l.stopped != nil {
		return false, stoppedError(op, l.stopped)
	}
	b.link(t.lane, l)
	t.after = slices.Collect(maps.Keys(l.behind))
	l.behind = map[*Task]struct{}{t: {}} // and so behind those of t.after
	t.item = &later{lane: t.lane, stream: t.stream, task: t}
	if t.turn != nil {
		t.item.turn, t.place = make(chan struct{}), t.item
	}
	b.append(l, t.item)
	if t.opts.stop {
		b.append(l, &later{lane: t.lane, stream: t.stream, task: t, ends: true})
	}
	b.list = append(b.list, t)
	b.active.Add(1)
	t.granted = t.drv.held.begin(&t.hold)
	return t.granted, nil
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

// grant notes that there is room for t's hold.
func (b *tasks) grant(t *Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.granted = true
}

// begin notes that t begins, on the calling goroutine. It says why if t must not.
func (b *tasks) begin(t *Task) error {
	id := native.Goroutine()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.stoppedLane("Go", t.lane); err != nil {
		return t.neverRan(err)
	}
	b.run(t, id)
	return nil
}

// leave is the end of what run began. mu is held.
func (b *tasks) leave(t *Task) {
	delete(b.byGoroutine, t.goroutine)
	b.running.Add(-1)
}

// warm reads what is needed when t begins; see spinner.warm.
func (b *tasks) warm(t *Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.lanes[t.lane]
}

// end takes t off. A task that is to stop its stream does so if err is its failure.
func (b *tasks) end(t *Task, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.at(t.lane, false)
	if t.state == taskRuns {
		b.leave(t)
	}
	if err != nil && t.opts.stop && t.state == taskRuns && own.stopped == nil {
		own.stopped = err
		b.active.Add(1)
	}
	t.state = taskEnded
	b.unlink(t)
	b.list = slices.DeleteFunc(b.list, func(other *Task) bool { return other == t })
	b.active.Add(-1)
}

// unlink has nothing be behind t any more, which has ended. What was behind it is behind those before it, should it not have run: t keeps
// those for whoever knows of t only. mu is held.
func (b *tasks) unlink(t *Task) {
	t.after, t.item = alive(t.after), nil
	for k, l := range b.lanes {
		l.withoutTask(t)
		b.tidy(k, l)
	}
}

// alive are the tasks of list that have not ended, and those that ones which never ran were behind. tasks.mu is held.
func alive(list []*Task) (left []*Task) {
	for _, t := range list {
		if t.state != taskEnded {
			left = append(left, t)
		} else {
			left = append(left, alive(t.after)...)
		}
	}
	return left
}

// withoutTask takes a task out of what the lane is behind. If it has not run, those before it take its place.
func (l *lane) withoutTask(t *Task) {
	if _, there := l.behind[t]; !there {
		return
	}
	delete(l.behind, t)
	l.join(t.after)
}

// join has what comes later be behind those of list that have not ended. tasks.mu is held.
func (l *lane) join(list []*Task) {
	for _, t := range alive(list) {
		l.behind[t] = struct{}{}
	}
}

// forget takes a stream off that is about to be destroyed: its handle may come again.
func (b *tasks) forget(k laneKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forgetLane(k)
}

// forgetLane is forget with mu held.
func (b *tasks) forgetLane(k laneKey) {
	if l := b.lanes[k]; l != nil && l.stopped != nil {
		b.active.Add(-1)
	}
	delete(b.lanes, k)
}

// renew takes off what is left of a foreign stream, perhaps a stopped one, that its owner has destroyed: the driver has just given its
// handle to a new one. What still waits in the library for that one is left to be refused.
func (b *tasks) renew(k laneKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.lanes[k]; l != nil && len(l.items) == 0 {
		b.forgetLane(k)
	}
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
	id := native.Goroutine()
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

// unfinished are the tasks that have not ended, less those whose Done says so already.
func (b *tasks) unfinished() []*Task {
	return slices.DeleteFunc(b.all(), func(t *Task) bool {
		select {
		case <-t.done:
			return true
		default:
			return false
		}
	})
}

// everybody is all tasks that have not ended, runs of those of graphs too. mu is held.
func (b *tasks) everybody() []*Task {
	return slices.AppendSeq(slices.Clone(b.list), maps.Keys(b.inGraphs))
}

// fail ends the tasks of c that wait in the library: c has failed. What waits there behind them, and behind those that run, is told so.
func (b *tasks) fail(c *Context, why error) {
	for _, t := range b.all() {
		if t.stream.ctx == c {
			t.lose(why)
		}
	}
	for _, k := range b.lanesOf(c) {
		b.pump(c.drv, k)
	}
}

// lanesOf are the lanes of a context.
func (b *tasks) lanesOf(c *Context) (list []laneKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k := range b.lanes {
		if k.ctx == c {
			list = append(list, k)
		}
	}
	return list
}

// stoppedOn is the error of a call on s if a failed task has stopped it.
func (b *tasks) stoppedOn(op string, s *Stream) error {
	if b.active.Load() == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stoppedLane(op, s.lane())
}

// stoppedLane is stoppedOn for a lane. mu is held.
func (b *tasks) stoppedLane(op string, k laneKey) error {
	if l := b.lanes[k]; l != nil && l.stopped != nil {
		return stoppedError(op, l.stopped)
	}
	return nil
}

// stoppedError is the error of what is queued on a stream that a failed task has stopped.
func stoppedError(op string, why error) error {
	reason := "a task has failed and stopped the stream (" + why.Error() + "); close the stream and make another"
	return &Error{Op: op, Code: ErrTaskFailed, Reason: reason, cause: why}
}

// stoppedAt is why a function that was queued on a stream must not run, or nil.
func (b *tasks) stoppedAt(fn hostfn.Func) error {
	if b.active.Load() == 0 || fn.On == 0 || fn.On == uintptr(driver.StreamPerThread) { // whose calls have waited for the task's end
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

// anyLeft reports whether one of list has not ended, or what it was behind if it never ran.
func (b *tasks) anyLeft(list []*Task) bool {
	if len(list) == 0 || b.active.Load() == 0 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(alive(list)) > 0
}

// behindStream are the tasks that the work of s is behind.
func (b *tasks) behindStream(s *Stream) []*Task {
	if b.active.Load() == 0 {
		return nil
	}
	k, blocking := s.lane(), s.blockingLane()
	b.mu.Lock()
	defer b.mu.Unlock()
	set := map[*Task]struct{}{}
	if l := b.lanes[k]; l != nil {
		maps.Copy(set, l.behind)
	}
	for other, o := range b.lanes { // what is queued on s now is behind those too
		if k.orders(other, blocking && o.blocking) {
			maps.Copy(set, o.behind)
		}
	}
	return slices.Collect(maps.Keys(set))
}

// waiting reports whether anything waits in the library that is before new work of s, or s is stopped: what a call has begun to queue
// while the task ran that stopped it goes to the lane too, which refuses it.
func (b *tasks) waiting(s *Stream) bool {
	if b.active.Load() == 0 {
		return false
	}
	k, blocking := s.lane(), s.blockingLane()
	b.mu.Lock()
	defer b.mu.Unlock()
	for other, o := range b.lanes {
		switch busy := len(o.items) > 0; {
		case other == k && (busy || o.stopped != nil), busy && k.orders(other, blocking && o.blocking):
			return true
		}
	}
	return false
}

// orders reports whether k or other is the legacy stream, which with both being blocking orders their work.
func (k laneKey) orders(other laneKey, blocking bool) bool {
	return blocking && other.ctx == k.ctx && (k.raw == driver.StreamLegacy || other.raw == driver.StreamLegacy)
}

// setBehind notes what e's latest record is behind.
func (e *Event) setBehind(list []*Task) {
	if len(list) > 0 {
		e.behind.Store(&list)
	} else if e.behind.Load() != nil {
		e.behind.Store(nil)
	}
}

// isBehind are the tasks that e's latest record is behind.
func (e *Event) isBehind() []*Task {
	if list := e.behind.Load(); list != nil {
		return *list
	}
	return nil
}
