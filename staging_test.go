package cuda

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// TestLeaseCaps: whoever comes first has a good part of the memory, eight have enough of it, and a hundred have some.
func TestLeaseCaps(t *testing.T) {
	tune := newStagingTune()
	limit := tune.ring
	free, leases := limit, 0
	var caps []uintptr
	for {
		most := leaseCap(limit, free, leases == 0)
		if most > free {
			break
		}
		free, leases, caps = free-most, leases+1, append(caps, most)
	}
	if caps[0] < 3*tune.chunk {
		t.Errorf("the first has %d bytes, no three slots of %d", caps[0], tune.chunk)
	}
	const nearly = 4 << 20 // slots of that nearly reach the link
	if caps[7] < 3*nearly {
		t.Errorf("the eighth has %d bytes, no three slots of %d", caps[7], nearly)
	}
	if leases < 100 || caps[leases-1] < 128<<10 {
		t.Errorf("%d leases, the last of %d bytes", leases, caps[leases-1])
	}
}

// TestStaleWord: what a former lease's chunk has told, or is yet to tell, says nothing about a later lease's; counters may wrap.
func TestStaleWord(t *testing.T) {
	for _, start := range []uint32{0, 7, 1<<32 - 2} {
		pair := &wordPair{device: new(atomic.Uint32), host: new([mostSlots]atomic.Uint32), next: start}
		pair.host[1].Store(start + 1<<31) // as old as can be
		pair.begin()
		l := &lease{pair: pair, start: start, first: start, slots: make([]unsafe.Pointer, 2)}
		for i := range uint32(5) {
			g := start + i
			for _, toHost := range []bool{true, false} {
				at := l.readyAt(&chunk{job: &stagedCopy{toHost: toHost}}, g)
				if want := map[bool]uint32{true: g + 1, false: start + max(i, 1) - 1}[toHost]; at != want {
					t.Errorf("start %d, chunk %d, to the host %v: ready at %d, want %d", start, i, toHost, at, want)
				}
			}
			if w := &pair.host[l.slotOf(g)]; reached(w, g+1) {
				t.Errorf("start %d, chunk %d: copied before it is, by %d", start, i, w.Load())
			} else {
				w.Store(g + 1)
			}
		}
	}
}

// TestFollow: a lease goes on where the chunks' numbers wrap. Each chunk has the slot that it would have had, and waits for the chunk
// before it there.
func TestFollow(t *testing.T) {
	const start, slots = 1<<32 - 5, 3
	st, job := &staging{}, &stagedCopy{}
	l := &lease{start: start, first: start, slots: make([]unsafe.Pointer, slots)}
	st.leases = []*lease{l}
	for passed := uint64(0); passed < 3<<32; passed += 1<<29 + 1 {
		l.first = start + uint32(passed)
		if st.take(func(*lease) bool { return true }) != l {
			t.Fatal("not taken")
		}
		l.queues = false
		for i := range uint64(5) {
			g := l.first + uint32(i)
			if got, want := l.slotOf(g), int((passed+i)%slots); got != want {
				t.Fatalf("%d chunks on: slot %d, want %d", passed+i, got, want)
			}
			if at := l.readyAt(&chunk{job: job}, g); passed > 0 && at != g-slots+1 {
				t.Fatalf("%d chunks on: ready at %d, want %d", passed+i, at, g-slots+1)
			}
		}
	}
}

// TestWaits: the device waits for a slot before it fills it again, or reads it, and at the end for the last chunk of each slot.
func TestWaits(t *testing.T) {
	pair := &wordPair{device: new(atomic.Uint32), host: new([mostSlots]atomic.Uint32), next: 10}
	l := &lease{pair: pair, start: 10, slots: make([]unsafe.Pointer, 3)}
	check := func(what string, ops []driver.MemOp, want ...uint32) {
		t.Helper()
		if len(ops) != len(want) {
			t.Fatalf("%s: %d waits, want %d", what, len(ops), len(want))
		}
		for i, op := range ops {
			if op.Address != place(&pair.host[(want[i]-10)%3]) || op.Value != uint64(want[i]+1) || op.Op != driver.MemOpWait32 {
				t.Errorf("%s: wait %d is %+v, want one for chunk %d", what, i, op, want[i])
			}
		}
	}
	check("to the host, the first chunks", l.waitsEmptied(12, nil))
	check("to the host", l.waitsEmptied(13, nil), 10)
	check("to the device", []driver.MemOp{l.waitHost(13)}, 13)
	check("the end of two", l.waitsAll(14, 15), 14, 15)
	check("the end of many", l.waitsAll(10, 15), 13, 14, 15)
}

