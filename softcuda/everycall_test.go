package softcuda_test

import (
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

// programs use much of the library, each a part of it, and go on when something fails. What they wait for does not depend on what
// failed.
var programs = map[string]func(*called){
	"streams": streamsProgram, "attributes": attributesProgram, "graphs": graphsProgram, "graph memory": graphMemoryProgram,
	"captures": capturesProgram, "into a graph": intoGraphProgram, "tasks": tasksProgram, "tasks in line": lineProgram, "spin": spinProgram,
	"copies": copiesProgram, "pinned": pinnedProgram, "memory operations": memOpsProgram, "contexts": contextsProgram,
}

// TestEveryCallFails has each driver call that the programs make fail in its turn: an error comes back that is the fault's, or the
// program gets by without that call; nothing hangs, each function that was queued is told of once, and nothing is left.
func TestEveryCallFails(t *testing.T) {
	everyCall(t, softcuda.Fault{Result: cuda.ErrOperatingSystem}, 0)
}

// TestEveryCallLoses has the device be lost at each driver call in its turn.
func TestEveryCallLoses(t *testing.T) {
	for _, seed := range []uint64{0, 3} {
		everyCall(t, softcuda.Fault{Result: cuda.ErrECCUncorrectable, Lose: true}, seed)
	}
}

// everyCall has each call that the programs make struck by a fault. A seed is the device's.
func everyCall(t *testing.T, fault softcuda.Fault, seed uint64) {
	if raceDetector {
		t.Skip("a program whose wait has failed goes on beside what it waited for, which the race detector tells too")
	}
	most := 12 // of the calls of a kind
	if testing.Short() {
		most = 1
	}
	for name, run := range programs {
		t.Run(name, func(t *testing.T) {
			start := func(f *softcuda.Faults) error { return runProgram(t, f, seed, run) }
			if name == "spin" {
				start = func(f *softcuda.Faults) error { return runSpinning(t, f, run) }
			}
			f := new(softcuda.Faults)
			if err := start(f); err != nil {
				t.Fatalf("without faults: %v", err)
			}
			told, borne := 0, 0
			for call, n := range f.Counts() {
				for at := range min(n, most) {
					f, fault := new(softcuda.Faults), fault
					fault.Call, fault.After = call, at
					noErr(t, f.Add(fault))
					switch err := start(f); {
					case errors.Is(err, fault.Result):
						told++
					case err == nil:
						borne++
					default:
						t.Errorf("call %d of %s fails: %v", at+1, call, err)
					}
					if t.Failed() {
						t.Fatalf("at call %d of %s", at+1, call)
					}
				}
			}
			t.Logf("%d kinds of calls; %d failures told, %d borne", len(f.Counts()), told, borne)
		})
	}
}

// called is a program at work. It has the first error.
type called struct {
	*testing.T
	drv *cuda.Driver
	dev *cuda.Device
	err error

	mu     sync.Mutex
	queued int // functions of which an end must be told
	told   int
	later  error // what was told
}

// do notes err, if it is the first, and reports whether it is none.
func (p *called) do(errs ...error) bool {
	err := errors.Join(errs...)
	if p.err == nil {
		p.err = err
	}
	return err == nil
}

// done is an OnDone for each call that queues one function. It has to be told once if that succeeds, and never if not.
func (p *called) done() cuda.HostOption {
	return cuda.OnDone(p.tell)
}

func (p *called) tell(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told++
	p.later = errors.Join(p.later, err)
}

// queue notes err, of a call that has queued a function with done if it is none.
func (p *called) queue(err error) {
	if p.do(err) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.queued++
	}
}

// runProgram runs a program on a driver of its own, which it closes: where time is virtual, so that what hangs is found.
func runProgram(t *testing.T, f *softcuda.Faults, seed uint64, run func(*called)) (err error) {
	synctest.Test(t, func(t *testing.T) {
		o := calledOptions(f)
		o.Seed = seed
		p := &called{T: t, drv: softcuda.New(o, calledWith...)}
		err = p.run(run)
		synctest.Wait()
	})
	return err
}

// runSpinning runs one on a device whose mode Spin is the library's. It is in no bubble, where those who look for functions of mode Spin would keep time from going on.
func runSpinning(t *testing.T, f *softcuda.Faults, run func(*called)) error {
	drv, err := softcuda.NewSpinning(calledOptions(f), calledWith...)
	noErr(t, err)
	p := &called{T: t, drv: drv}
	return p.run(run)
}

func calledOptions(f *softcuda.Faults) softcuda.Options {
	return softcuda.Options{Faults: f, Kernels: testkernels.Twins(), Devices: 2, Memory: 64 << 20}
}

var calledWith = []cuda.Option{cuda.MaxHeldStreams(2), cuda.Logger(slog.New(slog.NewTextHandler(io.Discard, nil)))}

// run runs the program, closes the driver, and sees to what is left.
func (p *called) run(program func(*called)) error {
	p.dev, p.err = p.drv.Device(0)
	if p.dev != nil {
		program(p)
	}
	p.do(p.drv.Close())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told != p.queued {
		p.Errorf("%d functions were queued; the end of %d was told", p.queued, p.told)
	}
	if st := p.drv.Stats(); st != (cuda.Stats{}) {
		p.Errorf("left: %+v", st)
	}
	return errors.Join(p.err, p.later)
}
