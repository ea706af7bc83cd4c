package cuda

import (
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

// TestHolder: the cells of contexts that may go before the Driver are the primary context's, for the spinner may look at a cell at any
// time.
func TestHolder(t *testing.T) {
	primary := refusingStream(t, &refusing{}).ctx
	for name, c := range map[string]*Context{
		"primary": primary,
		"own":     {drv: primary.drv, own: true},
		"green":   {drv: primary.drv, green: new(resource)},
	} {
		if c.holder() != primary {
			t.Errorf("%s: the cells are not the primary context's", name)
		}
	}
}

// TestSignalAndHold: the signal comes first and the hold last, what is between them goes where nobody looks, and cells do not overlap.
func TestSignalAndHold(t *testing.T) {
	var got []driver.MemOp
	d := &batches{batch: func(ops []driver.MemOp) { got = ops }}
	c := &Context{drv: &Driver{drv: d}}
	held := heldRound{&holdCell{at: 1 << 20}, 5}
	for _, fillers := range []int{0, fillersOfFunc, fillersOfTask} {
		held.signalAndHold(c, 0, spinSignal{1 << 30, 9}, fillers)
		last := len(got) - 1
		if len(got) != 2+fillers || got[0] != (driver.MemOp{Op: driver.MemOpWrite32, Address: 1 << 30, Value: 9}) ||
			got[last] != (driver.MemOp{Op: driver.MemOpWait32, Address: 1<<20 + releaseOffset, Value: 5, Flags: driver.WaitValueGEQ}) {
			t.Fatalf("%d fillers: %+v", fillers, got)
		}
		for _, op := range got[1:last] {
			if word := op.Address - 1<<20; op.Op != driver.MemOpWrite32 || word%64 != 0 || word == 0 || word == releaseOffset || word+4 > cellSize {
				t.Errorf("%d fillers: one is %+v", fillers, op)
			}
		}
	}
}
