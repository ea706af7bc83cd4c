//go:build linux && (amd64 || arm64)

package libcuda

import (
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
	var tasks []*task
	for {
		var more bool
		if tasks, more = s.take(tasks); !more {
			return
		}
		tasks = look(tasks)
		if len(tasks) > 0 {
			s.pause(time.Until(soonest(tasks)))
		}
	}
}

// take adds what has been added. With nothing left to look at, or after end, it reports false, and the goroutine counts as
// gone.
func (s *service) take(tasks []*task) (_ []*task, more bool) {
	s.mu.Lock()
	tasks = append(tasks, s.added...)
	s.added = nil
	more = len(tasks) > 0 && !s.ended
	s.running = more
	s.mu.Unlock()
	if !more {
		for _, t := range tasks {
			t.drop()
		}
	}
	return tasks, more
}

// look looks at the tasks that are due, and returns those that are not over.
func look(tasks []*task) []*task {
	kept := tasks[:0]
	for _, t := range tasks {
		if now := time.Now(); !now.Before(t.due) {
			again, done := t.look(now)
			if done {
				continue
			}
			t.due = now.Add(again)
		}
		kept = append(kept, t)
	}
	clear(tasks[len(kept):])
	return kept
}

func soonest(tasks []*task) time.Time {
	at := tasks[0].due
	for _, t := range tasks {
		if t.due.Before(at) {
			at = t.due
		}
	}
	return at
}

// pause waits for d, or until something is added. The runtime's timers are no good for the shortest times: in an idle process
// they are late by up to a millisecond, and a goroutine that is locked to its thread changes threads to wait. So the thread
// itself sleeps for those.
func (s *service) pause(d time.Duration) {
	const short = 200 * time.Microsecond
	if d <= 0 {
		return
	}
	if d <= short {
		t := syscall.NsecToTimespec(int64(d))
		syscall.Nanosleep(&t, nil) // cut short by a signal: then the look is early
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.wake:
	case <-timer.C:
	}
}
