package native

import (
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
)

var counted [2]atomic.Int64

// counting is a function that counts its calls.
var counting = func() uintptr {
	fn := uintptr(unsafe.Pointer(&counted))
	Twin(fn, func(data uintptr) { counted[data].Add(1) })
	return fn
}()

// TestCell: a run is taken once, by the entry or by Take, and what has ended is found on the list, with its number of runs.
func TestCell(t *testing.T) {
	var list Ended
	var cells [3]Cell
	counted[0].Store(0)
	for i := range cells {
		cells[i].Init(&list, i+1)
		cells[i].SetCall(counting, 0)
	}
	call := func(c *Cell) { Call(CellEntry(), c.Address()) }
	call(&cells[0])
	if counted[0].Load() != 0 || list.Any() {
		t.Error("ran though nothing was due")
	}
	cells[0].Expect()
	if cells[0].Due() != 1 || !cells[0].Take() || cells[0].Take() || cells[0].Due() != 0 {
		t.Error("one run was expected; it can be taken once")
	}
	call(&cells[0])
	for range 3 {
		cells[0].Expect()
		call(&cells[0])
	}
	cells[2].Expect()
	call(&cells[2])
	call(&cells[2])
	if n := counted[0].Load(); n != 4 || cells[0].Begun() != 3 || cells[0].Uncollected() != 3 || cells[1].Begun() != 0 {
		t.Errorf("%d runs, want 4; cell 0: %d begun, %d uncollected", n, cells[0].Begun(), cells[0].Uncollected())
	}
	got := map[int]int{}
	for at := list.Take(); at != 0; {
		c := &cells[at-1]
		next := c.Next()
		got[at] += c.Collect()
		at = next
	}
	if len(got) != 2 || got[1] != 3 || got[3] != 1 || list.Any() {
		t.Errorf("collected %v, want 3 runs of cell 1 and 1 of cell 3", got)
	}
}

// TestCellAtOnce: runs, takes and collecting, all at once: every run goes one way.
func TestCellAtOnce(t *testing.T) {
	const runners, each = 4, 5000
	var list Ended
	cells := make([]Cell, 3)
	counted[1].Store(0)
	for i := range cells {
		cells[i].Init(&list, i+1)
		cells[i].SetCall(counting, 1)
	}
	var taken, collected atomic.Int64
	var work sync.WaitGroup
	for r := range runners {
		work.Go(func() {
			for i := range each {
				c := &cells[(r+i)%len(cells)]
				c.Expect()
				if i%5 == 0 && c.Take() {
					taken.Add(1)
				}
				Call(CellEntry(), c.Address())
			}
		})
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	collect := func() {
		for at := list.Take(); at != 0; {
			c := &cells[at-1]
			at = c.Next()
			collected.Add(int64(c.Collect()))
		}
	}
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				collect()
			}
		}
	}()
	work.Wait()
	close(stop)
	<-stopped
	for i := range cells { // what somebody took in place of a run
		for cells[i].Due() > 0 {
			Call(CellEntry(), cells[i].Address())
		}
	}
	collect()
	if n := counted[1].Load(); n+taken.Load() != runners*each || collected.Load() != n {
		t.Errorf("%d expected: %d ran, %d taken, %d collected", runners*each, n, taken.Load(), collected.Load())
	}
}

// TestCallable: what has no twin cannot be called by a program that does not call C; nor can a cell with such a function.
func TestCallable(t *testing.T) {
	var list Ended
	var c Cell
	c.Init(&list, 1)
	c.SetCall(12345, 0)
	if Callable(12345, 0) || Callable(CellEntry(), c.Address()) || Call(12345, 0) {
		t.Error("an address that nothing is known of can be called")
	}
	c.SetCall(CopyFunc(), 0)
	if !Callable(CopyFunc(), 0) || !Callable(CellEntry(), c.Address()) {
		t.Error("CopyFunc cannot be called")
	}
	from, to := [3]byte{1, 2, 3}, [3]byte{}
	args := &CopyArgs{Dst: uintptr(unsafe.Pointer(&to)), Src: uintptr(unsafe.Pointer(&from)), N: 3}
	if !Call(CopyFunc(), uintptr(unsafe.Pointer(args))) || to != from {
		t.Errorf("copied %v", to)
	}
}
