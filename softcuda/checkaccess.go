package softcuda

import (
	"fmt"
	"slices"
)

// touch is an access to memory.
type touch struct {
	data                []byte
	write, read, atomic bool // atomic: unordered with its like; read: an uninitialised one is a mistake
	host                bool
}

// access is a touch, and who does it. It keeps the memory, so that no other comes to lie there.
type access struct {
	by *actor
	touch
}

func (a *access) String() string {
	verb := "reads"
	if a.write {
		verb = "writes"
	}
	return fmt.Sprintf("%v %s %d bytes", a.by, verb, len(a.data))
}

// conflicts reports whether two accesses must be ordered.
func (a *access) conflicts(b *access) bool { return (a.write || b.write) && !(a.atomic && b.atomic) }

// covers reports whether whoever must be ordered with a must be with b, too.
func (b *access) covers(a *access) bool {
	switch {
	case b.atomic:
		return a.atomic
	case b.write:
		return true
	}
	return !a.write
}

// trail is what is known of some memory: the accesses that others have to be ordered with, and whether anything was written there.
type trail struct {
	list    []*access // never changed
	written bool
}

func (t trail) empty() bool { return len(t.list) == 0 && !t.written }

func sameTrail(a, b trail) bool { return a.written == b.written && slices.Equal(a.list, b.list) }

// mostTrail is how many accesses of one place are kept that nothing orders.
const mostTrail = 64

// access checks an access against all that were before, and keeps it. Those that it comes after need not be kept, if whoever is
// ordered with it is ordered with them.
func (k *checker) access(by *actor, t touch) {
	if len(t.data) == 0 {
		return
	}
	made := new(struct {
		access
		alone [1]*access
	})
	now := &made.access
	*now, made.alone[0] = access{by, t}, now
	alone, whole := made.alone[:1:1], true
	from, to := address(t.data)
	k.accesses.change(from, to, func(old trail) trail {
		whole = whole && old.written
		return trail{k.next(old.list, now, alone), old.written || t.write && !t.host}
	})
	if t.read && !whole && k.ofDevice(from) {
		k.out.report(Report{Kind: "uninitialised read", First: now.String() + " of device memory, not all of which has been written", Advice: "write it first, with a copy or Memset"})
	}
	if k.accesses.n > k.mostKept {
		k.sweep()
	}
}

// next is a list of accesses with one more, which is alone in another.
func (k *checker) next(list []*access, now *access, alone []*access) []*access {
	var keep [mostTrail]bool
	kept := 0
	for i, former := range list {
		before := k.before(former.by, now.by)
		if !before && former.conflicts(now) && !k.ordered(former.by, now.by) {
			k.conflict(former, now)
		}
		if keep[i] = !before || !now.covers(former); keep[i] {
			kept++
		}
	}
	if kept == 0 {
		return alone
	}
	next := make([]*access, 0, kept+1)
	for i, former := range list {
		if keep[i] {
			next = append(next, former)
		}
	}
	next = append(next, now)
	return next[max(0, len(next)-mostTrail):]
}

// sweep forgets the accesses that nothing can be unordered with any more; and, if there are very many, all that the program has seen
// to be complete.
func (k *checker) sweep() {
	const few, many = 512, 1 << 16
	through := k.through()
	k.accesses.all(func(t trail) trail { return t.without(through) })
	if k.accesses.n > many {
		k.accesses.all(func(t trail) trail { return t.without(func(a *actor) bool { return a.s == nil || a.seen != 0 }) })
	}
	k.mostKept = 2*k.accesses.n + few
}

// without is t without the accesses of some.
func (t trail) without(gone func(*actor) bool) trail {
	if slices.ContainsFunc(t.list, func(a *access) bool { return gone(a.by) }) {
		t.list = slices.DeleteFunc(slices.Clone(t.list), func(a *access) bool { return gone(a.by) })
	}
	return t
}

// conflict reports two accesses, the one queued first first.
func (k *checker) conflict(a, b *access) {
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
