package softcuda

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// schedule decides what a device with a Seed does next. One goroutine takes one step after another: it picks one of the streams
// whose first operation is ready, and does that operation. It takes steps while calls of the program wait for the device, some
// at the end of each call that queues something, and more when the program has been quiet for a while: so who is ordered by the
// library sees the same schedule each time. Inside a synctest bubble quiet means that every goroutine is blocked.
//
// All of it is guarded by the machine's mu, but for waiting.
type schedule struct {
	m       *machine
	choices choices
	costs   costs
	trace   *Trace

	ready    []*stream     // whose first operation waits for nothing but its turn
	failed   []*context    // that may have callbacks to be told of their failure
	back     []*errand     // that came back after patience, to be concluded
	away     int           // errands that have not been concluded
	grants   []*grant      // calls that let the device take some steps first
	waiting  atomic.Int32  // operations that calls wait for
	fresh    bool          // the call in progress has queued something, or was told that something is not ready
	polled   bool          // the latter: then the device does take a step, for the program may ask again and again
	quiet    bool          // the program has been quiet
	looping  bool          // the goroutine exists
	wake     chan struct{} // closed to end the goroutine's sleep; nil while it is awake
	numbered uint64        // operations
	sites    sites
	bubble   bool          // of testing/synctest
	look     time.Duration // how long to sleep before the next look at wait-values
}

const (
	// patience is how long an operation may take before the device goes on without it. What waits for the program (a host
	// function for a channel) then holds up nobody. In a bubble that time is virtual, so work that computes takes none.
	patience = 20 * time.Millisecond * slowness
	// The program counts as quiet after so many slices of time without a call: one long one would count time in which the
	// whole process did not run.
	quietSlices = 15 * slowness
	quietSlice  = time.Millisecond

	firstLook, mostLook = 20 * time.Microsecond, time.Millisecond
)

// grant is steps that the device may take before a call returns.
type grant struct {
	left int
	done chan struct{}
}

// errand is an operation that a goroutine of its own does.
type errand struct {
	of   *stream // nil for a callback of a context that has failed
	o    *op
	c    *context
	host bool
	do   func() driver.Result
	r    driver.Result
	late bool
	done chan struct{}
}

func newSchedule(m *machine, o Options) *schedule {
	inBubble := time.Now().Year() < 2009 // a bubble's clock begins with the year 2000
	return &schedule{m: m, choices: newChoices(o), costs: costs{rng: newCosts(o.Seed)}, trace: o.Trace, sites: sites{}, bubble: inBubble}
}

// number notes o, which is about to be queued on s.
func (d *schedule) number(s *stream, o *op) {
	if s.id == 0 { // a graph's
		d.m.streamIDs++
		s.id = d.m.streamIDs
	}
	d.numbered++
	d.fresh = true
	step := Step{Op: d.numbered, Stream: s.id, What: o.what(), Site: d.sites.here()}
	o.note().step = &step
	queued := step
	queued.Queued = true
	d.trace.add(queued)
}

// offer takes s into account if its first operation is ready and nobody is at it.
func (d *schedule) offer(s *stream) {
	if s.running || s.first == nil || s.first.waits > 0 {
		return
	}
	s.running = true
	d.ready = append(d.ready, s)
	d.serve()
}

// noticed has the goroutine look at the wait-values.
func (d *schedule) noticed() {
	if d.looping {
		d.serve()
	}
}

// offerFailed has the callbacks of c, which has failed, called in their turns.
func (d *schedule) offerFailed(c *context) {
	d.failed = append(d.failed, c)
	d.serve()
}

// drop forgets the streams of c, which has failed.
func (d *schedule) drop(c *context) {
	d.ready = slices.DeleteFunc(d.ready, func(s *stream) bool { return s.ctx == c })
}

// serve sees to it that the goroutine is there and awake.
func (d *schedule) serve() {
	if !d.looping {
		d.looping = true
		d.m.workers.Add(1)
		go d.loop()
	}
	if d.wake != nil {
		close(d.wake)
		d.wake = nil
	}
}

// expect says that a call is about to wait for n operations. Whoever is told of one says arrived.
func (d *schedule) expect(n int) {
	if d == nil || n == 0 {
		return
	}
	d.waiting.Add(int32(n))
	d.fresh, d.polled = false, false
	d.serve()
}

