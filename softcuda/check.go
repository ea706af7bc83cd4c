package softcuda

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// Check finds accesses to the same bytes that nothing orders (Options.Check). It goes by what the program has promised with streams,
// events, host functions, graphs and waits, not by what has happened to come first; so one run finds what goes wrong once in a
// thousand. The zero value is ready for use, for one driver. A nil *Check does nothing.
//
// It also reports device memory that is read before it is written, kernels that use memory which has been freed, and streams that wait
// for each other's write-values for ever, once the program waits for one of them.
//
// It sees all copies and memsets, what kernels reach with Slice, and that host memory of a queued copy has changed. What else the
// program does with pinned memory it must tell, with Reads and Writes. It takes the program's goroutines to be ordered among
// themselves: the race detector is for those.
type Check struct {
	mu      sync.Mutex
	m       *machine
	reports []Report
	known   map[string]bool
}

// Report is one thing that Check has found. Streams go by their numbers, as cuda.Stream.ID gives them.
type Report struct {
	Kind   string // "unordered access", "uninitialised read", "use after free", "deadlock"
	First  string // what was done or queued first, and where
	Second string // what is not ordered with that; empty if it takes only one
	Advice string // what is missing
	DOT    string // a deadlock as a graph, for Graphviz
}

// String is the report in a line.
func (r Report) String() string {
	text := r.Kind + ": " + r.First
	if r.Second != "" {
		text += "; and " + r.Second
	}
	return text + ": " + r.Advice
}

// Reports are what has been found so far.
func (c *Check) Reports() []Report {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.reports)
}

