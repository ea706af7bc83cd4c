package softcuda

import (
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/native"
)

// callQueue holds the streams of a context whose first operation is a host function, in the order they came. One goroutine
// at a time serves it, as the driver runs the host functions of a context one at a time.
type callQueue struct {
	first, last *stream
	served      bool
	failed      []uint64 // callbacks that stood in streams when the context failed
}

func (q *callQueue) push(s *stream) {
	if q.last == nil {
		q.first = s
	} else {
		q.last.nextCall = s
	}
	q.last = s
}

func (q *callQueue) pop() *stream {
	s := q.first
	if s == nil {
		return nil
	}
	if q.first = s.nextCall; q.first == nil {
		q.last = nil
	}
	s.nextCall = nil
	return s
}

func (q *callQueue) clear() {
	for q.pop() != nil {
	}
}

// LaunchHostFunc implements driver.HostFunctions.
func (m *machine) LaunchHostFunc(ctx driver.Context, raw driver.Stream, data uint64) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.queueable(ctx, raw)
	if r != driver.Success {
		return r
	}
	m.enqueue(s, &op{kind: opHost, data: data})
	return driver.Success
}

const mostSyncMode = 1 // spin

// LaunchHostFuncMode implements driver.HostFunctions. A goroutine of the device has nothing to spin for.
func (m *machine) LaunchHostFuncMode(ctx driver.Context, raw driver.Stream, data uint64, mode uint32) driver.Result {
	if mode > mostSyncMode {
		return driver.ErrorInvalidValue
	}
	return m.LaunchHostFunc(ctx, raw, data)
}

// LaunchNativeHostFunc implements driver.HostFunctions. The function is called as package native can: by way of package ffi
// where the program links that, or else by its twin in Go.
func (m *machine) LaunchNativeHostFunc(ctx driver.Context, raw driver.Stream, fn, data uintptr, mode uint32) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.queueable(ctx, raw)
	switch {
	case r != driver.Success:
		return r
	case fn == 0, mode > mostSyncMode:
		return driver.ErrorInvalidValue
	case !native.Callable(fn, data):
		return driver.ErrorNotSupported
	}
	o := &op{kind: opHost, work: callNative(fn, data)}
	if fn == native.CellEntry() {
		o.data = uint64(data) // for GraphHostNodeGetParams
		m.touchNative(o, data)
	}
	m.enqueue(s, o)
	return driver.Success
}

// callNative is the work of a compiled host function.
func callNative(fn, data uintptr) func() driver.Result {
	return func() driver.Result {
		native.Call(fn, data)
		return driver.Success
	}
}

// StreamAddCallback implements driver.Callbacks.
func (m *machine) StreamAddCallback(ctx driver.Context, raw driver.Stream, data uint64, flags uint32) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.queueable(ctx, raw)
	if r != driver.Success {
		return r
	}
	if flags != 0 {
		return driver.ErrorInvalidValue
	}
	if s.capture != nil {
		return s.capture.refuse()
	}
	m.enqueue(s, &op{kind: opCallback, data: data})
	return driver.Success
}

// queueCall has the host function or callback at the head of s called in its turn. mu is held.
func (m *machine) queueCall(s *stream) {
	s.ctx.host.push(s)
	m.serveCalls(s.ctx)
}

// serveCalls has a goroutine serve what is due in c. mu is held.
func (m *machine) serveCalls(c *context) {
	if m.sched != nil {
		m.sched.offerFailed(c)
		return
	}
	if !c.host.served && (c.host.first != nil || len(c.host.failed) > 0) {
		c.host.served = true
		m.workers.Add(1)
		go m.serve(c)
	}
}

// serve calls host functions of c until none is due. A function that ends its goroutine (runtime.Goexit) does not end the
// service: another goroutine goes on.
func (m *machine) serve(c *context) {
	var turn callTurn
	over := false
	defer func() {
		if over {
			m.workers.Done()
			return
		}
		m.mu.Lock()
		m.ran(c)
		m.endTurn(&turn)
		m.unlock()
		go m.serve(c)
	}()
	m.mu.Lock()
	for m.nextTurn(c, &turn) {
		c.executing++
		m.unlock()
		for i := range turn.n {
			if turn.s != nil && c.dead.Load() {
				break // a lost context's functions are dropped (HL-17), and its callbacks are in failed
			}
			turn.called = i + 1
			callHost(turn.call, turn.data[i])
		}
		m.mu.Lock()
		m.ran(c)
		m.endTurn(&turn)
	}
	c.host.served = false
	over = true
	m.unlock()
}

