package cuda

import (
	"fmt"
	"slices"

	"github.com/hostlaunch/cuda/internal/driver"
)

// taskWait is what a task's goroutine waits for, in a call of this library: that tasks end, which some work is behind, or that tasks
// be queued, which wait in the library.
type taskWait struct {
	op     string // the call
	what   string // waited for; may be empty
	tasks  []*Task
	queued []*Task
}

func noWait() {}

// mayWait is called before the calling goroutine waits for what is behind list, or until those of queued are. In a task that this
// would wait for it is ErrDeadlock (CONTRACT TK-03). end must be called after the wait.
func (b *tasks) mayWait(op, what string, list, queued []*Task) (end func(), err error) {
	if len(list) == 0 && len(queued) == 0 {
		return noWait, nil
	}
	t := b.current()
	if t == nil {
		return noWait, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	former := t.wait
	t.wait = &taskWait{op, what, list, queued}
	if left := b.stuck(); left[t] {
		why := b.explain(t, left)
		t.wait = former
		return nil, &Error{Op: op, Code: ErrDeadlock, Reason: why.reason(), cause: why}
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		t.wait = former
	}, nil
}

// stuck plays the tasks to their end, as far as the library knows what they wait for: whoever waits for nothing that is left ends
// some time. It returns those that never do. mu is held.
func (b *tasks) stuck() map[*Task]bool {
	p := play{left: map[*Task]bool{}, waits: map[*Task]bool{}, lanes: map[laneKey]int{}, devices: map[driver.Device]int{}}
	list := b.everybody()
	for _, t := range list {
		p.left[t] = true
		switch {
		case t.state == taskWaits:
			p.waits[t] = true
			p.most = int(t.drv.held.most.Load())
		case t.graph != nil && t.state == taskRuns:
			p.inGraphs = append(p.inGraphs, t)
		default:
			p.hold(t)
		}
	}
	for p.round(list) {
	}
	return p.left
}

// play is the state of stuck.
type play struct {
	left, waits map[*Task]bool // not ended; waiting in the library
	lanes       map[laneKey]int
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

// round lets everybody go on who can, and reports whether anybody could.
func (p *play) round(list []*Task) (moved bool) {
	full := map[driver.Device]bool{}
	for _, t := range list {
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
	isLeft := func(other *Task) bool { return p.left[other] }
	if slices.ContainsFunc(t.after, isLeft) || slices.ContainsFunc(p.inGraphs, func(other *Task) bool { return p.left[other] && t.mustWaitFor(other) }) {
		return false
	}
	w := t.wait
	return w == nil || !slices.ContainsFunc(w.tasks, isLeft) && !slices.ContainsFunc(w.queued, func(other *Task) bool { return p.waits[other] })
}

// mustWaitFor reports whether t cannot begin before running, a task of a graph, has ended: both are host functions of one context, of
// which the driver runs one at a time.
func (t *Task) mustWaitFor(running *Task) bool {
	return t != running && t.state != taskRuns && !t.started.Load() && t.lane.ctx == running.lane.ctx && t.opts.mode == Block && running.opts.mode == Block
}

// explain says who waits for whom, from t on. mu is held.
func (b *tasks) explain(t *Task, left map[*Task]bool) *DeadlockError {
	e := &DeadlockError{}
	for seen := map[*Task]bool{}; t != nil && !seen[t]; {
		seen[t] = true
		w, next := t.waitsFor(b.everybody(), left)
		e.Waits = append(e.Waits, w)
		t = next
	}
	return e
}

// waitsFor says what t, which is left, waits for, and which task that is.
func (t *Task) waitsFor(list []*Task, left map[*Task]bool) (DeadlockWait, *Task) {
	isLeft := func(other *Task) bool { return left[other] }
	about := fmt.Sprintf("%s, of stream %#x", t.describe(), uintptr(t.lane.raw))
	find := func(among []*Task) *Task {
		if i := slices.IndexFunc(among, isLeft); i >= 0 {
			return among[i]
		}
		return nil
	}
	if w := t.wait; w != nil {
		where := "waits in " + w.op + " for"
		if w.what != "" {
			where += " " + w.what + ", which is behind"
		}
		if next := find(slices.Concat(w.queued, w.tasks)); next == t {
			return DeadlockWait{about, where, "the task itself"}, nil
		} else if next != nil {
			return DeadlockWait{about, where, next.describe()}, next
		}
	}
	if next := find(t.after); next != nil {
		return DeadlockWait{about, "is queued behind", next.describe()}, next
	}
	if i := slices.IndexFunc(list, func(other *Task) bool {
		return left[other] && other.graph != nil && other.state == taskRuns && t.mustWaitFor(other)
	}); i >= 0 {
		return DeadlockWait{about, "cannot begin, since the thread that runs host functions is kept by", list[i].describe()}, list[i]
	}
	for _, other := range list {
		if left[other] && other != t && other.graph == nil && other.state != taskWaits && other.hold.device() == t.hold.device() {
			why := fmt.Sprintf("waits in the library, since %d streams are held (MaxHeldStreams), one of them by", t.drv.held.most.Load())
			return DeadlockWait{about, why, other.describe()}, other
		}
	}
	return DeadlockWait{about, "cannot begin", ""}, nil
}
