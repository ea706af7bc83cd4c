package cuda

import (
	"context"
	"maps"
	"slices"

	"github.com/hostlaunch/cuda/internal/hostfn"
)

// taskLaunch is a launch of an executable while tasks are about, or of one whose graph may have some.
type taskLaunch struct {
	x     *execState
	hosts []hostfn.Handle // that runs are of
	runs  []*Task         // of the graph's tasks; graphTask.over or takeBack is the end of each
}

// orders reports whether launches have to take their turn.
func (b *tasks) orders() bool { return b.active.Load() > 0 || b.ofGraphs.Load() }

// expectTasks makes the runs that a launch of x expects, which count as holding a stream from now on.
func (x *execState) expectTasks() *taskLaunch {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := &taskLaunch{x: x}
	l.fill()
	return l
}

// fill is expectTasks with x.mu held.
func (l *taskLaunch) fill() {
	d := l.x.ctx.drv
	l.hosts, l.runs = slices.Clone(l.x.hosts), nil
	if !d.tasks.ofGraphs.Load() {
		return
	}
	for _, h := range l.hosts {
		fn, _ := d.funcs.KeptFunc(h)
		if o, _ := fn.More.(*hostOptions); o != nil && o.graph != nil {
			l.runs = append(l.runs, o.graph.newRun(laneKey{}))
			d.held.beginUncounted()
		}
	}
}

// takeTurn waits for the launch's turn in s, and for that of x's former launch, which the driver has this one wait for.
func (l *taskLaunch) takeTurn(op string, s *Stream) (*turn, error) {
	noted := false
	t, err := s.takeTurn(op, context.Background(), turnFor{
		place: func(it *later) {
			if former := l.x.turn; former != nil && !former.isOver() {
				it.after = []*later{former}
			}
		},
		note: func(at *lane, it *later) {
			l.expect(s.lane(), at)
			l.x.turn, noted = it, true
		},
	})
	switch {
	case err == nil:
	case noted:
		l.takeBack()
	default:
		l.endHolds(s.ctx.drv)
	}
	return t, err
}

// expect has later work of a lane be behind the launch: behind its runs, which are behind what is before it in the lane, and behind the
// former launch. tasks.mu is held.
func (l *taskLaunch) expect(k laneKey, at *lane) {
	b := &l.x.ctx.drv.tasks
	at.join(l.x.behind)
	if len(l.runs) > 0 {
		after := slices.Collect(maps.Keys(at.behind))
		clear(at.behind)
		for _, t := range l.runs {
			t.lane, t.hold.lane, t.after = k, k, slices.Clone(after)
			at.behind[t] = struct{}{}
			if t.graph.due == nil {
				t.graph.due = map[*execState][]*Task{}
			}
			t.graph.due[l.x] = append(t.graph.due[l.x], t)
			b.addInGraph(t)
		}
	}
	l.x.behind = slices.Collect(maps.Keys(at.behind))
}

// again is the beginning of the launch in its turn in s: if x has been updated meanwhile, it runs other tasks. x.mu is held.
func (l *taskLaunch) again(s *Stream) {
	if slices.Equal(l.hosts, l.x.hosts) {
		return
	}
	l.takeBack()
	l.fill()
	b, k, blocking := &s.ctx.drv.tasks, s.lane(), s.blockingLane()
	b.mu.Lock()
	defer b.mu.Unlock()
	l.expect(k, b.at(k, blocking))
}

// takeBack is the end of the runs of a launch that is not queued.
func (l *taskLaunch) takeBack() {
	l.x.ctx.drv.tasks.strikeRuns(l.x, l.runs)
	l.endHolds(l.x.ctx.drv)
}

func (l *taskLaunch) endHolds(d *Driver) {
	for range l.runs {
		d.held.endUncounted()
	}
}

// launched notes what a launch of x on s may be behind that has not taken its turn: tasks may be about by now.
func (b *tasks) launched(x *execState, s *Stream) {
	if b.active.Load() == 0 {
		return
	}
	list := b.behindStream(s)
	b.mu.Lock()
	defer b.mu.Unlock()
	x.behind = append(alive(x.behind), list...)
}
