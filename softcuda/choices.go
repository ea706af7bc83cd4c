package softcuda

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"
)

// choices draws what hardware leaves open, or takes it from a list. 0 is always the plain choice: no step before a call
// returns; the oldest operation first.
type choices struct {
	rng    *rand.Rand
	eager  float64 // how probable one more step at the end of a call is
	ranked bool    // streams have ranks, and the highest goes first until ranks change
	marks  bool    // marks, which take no time, go first: else who stands behind many of them seldom comes early
	ranks  map[uint64]uint64

	script *script
}

// script is a list of choices: those to make, if there are any, and those that were made.
type script struct {
	replay bool
	list   []int
	made   []int
}

const mostSteps = 64 // at the end of a call

func newChoices(o Options) choices {
	c := choices{rng: rand.New(rand.NewPCG(o.Seed, 1)), ranks: map[uint64]uint64{}, script: o.script}
	c.eager = []float64{0, 0, 0.3, 0.9}[c.rng.IntN(4)]
	c.ranked, c.marks = c.rng.IntN(3) == 0, c.rng.IntN(2) == 0
	return c
}

// choose makes a choice: what draw says, or what the script does.
func (c *choices) choose(draw func() int) int {
	if c.script == nil {
		return draw()
	}
	v, at := 0, len(c.script.made)
	switch {
	case !c.script.replay:
		v = draw()
	case at < len(c.script.list):
		v = c.script.list[at]
	}
	c.script.made = append(c.script.made, v)
	return v
}

// steps is how many steps the device takes before a call returns.
func (c *choices) steps() int {
	return c.choose(func() (n int) {
		for n < mostSteps && c.rng.Float64() < c.eager {
			n++
		}
		return n
	})
}

// pick says which of list comes next.
func (c *choices) pick(list []candidate) int {
	if len(list) == 1 {
		return 0
	}
	return min(len(list)-1, c.choose(func() int {
		if i := slices.IndexFunc(list, candidate.mark); c.marks && i >= 0 {
			return i
		}
		if !c.ranked {
			return c.rng.IntN(len(list))
		}
		return c.highest(list)
	}))
}

// mark reports whether all there is to do is a mark.
func (l candidate) mark() bool { return l.of != nil && l.of.first.kind == opMark }

// highest is the candidate of the highest rank. Now and then all ranks change.
func (c *choices) highest(list []candidate) int {
	const change = 8
	if c.rng.IntN(change) == 0 {
		clear(c.ranks)
	}
	best, most := 0, uint64(0)
	for i, l := range list {
		var of uint64
		if l.of != nil {
			of = l.of.id
		}
		if _, ok := c.ranks[of]; !ok {
			c.ranks[of] = c.rng.Uint64()
		}
		if r := c.ranks[of]; r >= most {
			best, most = i, r
		}
	}
	return best
}

// costs draws how long things take, on a clock that is ahead of the real one by what has been drawn.
type costs struct {
	rng  *rand.Rand
	past atomic.Int64 // nanoseconds
}

func newCosts(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2)) }

// reach has the clock stand at a time, if it is not past that.
func (c *costs) reach(at time.Time) {
	for {
		past := c.past.Load()
		more := at.Sub(time.Now().Add(time.Duration(past)))
		if more <= 0 || c.past.CompareAndSwap(past, past+int64(more)) {
			return
		}
	}
}

// pass lets the time pass that o takes. Marks take none.
func (c *costs) pass(o *op) {
	if o.kind == opMark {
		return
	}
	scale := time.Microsecond << c.rng.IntN(10)
	c.past.Add(c.rng.Int64N(int64(scale)) + int64(time.Microsecond))
}
