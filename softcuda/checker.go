package softcuda

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// checker is a machine's side of a Check. The machine's mu guards it.
type checker struct {
	out      *Check
	numbered uint64             // operations
	epoch    uint64             // how often the program has seen something to be complete
	inside   map[uintptr]*actor // host functions that run, by goroutine
	queued   []*actor           // operations, in order, from the oldest on that is not done
	gated    map[*stream]*gated
	sites    sites

	accesses spans[trail]
	mostKept int // accesses, before those are looked for that nothing can depend on

	flags     map[unsafe.Pointer]*flags
	flagCount int
	mostFlags int
	live      map[*op]*actor       // wait-values and write-values that are not done
	natives   map[uintptr][]*actor // functions that have run, by what the driver was given with them

	watching
	allocations map[driver.DevicePtr]allocation
	device      map[*byte]bool // allocations of device memory, by their beginnings
	freed       map[driver.DevicePtr]string
}

func newChecker(out *Check) *checker {
	return &checker{
		out: out, inside: map[uintptr]*actor{}, gated: map[*stream]*gated{}, sites: sites{},
		accesses: spans[trail]{same: sameTrail, none: trail.empty},
		flags:    map[unsafe.Pointer]*flags{}, live: map[*op]*actor{}, natives: map[uintptr][]*actor{},
		watching:    newWatching(maphash.MakeSeed()),
		allocations: map[driver.DevicePtr]allocation{}, device: map[*byte]bool{}, freed: map[driver.DevicePtr]string{},
	}
}

// actor is who touches memory: an operation, or, without a stream, the program.
type actor struct {
	*standing
	kind opKind
	what string
	site string
}

