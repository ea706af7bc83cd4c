package hostfn

import "sync/atomic"

// keptBit marks the handles of functions that stay in the table.
const keptBit = 1 << (indexBits + 31)

// Kept reports whether h names a function that stays in the table.
func (h Handle) Kept() bool { return h&keptBit != 0 }

// keptTable holds functions that stay until they are dropped: those of graphs' host nodes. Each run must be expected first,
// so that it can be known how many are due, and a run that was swept does not happen.
type keptTable struct {
	slots   Slots[Kept, *Kept]
	open    atomic.Int64  // runs due or in progress
	running atomic.Int64  // runs in progress that the table started
	ended   atomic.Uint64 // as Table.ended, for Observe
}

// Kept is where a table keeps a function: part of something of its owner's, or by itself.
type Kept struct {
	Slot
	fn      Func
	runs    Runs
	own     dueRuns // for runs
	dropped func()  // if not nil, called by Drop
	running atomic.Int64
}

// Runs counts the runs of a kept function that are expected and not started.
type Runs interface {
	Expect()
	Take() bool // one of them, so that nobody else does; false: there is none
	Due() int
}

// dueRuns are the Runs of a function of this table's own.
type dueRuns struct{ n atomic.Int64 }

func (r *dueRuns) Expect()  { r.n.Add(1) }
func (r *dueRuns) Due() int { return int(r.n.Load()) }
func (r *dueRuns) Take() bool {
	for {
		n := r.n.Load()
		if n == 0 {
			return false
		}
		if r.n.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// Keep puts a function in the table that stays until Drop, and can run many times, several at once. It returns 0 if there
// are 16 million.
func (t *Table) Keep(fn Func) Handle { return t.KeepIn(new(Kept), fn) }

// KeepIn is Keep in a place of the caller's, which must not be used again before Drop.
func (t *Table) KeepIn(k *Kept, fn Func) Handle {
	k.fn, k.runs = fn, &k.own
	return t.keep(k)
}

// KeepRuns is Keep for a function that is not started through the table: whoever runs it takes the run from runs, and tells of
// its end with EndRuns. Drop calls dropped.
func (t *Table) KeepRuns(fn Func, runs Runs, dropped func()) Handle {
	return t.keep(&Kept{fn: fn, runs: runs, dropped: dropped})
}

func (t *Table) keep(k *Kept) Handle {
	h := t.kept.slots.Put(k)
	if h == 0 {
		return 0
	}
	return Handle(h | keptBit)
}

// ExpectRun counts a run of g that is neither of the table's own functions nor of a kept one. EndRuns must follow.
func (t *Table) ExpectRun(g *Group) {
	g.due.Add(1)
	t.kept.open.Add(1)
}

// EndRuns counts the end of n runs of g that were expected and not started through the table.
func (t *Table) EndRuns(g *Group, n int) {
	g.due.Add(int64(-n))
	t.kept.open.Add(int64(-n))
	t.kept.ended.Add(uint64(n))
}

// Drop takes out a function that Keep put in. Its runs that are due will not happen: it returns how many.
func (t *Table) Drop(h Handle) (fn Func, due int) {
	k := t.kept.slots.Take(uint64(h &^ keptBit))
	if k == nil {
		return Func{}, 0
	}
	for k.begin() {
		t.kept.open.Add(-1)
		due++
	}
	if k.dropped != nil {
		k.dropped()
	}
	return k.fn, due
}

// KeptLen is how many functions Keep put in that Drop has not taken out.
func (t *Table) KeptLen() int { return t.kept.slots.Len() }

// KeptFunc is the function of h, if Keep put it in and it is there still.
func (t *Table) KeptFunc(h Handle) (Func, bool) {
	if k := t.find(h); k != nil {
		return k.fn, true
	}
	return Func{}, false
}

// Expect says that a kept function is about to be given to the driver for one more run. It reports false if its group is
// closed; then there must be none.
func (t *Table) Expect(h Handle) bool {
	k := t.find(h)
	t.mu.Lock()
	defer t.mu.Unlock()
	if k == nil || k.fn.Group.closed {
		return false
	}
	k.fn.Group.due.Add(1)
	k.runs.Expect()
	t.kept.open.Add(1)
	return true
}

// Due is how many runs of a kept function are expected and have not started.
func (t *Table) Due(h Handle) int {
	if k := t.find(h); k != nil {
		return k.runs.Due()
	}
	return 0
}

// Unexpect takes back one Expect. It reports false if the run has been swept meanwhile.
func (t *Table) Unexpect(h Handle) bool {
	k := t.find(h)
	if k == nil || !k.begin() {
		return false
	}
	t.kept.open.Add(-1)
	return true
}

// StartKept begins a run of a kept function; FinishKept must follow if ok.
func (t *Table) StartKept(h Handle) (fn Func, ok bool) {
	k := t.find(h)
	if k == nil {
		return Func{}, false
	}
	t.kept.running.Add(1) // first, so that Idle waits for it
	if !k.begin() {
		t.stopped()
		return Func{}, false
	}
	k.running.Add(1)
	return k.fn, true
}

// FinishKept ends what StartKept began. What the function wrote is visible to whoever calls Observe afterwards.
func (t *Table) FinishKept(h Handle) {
	if k := t.find(h); k != nil { // it may have been dropped
		k.running.Add(-1)
	}
	t.kept.open.Add(-1)
	t.kept.ended.Add(1)
	t.stopped()
}

func (t *Table) stopped() {
	if t.kept.running.Add(-1) == 0 && t.awaited.Load() {
		t.settle()
	}
}

func (t *Table) find(h Handle) *Kept {
	return t.kept.slots.Get(uint64(h &^ keptBit))
}

// begin takes a run that is due.
func (k *Kept) begin() bool {
	if !k.runs.Take() {
		return false
	}
	k.fn.Group.due.Add(-1)
	return true
}

// sweepKept takes the runs of g's kept functions that are due, and returns a function for each. g is closed.
func (t *Table) sweepKept(g *Group) (fns []Func) {
	t.kept.slots.Each(func(_ uint64, k *Kept) bool {
		if k.fn.Group == g {
			for k.begin() {
				t.kept.open.Add(-1)
				fns = append(fns, k.fn)
			}
		}
		return true
	})
	return fns
}

// EachKept calls visit for each kept function that is due to run, or that runs, with how often, until it returns false.
func (t *Table) EachKept(visit func(fn Func, due, running int) bool) {
	t.kept.slots.Each(func(_ uint64, k *Kept) bool {
		due, running := k.runs.Due(), int(k.running.Load())
		return due+running == 0 || visit(k.fn, due, running)
	})
}
