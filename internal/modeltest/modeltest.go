// Package modeltest runs random programs of stream operations on a driver, through package cuda, and compares every answer and
// every order with package model's.
//
// A program on which they differ is shrunk and printed, with its seed. HOSTLAUNCH_MODEL_SEED is the seed of the first program,
// and each later one has the next; HOSTLAUNCH_MODEL_PROGRAMS is how many to run. So one program is run again with its seed and
// HOSTLAUNCH_MODEL_PROGRAMS=1.
package modeltest

import (
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
)

// Config is what a driver package's test hands Run.
type Config struct {
	Open     func(...cuda.Option) (*cuda.Driver, error) // an error: there is no GPU here
	PTX      []byte                                     // internal/testkernels
	Programs int                                        // how many, unless the environment says otherwise
	Workers  int                                        // how many drivers to run them on, side by side; 1 if 0
}

// Run runs the programs.
func Run(t *testing.T, cfg Config) {
	first := setting("HOSTLAUNCH_MODEL_SEED", 1)
	programs := setting("HOSTLAUNCH_MODEL_PROGRAMS", uint64(cfg.Programs))
	start := time.Now()
	var next, differ atomic.Uint64
	var workers sync.WaitGroup
	for range max(cfg.Workers, 1) {
		r := openRig(t, cfg)
		workers.Go(func() {
			for n := next.Add(1) - 1; n < programs && differ.Load() < 3; n = next.Add(1) - 1 {
				if !try(t, r, first+n) {
					differ.Add(1)
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d programs from seed %d in %v", min(next.Load(), programs), first, time.Since(start))
}

func openRig(t *testing.T, cfg Config) *rig {
	drv, err := cfg.Open()
	if err != nil {
		if setting("HOSTLAUNCH_REQUIRE_GPU", 0) > 0 {
			t.Fatal(err)
		}
		t.Skipf("no GPU: %v", err)
	}
	t.Cleanup(func() { drv.Close() })
	r, err := newRig(drv, cfg.PTX)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func setting(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// try runs the program of a seed, and reports a difference.
func try(t *testing.T, r *rig, seed uint64) bool {
	p := draw(seed)
	wrong := r.run(p)
	if wrong == "" {
		return true
	}
	small, again := shrink(p, r.run)
	if again == "" {
		t.Errorf("seed %d: %s. It did not happen again in %d runs.\n%v", seed, wrong, tries, p)
		return false
	}
	t.Errorf("seed %d: %s. Shrunk to %d operations, of which %s:\n%v", seed, wrong, len(small.Ops), again, small)
	return false
}
