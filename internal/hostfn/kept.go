package hostfn

import "sync/atomic"

// keptBit marks the handles of functions that stay in the table.
const keptBit = 1 << (indexBits + 31)

// Kept reports whether h names a function that stays in the table.
func (h Handle) Kept() bool { return h&keptBit != 0 }

// keptTable holds functions that stay until they are dropped: those of graphs' host nodes. Each run must be expected first,
// so that it can be known how many are due, and a run that was swept does not happen.
type keptTable struct {
	slots   Slots[keptFunc, *keptFunc]
	open    atomic.Int64  // runs due or in progress
	running atomic.Int64  // runs in progress
	ended   atomic.Uint64 // as Table.ended, for Observe
}

type keptFunc struct {
	Slot
	fn      Func
	due     atomic.Int64 // runs expected and not started
	running atomic.Int64
}

// Keep puts a function in the table that stays until Drop, and can run many times, several at once. It returns 0 if there
// are 16 million.
func (t *Table) Keep(fn Func) Handle {
	h := t.kept.slots.Put(&keptFunc{fn: fn})
	if h == 0 {
		return 0
	}
	return Handle(h | keptBit)
}

// Drop takes out a function that Keep put in. Its runs that are due will not happen: it returns how many.
func (t *Table) Drop(h Handle) (fn Func, due int) {
	k := t.kept.slots.Take(uint64(h &^ keptBit))
	if k == nil {
		return Func{}, 0
	}
	left := k.due.Swap(0)
	k.fn.Group.due.Add(-left)
	t.kept.open.Add(-left)
	return k.fn, int(left)
}

// KeptLen is how many functions Keep put in that Drop has not taken out.
func (t *Table) KeptLen() int { return t.kept.slots.Len() }

// KeptFunc is the function of h, if Keep put it in and it is there still.
func (t *Table) KeptFunc(h Handle) (Func, bool) {
	if k := t.keptFunc(h); k != nil {
		return k.fn, true
	}
	return Func{}, false
}

// Expect says that a kept function is about to be given to the driver for one more run. It reports false if its group is
// closed; then there must be none.
func (t *Table) Expect(h Handle) bool {
	k := t.keptFunc(h)
	t.mu.Lock()
	defer t.mu.Unlock()
	if k == nil || k.fn.Group.closed {
		return false
	}
	k.due.Add(1)
	k.fn.Group.due.Add(1)
	t.kept.open.Add(1)
	return true
}

// Unexpect takes back one Expect. It reports false if the run has been swept meanwhile.
func (t *Table) Unexpect(h Handle) bool {
	k := t.keptFunc(h)
	if k == nil || !k.begin() {
		return false
	}
	t.kept.open.Add(-1)
	return true
}

// StartKept begins a run of a kept function; FinishKept must follow if ok.
func (t *Table) StartKept(h Handle) (fn Func, ok bool) {
	k := t.keptFunc(h)
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
	if k := t.keptFunc(h); k != nil { // it may have been dropped
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

func (t *Table) keptFunc(h Handle) *keptFunc {
	return t.kept.slots.Get(uint64(h &^ keptBit))
}

// begin takes a run that is due.
func (k *keptFunc) begin() bool {
	for {
		n := k.due.Load()
		if n == 0 {
			return false
		}
		if k.due.CompareAndSwap(n, n-1) {
			k.fn.Group.due.Add(-1)
			return true
		}
	}
}

// sweepKept takes the runs of g's kept functions that are due, and returns a function for each. g is closed.
func (t *Table) sweepKept(g *Group) (fns []Func) {
	t.kept.slots.Each(func(_ uint64, k *keptFunc) bool {
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
	t.kept.slots.Each(func(_ uint64, k *keptFunc) bool {
		due, running := int(k.due.Load()), int(k.running.Load())
		return due+running == 0 || visit(k.fn, due, running)
	})
}
