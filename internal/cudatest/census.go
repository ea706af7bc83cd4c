package cudatest

import (
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
)

// census is what exists at a moment.
type census struct {
	goroutines int
	stats      cuda.Stats
}

func takeCensus(d *cuda.Driver) census { return census{runtime.NumGoroutine(), d.Stats()} }

// compare fails the test if more exists than at the census. What is about to end gets some time.
func (c census) compare(t *testing.T, d *cuda.Driver) {
	t.Helper()
	var now census
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if now = takeCensus(d); now.goroutines <= c.goroutines && now.stats == c.stats {
			return
		}
	}
	if now.stats != c.stats {
		t.Errorf("left behind: %+v, before the case: %+v", now.stats, c.stats)
	}
	if now.goroutines > c.goroutines {
		var all strings.Builder
		pprof.Lookup("goroutine").WriteTo(&all, 1)
		t.Errorf("%d goroutines are left, %d before the case:\n%s", now.goroutines, c.goroutines, all.String())
	}
}
