package cuda

import (
	"runtime"
	"testing"
)

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
