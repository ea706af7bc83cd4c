package native

import (
	"sync/atomic"
	"unsafe"
)

// Cell is a native function that is to run: what a driver is handed instead of the function, with CellEntry. Its memory must
// not move, nor go as long as a driver may call the entry with it.
//
// The entry does not enter Go. It takes one of the runs that are due, calls the function, counts the end, and puts the cell on
// its list of ended ones, unless it is there. It does not touch the cell afterwards.
type Cell struct {
	state atomic.Uint64 // runs due in the low half, runs begun in the high half
	ended atomic.Uint64 // runs that have ended and were not collected; the cell is on the list if there are some
	fn    uintptr
	data  uintptr
	next  uintptr // of the list
	list  uintptr // address of an Ended
	index uintptr // in the list; never 0
	_     uintptr

	// Room is for the function's data, if it is small. It lies at a multiple of 16.
	Room [8]uint64
}

// Ended is a list of cells with runs that have ended. Cells are known to it by numbers that their owner gives them.
type Ended struct{ first atomic.Uintptr }

const (
	oneDue   = 1
	oneBegun = 1 << 32
	halfMask = 1<<32 - 1
)

// Init makes the cell number index of list's. Nothing is due. What the function is called with is set by SetCall.
func (c *Cell) Init(list *Ended, index int) {
	c.list, c.index = uintptr(unsafe.Pointer(list)), uintptr(index)
}

// SetCall says what is called. No run may be due.
func (c *Cell) SetCall(fn, data uintptr) { c.fn, c.data = fn, data }

// CallOf says what a cell calls, of which this is the address, while it waits to run.
func CallOf(address uintptr) (fn, data uintptr) {
	c := cellAt(address)
	return c.fn, c.data
}

// Address is the cell as the entry's argument.
func (c *Cell) Address() uintptr { return uintptr(unsafe.Pointer(c)) }

// Expect makes one more run due.
func (c *Cell) Expect() { c.state.Add(oneDue) }

// Take takes a run that is due, so that the entry does not. It reports false if there is none.
func (c *Cell) Take() bool {
	for {
		s := c.state.Load()
		if s&halfMask == 0 {
			return false
		}
		if c.state.CompareAndSwap(s, s-oneDue) {
			return true
		}
	}
}

// Due is how many runs are due.
func (c *Cell) Due() int { return int(c.state.Load() & halfMask) }

// Begun counts the runs that the entry has begun, modulo 1<<32.
func (c *Cell) Begun() uint32 { return uint32(c.state.Load() >> 32) }

// Collect returns how many runs have ended since the last time. It is called for a cell that was on the list and has been
// taken off, after Next.
func (c *Cell) Collect() int { return int(c.ended.Swap(0)) }

// Uncollected is how many runs have ended that Collect has not returned yet.
func (c *Cell) Uncollected() int { return int(c.ended.Load()) }

// Next is the number of the next cell of a list that was taken, or 0.
func (c *Cell) Next() int { return int(c.next) }

// Take empties the list and returns the number of its first cell, or 0.
func (l *Ended) Take() int {
	if l.first.Load() == 0 {
		return 0
	}
	return int(l.first.Swap(0))
}

// Any reports whether there is a cell on the list.
func (l *Ended) Any() bool { return l.first.Load() != 0 }

// run is the entry in Go.
func (c *Cell) run() {
	if !c.begin() {
		return
	}
	defer c.end() // also if the function calls back into Go, and that ends the goroutine
	Call(c.fn, c.data)
}

func (c *Cell) begin() bool {
	for {
		s := c.state.Load()
		if s&halfMask == 0 {
			return false
		}
		if c.state.CompareAndSwap(s, s-oneDue+oneBegun) {
			return true
		}
	}
}

func (c *Cell) end() {
	list := listAt(c.list)
	if c.ended.Add(1) > 1 {
		return
	}
	for {
		first := list.first.Load()
		c.next = first
		if list.first.CompareAndSwap(first, c.index) {
			return
		}
	}
}

// cellAt is the cell at an address that Cell.Address gave, and that has been a number since.
func cellAt(address uintptr) *Cell { return (*Cell)(pointer(address)) }

func listAt(address uintptr) *Ended { return (*Ended)(pointer(address)) }
