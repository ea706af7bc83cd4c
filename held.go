package cuda

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/driver"
)

// heldStreams says which streams the library holds by wait-values, and bounds how many at once (CONTRACT TK-04). A held stream
// blocks a hardware queue that others may share, and makes the driver's calls that synchronise implicitly wait (CONTRACT TK-03).
//
// A stream counts once, however many holds are queued on it. Who finds no room waits in line, and is called in its turn.
type heldStreams struct {
	drv  *Driver
	n    atomic.Int32 // streams held, or about to be
	most atomic.Int32 // of one device

	mu      sync.Mutex // guards what follows; never held across a call out of this file
	lanes   map[laneKey]int
	devices map[driver.Device]int     // streams held
	line    map[driver.Device][]*hold // who waits for room
	turn    []*hold                   // who has got it; called one after another
	serving bool                      // a goroutine calls those of turn
	quiet   int                       // calls in progress that no stream may be held under
	later   []func()                  // to be called when none is
}

// laneKey names a stream of a driver. own tells the per-thread default streams apart, which have one handle.
type laneKey struct {
	ctx *Context
	raw driver.Stream
	own *resource
}

// hold is one hold of a stream.
type hold struct {
	lane    laneKey
	granted func() // called when there is room, on a goroutine of the library; it must not block
}

func (h *hold) device() driver.Device { return h.lane.ctx.device }

// begin takes room for h. If it reports false there is none now, and h.granted is called later. end must follow once the stream
// has been let go of, or need not be held at all.
func (l *heldStreams) begin(h *hold) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.fits(h) || len(l.line[h.device()]) > 0 {
		if l.line == nil {
			l.line = map[driver.Device][]*hold{}
		}
		l.line[h.device()] = append(l.line[h.device()], h)
		return false
	}
	l.take(h)
	return true
}

// fits reports whether h may be held now. A call that no stream may be held under does not keep it from that if a graph's task holds one
// already, which nobody can keep from it: that may be waiting for h, and the call for that. mu is held.
func (l *heldStreams) fits(h *hold) bool {
	return (l.quiet == 0 || l.n.Load() > 0) && (l.lanes[h.lane] > 0 || l.devices[h.device()] < int(l.most.Load()))
}

// take counts h. mu is held.
func (l *heldStreams) take(h *hold) {
	if l.lanes == nil {
		l.lanes, l.devices = map[laneKey]int{}, map[driver.Device]int{}
	}
	if l.lanes[h.lane]++; l.lanes[h.lane] == 1 {
		l.devices[h.device()]++
		l.n.Add(1)
	}
}

// end is the end of a hold that has room.
func (l *heldStreams) end(h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lanes[h.lane]--; l.lanes[h.lane] == 0 {
		delete(l.lanes, h.lane)
		l.devices[h.device()]--
		l.less()
	}
	l.admit()
}

// less counts a stream that is not held any more. mu is held.
func (l *heldStreams) less() {
	if l.n.Add(-1) == 0 && len(l.later) > 0 {
		l.beQuiet()
	}
}

// beginUncounted is the beginning of a hold that nobody bounds: the driver holds a stream by itself, for a graph's task, or soon will.
// Like a task of Go it counts as a call of the Driver, so that it is waited for. The caller is in a call.
func (l *heldStreams) beginUncounted() {
	l.drv.calls.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n.Add(1)
	l.admit() // what only a call has kept waiting that no stream may be held under: see fits
}

// endUncounted is the end of what beginUncounted began.
func (l *heldStreams) endUncounted() {
	defer l.drv.leave()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.less()
}

// leave takes h out of the line. It reports false if h has room already.
func (l *heldStreams) leave(h *hold) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.line[h.device()]
	i := slices.Index(line, h)
	if i < 0 {
		return false
	}
	l.line[h.device()] = slices.Delete(line, i, i+1)
	l.admit()
	return true
}

// admit gives room to those in line, of each device in their order. mu is held.
func (l *heldStreams) admit() {
	for dev, line := range l.line {
		for len(line) > 0 && l.fits(line[0]) {
			h := line[0]
			line[0] = nil // the line is in the same array still
			line = line[1:]
			l.take(h)
			l.turn = append(l.turn, h)
		}
		if l.line[dev] = line; len(line) == 0 {
			delete(l.line, dev)
		}
	}
	if len(l.turn) > 0 && !l.serving {
		l.serving = true
		l.drv.inBackground(l.serve)
	}
}

// serve calls those who have got room.
func (l *heldStreams) serve() {
	for {
		l.mu.Lock()
		turn := l.turn
		l.turn = nil
		l.serving = len(turn) > 0
		l.mu.Unlock()
		if len(turn) == 0 {
			return
		}
		for _, h := range turn {
			h.granted()
		}
	}
}

// quietly runs fn while no stream is held, and none can be until fn returns. It reports false, without running it, if one is.
func (l *heldStreams) quietly(fn func()) bool {
	l.mu.Lock()
	if l.n.Load() > 0 {
		l.mu.Unlock()
		return false
	}
	l.quiet++
	l.mu.Unlock()
	defer l.unquiet()
	fn()
	return true
}

func (l *heldStreams) unquiet() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.quiet--
	l.admit()
}

// whenNone has fn called once no stream is held: at once, or on a goroutine of the library. None can be held until it returns.
func (l *heldStreams) whenNone(fn func()) {
	if l.quietly(fn) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.later = append(l.later, fn)
	if l.n.Load() == 0 { // since quietly looked
		l.beQuiet()
	}
}

// waitNone waits until no stream is held, and runs fn, under which none can be. It must not be called in a task.
func (l *heldStreams) waitNone(fn func()) {
	turn, returned := make(chan struct{}), make(chan struct{})
	go l.whenNone(func() {
		close(turn)
		<-returned
	})
	<-turn
	defer close(returned)
	fn()
}

// beQuiet calls what waits for no stream to be held. mu is held.
func (l *heldStreams) beQuiet() {
	list := l.later
	l.later = nil
	l.quiet++
	l.drv.inBackground(func() {
		defer l.unquiet()
		for _, fn := range list {
			fn()
		}
	})
}

// inBackground runs fn on a goroutine of its own, which spoils nobody's capture, and which Close waits for.
func (d *Driver) inBackground(fn func()) {
	d.reports.add()
	go func() {
		defer d.reports.done()
		d.relaxed(fn)
	}()
}