// batches is a driver that takes memory operations, of streams that do nothing.
type batches struct {
	driver.Driver
	batch func([]driver.MemOp)
}

func (b *batches) StreamBatchMemOp(_ driver.Context, _ driver.Stream, ops []driver.MemOp, _ uint32) driver.Result {
	b.batch(ops)
	return driver.Success
}

// TestChunksBeforeWaits: whatever a copy has the device wait for, the workers have it before; and with a single slot, what they wait for
// themselves has been queued as well. So a call that the driver holds up until a wait is over comes to its end.
func TestChunksBeforeWaits(t *testing.T) {
	for slots := 1; slots <= 4; slots++ {
		for _, toHost := range []bool{true, false} {
			pair := &wordPair{device: new(atomic.Uint32), host: new([mostSlots]atomic.Uint32), next: 7}
			pair.begin()
			l := &lease{pair: pair, start: 7, first: 7, told: 7, slots: make([]unsafe.Pointer, slots), size: 1000, queues: true}
			d := &batches{}
			st := &staging{ctx: &Context{drv: &Driver{drv: d}}, tune: newStagingTune(), leases: []*lease{l}, workers: 99}
			st.tune.least = 100
			memory := make([]byte, 5000)
			job := &stagedCopy{st: st, toHost: toHost, host: rows{unsafe.Pointer(&memory[0]), 5000, 5000, 1}, open: 1}
			waits := 0
			d.batch = func(ops []driver.MemOp) {
				for _, op := range ops {
					g := uint32(op.Value) - 1
					if op.Op != driver.MemOpWait32 {
						continue
					}
					waits++
					if int32(pair.next-g) <= 0 || len(l.chunks) != int(pair.next-7) {
						t.Fatalf("%d slots, to the host %v: a wait for chunk %d of %d that the workers have", slots, toHost, g, len(l.chunks))
					}
					if need := l.readyAt(l.chunks[g-7], g); int32(l.told-need) < 0 {
						t.Fatalf("%d slots, to the host %v: a wait for chunk %d, which waits for %d of %d", slots, toHost, g, need, l.told)
					}
				}
			}
			if r := st.queue(&Stream{ctx: st.ctx}, l, job, func(unsafe.Pointer, uintptr, uintptr) driver.Result { return driver.Success }); r != driver.Success {
				t.Fatal(r)
			}
			if last := pair.next; waits == 0 || l.told != last {
				t.Errorf("%d slots, to the host %v: %d waits, told %d of %d", slots, toHost, waits, l.told, last)
			}
		}
	}
}

// BenchmarkStageCall is what the call for a copy of 1 GiB takes without what the driver takes.
func BenchmarkStageCall(b *testing.B) {
	memory := make([]byte, 1<<30)
	for _, toHost := range []bool{true, false} {
		b.Run(fmt.Sprintf("toHost=%v", toHost), func(b *testing.B) {
			pair := &wordPair{device: new(atomic.Uint32), host: new([mostSlots]atomic.Uint32)}
			st := &staging{ctx: &Context{drv: &Driver{drv: &batches{batch: func([]driver.MemOp) {}}}}, tune: newStagingTune(), workers: 99}
			for b.Loop() {
				pair.begin()
				pair.queue.Seize()
				l := &lease{pair: pair, start: pair.next, first: pair.next, told: pair.next, slots: make([]unsafe.Pointer, 3), size: st.tune.chunk, queues: true}
				st.leases = []*lease{l}
				job := &stagedCopy{st: st, toHost: toHost, host: rows{unsafe.Pointer(&memory[0]), 1 << 30, 1 << 30, 1}, open: 1}
				st.queue(&Stream{ctx: st.ctx}, l, job, func(unsafe.Pointer, uintptr, uintptr) driver.Result { return driver.Success })
			}
		})
	}
}