// standing is where an operation stands in the order of all, or where the program does. What is in a conditional shares that one's.
type standing struct {
	s       *stream
	tick    tick  // its own number in s, as device work or as host function
	before  tick  // what is before it in s
	clock   clock // what it is ordered behind of other streams; never changed
	epoch   uint64
	number  uint64
	seen    uint64 // the epoch since which the program knows that it is complete; 0: it does not
	done    bool
	native  bool  // a host function that enters no Go
	gates   clock // the program: what had yet to be let go on
	wild    bool  // it may write anywhere in host memory, or let the program do so
	watches []*watch
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

// program is the program, now.
func (k *checker) program() *actor {
	return &actor{standing: &standing{number: k.numbered, epoch: k.epoch, gates: k.gates()}, what: "the program", site: callSite()}
}

// newActor is an operation that is queued on s now; own counts those of s, with it.
func (k *checker) newActor(s *stream, host bool, own tick) *actor {
	k.numbered++
	var both struct {
		actor
		at standing
	}
	a := &both.actor
	a.standing = &both.at
	a.s, a.clock, a.epoch, a.number = s, s.history.shared(), k.epoch, k.numbered
	a.tick, a.before = tick{work: own.work}, tick{own.work - 1, own.host}
	if host {
		a.tick, a.before = tick{host: own.host}, tick{own.work, own.host - 1}
	}
	return a
}

// comes notes o, which is queued on s behind what is in its history. mu is held.
func (k *checker) comes(s *stream, o *op, own tick) {
	if k == nil || o.kind == opMark {
		return
	}
	host := o.kind == opHost || o.kind == opCallback
	a := k.newActor(s, host, own)
	a.kind, a.what, a.site = o.kind, o.what(), k.sites.here()
	a.native = host && o.work != nil
	x := o.note()
	x.actor = a
	h := s.history
	switch {
	case a.native:
		h.natives, h.fresh = append(h.natives, a), true // the next host function tells the program
	case host:
		h.hosts = append(h.hosts, a)
	default:
		h.work = append(h.work, a)
	}
	if host || o.kind == opHold {
		k.gate(a)
	}
	if x.word != nil {
		k.live[o] = a
	}
	if o.kind == opHold {
		k.flag(x.word, true, a)
	}
	k.queued = append(k.queued, a)
	k.follow(o, a)
}

// comesInside notes o, which is queued in a body of the conditional that by is. It stands where that does.
func (k *checker) comesInside(by *actor, o *op) {
	if k == nil || by == nil || o.kind == opMark {
		return
	}
	o.note().actor = &actor{standing: by.standing, kind: o.kind, what: o.what() + " in a conditional", site: by.site}
}

// begins notes that o is about to be done. mu is held.
func (k *checker) begins(o *op) {
	if k == nil || o.notes().actor == nil {
		return
	}
	x := o.notes()
	for _, w := range x.actor.watches {
		k.look(w)
	}
	for _, t := range x.touches {
		k.access(x.actor, t)
	}
	if x.word != nil && o.kind == opWork {
		k.flag(x.word, false, x.actor)
	}
}

// ended notes that o is done. mu is held.
func (k *checker) ended(o *op) {
	if k == nil || o.notes().actor == nil {
		return
	}
	a := o.notes().actor
	if a.s != o.owner || a.done { // in a conditional
		return
	}
	a.done = true
	if k.queued[0] == a {
		k.oldest()
	}
	if o.notes().word != nil {
		delete(k.live, o)
	}
	if k.gated[a.s] != nil {
		k.ungate(a)
	}
	if a.native {
		k.natives[uintptr(o.data)] = append(slices.DeleteFunc(k.natives[uintptr(o.data)], (*actor).known), a)
	}
	k.unfollow(o, a)
}

// known reports whether the program knows that a is complete.
func (a *actor) known() bool { return a.seen != 0 }

// oldest is the first operation that is not done; nil if there is none.
func (k *checker) oldest() *actor {
	for len(k.queued) > 0 && k.queued[0].done {
		k.queued[0] = nil
		k.queued = k.queued[1:]
	}
	if len(k.queued) == 0 {
		return nil
	}
	return k.queued[0]
}

// ran notes that host functions of s have run, so many in all, which the program may know. mu is held.
func (k *checker) ran(s *stream, n uint64) {
	if k != nil && s.history != nil {
		k.seeAll(&s.history.hosts, tick{host: n})
	}
}

// saw notes that the program has seen the completion of device work of s, up to a number, and of native functions. mu is held.
func (k *checker) saw(s *stream, work, host uint64) {
	if k != nil {
		k.seeAll(&s.history.work, tick{work: work})
		k.seeAll(&s.history.natives, tick{host: host})
	}
}

// NativeTold implements driver.Checker.
func (m *machine) NativeTold(cell uintptr) {
	m.mu.Lock()
	defer m.unlock()
	k := m.checker
	if k == nil {
		return
	}
	k.epoch++
	for _, a := range k.natives[cell] {
		k.see(a)
	}
	delete(k.natives, cell)
}

// CopyQueued implements driver.Checker.
func (m *machine) CopyQueued(ctx driver.Context, raw driver.Stream) (told func()) {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.stream(ctx, raw)
	if m.checker == nil || r != driver.Success {
		return func() {}
	}
	behind := m.ahead(s)
	return func() { m.observeAfter(behind, driver.Success) }
}

// seeAll takes off list, which is in order, what the program now knows to be complete.
func (k *checker) seeAll(list *[]*actor, t tick) {
	if len(*list) == 0 || !within((*list)[0].tick, t) {
		return
	}
	k.epoch++
	for len(*list) > 0 && within((*list)[0].tick, t) {
		a := (*list)[0]
		(*list)[0] = nil
		*list = (*list)[1:]
		k.see(a)
	}
	if len(*list) == 0 {
		*list = nil
	}
}

// see notes that the program knows now that a is complete.
func (k *checker) see(a *actor) {
	if a.seen == 0 {
		a.seen = k.epoch
		k.unwatch(a)
	}
}

// gated is what holds a stream up until the program has done something, perhaps: host functions that have not returned, and wait-values.
type gated struct{ hosts, holds []*actor }

func (g *gated) of(kind opKind) *[]*actor {
	if kind == opHold {
		return &g.holds
	}
	return &g.hosts
}

func (k *checker) gate(a *actor) {
	g := k.gated[a.s]
	if g == nil {
		g = &gated{}
		k.gated[a.s] = g
	}
	list := g.of(a.kind)
	*list = append(*list, a)
}

func (k *checker) ungate(a *actor) {
	g := k.gated[a.s]
	if list := g.of(a.kind); len(*list) > 0 && (*list)[0] == a {
		*list = (*list)[1:]
	}
	if len(g.hosts)+len(g.holds) == 0 {
		delete(k.gated, a.s)
	}
}

// gates is what the device has yet to be let past: the first ones of each stream.
func (k *checker) gates() clock {
	if len(k.gated) == 0 {
		return nil
	}
	c := clock{}
	for s, g := range k.gated {
		var t tick
		if len(g.hosts) > 0 {
			t.host = g.hosts[0].tick.host
		}
		if len(g.holds) > 0 {
			t.work = g.holds[0].tick.work
		}
		c[s] = t
	}
	return c
}

// shared is what the end of the stream is ordered behind, its own operations aside, in a clock that is never changed.
func (h *history) shared() clock {
	if h.snapshot == nil {
		h.snapshot = maps.Clone(h.clock)
	}
	return h.snapshot
}
