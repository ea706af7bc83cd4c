//go:build linux && (amd64 || arm64)

package native

import (
	"runtime"
	"testing"
	"time"
	"unsafe"
)

// partRunners are the ways to take a turn.
func partRunners() map[string]func(*Work) {
	if raceEnabled { // which sees nothing of what native code does
		return map[string]func(*Work){"Go": RunParts}
	}
	return map[string]func(*Work){"Go": RunParts, "native": partsGo}
}

// TestPartsPark: a sleeper wakes when it is rung for, does not sleep if that was before, and gives up after its time.
func TestPartsPark(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector sees nothing of what native code does")
	}
	r, w := newPartsRig(1, 1000), &Work{Park: 1, Nanos: int64(5 * time.Millisecond)}
	start := time.Now()
	for r.work(partsGo, w); w.Outcome == WorkIdle; r.work(partsGo, w) { // a signal has woken it
		if start = time.Now(); t.Context().Err() != nil {
			t.Fatal("it never sleeps for 5 ms")
		}
	}
	if w.Outcome != WorkTimedOut || time.Since(start) < 5*time.Millisecond {
		t.Errorf("outcome %d after %v", w.Outcome, time.Since(start))
	}
	left := new(Left)
	left.Parts.Store(1)
	r.put(t, 0, left, 0, 100, 0, 1, nil)
	r.board.Bell.Add(1) // not what was seen
	if r.work(partsGo, w); w.Outcome != WorkIdle || w.Did != 1 {
		t.Errorf("outcome %d, %d parts", w.Outcome, w.Did)
	}
	if runtime.GOMAXPROCS(0) == 1 { // partsGo holds a P
		return
	}
	w.Seen, w.Seconds, w.Nanos = r.board.Bell.Load(), 10, 0
	slept := make(chan uint32)
	go func() {
		for r.work(partsGo, w); w.Outcome == WorkIdle && r.board.Bell.Load() == w.Seen; r.work(partsGo, w) {
		} // a signal has woken it
		slept <- w.Outcome
	}()
	for r.board.Sleepers.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(10 * time.Millisecond)
	Wake(r.board, 1)
	select {
	case outcome := <-slept:
		if outcome != WorkIdle || r.board.Sleepers.Load() != 0 {
			t.Errorf("woken: outcome %d, %d sleep", outcome, r.board.Sleepers.Load())
		}
	case <-time.After(5 * time.Second):
		t.Error("it sleeps on")
	}
}

var _ [128 - unsafe.Sizeof(Part{})]byte // the assembly shifts by 7
var _ [unsafe.Sizeof(Part{}) - 128]byte