// arrived says that one of them is done.
func (d *schedule) arrived() {
	if d != nil {
		d.waiting.Add(-1)
	}
}

// grant gives the device some steps at the end of the call in progress, which waits for them; nil: none.
func (d *schedule) grant() *grant {
	if !d.fresh {
		return nil
	}
	n := d.choices.steps()
	if d.polled {
		n++
	}
	d.fresh, d.polled = false, false
	if n == 0 || !d.looping {
		return nil
	}
	g := &grant{n, make(chan struct{})}
	d.grants = append(d.grants, g)
	d.serve()
	return g
}

// poll notes that the call in progress answers "not ready".
func (d *schedule) poll() {
	if d != nil {
		d.fresh, d.polled = true, true
	}
}

// loop is the device's goroutine.
func (d *schedule) loop() {
	defer d.m.workers.Done()
	d.m.mu.Lock()
	for d.round() {
	}
	d.looping, d.quiet = false, false
	d.leave()
}

// round takes a step or sleeps, and reports whether there is more to do.
func (d *schedule) round() bool {
	for d.bubble && d.sleep(1) { // until everybody else is blocked
	}
	list := d.candidates()
	switch {
	case len(list) > 0 && (d.waiting.Load() > 0 || len(d.grants) > 0 || d.quiet):
		d.look = firstLook
		d.take(list[d.choices.pick(list)])
		d.spend()
	case len(list) > 0:
		d.quiet = d.untilQuiet()
	case len(d.ready) > 0: // wait-values, or functions behind one that runs
		d.endGrants()
		d.look = min(2*max(d.look, firstLook/2), mostLook)
		d.sleep(d.look)
	case d.away > 0:
		d.endGrants()
		d.sleep(0)
	default:
		d.endGrants()
		return false
	}
	return true
}

// spend takes a step off the first grant.
func (d *schedule) spend() {
	if len(d.grants) == 0 {
		return
	}
	if d.grants[0].left--; d.grants[0].left == 0 {
		close(d.grants[0].done)
		d.grants = d.grants[1:]
	}
}

// endGrants ends all grants: there is nothing to do for them.
func (d *schedule) endGrants() {
	for _, g := range d.grants {
		close(g.done)
	}
	d.grants = nil
}

// untilQuiet reports whether the program makes no call for a while.
func (d *schedule) untilQuiet() bool {
	if d.bubble {
		return true // it has slept already
	}
	for range quietSlices {
		if d.sleep(quietSlice) {
			return false
		}
	}
	return true
}

// sleep sleeps for t, or for ever if that is 0, or until it is woken, which it reports.
func (d *schedule) sleep(t time.Duration) (woken bool) {
	wake := make(chan struct{})
	d.wake = wake
	d.leave()
	var timer <-chan time.Time
	if t > 0 {
		timer = time.After(t)
	}
	select {
	case <-wake:
		woken = true
	case <-timer:
	}
	d.m.mu.Lock()
	d.wake = nil
	return woken
}

// leave is machine.unlock for the device's own goroutines, which wait for no steps.
func (d *schedule) leave() {
	d.fresh, d.polled = false, false
	d.m.unlock()
}

// candidate is something that the device may do next.
type candidate struct {
	of    *stream  // to have its first operation done
	c     *context // to have a callback told of its failure
	back  *errand  // to be concluded
	order uint64
}

// candidates are what may come next, the oldest first.
func (d *schedule) candidates() (list []candidate) {
	for _, s := range d.ready {
		if d.due(s) {
			list = append(list, candidate{of: s, order: s.first.notes().step.Op})
		}
	}
	for _, e := range d.back {
		at := candidate{back: e}
		if e.o != nil && e.o.notes().step != nil {
			at.order = e.o.notes().step.Op
		}
		list = append(list, at)
	}
	d.failed = slices.DeleteFunc(d.failed, func(c *context) bool { return len(c.host.failed) == 0 })
	for _, c := range d.failed {
		if !c.host.served {
			list = append(list, candidate{c: c})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(a.order, b.order) })
	return list
}

