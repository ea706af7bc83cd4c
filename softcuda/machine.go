package softcuda

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// machine is the software driver: all its devices, under one lock. It implements driver.Driver.
//
// Methods take mu, look at their handles, and queue or wait; they never call out with mu held. What has to be called when
// mu is free again (notifications) is put on calls, which unlock runs.
type machine struct {
	kernels Kernels
	sched   *schedule // nil without a Seed
	faults  *Faults   // nil without any
	checker *checker  // nil without a Check
	timing  *timing   // nil without a Cost
	up      driver.Upcalls
	workers sync.WaitGroup // goroutines of the engine

	mu         sync.Mutex
	devices    []*device
	contexts   map[driver.Context]*context
	streams    map[driver.Stream]*stream
	events     map[driver.Event]*event
	modules    map[driver.Module]*module
	functions  map[driver.Function]*function
	graphs     map[driver.Graph]*graph
	nodes      map[driver.GraphNode]*graphNode
	execs      map[driver.GraphExec]*graphExec
	conds      map[driver.ConditionalHandle]*cond
	objects    map[driver.UserObject]*userObject
	reserved   map[driver.DevicePtr]*reservation // memory of graphs
	captures   []*capture                        // in progress
	modes      map[uint64]driver.CaptureMode     // of goroutines that are not in Global mode
	captureIDs uint64                            // the last one given out
	handles    uintptr                           // the last one given out
	streamIDs  uint64                            // the last one given out
	settling   []*stream                         // streams whose first operation may have become ready
	calls      []func()                          // to be called after mu
	held       []*op                             // wait-values at the head of their streams
	watching   bool                              // a goroutine looks at them
	managed    map[driver.DevicePtr]*managed
	greens     map[driver.GreenContext]*green
	descs      map[driver.ResourceDesc]driver.DevResource
	touching   []touch              // by what is about to be queued, if there is a checker
	arguments  map[string][]ArgKind // of kernels
	exclusive  bool                 // devices lack concurrent managed access
	tracked    bool                 // they do, or there is a checker: see activity.go
	unseen     map[*stream]struct{} // tracked streams with device work that the host has not seen
}

// device is one software GPU.
type device struct {
	ordinal driver.Device
	ctx     *context // the primary context, while retained
	retains int
	mem     memory
	engines copyEngines
}

// context is what streams, events and modules belong to.
type context struct {
	raw       driver.Context
	dev       *device
	lost      driver.Result // what the context has failed with, or Success
	dead      atomic.Bool   // lost is set; for who does not hold mu
	legacy    *stream
	threads   map[uint64]*stream   // per-thread default streams, by goroutine
	busy      map[*stream]struct{} // streams with operations queued
	known     map[*stream]struct{} // streams with a history, if the machine is tracked
	mostKnown int                  // how many those may become before settled ones are looked for
	host      callQueue            // streams whose next operation is a host function
	hostUntil time.Time            // when its last host function has ended, by a Cost

	executing int      // device operations, and runs of host functions, that are being done now
	late      []func() // to be done, with mu held, when the last of them has come back
}

func newMachine(o Options) *machine {
	m := &machine{
		kernels:   maps.Clone(o.Kernels),
		faults:    o.Faults,
		contexts:  map[driver.Context]*context{},
		streams:   map[driver.Stream]*stream{},
		events:    map[driver.Event]*event{},
		modules:   map[driver.Module]*module{},
		functions: map[driver.Function]*function{},
		managed:   map[driver.DevicePtr]*managed{},
		exclusive: o.NoConcurrentManagedAccess,
		tracked:   o.NoConcurrentManagedAccess || o.Check != nil,
		arguments: maps.Clone(o.Arguments),
		unseen:    map[*stream]struct{}{},
		greens:    map[driver.GreenContext]*green{},
		descs:     map[driver.ResourceDesc]driver.DevResource{},
		graphs:    map[driver.Graph]*graph{},
		nodes:     map[driver.GraphNode]*graphNode{},
		execs:     map[driver.GraphExec]*graphExec{},
		conds:     map[driver.ConditionalHandle]*cond{},
		objects:   map[driver.UserObject]*userObject{},
		reserved:  map[driver.DevicePtr]*reservation{},
		modes:     map[uint64]driver.CaptureMode{},
		handles:   0xff, // clear of the special stream handles
	}
	if o.Seed != 0 || o.script != nil {
		m.sched = newSchedule(m, o)
	}
	if o.Check != nil {
		o.Check.bind(m)
	}
	if o.Cost != nil {
		m.timing = &timing{m: m, cost: *o.Cost}
	}
	if o.Devices == 0 {
		o.Devices = 1
	}
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	o.Memory = min(max(o.Memory, 0), mostMemory)
	for i := range max(o.Devices, 0) {
		m.devices = append(m.devices, &device{ordinal: driver.Device(i), mem: newMemory(i, o.Memory)})
	}
	return m
}

// Name implements driver.Driver.
func (m *machine) Name() string { return "software" }

// DriverGetVersion implements driver.Driver.
func (m *machine) DriverGetVersion() (int, driver.Result) { return version, driver.Success }

// Attach implements driver.Driver.
func (m *machine) Attach(up driver.Upcalls) { m.up = up }

// GoexitContained implements driver.Driver.
func (m *machine) GoexitContained() bool { return true }

