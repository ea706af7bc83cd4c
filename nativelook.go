package cuda

import (
	"fmt"
	"math"
	"time"
)

// How long functions that have run may lie uncollected while nobody calls the library.
const (
	firstPause = 500 * time.Microsecond
	mostPause  = 8 * time.Millisecond
)

// someEnded is how many ended functions a call of the library takes care of that wants something else.
const someEnded = 64

// arm has the timer look after a pause. armed is set.
func (t *nativeCalls) arm(pause time.Duration) {
	t.looks.add()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pause = pause
	t.timer = time.AfterFunc(pause, t.look)
}

// look collects what has ended, and has the timer look again while runs are outstanding: soon if there was something.
func (t *nativeCalls) look() {
	defer t.looks.done()
	t.mu.Lock()
	pause := min(2*t.pause, mostPause)
	t.mu.Unlock()
	if t.collect(math.MaxInt) > 0 {
		pause = firstPause
	}
	if t.runs.Load() == 0 {
		// Whoever expects a run now either finds armed false, and arms the timer, or has counted it before the second look.
		t.armed.Store(false)
		if t.runs.Load() == 0 || !t.armed.CompareAndSwap(false, true) {
			return
		}
	}
	t.arm(pause)
}

// observe is for calls that have seen work completed: what is due to be told of that is told.
func (d *Driver) observe() {
	d.funcs.Observe()
	d.natives.collect(math.MaxInt)
}

// shut waits until no run is outstanding; none is expected any more. Afterwards there is no timer.
func (t *nativeCalls) shut() {
	const most = time.Millisecond
	for pause := 10 * time.Microsecond; ; pause = min(2*pause, most) {
		t.collect(math.MaxInt)
		if t.runs.Load() == 0 {
			break
		}
		time.Sleep(pause)
	}
	t.mu.Lock()
	timer := t.timer
	t.mu.Unlock()
	if timer != nil && timer.Stop() {
		t.looks.done()
	}
	<-t.looks.idle()
}

// discard gives all memory back, but for that of abandoned cells.
func (t *nativeCalls) discard() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.used == 0 {
		t.trim(0)
	}
}

// describe says of at most so many functions that they wait or run.
func (t *nativeCalls) describe(most int) (parts []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.each(func(n *nativeCall) {
		what := "waits"
		switch {
		case n.kept || len(parts) == most:
			return
		case n.cell.Due() == 0 && n.cell.Begun() != n.collected:
			what = "runs"
		}
		parts = append(parts, fmt.Sprintf("host function %s, enqueued at %s, which %s", funcName(n.about()), siteName(n.fn.Site), what))
	})
	return parts
}
