package softcuda

import (
	"sync"

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
type copyEngines [toHost + 1]sync.Mutex

// doing is what an operation does that is t.
func (e *copyEngines) doing(t transfer) func() driver.Result {
	do := t.do
	if t.way != onDevice {
		engine := &e[t.way]
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
