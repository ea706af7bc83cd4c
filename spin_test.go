package cuda

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// spinless is a driver without a mode Spin of its own.
type spinless struct{ refusing }

func (*spinless) EmulateSpin() bool { return true }
func (*spinless) MemHostAlloc(_ driver.Context, n uintptr, _ uint32) (unsafe.Pointer, driver.Result) {
	return unsafe.Pointer(unsafe.SliceData(make([]uint64, n/8))), 0
}
func (*spinless) MemFreeHost(driver.Context, unsafe.Pointer) driver.Result { return 0 }

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

// TestSpinTakeWakes: who takes a function wakes somebody to look on only if nobody else does, for that takes long.
func TestSpinTakeWakes(t *testing.T) {
	before := runtime.GOMAXPROCS(4)
	defer runtime.GOMAXPROCS(before)
	for spinning, want := range map[int]int{1: 1, 2: 1} {
		sp, c, d := new(spinner), new(Context), new(Driver)
		l := &spinLane{cell: heldRound{&holdCell{signal: new(atomic.Uint32)}, 1}, funcs: map[uint32]spinFunc{1: {ctx: c}, 2: {ctx: c}, 3: {ctx: c}}}
		sp.lanes, sp.pending, sp.spinning = map[laneKey]*spinLane{{ctx: c}: l}, 3, spinning
		l.cell.signal.Store(1)
		if _, ok := sp.take(d, l); !ok {
			t.Fatal("not taken")
		}
		if looking := sp.looking(); looking != want {
			t.Errorf("%d looked: %d do afterwards, want %d", spinning, looking, want)
		}
		sp.fail(c) // whoever looks has nothing to look for
		for sp.looking() > spinning-1 {
			runtime.Gosched()
		}
	}
}

// looking is how many goroutines look.
func (sp *spinner) looking() int {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	return sp.spinning
}

// TestSpinAddRefused: HL-16, a function that finds no place in the table is refused with the reason, in either mode.
func TestSpinAddRefused(t *testing.T) {
	impl := new(spinless)
	s := refusingStream(t, &impl.refusing)
	s.ctx.drv.drv, s.ctx.concurrent = impl, true
	s.ctx.drv.funcs.Shut(&s.ctx.funcs)
	for _, mode := range []HostSyncMode{Block, Spin} {
		if err := HostLaunch(s, func() {}, SyncMode(mode)); !errors.Is(err, ErrOutOfMemory) {
			t.Errorf("mode %d: %v", mode, err)
		}
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
