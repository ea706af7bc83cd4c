package cuda

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// queueTurn is called before something is queued on s that cannot be made later: it waits for what waits in the library for s now,
// and refuses a stream that is stopped. For what others queue meanwhile it does not wait: that may be behind the caller.
func (b *tasks) queueTurn(op string, s *Stream, ctx context.Context) error {
	k, blocking, task := s.lane(), s.blockingLane(), b.current()
	b.mu.Lock()
	if err := b.enterLane(op, k, blocking); err != nil {
		b.mu.Unlock()
		return err
	}
	items := b.itemsBefore(k, blocking)
	if len(items) == 0 {
		b.mu.Unlock()
		return nil
	}
	end, err := b.waits(task, &taskWait{op: op, what: s.named(), items: items})
	b.mu.Unlock()
	if err != nil {
		return err
	}
	defer end()
	for _, it := range items {
		if err := s.awaitTurn(op, ctx, it.done); err != nil {
			return err
		}
	}
	return b.enter(op, s)
}

func (s *Stream) named() string { return fmt.Sprintf("stream %#x", uintptr(s.raw)) }

// awaitTurn waits in the library, for ch to be closed.
func (s *Stream) awaitTurn(op string, ctx context.Context, ch <-chan struct{}) (err error) {
	select {
	case <-ch:
		return nil
	default:
	}
	defer s.ctx.drv.dog.waiters.add(op+" for its turn", 0, forTurn).Store(nil)
	sp := s.syncSpan(op + " for its turn")
	defer func() { sp.over(err) }()
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return endedError(op, ctx, "")
	}
}

// enter refuses a stream that is stopped, and has its latest work be behind what the legacy stream's rules want.
func (b *tasks) enter(op string, s *Stream) error {
	k, blocking := s.lane(), s.blockingLane()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.enterLane(op, k, blocking)
}

// enterLane is enter with mu held.
func (b *tasks) enterLane(op string, k laneKey, blocking bool) error {
	if err := b.stoppedLane(op, k); err != nil {
		return err
	}
	if blocking && len(b.lanes) > 0 {
		b.link(k, b.at(k, true))
	}
	return nil
}

// itemsBefore are the last items of the lanes that new work of k has to wait for. mu is held.
func (b *tasks) itemsBefore(k laneKey, blocking bool) (items []*later) {
	for other, o := range b.lanes {
		if last := len(o.items) - 1; last >= 0 && (other == k || k.orders(other, blocking && o.blocking)) {
			items = append(items, o.items[last])
		}
	}
	return items
}

// turn is a caller's turn in a stream: until it has passed, nothing is queued there that puts anything behind tasks. So what the caller
// does then is behind what it was found to be behind, and nothing else.
type turn struct {
	stream *Stream
	it     *later
	ended  func() // of the caller's wait, if it is a task
}

// turnFor is what a turn is for.
type turnFor struct {
	waits bool // for what is before it, once the call is made
	keeps bool // the turn, until that is done: the driver's call waits for it

	// They are called with tasks.mu held, with the item that stands for the turn: place, which may be nil, before it is certain that the
	// call may wait for its turn, for items of other lanes to be after; note, which may be nil, when it is, for what comes behind it.
	place func(it *later)
	note  func(l *lane, it *later)
}

// takeTurn waits for the caller's turn in s. In a task that this would wait for, or the call afterwards, it is ErrDeadlock. end must
// follow if it returns nil.
func (s *Stream) takeTurn(op string, ctx context.Context, o turnFor) (*turn, error) {
	b := &s.ctx.drv.tasks
	k, blocking, task := s.lane(), s.blockingLane(), b.current()
	it := &later{lane: k, turn: make(chan struct{})}
	t := &turn{stream: s, it: it}
	if err := b.place(op, t, blocking, task, o); err != nil {
		return nil, err
	}
	b.pump(s.ctx.drv, k)
	err := s.awaitTurn(op, ctx, it.turn)
	if err == nil {
		err = b.enter(op, s)
	}
	if err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

// place puts t at the end of its lane, if its caller may wait for it.
func (b *tasks) place(op string, t *turn, blocking bool, task *Task, o turnFor) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enterLane(op, t.it.lane, blocking); err != nil {
		return err
	}
	if o.place != nil {
		o.place(t.it)
	}
	l := b.at(t.it.lane, blocking)
	b.link(t.it.lane, l)
	w := &taskWait{op: op, what: t.stream.named(), items: slices.Concat(b.itemsBefore(t.it.lane, blocking), t.it.after)}
	if o.waits {
		w.tasks = slices.Collect(maps.Keys(l.behind))
	}
	if t.ended, err = b.waits(task, w); err != nil {
		b.tidy(t.it.lane, l)
		return err
	}
	if o.keeps {
		t.it.tasks = w.tasks
	}
	if o.note != nil {
		o.note(l, t.it)
	}
	b.append(l, t.it)
	w.items = []*later{t.it}
	return nil
}

// pass is the end of the turn; what the caller waits for goes on. Later calls do nothing.
func (t *turn) pass() {
	d := t.stream.ctx.drv
	d.tasks.pass(d, t.it)
}

// pass is the end of the turn that it stands for.
func (b *tasks) pass(d *Driver, it *later) {
	b.mu.Lock()
	it.passed = true
	b.mu.Unlock()
	b.pump(d, it.lane)
}

// end is the end of the turn, and of the wait.
func (t *turn) end() {
	t.pass()
	t.ended()
}

// blockInTurn is takeTurn for a task's call of the driver that waits there for what is before it in s; others wait as they like. done must
// be called after it.
func (s *Stream) blockInTurn(op string) (done func(), err error) {
	if s.ctx.drv.tasks.current() == nil {
		return noWait, nil
	}
	t, err := s.takeTurn(op, context.Background(), turnFor{waits: true, keeps: true})
	if err != nil {
		return nil, err
	}
	return t.end, nil
}
