package softcuda

import (
	"sync"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// transfer is a copy or a memset that is ready to be queued.
type transfer struct {
	do func()
	load
}

// load is what a transfer moves.
type load struct {
	way   way
	bytes uintptr
}

// way is where a transfer goes.
type way uint8

const (
	onDevice way = iota // or from host to host: by no engine
	toDevice
	toHost
)

// wayOf is the way of a copy between ends of which these are host memory.
func wayOf(intoHost, fromHost bool) way {
	switch {
	case intoHost == fromHost:
		return onDevice
	case intoHost:
		return toHost
	}
	return toDevice
}

// copyEngines are a device's copy engines: one for each way between host and device. Each does one copy at a time, of
// whatever stream; which one of those that are due comes first is nobody's promise.
type copyEngines struct {
	busy  [toHost + 1]sync.Mutex
	until [toHost + 1]time.Time // when they come to their next copies, by a Cost
}

// reserve takes an engine for so long, from a time on or when it has done what it has to do, and gives the end. mu is held.
func (e *copyEngines) reserve(w way, from time.Time, d time.Duration) time.Time {
	if w == onDevice {
		return from.Add(d)
	}
	e.until[w] = later(e.until[w], from).Add(d)
	return e.until[w]
}

// doing is what an operation does that is t.
func (e *copyEngines) doing(t transfer) func() driver.Result {
	do := t.do
	if t.way != onDevice {
		engine := &e.busy[t.way]
		do = func() {
			engine.Lock()
			defer engine.Unlock()
			t.do()
		}
	}
	return func() driver.Result {
		do()
		return driver.Success
	}
}