// callTurn is a run of host functions that stand one behind the other in a stream. They are called in one go when no other
// stream waits, which spares the lock. What is queued between two of them ends the run, so nobody can tell.
type callTurn struct {
	s      *stream      // nil: callbacks of a context that has failed, which are in no stream any more
	call   func(uint64) // what is called with each of data
	data   [16]uint64
	n      int
	called int
}

// nextTurn takes what is to be called next. mu is held.
func (m *machine) nextTurn(c *context, t *callTurn) bool {
	t.s, t.n, t.called = c.host.pop(), 0, 0
	if t.s == nil {
		return m.failedTurn(c, t)
	}
	m.observe(t.s.first.notes().clock)
	if o := t.s.first; o.kind == opCallback {
		m.callbackTurn(t, o.data, driver.Success)
		t.call = m.timing.call(o, m.known(o, t.call))
		return true
	}
	if m.faults != nil || m.checker != nil || m.timing != nil {
		m.delayedTurn(t)
		return true
	}
	t.call = m.hostCall(t.s.first)
	if t.s.first.work != nil {
		t.n = 1
		return true
	}
	for o := t.s.first; o != nil && o.kind == opHost && o.work == nil && o.waits == 0 && t.n < len(t.data); o = o.next {
		if t.n > 0 && o.notes().clock != nil {
			break // what it observes is observed when it starts, and not before
		}
		t.data[t.n] = o.data
		t.n++
		if c.host.first != nil {
			break
		}
	}
	return true
}

// hostCall is what the host function o calls with its data.
func (m *machine) hostCall(o *op) func(uint64) {
	if o.work != nil {
		return func(uint64) { o.work() }
	}
	return m.up.HostFunc
}

// delayedTurn is a turn of one function, which a fault may delay, and which the checker knows while it runs.
func (m *machine) delayedTurn(t *callTurn) {
	o := t.s.first
	m.checker.begins(o)
	t.data[0], t.n = o.data, 1
	call := m.hostCall(o)
	do := m.faults.operation(o, m.timing.begins(o, func() driver.Result { call(o.data); return driver.Success }))
	t.call = m.known(o, func(uint64) { do() })
}

// failedTurn takes the next callback of a context that has failed.
func (m *machine) failedTurn(c *context, t *callTurn) bool {
	if len(c.host.failed) == 0 {
		return false
	}
	m.callbackTurn(t, c.host.failed[0], c.lost)
	c.host.failed = c.host.failed[1:]
	return true
}

// callbackTurn is a turn of one callback: the next one may have to be told something else.
func (m *machine) callbackTurn(t *callTurn, data uint64, r driver.Result) {
	t.call = func(data uint64) { m.up.Callback(data, r) }
	t.data[0], t.n = data, 1
}

// endTurn takes off what was called. mu is held.
func (m *machine) endTurn(t *callTurn) {
	if t.s == nil || !t.s.running {
		return // the context was lost meanwhile
	}
	for range t.called {
		m.finish(t.s)
	}
	t.s.running = false
	m.settling = append(m.settling, t.s)
	m.releaseHeld()
	m.settle()
}

// callHost calls fn as a host function. Every one is called from here, so that the place it returns to tells.
//
//go:noinline
func callHost(fn func(uint64), data uint64) {
	inside.Add(1)
	defer inside.Add(-1)
	fn(data)
}

// inside is how many host functions run now, of all software drivers. As on the NVIDIA driver, where the mark is the
// thread's, a function of one driver may not call another driver of the kind either.
var inside atomic.Int32

// inCallHost is the address that a host function returns to.
var inCallHost = func() (pc uintptr) {
	callHost(func(uint64) { pc = native.CallerPC() }, 0)
	return pc
}()

// InHostFunction implements driver.Driver. Locking the goroutine that calls host functions to a thread, and marking that,
// would cost every function a change of threads, some 27 us; looking down the caller's stack costs a few ns a frame, and only
// while a host function runs.
func (m *machine) InHostFunction() bool { return inside.Load() > 0 && native.OnStack(inCallHost) }
