package cuda

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// holdCell is a piece of pinned memory that a stream and the CPU tell each other by. A stream waits at a place until release is at
// the cell's round or beyond. Rounds only grow, so a cell is used again as soon as its round has been released. signal is what a
// stream tells the spinner by.
type holdCell struct {
	signal, release *atomic.Uint32
	at              driver.DevicePtr // of signal; release is releaseOffset further
	rounds          uint32           // begun
}

// The words of a cell are in cache lines of their own: the device writes the one while the CPU writes the other. Nobody reads the third.
const (
	releaseOffset = 64
	fillerOffset  = 128
	cellSize      = 192
	cellsOfChunk  = 512
)

// holdCells are the cells of a device's contexts; the primary one has them, which stays as long as the Driver, for the spinner may
// look at a cell at any time.
type holdCells struct {
	mu     sync.Mutex
	free   []*holdCell
	chunks []unsafe.Pointer
}

// heldRound is a cell in use: its round, which the next use of the cell does not change.
type heldRound struct {
	*holdCell
	round uint32
}

// holder is the context whose cells are used for c.
func (c *Context) holder() *Context {
	if dev := c.drv.opened(c.ordinal); (c.own || c.green != nil) && dev != nil {
		return dev.Context
	}
	return c
}

// holdRound takes a cell for c, at its next round.
func (c *Context) holdRound() (heldRound, driver.Result) {
	c = c.holder()
	p := &c.cells
	for {
		if cell := p.take(); cell != nil {
			cell.rounds++
			return heldRound{cell, cell.rounds}, driver.Success
		}
		if r := p.grow(c); r != driver.Success {
			return heldRound{}, r
		}
	}
}

func (p *holdCells) take() *holdCell {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.free) - 1
	if last < 0 {
		return nil
	}
	cell := p.free[last]
	p.free = p.free[:last]
	return cell
}

// grow allocates more cells.
func (p *holdCells) grow(c *Context) (r driver.Result) {
	var at unsafe.Pointer
	c.drv.relaxed(func() {
		at, r = c.drv.drv.MemHostAlloc(c.raw, cellsOfChunk*cellSize, driver.MemHostAllocPortable)
	})
	if r != driver.Success {
		return r
	}
	clear(unsafe.Slice((*byte)(at), cellsOfChunk*cellSize))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chunks = append(p.chunks, at)
	for i := range uintptr(cellsOfChunk) {
		cell := unsafe.Add(at, i*cellSize)
		p.free = append(p.free, &holdCell{
			signal: (*atomic.Uint32)(cell), release: (*atomic.Uint32)(unsafe.Add(cell, releaseOffset)), at: driver.DevicePtr(uintptr(cell)),
		})
	}
	return driver.Success
}

// drain frees the memory, at shutdown.
func (p *holdCells) drain(c *Context) {
	for _, at := range p.chunks {
		c.drv.drv.MemFreeHost(c.raw, at)
	}
	p.free, p.chunks = nil, nil
}

// giveBack lets the cell be used again, once its round has been released or if nothing waits for it.
func (h heldRound) giveBack(c *Context) {
	if h.holdCell == nil {
		return
	}
	p := &c.holder().cells
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, h.holdCell)
}

// hold has stream s wait until the round is released.
func (h heldRound) hold(c *Context, s driver.Stream) driver.Result {
	return c.drv.drv.StreamWaitValue32(c.raw, s, h.at+releaseOffset, h.round, driver.WaitValueGEQ)
}

// How long a stream that has signalled is kept from looking at its release, in fillers. An H200 that finds a wait unsatisfied looks
// once more, within 1.5 to 2 us of the signal, and then turns to something else: it comes back no sooner than 10 us later. Each
// filler, a write that nobody reads, puts that off by some 0.6 us. So they are as many as make up for the time that an answer usually
// takes (docs/results/2026-11-30-h200-tasks.md).
const (
	fillersOfFunc = 1 // it answers within 2 us
	fillersOfTask = 4 // within 4 us
)

// signalAndHold is hold behind a signal and fillers, in one call.
func (h heldRound) signalAndHold(c *Context, s driver.Stream, signal spinSignal, fillers int) driver.Result {
	var ops [2 + max(fillersOfFunc, fillersOfTask)]driver.MemOp
	ops[0] = driver.MemOp{Op: driver.MemOpWrite32, Address: signal.at, Value: uint64(signal.number)}
	for i := range fillers {
		ops[1+i] = driver.MemOp{Op: driver.MemOpWrite32, Address: h.at + fillerOffset}
	}
	ops[1+fillers] = driver.MemOp{Op: driver.MemOpWait32, Address: h.at + releaseOffset, Value: uint64(h.round), Flags: driver.WaitValueGEQ}
	return c.drv.drv.StreamBatchMemOp(c.raw, s, ops[:2+fillers], 0)
}

// letGo lets the stream go on, if it is held.
func (h heldRound) letGo(d *Driver) {
	if h.holdCell != nil {
		h.release.Store(h.round)
		d.drv.MemoryWritten()
	}
}
