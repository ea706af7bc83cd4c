package softcuda

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
)

// Fault is something that goes wrong on a software device, on demand. It strikes at calls or at operations.
type Fault struct {
	// Call is the driver function that fails, by its name in the CUDA driver API: "cuMemAlloc", or "MemAlloc". A trailing "*"
	// stands for any rest: "Memcpy*".
	Call string
	// Op is the kind of operation that fails when its turn comes, which loses its context: "copy", "memset", "write-value",
	// "kernel", or "kernel add" for the kernel of that name. "host function" can only be delayed.
	Op string
	// After is how many of them are left alone first.
	After int
	// Times is how many fail then. 0 means one, a negative number all.
	Times int
	// Probability is how many fail on average, between 0 and 1; 0 means all. They are drawn from the driver's Seed.
	Probability float64
	// Result is what the call answers, or what the context is lost with: cuda.ErrOutOfMemory, say. Only a code of the driver's will do.
	Result cuda.Code
	// Lose has all contexts of the device fail for good with Result, beside what fails.
	Lose bool
	// Delay has the call or the operation begin so much later. It then goes on, unless there is a Result.
	Delay time.Duration
}

// Faults are the faults of one driver (Options.Faults). The zero value has none. All methods may be called at any time, from any
// goroutine.
type Faults struct {
	mu    sync.Mutex
	m     *machine
	rng   *rand.Rand
	list  []*armed
	calls map[string]int
}

// armed is a fault that can strike.
type armed struct {
	Fault
	seen, struck int
}

// Add adds a fault. A fault that cannot strike is refused, with the reason.
func (f *Faults) Add(fault Fault) error {
	fault.Call = strings.TrimPrefix(fault.Call, "cu")
	if why := fault.wrong(); why != "" {
		return fmt.Errorf("softcuda: Faults.Add: %s", why)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, &armed{Fault: fault})
	return nil
}

// wrong says what is wrong with a fault, or "".
func (f *Fault) wrong() string {
	switch {
	case (f.Call == "") == (f.Op == ""):
		return "a fault has either a Call or an Op"
	case f.Call != "" && !f.callable():
		return fmt.Sprintf("Call %q is no function of the driver that this library calls", f.Call)
	case f.Op != "" && !f.operable():
		return fmt.Sprintf("Op %q is no operation that a fault can strike: take \"copy\", \"memset\", \"write-value\", \"kernel\", \"kernel \" and a name, or %q", f.Op, opHostText)
	case f.Result < 0:
		return fmt.Sprintf("Result is %v, which no driver answers; take a code of the driver's", f.Result)
	case f.Result == 0 && (f.Lose || f.Delay <= 0):
		return "there is neither a Result nor a Delay"
	case f.Op == opHostText && f.Result != 0:
		return "a host function has no result: it can only be delayed"
	case (f.Lose || f.Op != "") && f.Result != 0 && !driver.Result(f.Result).Sticky():
		return fmt.Sprintf("Result is %v, which does not lose a context; take one that does, as cuda.ErrLaunchFailed", f.Result)
	case f.After < 0, f.Probability < 0, f.Probability > 1:
		return "After is below 0, or Probability not between 0 and 1"
	}
	return ""
}

// callable reports whether there is a call of that name.
func (f *Fault) callable() bool {
	for name := range injectable {
		if named(f.Call, name) {
			return true
		}
	}
	return false
}

// operable reports whether there are operations of that kind, and faults strike them.
func (f *Fault) operable() bool {
	switch f.Op {
	case "copy", "memset", "write-value", "kernel", opHostText:
		return true
	}
	name, ok := strings.CutPrefix(f.Op, "kernel ")
	return ok && name != ""
}

// named reports whether name is what pattern names.
func named(pattern, name string) bool {
	if start, any := strings.CutSuffix(pattern, "*"); any {
		return strings.HasPrefix(name, start)
	}
	return pattern == name
}

// Clear takes all faults away.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = nil
}

// Calls is how often a driver function has been called, those calls that failed included.
func (f *Faults) Calls(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[strings.TrimPrefix(name, "cu")]
}