// due reports whether the first operation of s, which is ready, may be done now.
func (d *schedule) due(s *stream) bool {
	o := s.first
	switch {
	case s.ctx.lost != driver.Success:
		return true // it is dropped
	case o.kind == opHold:
		return o.work() == driver.Success
	case o.kind == opHost, o.kind == opCallback:
		return !s.ctx.host.served
	}
	return true
}

// take does what c says.
func (d *schedule) take(c candidate) {
	switch {
	case c.back != nil:
		d.back = slices.DeleteFunc(d.back, func(e *errand) bool { return e == c.back })
		d.conclude(c.back)
	case c.c != nil:
		data := c.c.host.failed[0]
		c.c.host.failed = c.c.host.failed[1:]
		d.send(&errand{c: c.c, host: true, do: d.callback(nil, data, c.c.lost)})
	default:
		d.ready = slices.DeleteFunc(d.ready, func(s *stream) bool { return s == c.of })
		d.advance(c.of)
	}
	if calls := d.m.calls; len(calls) > 0 { // before the next step: they end the calls that wait
		d.leave()
		d.m.mu.Lock()
	}
}

// advance does the first operation of s.
func (d *schedule) advance(s *stream) {
	o, kind := s.first, s.first.kind
	d.trace.add(*o.notes().step)
	if d.m.timing == nil {
		d.costs.pass(o)
	}
	if s.ctx.lost != driver.Success {
		kind = opMark
	}
	switch kind {
	case opMark, opHold:
		d.finished(s)
	case opBranch:
		d.m.branchAt(s)
	case opWork:
		d.m.checker.begins(o)
		d.send(&errand{of: s, o: o, c: s.ctx, do: d.m.faults.operation(o, d.m.timing.begins(o, o.work))})
	case opHost:
		d.m.checker.begins(o)
		d.m.observe(o.notes().clock)
		d.send(&errand{of: s, o: o, c: s.ctx, host: true, do: d.hostFunction(o)})
	case opCallback:
		d.m.observe(o.notes().clock)
		d.send(&errand{of: s, o: o, c: s.ctx, host: true, do: d.callback(o, o.data, driver.Success)})
	}
}

// finished takes the first operation of s off as done.
func (d *schedule) finished(s *stream) {
	m := d.m
	s.running = false
	m.finish(s)
	m.settling = append(m.settling, s)
	m.settle()
}

func (d *schedule) hostFunction(o *op) func() driver.Result {
	call := d.m.known(o, d.m.hostCall(o))
	return d.m.faults.operation(o, d.m.timing.begins(o, func() driver.Result {
		callHost(call, o.data)
		return driver.Success
	}))
}

func (d *schedule) callback(o *op, data uint64, r driver.Result) func() driver.Result {
	call := d.m.known(o, func(data uint64) { d.m.up.Callback(data, r) })
	return d.m.timing.begins(o, func() driver.Result {
		callHost(call, data)
		return driver.Success
	})
}

// send has a goroutine do e, and waits for it a while.
func (d *schedule) send(e *errand) {
	e.done, e.r = make(chan struct{}), driver.ErrorLaunchFailed // if its goroutine ends on the way
	e.c.executing++
	if e.host {
		e.c.host.served = true
	}
	d.away++
	d.m.workers.Add(1)
	go d.run(e)
	d.leave()
	wait := time.NewTimer(patience)
	select {
	case <-e.done:
	case <-wait.C:
	}
	wait.Stop()
	d.m.mu.Lock()
	select {
	case <-e.done:
		d.conclude(e)
	default:
		e.late = true
	}
}

// run does e.
func (d *schedule) run(e *errand) {
	defer d.m.workers.Done()
	defer func() {
		d.m.mu.Lock()
		close(e.done)
		if e.late {
			d.back = append(d.back, e)
			d.serve()
		}
		d.leave()
	}()
	e.r = e.do()
}

// conclude ends e, which has come back.
func (d *schedule) conclude(e *errand) {
	m := d.m
	d.away--
	m.ran(e.c)
	if e.host {
		e.c.host.served = false
		d.quiet = false // it may have woken the program
	}
	switch {
	case e.of == nil || !e.of.running || e.of.first != e.o: // its context was lost meanwhile
	case !e.host && e.r != driver.Success:
		m.fail(e.c, e.r)
	default:
		d.finished(e.of)
	}
}