// Err is nil, or an error that tells all reports.
func (c *Check) Err() error {
	var lines []string
	for _, r := range c.Reports() {
		lines = append(lines, r.String())
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("softcuda: %s", strings.Join(lines, "\n"))
}

// Reads tells that the program, or the host function that calls it, reads b.
func (c *Check) Reads(b []byte) { c.program(b, false) }

// Writes tells that the program, or the host function that calls it, writes to b.
func (c *Check) Writes(b []byte) { c.program(b, true) }

// Leaks are the allocations of device memory and pinned memory that have not been freed: what they are, and where they were made.
// It is to be asked before the Driver is closed, which frees them. The library's own are not among them.
func (c *Check) Leaks() (list []string) {
	if c == nil || c.m == nil {
		return nil
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	for _, a := range c.m.checker.allocations {
		list = append(list, a)
	}
	slices.Sort(list)
	return list
}

func (c *Check) program(b []byte, write bool) {
	if c == nil || c.m == nil || len(b) == 0 {
		return
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	k := c.m.checker
	if write {
		k.rewritten(b) // the watches are for those who do not tell
	}
	if who := k.inside[goroutineID()]; who != nil {
		k.access(who, touch{data: b, write: write})
		return
	}
	k.access(&actor{number: k.numbered, sees: k.sees, gates: k.gates(), what: "the program", site: callSite()}, touch{data: b, write: write})
}

// bind makes c the check of m.
func (c *Check) bind(m *machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m, c.known = m, map[string]bool{}
	m.checker = &checker{
		out: c, sees: clock{}, inside: map[uint64]*actor{}, live: map[*op]*actor{},
		written: map[*byte]*written{}, allocations: map[uintptr]string{}, freed: map[driver.DevicePtr]string{}, sites: sites{}, seed: maphash.MakeSeed(),
	}
}

func (c *Check) report(r Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if text := r.String(); !c.known[text] {
		c.known[text] = true
		c.reports = append(c.reports, r)
	}
}

// checker is a machine's side of a Check. The machine's mu guards it.
type checker struct {
	out         *Check
	numbered    uint64            // operations
	wild        uint64            // the last one that may write anywhere in host memory
	sees        clock             // what the program has seen to be complete; never changed, but replaced
	inside      map[uint64]*actor // host functions that run, by goroutine
	live        map[*op]*actor    // operations that are not done
	list        []access
	most        int // how long list may become
	flags       []flag
	watches     []*watch
	written     map[*byte]*written // of device memory, by its beginning
	allocations map[uintptr]string
	freed       map[driver.DevicePtr]string
	sites       sites
	seed        maphash.Seed
}

// actor is who touches memory: an operation, or, without a stream, the program.
type actor struct {
	s      *stream
	tick   tick  // its own number in s, as device work or as host function
	clock  clock // what it is ordered behind
	sees   clock // what the program had seen when it was queued
	gates  clock // the program: what had yet to be let go on
	number uint64
	kind   opKind
	what   string
	site   string
}

// touch is an access to memory.
type touch struct {
	data                []byte
	write, read, atomic bool // atomic: unordered with its like; read: an uninitialised one is a mistake
	host                bool
}

type access struct {
	by *actor
	touch
}

// String is who it is, and where.
func (a *actor) String() string {
	text := a.what
	if a.s != nil {
		text += fmt.Sprintf(" of stream %d", a.s.shownID())
	}
	if a.site != "" {
		text += " (" + a.site + ")"
	}
	return text
}

func (a access) String() string {
	verb := "reads"
	if a.write {
		verb = "writes"
	}
	return fmt.Sprintf("%v %s %d bytes", a.by, verb, len(a.data))
}

// comes notes o, which is queued on s behind what is in its history. mu is held.
func (k *checker) comes(s *stream, o *op, own tick) {
	if k == nil {
		return
	}
	if o.kind == opMark {
		return
	}
	if o.kind == opHost || o.kind == opCallback {
		own.work = 0
	} else {
		own.host = 0
	}
	k.numbered++
	a := &actor{s: s, tick: own, clock: maps.Clone(s.history.clock), sees: k.sees, number: k.numbered, kind: o.kind, what: o.what(), site: k.sites.here()}
	x := o.note()
	x.actor = a
	switch o.kind {
	case opHold:
		k.flags = append(k.flags, flag{at: x.word.at(), wait: true, by: a})
	case opHost, opCallback, opBranch:
		k.wild = k.numbered
	case opWork:
		if x.kernel != "" {
			k.wild = k.numbered
		}
		k.overwrites(o)
	}
	k.watch(o, a)
	k.live[o] = a
}

// begins notes that o is about to be done. mu is held.
func (k *checker) begins(o *op) {
	if k == nil || o.notes().actor == nil {
		return
	}
	k.lookAt(o)
	for _, t := range o.notes().touches {
		k.access(o.notes().actor, t)
	}
	if o.notes().word != nil && o.kind == opWork {
		k.flags = append(k.flags, flag{at: o.notes().word.at(), by: o.notes().actor})
	}
}

// ended notes that o is done. mu is held.
func (k *checker) ended(o *op) {
	if k != nil {
		delete(k.live, o)
	}
}

// saw notes that the program has seen the completion of device work of s, or that host functions of s have run. mu is held.
func (k *checker) saw(s *stream, t tick) {
	if k == nil {
		return
	}
	if have := k.sees[s]; have.work < t.work || have.host < t.host {
		next := maps.Clone(k.sees)
		next[s] = tick{max(have.work, t.work), max(have.host, t.host)}
		k.sees = next
		k.settleWatches()
	}
	const many = 512
	if len(k.list) > many && len(k.live) == 0 {
		k.list = slices.DeleteFunc(k.list, func(a access) bool { return a.by.s == nil || behind(k.sees, a.by) })
		if len(k.list) == 0 {
			k.sees, k.flags = clock{}, nil
		}
	}
}

// gates is what the device has yet to be let past: host functions that have not returned, and wait-values.
func (k *checker) gates() clock {
	c := clock{}
	for _, a := range k.live {
		switch a.kind {
		case opHost, opCallback:
			if have := c[a.s]; have.host == 0 || a.tick.host < have.host {
				have.host = a.tick.host
				c[a.s] = have
			}
		case opHold:
			if have := c[a.s]; have.work == 0 || a.tick.work < have.work {
				have.work = a.tick.work
				c[a.s] = have
			}
		}
	}
	return c
}

// access checks an access against all that were before, and keeps it.
func (k *checker) access(by *actor, t touch) {
	if len(t.data) == 0 {
		return
	}
	now := access{by, t}
	for _, former := range k.list {
		if (former.write || t.write) && !(former.atomic && t.atomic) && overlap(former.data, t.data) && !k.ordered(former.by, by) {
			k.conflict(former, now)
		}
	}
	k.initialised(now)
	const many = 4096
	if len(k.list) >= max(k.most, many) { // what the program has seen is forgotten, so that a program that never rests costs no more
		k.list = slices.DeleteFunc(k.list, func(a access) bool { return a.by.s == nil || behind(k.sees, a.by) })
		k.most = 2 * len(k.list)
	}
	k.list = append(k.list, now)
}

func overlap(a, b []byte) bool {
	x, y := uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return x < y+uintptr(len(b)) && y < x+uintptr(len(a))
}

// conflict reports two accesses, the one queued first first.
func (k *checker) conflict(a, b access) {
	if a.by.number > b.by.number || a.by.number == b.by.number && a.by.s == nil {
		a, b = b, a
	}
	var advice string
	switch {
	case b.by.s == nil:
		advice = "wait for the first before the program goes on (Sync, Wait, or an event recorded behind it)"
	case a.by.s == nil:
		advice = "queue the second when the program is done with that memory"
	default:
		advice = fmt.Sprintf("record an event behind the first and have stream %d wait for it before the second (WaitEvent, WaitStream), or add the edge between the nodes of a graph", b.by.s.shownID())
	}
	k.out.report(Report{Kind: "unordered access", First: a.String(), Second: b.String(), Advice: advice})
}

// behind reports whether c is behind a.
func behind(c clock, a *actor) bool {
	have := c[a.s]
	return have.work >= a.tick.work && have.host >= a.tick.host
}

// follows reports whether b is ordered behind a, both of them operations, by streams, events or what the program had seen.
func follows(b, a *actor) bool { return behind(b.clock, a) || behind(b.sees, a) }

// ordered reports whether something orders a and b, either way.
func (k *checker) ordered(a, b *actor) bool {
	switch {
	case a == b, a.s == nil && b.s == nil:
		return true
	case a.s == nil:
		return k.programOrdered(a, b)
	case b.s == nil:
		return k.programOrdered(b, a)
	}
	return follows(a, b) || follows(b, a) || k.flagged(a, b) || k.flagged(b, a)
}

// programOrdered reports whether what the program did at p and the operation o are ordered.
func (k *checker) programOrdered(p, o *actor) bool {
	if o.number > p.number || behind(p.sees, o) || o.kind == opHost || o.kind == opCallback {
		return true
	}
	for s, gate := range p.gates { // o cannot have begun
		have := o.clock[s]
		if gate.host > 0 && have.host >= gate.host || gate.work > 0 && have.work >= gate.work {
			return true
		}
	}
	return false
}

// flag is a stream's write to a word, or its wait for one.
type flag struct {
	at   unsafe.Pointer
	wait bool
	by   *actor
}

// flagged reports whether b is behind a wait for a word that was written behind a.
func (k *checker) flagged(a, b *actor) bool {
	for _, w := range k.flags {
		if !w.wait || w.by != b && !follows(b, w.by) {
			continue
		}
		for _, v := range k.flags {
			if !v.wait && v.at == w.at && (v.by == a || follows(v.by, a)) {
				return true
			}
		}
	}
	return false
}
