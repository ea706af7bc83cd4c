package cuda

import "sync"

// tally counts what is in progress. Unlike a sync.WaitGroup it may be added to while somebody waits.
type tally struct {
	mu   sync.Mutex
	n    int
	zero chan struct{} // what idle handed out last, until it is closed
}

func (t *tally) add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
}

func (t *tally) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	t.signal()
}

// count is how many are in progress.
func (t *tally) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

// idle returns a channel that is closed once nothing is in progress.
func (t *tally) idle() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.zero == nil {
		t.zero = make(chan struct{})
	}
	zero := t.zero
	t.signal()
	return zero
}

func (t *tally) signal() {
	if t.n == 0 && t.zero != nil {
		close(t.zero)
		t.zero = nil
	}
}
