package softcuda_test

import (
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// ranges runs n copies of 64 bytes each, up and down one buffer of n such ranges, on two streams that take turns: each waits for the
// other after a hundred copies. It waits for all of them now and then, if sync is not 0.
func ranges(t testing.TB, check *softcuda.Check, n, sync int) time.Duration {
	drv, dev := openSeeded(t, softcuda.Options{Check: check})
	defer drv.Close()
	s := newStreams(t, dev, 2)
	x, pinned := must(dev.Alloc(64*n)), must(dev.AllocPinned(64*n))
	defer x.Close()
	defer pinned.Close()
	h := pinned.Bytes()
	noErr(t, s[0].Memset(x, 1))
	noErr(t, s[1].WaitStream(s[0]))
	start := time.Now()
	for i := range n {
		at := i * 7919 % n
		on := s[i/100%2]
		if i%2 == 0 {
			noErr(t, cuda.CopyToDevice(on, must(x.Slice(64*at, 64)), h[64*at:][:64]))
		} else {
			noErr(t, cuda.CopyToHost(on, h[64*at:][:64], must(x.Slice(64*at, 64))))
		}
		if i%100 == 99 {
			noErr(t, s[(i/100+1)%2].WaitStream(on))
		}
		if sync > 0 && i%sync == 0 {
			noErr(t, on.Sync())
		}
	}
	noErr(t, s[0].Sync())
	noErr(t, s[1].Sync())
	return time.Since(start)
}

// TestCheckCost wants the time of a program under the checker to grow as the program does, for very many small accesses to one buffer, and
// reports what it costs.
func TestCheckCost(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("takes seconds")
	}
	for _, sync := range []int{0, 1, 1000} {
		const few, many = 10_000, 100_000
		small, check := time.Duration(0), softcuda.Check{}
		for range 3 { // the first one is slower
			small = ranges(t, new(softcuda.Check), few, sync)
		}
		off, large := ranges(t, nil, many, sync), ranges(t, &check, many, sync)
		if err := check.Err(); err != nil {
			t.Error(err)
		}
		growth := float64(large) / float64(small)
		t.Logf("a wait after %d: %.1f times the time without; ten times as many accesses take %.1f times as long", sync, float64(large)/float64(off), growth)
		if growth > 60 {
			t.Errorf("%d accesses take %.0f times as long as %d", many, growth, few)
		}
	}
}
