package softcuda

import (
	"fmt"
	"os"
	"strconv"

	"github.com/hostlaunch/cuda"
)

// Testing is what Explore needs of a *testing.T or *testing.B.
type Testing[T any] interface {
	Helper()
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
	Run(name string, f func(T)) bool
}

// Explorer is a test under many schedules, with options for its devices. See Explore.
type Explorer struct {
	Options  Options       // Seed is the first seed; 0 means 1. Each run has a Seed, a Trace, a Check and Faults of its own, the latter two if given.
	Open     []cuda.Option // for the Driver
	NoShrink bool          // leave a failing schedule as it is
}

// Explore runs test under n schedules, the seeds 1 to n, each with a Driver of one device, which it closes afterwards.
// The first one that fails ends it: Explore tells the seed, looks for the plainest schedule that still fails, by running test again,
// and logs what the device did under that. HOSTLAUNCH_SEED=n in the environment runs just the schedule of seed n.
//
//	func TestPipeline(t *testing.T) {
//		softcuda.Explore(t, 1000, func(t *testing.T, drv *cuda.Driver) { ... })
//	}
func Explore[T Testing[T]](t T, n int, test func(t T, drv *cuda.Driver)) {
	t.Helper()
	ExploreWith(t, n, Explorer{}, test)
}

// ExploreWith is Explore with options: for kernels, say, or with a Check, whose reports are failures.
func ExploreWith[T Testing[T]](t T, n int, e Explorer, test func(t T, drv *cuda.Driver)) {
	t.Helper()
	first := max(e.Options.Seed, 1)
	if given, ok := os.LookupEnv("HOSTLAUNCH_SEED"); ok && given != "" {
		seed, err := strconv.ParseUint(given, 10, 64)
		if err != nil || seed == 0 {
			t.Errorf("softcuda: HOSTLAUNCH_SEED is %q, which is no seed: take a number from 1 on", given)
			return
		}
		first, n = seed, 1
	}
	for seed := first; seed < first+uint64(n); seed++ {
		run := exploration[T]{Explorer: e, t: t, test: test}
		run.Options.Seed = seed
		script, trace, ok := run.try(fmt.Sprintf("seed=%d", seed), nil)
		if ok {
			continue
		}
		t.Logf("softcuda: seed %d fails after %d schedules; run it alone with HOSTLAUNCH_SEED=%d", seed, seed-first+1, seed)
		if !e.NoShrink {
			trace = run.shrink(script, trace)
		}
		t.Logf("softcuda: what the device did, with the fewest choices that still fail:\n%s", trace)
		return
	}
}

// exploration is a test under one seed.
type exploration[T Testing[T]] struct {
	Explorer
	t    T
	test func(T, *cuda.Driver)
	runs int
}

// try runs the test once, with the choices of list, or those of the seed if that is nil. It returns the choices made, and the
// trace up to the end of the test.
func (e *exploration[T]) try(name string, list []int) (made []int, trace string, ok bool) {
	o := e.Options
	o.Trace = new(Trace)
	o.script = &script{replay: list != nil, list: list}
	if o.Check != nil {
		o.Check = &Check{IgnoreLeaks: o.Check.IgnoreLeaks}
	}
	o.Faults = o.Faults.again()
	ok = e.t.Run(name, func(t T) {
		drv := New(o, e.Open...)
		defer func() {
			drv.Close()
			if err := o.Check.Err(); err != nil {
				t.Errorf("%v", err)
			}
		}()
		defer func() { trace = o.Trace.String() }()
		e.test(t, drv)
	})
	return o.script.made, trace, ok
}

// mostRuns limits the runs of shrink: each says what fails once more.
const mostRuns = 40

// shrink makes choices plain, many at a time at first, as long as the test fails, and returns the trace of the last failure.
func (e *exploration[T]) shrink(list []int, trace string) string {
	list = trimmed(list)
	for size := len(list); size > 0; size /= 2 {
		for at := 0; at < len(list) && e.runs < mostRuns; at += size {
			plainer, changed := cleared(list, at, min(at+size, len(list)))
			if !changed {
				continue
			}
			e.runs++
			if _, shorter, ok := e.try(fmt.Sprintf("shrink=%d", e.runs), plainer); !ok {
				list, trace = plainer, shorter
			}
		}
		list = trimmed(list)
	}
	return trace
}

// cleared is list with plain choices from at to end.
func cleared(list []int, at, end int) (plainer []int, changed bool) {
	plainer = append([]int{}, list...)
	for i := at; i < end; i++ {
		changed = changed || plainer[i] != 0
		plainer[i] = 0
	}
	return plainer, changed
}

// trimmed is list without plain choices at its end: they go without saying.
func trimmed(list []int) []int {
	for len(list) > 0 && list[len(list)-1] == 0 {
		list = list[:len(list)-1]
	}
	return list
}
