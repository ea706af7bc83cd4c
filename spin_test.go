package cuda

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// TestSpinnerFails: what a context's failure has dropped is not found any more by who looks at its streams.
func TestSpinnerFails(t *testing.T) {
	sp, c := new(spinner), new(Context)
	l := &spinLane{cell: heldRound{&holdCell{signal: new(atomic.Uint32)}, 1}, funcs: map[uint32]spinFunc{1: {ctx: c}, 2: {ctx: c}}}
	sp.lanes, sp.pending, sp.spinning = map[laneKey]*spinLane{{ctx: c}: l}, 2, 1
	sp.fail(c)
	l.cell.signal.Store(1) // its stream comes to the first all the same
	if _, ok := sp.take(nil, l); ok || sp.pending != 0 || sp.spinning != 1 {
		t.Errorf("taken: %v; %d pending, %d looking, want 0 and 1", ok, sp.pending, sp.spinning)
	}
}

// TestSpinnerWanted: as many goroutines look as functions are pending, two at most, and one where there are few processors.
func TestSpinnerWanted(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, c := range []struct {
		procs, spinning, pending int
		want                     bool
	}{
		{4, 0, 0, false}, {4, 0, 1, true}, {4, 1, 1, false}, {4, 1, 2, true}, {4, 2, 9, false},
		{2, 0, 0, false}, {2, 0, 9, true}, {2, 1, 9, false},
	} {
		runtime.GOMAXPROCS(c.procs)
		sp := &spinner{spinning: c.spinning, pending: c.pending}
		if sp.wanted() != c.want {
			t.Errorf("%+v", c)
		}
	}
}
