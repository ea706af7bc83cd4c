package modeltest

import (
	"time"

	"github.com/hostlaunch/cuda/internal/model"
)

// tries is how often a program is run to see it go wrong again; the order of things may be right by chance.
const tries = 100

// shrink removes operations from p for as long as it goes wrong, and says how. "": it never did again.
func shrink(p *model.Program, run func(*model.Program) string) (small *model.Program, wrong string) {
	const longest = 30 * time.Second
	end := time.Now().Add(longest)
	fails := func(p *model.Program) string {
		for range tries {
			if wrong := run(p); wrong != "" || time.Now().After(end) {
				return wrong
			}
		}
		return ""
	}
	if wrong = fails(p); wrong == "" {
		return p, ""
	}
	for size := len(p.Ops) / 2; size > 0; {
		shorter := false
		for at := 0; at+size <= len(p.Ops); {
			q := without(p, at, size)
			if again := ""; q.Valid() {
				if again = fails(q); again != "" {
					p, wrong, shorter = q, again, true
					continue
				}
			}
			at++
		}
		if !shorter {
			size /= 2
		}
	}
	if q := tidy(p); len(q.Streams) < len(p.Streams) || q.Events < p.Events {
		if again := fails(q); again != "" {
			return q, again
		}
	}
	return p, wrong
}

// tidy is p without the streams and events that it does not use. A stream or event that an operation has no use for is the
// first one to it.
func tidy(p *model.Program) *model.Program {
	streams, events := map[int]int{}, map[int]int{}
	q := &model.Program{}
	stream := func(i int) int {
		if _, ok := streams[i]; !ok {
			streams[i] = len(q.Streams)
			q.Streams = append(q.Streams, p.Streams[i])
		}
		return streams[i]
	}
	event := func(i int) int {
		if _, ok := events[i]; !ok {
			events[i] = q.Events
			q.Events++
		}
		return events[i]
	}
	for _, o := range p.Ops {
		r := model.Op{Kind: o.Kind, N: o.N}
		if o.UsesStream() {
			r.S = stream(o.S)
		}
		if o.UsesOther() {
			r.O = stream(o.O)
		}
		if o.UsesEvent() {
			r.E = event(o.E)
		}
		q.Ops = append(q.Ops, r)
	}
	if len(q.Streams) == 0 {
		stream(0)
	}
	q.Events = max(q.Events, 1)
	return q
}

// without is p without n operations.
func without(p *model.Program, at, n int) *model.Program {
	q := *p
	q.Ops = append(append([]model.Op(nil), p.Ops[:at]...), p.Ops[at+n:]...)
	return &q
}
