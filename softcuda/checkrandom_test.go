package softcuda_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// drawn is an operation of a random program. Each has a length of its own, by which it is known in reports.
type drawn struct {
	write    bool
	from, to int
	before   map[int]bool // what it is ordered behind
}

// TestCheckRandom runs random programs and compares the reports with what their order says: every pair reported is one that nothing orders,
// and where there are such pairs, one is reported.
func TestCheckRandom(t *testing.T) {
	racy := 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 0))
		check := softcuda.Check{IgnoreLeaks: true}
		drv, dev := openSeeded(t, softcuda.Options{Seed: 1 + seed, Check: &check})
		ops := randomProgram(t, rng, dev)
		noErr(t, drv.Close())
		wanted := unorderedPairs(ops)
		for _, r := range check.Reports() {
			if r.Kind != "unordered access" || !wanted[lengthsOf(r.First)+" "+lengthsOf(r.Second)] {
				t.Fatalf("seed %d: %v", seed, r)
			}
		}
		if (len(wanted) > 0) != (len(check.Reports()) > 0) {
			t.Fatalf("seed %d: %d reports, %d unordered pairs", seed, len(check.Reports()), len(wanted))
		}
		racy += min(1, len(wanted))
	}
	if racy < 100 || racy > 500 {
		t.Errorf("%d programs of 600 are wrong", racy)
	}
}

// randomProgram queues memsets of, and copies from, parts of a buffer, on three streams that wait for each other, and for which
// the program waits, now and then.
func randomProgram(t *testing.T, rng *rand.Rand, dev *cuda.Device) (ops []drawn) {
	const size = 400
	s := newStreams(t, dev, 3)
	x, to := must(dev.Alloc(size)), must(dev.Alloc(64*size))
	noErr(t, s[0].Memset(x, 0))
	noErr(t, s[0].Sync())
	behind := [3]map[int]bool{{}, {}, {}}
	careful := rng.IntN(8) // how often they wait
	for i := range 3 + rng.IntN(22) {
		on := rng.IntN(3)
		for range rng.IntN(2 + careful) {
			other := rng.IntN(3)
			if rng.IntN(8) == 0 {
				noErr(t, s[other].Sync())
				for j := range behind {
					join(behind[j], behind[other])
				}
			} else if other != on {
				noErr(t, s[on].WaitStream(s[other]))
				join(behind[on], behind[other])
			}
		}
		from, n := rng.IntN(size-64), 8+i
		part := must(x.Slice(from, n))
		o := drawn{write: rng.IntN(2) == 0, from: from, to: from + n, before: map[int]bool{}}
		if o.write {
			noErr(t, s[on].Memset(part, 1))
		} else {
			noErr(t, s[on].CopyBuffer(must(to.Slice(64*i, n)), part))
		}
		join(o.before, behind[on])
		behind[on][i] = true
		ops = append(ops, o)
	}
	return ops
}

func join(to, from map[int]bool) {
	for i := range from {
		to[i] = true
	}
}

func unorderedPairs(ops []drawn) map[string]bool {
	pairs := map[string]bool{}
	for j, b := range ops {
		for i, a := range ops[:j] {
			if (a.write || b.write) && a.from < b.to && b.from < a.to && !b.before[i] {
				pairs[fmt.Sprint(8+i, " ", 8+j)] = true
			}
		}
	}
	return pairs
}

var lengthText = regexp.MustCompile(`(\d+) bytes`)

func lengthsOf(text string) string { return lengthText.FindStringSubmatch(text)[1] }
