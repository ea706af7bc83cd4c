package softcuda

import (
	"hash/maphash"
	"slices"
)

// watching is how the checker finds that the program has changed host memory which a queued copy was to read.
type watching struct {
	seed    maphash.Seed
	wild    uint64     // the last operation that may write anywhere in host memory
	wilds   int        // those that are not done, and wait-values, for which the program may write
	pending spans[int] // how many operations are to write to host memory
	watches spans[group]
	most    int // how many those may become before those are looked for that are over
}

// group are watches over some memory. It is never changed.
type group []*watch

// watch looks whether the program changes host memory that a queued copy reads. It is over when there is no data.
type watch struct {
	by   *actor
	data []byte
	sum  uint64
}

func newWatching(seed maphash.Seed) watching {
	return watching{
		seed:    seed,
		pending: spans[int]{same: func(a, b int) bool { return a == b }, none: func(n int) bool { return n == 0 }},
		watches: spans[group]{same: func(a, b group) bool { return slices.Equal(a, b) }, none: func(g group) bool { return len(g) == 0 }},
	}
}

const mostWatched = 1 << 20 // bytes

// follow takes o, which is queued, into account: it writes to host memory, or reads it.
func (k *checker) follow(o *op, a *actor) {
	x := o.notes()
	switch {
	case o.kind == opHold:
		a.wild = true
	case o.kind != opWork && !x.exact, x.kernel != "":
		a.wild, k.wild = true, k.numbered
	}
	if a.wild {
		k.wilds++
	}
	k.overwrites(o)
	k.watch(o, a)
	k.expect(o, 1)
}

// unfollow takes o, which is done, out of account. What it has read is watched until the program knows.
func (k *checker) unfollow(o *op, a *actor) {
	if a.wild {
		k.wilds--
	}
	k.expect(o, -1)
}

// expect counts what o writes to host memory as so many more writes to come.
func (k *checker) expect(o *op, n int) {
	o.notes().eachWrite(func(to []byte) {
		from, end := address(to)
		k.pending.change(from, end, func(have int) int { return have + n })
	})
}

// eachWrite is called with the host memory that the operation writes to, kernels aside.
func (x *notes) eachWrite(do func([]byte)) {
	for _, t := range x.touches {
		if t.write && t.host {
			do(t.data)
		}
	}
	if x.word != nil {
		do(x.word)
	}
}

// watch begins to watch what o reads of host memory, unless something else may yet write there.
func (k *checker) watch(o *op, a *actor) {
	if a.site == "" || o.kind != opWork && !o.notes().exact {
		return
	}
	for _, t := range o.notes().touches {
		if t.host && !t.write && len(t.data) <= mostWatched && !k.writable(t.data) {
			w := &watch{a, t.data, maphash.Bytes(k.seed, t.data)}
			a.watches = append(a.watches, w)
			k.addWatch(w)
		}
	}
}

func (k *checker) addWatch(w *watch) {
	alone := group{w}
	from, to := address(w.data)
	k.watches.change(from, to, func(g group) group {
		if g = g.alive(); len(g) == 0 {
			return alone
		}
		return append(slices.Clip(g), w)
	})
	if k.watches.n > k.most {
		const few = 256
		k.watches.all(group.alive)
		k.most = 2*k.watches.n + few
	}
}

// alive is g without what is over.
func (g group) alive() group {
	if !slices.ContainsFunc(g, (*watch).over) {
		return g
	}
	return slices.DeleteFunc(slices.Clone(g), (*watch).over)
}

func (w *watch) over() bool { return w.data == nil }

// writable reports whether an operation that is not done may write to host memory.
func (k *checker) writable(data []byte) (may bool) {
	if k.wilds > 0 {
		return true
	}
	from, to := address(data)
	k.pending.visit(from, to, func(int) { may = true })
	return may
}

// look reports w if its memory has changed.
func (k *checker) look(w *watch) {
	if w.over() || k.wild > w.by.number || maphash.Bytes(k.seed, w.data) == w.sum {
		return
	}
	now := access{w.by, touch{data: w.data}}
	k.out.report(Report{
		Kind: "unordered access", First: now.String(), Second: "the program writes there after that was queued",
		Advice: "wait for the first before the program goes on (Sync, Wait, or an event recorded behind it)",
	})
	w.data = nil
}

// unwatch ends the watches over what a, which the program now knows to be complete, has read.
func (k *checker) unwatch(a *actor) {
	for _, w := range a.watches {
		k.look(w)
		w.data = nil
	}
	a.watches = nil
}

// overwrites ends the watches over memory that o, which is about to be queued, writes to. What the program has changed there before
// is still told.
func (k *checker) overwrites(o *op) {
	o.notes().eachWrite(func(to []byte) {
		from, end := address(to)
		k.watches.visit(from, end, func(g group) {
			for _, w := range g {
				k.look(w)
			}
		})
		k.rewritten(to)
	})
}

// rewritten ends the watches over memory that is written to from now on, by an operation or by a program that tells.
func (k *checker) rewritten(data []byte) {
	from, to := address(data)
	k.watches.visit(from, to, func(g group) {
		for _, w := range g {
			w.data = nil
		}
	})
}