// TestEmptying: a copy to the device does not get a slot's part into the queue while the host empties the slot for the copy before; nor
// does anything behind it. Counters may wrap.
func TestEmptying(t *testing.T) {
	st := &staging{tune: newStagingTune()}
	for _, start := range []uint32{0, 1<<32 - 2} {
		pair := &wordPair{device: new(atomic.Uint32), host: new([mostSlots]atomic.Uint32), next: start}
		pair.begin()
		l := &lease{pair: pair, start: start, first: start, slots: make([]unsafe.Pointer, 2), size: 4096}
		down, up := &stagedCopy{toHost: true, host: rows{nil, 16, 16, 2}}, &stagedCopy{host: rows{nil, 16, 16, 3}}
		for i, job := range []*stagedCopy{down, down, up, up, up} {
			l.chunks = append(l.chunks, &chunk{job: job, slot: i % 2, n: 16})
		}
		check := func(what string, fed int) {
			t.Helper()
			st.feed(l)
			if queued := pair.queue.Tail.Load(); l.fed != fed || queued != uint64(fed) {
				t.Errorf("start %d, %s: %d chunks fed and %d parts queued, want %d", start, what, l.fed, queued, fed)
			}
		}
		check("both slots full", 2)
		l.chunks[1].left.Over.Store(1)
		check("the second is empty", 2)
		l.chunks[0].left.Over.Store(1)
		check("both are empty", 5)
	}
}

func TestStagingVariable(t *testing.T) {
	t.Setenv(stagingVariable, "chunk=8M,threads=3,threadsup=5,each=64K,least=100K,ring=1000,bad=1,slots=x,small=0")
	got := newStagingTune()
	t.Setenv(stagingVariable, "")
	want := newStagingTune()
	want.chunk, want.threadsDown, want.threadsUp, want.each, want.least, want.ring, want.small = 8<<20, 3, 5, 64<<10, 100<<10, arenaUnit, 0
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestCuts: the chunks of a copy are all of it, none is larger than a slot, those to the device begin small and those to the host
// end small; rows are not torn unless they are longer than a slot.
func TestCuts(t *testing.T) {
	st := &staging{tune: newStagingTune()}
	for _, n := range []uintptr{1, 4096, 1 << 20, 100<<20 + 1, 1 << 30} {
		for _, toHost := range []bool{true, false} {
			l := &lease{size: st.tune.slotFor(n)}
			sizes := cutAll(t, st, l, &stagedCopy{toHost: toHost, host: rows{nil, n, n, 1}})
			edge := sizes[0]
			if toHost {
				edge = sizes[len(sizes)-1]
			}
			if edge > st.tune.least || len(sizes) > int(n/l.size)+16 {
				t.Errorf("%d bytes, to the host %v: %d chunks: %v", n, toHost, len(sizes), sizes)
			}
		}
	}
	for _, r := range []rows{{nil, 100, 200, 1000}, {nil, 70_000, 70_001, 5}} {
		l := &lease{size: 64 << 10}
		for _, n := range cutAll(t, st, l, &stagedCopy{toHost: true, host: r}) {
			if n%r.width != 0 && r.width < l.size {
				t.Errorf("%+v: a chunk of %d bytes", r, n)
			}
		}
	}
}

func cutAll(t *testing.T, st *staging, l *lease, job *stagedCopy) (sizes []uintptr) {
	t.Helper()
	for off := uintptr(0); off < job.host.bytes(); {
		n := st.cut(l, job, off)
		if n == 0 || n > l.size || n > job.host.bytes()-off {
			t.Fatalf("a chunk of %d bytes at %d of %d, slots of %d", n, off, job.host.bytes(), l.size)
		}
		off, sizes = off+n, append(sizes, n)
	}
	return sizes
}

// TestBell: a worker that looks from time to time, since the copies there are have long been waiting, wakes for what is added.
func TestBell(t *testing.T) {
	st := &staging{bell: make(chan struct{}, 1), workers: 1, pausing: 1}
	woken := make(chan bool, 1)
	go func() { woken <- st.pause(time.Hour) }()
	st.hire(1)
	select {
	case added := <-woken:
		if !added || st.pausing != 0 {
			t.Errorf("added %v, %d pause", added, st.pausing)
		}
	case <-time.After(10 * time.Second):
		t.Error("it sleeps on")
	}
}

// TestPendingCopies: a driver that looks for failures only while something is pending is told of copies too.
func TestPendingCopies(t *testing.T) {
	s := refusingStream(t, &refusing{})
	s.ctx.copies.Add(1)
	if n := s.ctx.drv.pending(s.ctx.raw); n != 1 {
		t.Errorf("%d are pending, want the copy", n)
	}
	s.ctx.copies.Add(-1)
	if n := s.ctx.drv.pending(s.ctx.raw); n != 0 {
		t.Errorf("%d are pending", n)
	}
}