// Shut implements driver.Driver.
func (m *machine) Shut() { m.workers.Wait() }

// unlock unlocks mu and calls what waited for that.
func (m *machine) unlock() {
	calls := m.calls
	m.calls = nil
	var steps *grant
	if m.sched != nil {
		steps = m.sched.grant()
	}
	m.mu.Unlock()
	for _, call := range calls {
		call()
	}
	if steps != nil {
		<-steps.done
	}
}

func (m *machine) handle() uintptr {
	m.handles++
	return m.handles
}

// context finds a context that can still be used. mu is held.
func (m *machine) context(raw driver.Context) (*context, driver.Result) {
	c := m.contexts[raw]
	if c == nil {
		return nil, driver.ErrorInvalidContext
	}
	return c, c.lost
}

// DeviceGetCount implements driver.Devices.
func (m *machine) DeviceGetCount() (int, driver.Result) { return len(m.devices), driver.Success }

func (m *machine) device(i driver.Device) (*device, driver.Result) {
	if i < 0 || int(i) >= len(m.devices) {
		return nil, driver.ErrorInvalidDevice
	}
	return m.devices[i], driver.Success
}

// DeviceGetName implements driver.Devices.
func (m *machine) DeviceGetName(i driver.Device) (string, driver.Result) {
	_, r := m.device(i)
	return fmt.Sprintf("Software Device %d", i), r
}

// attributes of every software device; the limits are those of an H200.
var attributes = map[int32]int{
	driver.AttrMaxThreadsPerBlock:        maxThreads,
	driver.AttrMaxSharedMemoryPerBlock:   maxShared,
	driver.AttrMultiprocessorCount:       multiprocessors,
	driver.AttrComputeCapabilityMajor:    9,
	driver.AttrComputeCapabilityMinor:    0,
	driver.AttrPageableMemoryAccess:      0,
	driver.AttrCanFlushRemoteWrites:      0,
	driver.AttrCanUse64BitStreamMemOps:   1,
	driver.AttrCanUseStreamWaitValueNOR:  1,
	driver.AttrMaxPersistingL2CacheSize:  32 << 20,
	driver.AttrMaxAccessPolicyWindowSize: maxWindow,
	driver.AttrMemSyncDomainCount:        syncDomains,
	driver.AttrManagedMemory:             1,
}

// DeviceGetAttribute implements driver.Devices.
func (m *machine) DeviceGetAttribute(attr int32, i driver.Device) (int, driver.Result) {
	if _, r := m.device(i); r != driver.Success {
		return 0, r
	}
	if attr == driver.AttrConcurrentManagedAccess {
		if m.exclusive {
			return 0, driver.Success
		}
		return 1, driver.Success
	}
	v, ok := attributes[attr]
	if !ok {
		return 0, driver.ErrorInvalidValue
	}
	return v, driver.Success
}

// DeviceTotalMem implements driver.Devices.
func (m *machine) DeviceTotalMem(i driver.Device) (uint64, driver.Result) {
	d, r := m.device(i)
	if r != driver.Success {
		return 0, r
	}
	return uint64(d.mem.size), driver.Success
}

// DevicePrimaryCtxRetain implements driver.Devices. A primary context that has failed stays failed: the driver answers with
// the same error again (facts/h200.md).
func (m *machine) DevicePrimaryCtxRetain(i driver.Device) (driver.Context, driver.Result) {
	d, r := m.device(i)
	if r != driver.Success {
		return 0, r
	}
	m.mu.Lock()
	defer m.unlock()
	if d.ctx == nil {
		d.ctx = m.newContext(d)
	}
	if d.ctx.lost != driver.Success {
		return 0, d.ctx.lost
	}
	d.retains++
	return d.ctx.raw, driver.Success
}

// DevicePrimaryCtxRelease implements driver.Devices. The last release of a sound context ends it.
func (m *machine) DevicePrimaryCtxRelease(i driver.Device) driver.Result {
	d, r := m.device(i)
	if r != driver.Success {
		return r
	}
	m.mu.Lock()
	defer m.unlock()
	if d.retains == 0 {
		return driver.ErrorInvalidContext
	}
	if d.retains--; d.retains == 0 && d.ctx.lost == driver.Success {
		delete(m.contexts, d.ctx.raw)
		d.ctx = nil
	}
	return driver.Success
}

const (
	leastPriority    = 0
	greatestPriority = -5
)

// CtxGetStreamPriorityRange implements driver.Devices.
func (m *machine) CtxGetStreamPriorityRange(raw driver.Context) (least, greatest int32, r driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	_, r = m.context(raw)
	return leastPriority, greatestPriority, r
}

// CtxSynchronize implements driver.Devices.
func (m *machine) CtxSynchronize(raw driver.Context) driver.Result {
	m.mu.Lock()
	c, r := m.context(raw)
	if r == driver.Success {
		r = m.synchronizable(c)
	}
	if r != driver.Success {
		m.unlock()
		return r
	}
	seen := m.aheadAll(c)
	return m.observeAfter(seen, m.waitAll(c, everyStream))
}

// now is the device's clock. Under synctest it is virtual.
func (m *machine) now() time.Time {
	t := time.Now()
	if m.sched != nil {
		t = t.Add(time.Duration(m.sched.costs.past.Load()))
	}
	return t
}