// Struck is how many calls and operations have failed, or were delayed.
func (f *Faults) Struck() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.list {
		n += a.struck
	}
	return n
}

// LoseDevice has all contexts of device i fail now, with a code that means that: cuda.ErrECCUncorrectable, say.
func (f *Faults) LoseDevice(i int, with cuda.Code) error {
	f.mu.Lock()
	m := f.m
	f.mu.Unlock()
	switch {
	case m == nil:
		return errors.New("softcuda: Faults.LoseDevice: these are the faults of no driver yet; give them to softcuda.New")
	case i < 0 || i >= len(m.devices):
		return fmt.Errorf("softcuda: Faults.LoseDevice: there is no device %d: this driver has %d", i, len(m.devices))
	case !driver.Result(with).Sticky():
		return fmt.Errorf("softcuda: Faults.LoseDevice: %v does not lose a context; take one that does, as cuda.ErrLaunchFailed", with)
	}
	m.loseDevice(m.devices[i], driver.Result(with))
	return nil
}

// again are the same faults, for another driver.
func (f *Faults) again() *Faults {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	next := new(Faults)
	for _, a := range f.list {
		next.list = append(next.list, &armed{Fault: a.Fault})
	}
	return next
}

// bind makes f the faults of m.
func (f *Faults) bind(m *machine, seed uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.m, f.calls, f.rng = m, map[string]int{}, rand.New(rand.NewPCG(seed, 3))
}

// strike is the fault that strikes at something that match finds, if any does.
func (f *Faults) strike(match func(*Fault) bool) (hit Fault, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.list {
		if !match(&a.Fault) {
			continue
		}
		a.seen++
		if !ok && a.due() && (a.Probability == 0 || f.rng.Float64() < a.Probability) {
			a.struck++
			hit, ok = a.Fault, true
		}
	}
	return hit, ok
}

// due reports whether a may strike at what it has just seen.
func (a *armed) due() bool {
	return a.seen > a.After && (a.Times < 0 || a.struck < max(a.Times, 1))
}

// call answers for a driver call in context ctx: what is not Success is the call's answer.
func (f *Faults) call(name string, ctx driver.Context) driver.Result {
	f.mu.Lock()
	f.calls[name]++
	none := len(f.list) == 0
	f.mu.Unlock()
	if none {
		return driver.Success
	}
	hit, ok := f.strike(func(a *Fault) bool { return a.Call != "" && named(a.Call, name) })
	if !ok {
		return driver.Success
	}
	time.Sleep(hit.Delay)
	if hit.Lose {
		f.m.loseContext(ctx, driver.Result(hit.Result))
	}
	return driver.Result(hit.Result)
}

// operation is do, what o does, with the fault that strikes at it. mu is held, but not when the result is called.
func (f *Faults) operation(o *op, do func() driver.Result) func() driver.Result {
	if f == nil {
		return do
	}
	what := o.what()
	hit, ok := f.strike(func(a *Fault) bool { return a.Op == what || a.Op == "kernel" && strings.HasPrefix(what, "kernel ") })
	if !ok {
		return do
	}
	o.delayed(hit.Delay)
	dev := o.owner.ctx.dev
	return func() driver.Result {
		time.Sleep(hit.Delay)
		if hit.Lose {
			f.m.loseDevice(dev, driver.Result(hit.Result))
		}
		if hit.Result != 0 {
			return driver.Result(hit.Result)
		}
		return do()
	}
}

// loseContext loses the device of a context.
func (m *machine) loseContext(raw driver.Context, r driver.Result) {
	m.mu.Lock()
	c := m.contexts[raw]
	m.mu.Unlock()
	if c != nil {
		m.loseDevice(c.dev, r)
	}
}

// loseDevice loses all contexts of a device.
func (m *machine) loseDevice(d *device, r driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	for _, c := range m.contexts {
		if c.dev == d {
			m.fail(c, r)
		}
	}
}

// injecting is a machine whose calls fail on demand.
type injecting struct {
	*machine
	faults *Faults
}

// Counts is how often each driver function has been called, by its name without "cu".
func (f *Faults) Counts() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.calls)
}
