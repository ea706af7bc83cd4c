package modeltest

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda/internal/model"
)

// finish waits for everything, and checks what was seen. The work of streams that are closed cannot be waited for, except by
// its marks.
func (u *run) finish() (wrong string) {
	u.m.OpenAll()
	if wrong := u.endCaptures(); wrong != "" {
		return wrong
	}
	for i := range u.streams {
		o := model.Op{Kind: model.SyncStream, S: i}
		got, err := u.do(o)
		if err != nil {
			return fmt.Sprintf("at the end, %v: %v", o, err)
		}
		if wrong := u.m.Apply(o, got); wrong != "" {
			return "at the end, " + wrong
		}
	}
	for deadline := time.Now().Add(limit / 2); !u.complete(); time.Sleep(20 * time.Microsecond) {
		if u.isHung() {
			return "hung at the end"
		}
		if time.Now().After(deadline) {
			break // Check says which mark is lost
		}
	}
	return u.m.Check(u.sights())
}

// complete reports whether as many marks are there as were queued.
func (u *run) complete() bool {
	n := u.kernels()
	for i := range n { // the count comes before the mark
		if atomic.LoadUint64(&u.log[1+i]) == 0 {
			return false
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return n+len(u.hosts) >= u.m.Queued()
}

// sights is what was seen of each mark.
func (u *run) sights() *[model.Most]model.Sight {
	seen := new([model.Most]model.Sight)
	var came [model.Most]int
	coming := func(n int) *model.Sight { // as often as its graph was launched
		came[n]++
		return &seen[u.m.Coming(n, came[n]-1)]
	}
	for i := range min(u.kernels(), len(u.log)-1) {
		if v := atomic.LoadUint64(&u.log[1+i]); v >= 1 && v <= model.Most {
			s := coming(int(v - 1))
			s.Times++
			s.Place = i
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, h := range u.hosts {
		s := coming(h.n)
		*s = model.Sight{Times: s.Times + 1, Host: true, Place: i, Begin: h.begin, End: h.end}
	}
	return seen
}

// promised compares what a sync or query has just said to be complete with what is there.
func (u *run) promised() (wrong string) {
	known := u.m.Known()
	if known == u.kept {
		return ""
	}
	u.kept = known
	for n, s := range u.sights() {
		if known.Has(n) && s.Times == 0 {
			return fmt.Sprintf("mark %d has not come yet", n)
		}
	}
	return ""
}
