package softcuda

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSpans compares spans with an array that has a value for each address.
func TestSpans(t *testing.T) {
	const size = 4000
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		s := spans[int]{same: func(a, b int) bool { return a == b }, none: func(v int) bool { return v == 0 }}
		var want [size]int
		longest := 2 << rng.IntN(10)
		for range 3000 {
			from := rng.IntN(size)
			to := min(size, from+1+rng.IntN(longest))
			set := rng.IntN(4)
			if rng.IntN(200) == 0 {
				from, to, set = 0, size, 0
			}
			change := func(v int) int { return (v + set) % 7 * min(set, 1) }
			s.change(uintptr(from), uintptr(to), change)
			for i := from; i < to; i++ {
				want[i] = change(want[i])
			}
			if rng.IntN(50) == 0 {
				s.all(func(v int) int { return v / 2 })
				for i := range want {
					want[i] /= 2
				}
			}
		}
		compareSpans(t, &s, want[:])
		from, to := size/4, size/2
		var seen []int
		s.visit(uintptr(from), uintptr(to), func(v int) { seen = append(seen, v) })
		if values := slices.DeleteFunc(slices.Compact(slices.Clone(want[from:to])), func(v int) bool { return v == 0 }); len(seen) < len(values) {
			t.Errorf("seed %d: visit finds %d spans, want at least %d", seed, len(seen), len(values))
		}
	}
}

func compareSpans(t *testing.T, s *spans[int], want []int) {
	t.Helper()
	got, n, last := make([]int, len(want)), 0, uintptr(0)
	for _, chunk := range s.chunks {
		if len(chunk) == 0 || len(chunk) > mostInChunk {
			t.Fatalf("a chunk of %d", len(chunk))
		}
		for _, sp := range chunk {
			if sp.from < last || sp.to <= sp.from || sp.v == 0 {
				t.Fatalf("a span from %d to %d with %d, behind %d", sp.from, sp.to, sp.v, last)
			}
			for i := sp.from; i < sp.to; i++ {
				got[i] = sp.v
			}
			last = sp.to
			n++
		}
	}
	if n != s.n || !slices.Equal(got, want) {
		t.Fatalf("%d spans, counted as %d; values differ: %v", n, s.n, !slices.Equal(got, want))
	}
}
