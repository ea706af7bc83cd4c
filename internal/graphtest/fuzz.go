package graphtest

import (
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/source"
)

// Fuzz makes graphs of bytes: one that is built, run, cloned and updated as those of Run are, or a sequence of edits as those of
// RunEdits are, each on a driver of its own, which is left with nothing.
func Fuzz(f *testing.F, cfg Config) {
	f.Fuzz(func(t *testing.T, data []byte) {
		drv, err := cfg.Open()
		if err != nil {
			t.Fatal(err)
		}
		b := source.NewBytes(data)
		if b.IntN(4) == 0 {
			err = fuzzPlan(t, drv, cfg.PTX, b)
		} else {
			err = fuzzEdits(t, drv, cfg.PTX, b)
		}
		if err != nil {
			t.Error(err)
		}
		if err := drv.Close(); err != nil {
			t.Errorf("closing the driver: %v", err)
		}
	})
}

func fuzzPlan(t *testing.T, drv *cuda.Driver, ptx []byte, b *source.Bytes) error {
	r, err := newRig(drv, ptx)
	if err != nil {
		return err
	}
	p := drawFrom(b)
	defer unchanged(t, drv)()
	defer bound(p.String)()
	if err = r.try(p); err != nil {
		t.Logf("the plan:\n%v", p)
	}
	return err
}

func fuzzEdits(t *testing.T, drv *cuda.Driver, ptx []byte, b *source.Bytes) error {
	e, err := newEdits(drv, ptx)
	if err != nil {
		return err
	}
	const longest = 200
	steps := 0
	defer unchanged(t, drv)()
	return e.run(b, func() bool {
		steps++
		return b.Over() || steps > longest
	})
}

// RunEdits changes graphs at random, rightly and wrongly, and compares each answer and each launch with what it must be.
// HOSTLAUNCH_MODEL_SEED is the first seed, and HOSTLAUNCH_MODEL_GRAPHS how many.
func RunEdits(t *testing.T, cfg Config) {
	drv, err := cfg.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { drv.Close() })
	e, err := newEdits(drv, cfg.PTX)
	if err != nil {
		t.Fatal(err)
	}
	const length = 120
	first, runs := setting("HOSTLAUNCH_MODEL_SEED", 1), setting("HOSTLAUNCH_MODEL_GRAPHS", uint64(cfg.Graphs))
	defer unchanged(t, drv)()
	for seed := first; seed < first+runs; seed++ {
		steps := 0
		err := e.run(source.Seed(seed, 8), func() bool {
			steps++
			return steps > length
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// bound ends the process, with what it was doing, if that has no end.
func bound(what func() string) (stop func() bool) {
	const limit = 20 * time.Second
	return time.AfterFunc(limit, func() { panic("this hangs:\n" + what()) }).Stop
}

// unchanged wants drv to hold afterwards what it holds now. What was dropped goes a little later.
func unchanged(t *testing.T, drv *cuda.Driver) (check func()) {
	before := drv.Stats()
	return func() {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Second); drv.Stats() != before && time.Now().Before(deadline); {
			time.Sleep(50 * time.Microsecond)
		}
		if now := drv.Stats(); now != before {
			t.Errorf("left behind: %+v, before: %+v", now, before)
		}
	}
}
