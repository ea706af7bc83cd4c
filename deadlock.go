package cuda

import (
	"fmt"
	"slices"

	"github.com/hostlaunch/cuda/internal/driver"
)

// taskWait is what a task's goroutine waits for, in a call of this library: that tasks end, that items are over, or for room.
type taskWait struct {
	op    string // the call
	what  string // waited for; may be empty
	tasks []*Task
	items []*later
	room  *Task // whose stream there must be room to hold; may be nil
}

func noWait() {}

// mayWait is called before the calling goroutine waits for w. In a task that this would wait for it is ErrDeadlock (CONTRACT TK-03).
// end must be called after the wait.
func (b *tasks) mayWait(w *taskWait) (end func(), err error) {
	t := b.current()
	if t == nil {
		return noWait, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waits(t, w)
}

// waits is mayWait for t, which may be nil: the caller is no task. mu is held: what w says cannot become wrong before it is noted.
func (b *tasks) waits(t *Task, w *taskWait) (end func(), err error) {
	if t == nil || len(w.tasks) == 0 && len(w.items) == 0 && w.room == nil {
		return noWait, nil
	}
	former := t.wait
	t.wait = w
	if p := b.stuck(); p.left[t] {
		why := p.explain(t)
		t.wait = former
		return nil, &Error{Op: w.op, Code: ErrDeadlock, Reason: why.reason(), cause: why}
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		t.wait = former
	}, nil
}

// stuck plays the tasks to their end, as far as the library knows what they wait for: whoever waits for nothing that is left ends
// some time. Those that never do are left. mu is held.
func (b *tasks) stuck() *play {
	p := &play{
		list: b.everybody(), left: map[*Task]bool{}, waits: map[*Task]bool{}, queues: map[laneKey][]*later{}, passed: map[laneKey]uint64{},
		lanes: map[laneKey]int{}, devices: map[driver.Device]int{},
	}
	for k, l := range b.lanes {
		if len(l.items) > 0 {
			p.queues[k] = l.items
		}
	}
	for _, t := range p.list {
		p.left[t] = true
		switch {
		case t.state == taskWaits && !t.granted:
			p.waits[t] = true
			p.most = int(t.drv.held.most.Load())
		case t.graph != nil && t.state == taskRuns:
			p.inGraphs = append(p.inGraphs, t)
		default:
			p.hold(t)
		}
	}
	for p.items() || p.round() {
	}
	return p
}

// play is the state of stuck.
type play struct {
	list        []*Task
	left, waits map[*Task]bool        // not ended; waiting for room
	queues      map[laneKey][]*later  // what waits in the library yet
	passed      map[laneKey]uint64    // the number of the latest item of a lane that is over
	lanes       map[laneKey]int       // held
	devices     map[driver.Device]int // streams held
	most        int
	inGraphs    []*Task // those of graphs that run
}

func (p *play) hold(t *Task) {
	if t.graph != nil {
		return // nor does the library hold its stream
	}
	if p.lanes[t.lane]++; p.lanes[t.lane] == 1 {
		p.devices[t.hold.device()]++
	}
}

// items has everything in the library go on that can, and reports whether anything could.
func (p *play) items() (moved bool) {
	for k, queue := range p.queues {
		for len(queue) > 0 && p.passes(queue[0]) {
			p.passed[k] = queue[0].number
			queue = queue[1:]
			moved = true
		}
		p.queues[k] = queue
	}
	return moved
}

// passes reports whether nothing keeps the first item of a lane.
func (p *play) passes(it *later) bool {
	if slices.ContainsFunc(it.after, func(other *later) bool { return !p.isOver(other) }) || p.firstLeft(it.tasks) != nil {
		return false
	}
	return it.task == nil || !p.left[it.task] || !it.ends && !p.waits[it.task]
}

func (p *play) isOver(it *later) bool { return it.isOver() || it.number <= p.passed[it.lane] }

// firstLeft is the first task that is left of a list. Behind one that never ran is what that was behind.
func (p *play) firstLeft(list []*Task) *Task {
	for _, t := range list {
		if p.left[t] {
			return t
		}
		if t.state == taskEnded {
			if before := p.firstLeft(t.after); before != nil {
				return before
			}
		}
	}
	return nil
}

// round lets every task go on that can, and reports whether any could.
func (p *play) round() (moved bool) {
	full := map[driver.Device]bool{}
	for _, t := range p.list {
		switch dev := t.hold.device(); {
		case !p.left[t]:
		case p.waits[t]:
			if full[dev] || p.lanes[t.lane] == 0 && p.devices[dev] >= p.most {
				full[dev] = true
				continue
			}
			delete(p.waits, t)
			p.hold(t)
			moved = true
		case p.ends(t):
			delete(p.left, t)
			p.letGo(t)
			moved = true
		}
	}
	return moved
}

func (p *play) letGo(t *Task) {
	if t.graph != nil {
		return
	}
	if p.lanes[t.lane]--; p.lanes[t.lane] == 0 {
		p.devices[t.hold.device()]--
	}
}

// ends reports whether nothing keeps t from beginning and ending.
func (p *play) ends(t *Task) bool {
	switch {
	case p.firstLeft(t.after) != nil, t.state == taskWaits && !p.isOver(t.item):
		return false
	case p.keepsFromBeginning(t) != nil:
		return false
	case t.wait == nil:
		return true
	}
	w := t.wait
	return p.firstLeft(w.tasks) == nil && p.firstKept(w.items) == nil && !p.waits[w.room]
}

// firstKept is the first item that is not over of a list.
func (p *play) firstKept(list []*later) *later {
	if i := slices.IndexFunc(list, func(it *later) bool { return !p.isOver(it) }); i >= 0 {
		return list[i]
	}
	return nil
}

// keeper is the task that keeps an item from being over: the item itself, what is before it in its lane, or what those are after.
func (p *play) keeper(it *later) *Task {
	if queue := p.queues[it.lane]; len(queue) > 0 {
		it = queue[0]
	}
	if before := p.firstKept(it.after); before != nil {
		return p.keeper(before)
	}
	if t := p.firstLeft(it.tasks); t != nil {
		return t
	}
	return it.task
}

// keepsFromBeginning is a graph's task that runs, is left, and has to end before t can begin.
func (p *play) keepsFromBeginning(t *Task) *Task {
	for _, running := range p.inGraphs {
		if p.left[running] && t.mustWaitFor(running) {
			return running
		}
	}
	return nil
}

// mustWaitFor reports whether t cannot begin before running, a task of a graph, has ended: both are host functions of one context, of
// which the driver runs one at a time.
func (t *Task) mustWaitFor(running *Task) bool {
	inTurn := t.lane.ctx == running.lane.ctx && t.opts.mode == Block && running.opts.mode == Block
	return inTurn && t != running && t.state != taskRuns && !t.started.Load()
}

// explain says who waits for whom, from t on.
func (p *play) explain(t *Task) *DeadlockError {
	e := &DeadlockError{}
	for seen := map[*Task]bool{}; t != nil && !seen[t]; {
		seen[t] = true
		w, next := p.waitOf(t)
		e.Waits = append(e.Waits, w)
		t = next
	}
	return e
}

// waitOf says what t, which is left, waits for, and which task that is.
func (p *play) waitOf(t *Task) (DeadlockWait, *Task) {
	about := fmt.Sprintf("%s, of stream %#x", t.describe(), uintptr(t.lane.raw))
	if w := t.wait; w != nil {
		where := "waits in " + w.op + " for"
		if w.what != "" {
			where += " " + w.what + ", which is behind"
		}
		if next := p.awaited(w); next == t {
			return DeadlockWait{about, where, "the task itself"}, nil
		} else if next != nil {
			return DeadlockWait{about, where, next.describe()}, next
		}
	}
	if next := p.firstLeft(t.after); next != nil {
		return DeadlockWait{about, "is queued behind", next.describe()}, next
	}
	if t.state == taskWaits && !p.isOver(t.item) {
		if next := p.keeper(t.item); next != nil && next != t {
			return DeadlockWait{about, "waits in the library behind", next.describe()}, next
		}
	}
	if next := p.keepsFromBeginning(t); next != nil {
		return DeadlockWait{about, "cannot begin, since the thread that runs host functions is kept by", next.describe()}, next
	}
	for _, other := range p.list {
		if p.left[other] && other != t && other.graph == nil && !p.waits[other] && other.hold.device() == t.hold.device() {
			why := fmt.Sprintf("waits in the library for room to hold its stream ("+roomOption+" is %d), which is kept by", t.drv.held.most.Load())
			return DeadlockWait{about, why, other.describe()}, other
		}
	}
	return DeadlockWait{about, "cannot begin", ""}, nil
}

// awaited is the task that is waited for in w.
func (p *play) awaited(w *taskWait) *Task {
	if it := p.firstKept(w.items); it != nil {
		if t := p.keeper(it); t != nil {
			return t
		}
	}
	if p.waits[w.room] {
		return w.room
	}
	return p.firstLeft(w.tasks)
}
