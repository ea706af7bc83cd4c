//go:build linux && (amd64 || arm64)

package libcuda

import (
	"container/heap"
	"sync"
	"syscall"
	"time"
)

// service is a goroutine that looks, again and again, at what nobody waits for: events that somebody wants to be told of, and
// contexts that may have failed. It runs only while there is something to look at.
//
// It is locked to its thread and in Relaxed capture mode, and never synchronises anything, so it spoils nobody's capture
// (CONTRACT CP-12).
type service struct {
	mu      sync.Mutex // guards what follows; not held while looking
	added   []*task    // since the goroutine last looked
	running bool
	ended   bool

	wake chan struct{}  // has the goroutine see to added
	done sync.WaitGroup // the goroutine

	queue taskQueue     // the goroutine's own
	cost  time.Duration // of a look, lately; the goroutine's own
}

// A task is something to look at, from due on. look returns how long to wait before the next time; it is over when done.
type task struct {
	due  time.Time
	look func(now time.Time) (again time.Duration, done bool)
	drop func() // called instead, if the service ends first
}

// add has the service look at t. It reports false after end.
func (s *service) add(nv *nvidia, t *task) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.added = append(s.added, t)
	if s.running {
		select {
		case s.wake <- struct{}{}:
		default: // it will wake anyway
		}
		return true
	}
	s.running = true
	if s.wake == nil {
		s.wake = make(chan struct{}, 1)
	}
	s.done.Add(1)
	go func() {
		defer s.done.Done()
		nv.relaxed(s.run)
	}()
	return true
}

// end drops what is left and waits until the goroutine has gone. It must not be called by a task.
func (s *service) end() {
	s.mu.Lock()
	s.ended = true
	if s.running {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	s.mu.Unlock()
	s.done.Wait()
}

func (s *service) run() {
	defer exactSleep()()
	for s.take() {
		s.look()
		if len(s.queue) > 0 {
			s.pause(s.rest())
		}
	}
}

// take adds what has been added. With nothing left to look at, or after end, it reports false, and the goroutine counts as
// gone.
func (s *service) take() (more bool) {
	s.mu.Lock()
	added := s.added
	s.added = nil
	more = len(s.queue)+len(added) > 0 && !s.ended
	if !more { // whoever adds now starts another goroutine, which has the queue
		added, s.queue = append(added, s.queue...), nil
	}
	s.running = more
	s.mu.Unlock()
	for _, t := range added {
		if more {
			heap.Push(&s.queue, t)
		} else {
			t.drop()
		}
	}
	return more
}

// look looks at tasks that are due: at some, so that new ones need not wait for very many old ones.
func (s *service) look() {
	const most = 64
	now := time.Now()
	for range most {
		if len(s.queue) == 0 || now.Before(s.queue[0].due) {
			return
		}
		t, start := s.queue[0], now
		again, done := t.look(start)
		if done {
			heap.Pop(&s.queue)
			now = time.Now()
			continue
		}
		t.due = start.Add(max(again, s.fair()))
		heap.Fix(&s.queue, 0)
		now = time.Now()
		s.spent(now.Sub(start))
	}
}

// spent notes what a look took. One that took very long was interrupted.
func (s *service) spent(d time.Duration) {
	const most, lately = 20 * time.Microsecond, 64
	s.cost += (min(d, most) - s.cost) / lately
}

// fair is how long to leave a task alone where there are many, so that looking at them all takes a quarter of a processor,
// however many wait. Few may be looked at without a pause.
func (s *service) fair() time.Duration {
	const few, share, most = 8, 4, 100 * time.Millisecond
	if len(s.queue) <= few {
		return 0
	}
	return min(time.Duration(len(s.queue))*s.cost*share, most)
}

// rest is how long there is nothing to look at. Where there are many tasks, those due soon after each other are looked at
// together, since a sleep costs more than a look.
func (s *service) rest() time.Duration {
	const parts = 16
	d := time.Until(s.queue[0].due)
	if d <= 0 {
		return 0
	}
	return max(d, s.fair()/parts)
}

// pause waits for d, or until something is added.
func (s *service) pause(d time.Duration) {
	const short = 200 * time.Microsecond
	if d <= 0 {
		return
	}
	if d <= short {
		nap(d) // cut short by a signal: then the look is early
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.wake:
	case <-timer.C:
	}
}

// nap has the thread itself sleep for d, or less if a signal comes. It is for the shortest times, for which the runtime's timers are no
// good: in an idle process they are late by up to a millisecond, and a goroutine that is locked to its thread changes threads to
// wait. See exactSleep too.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	for syscall.Nanosleep(&t, &t) == syscall.EINTR { // the Go runtime signals threads
	}
}

// exactSleep has the thread's sleeps end when they should, rather than the usual 50 µs later, until restore is called. The
// goroutine is locked to its thread.
func exactSleep() (restore func()) {
	const setSlack, finest, usual = 29 /* PR_SET_TIMERSLACK */, 1, 0
	set := func(ns uintptr) { syscall.RawSyscall(syscall.SYS_PRCTL, setSlack, ns, 0) } // refused: sleeps are longer, no more
	set(finest)
	return func() { set(usual) }
}

// taskQueue is a heap of tasks, the next one due in front.
type taskQueue []*task

// Len implements heap.Interface, like the methods that follow.
func (q taskQueue) Len() int           { return len(q) }
func (q taskQueue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q taskQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *taskQueue) Push(t any)        { *q = append(*q, t.(*task)) }
func (q *taskQueue) Pop() any {
	old := *q
	last := len(old) - 1
	t := old[last]
	old[last] = nil
	*q = old[:last]
	return t
}
