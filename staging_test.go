package cuda

import (
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// TestLeaseCaps: whoever comes first has a good part of the memory, eight have enough of it, and a hundred have some.
func TestLeaseCaps(t *testing.T) {
	const limit = 128 << 20
	tune := newStagingTune()
	free, leases := uintptr(limit), 0
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
	if leases < 100 || caps[leases-1] < 128<<10 {
		t.Errorf("%d leases, the last of %d bytes", leases, caps[leases-1])
	}
}

// TestStaleWord: what a former lease's chunk has told, or is yet to tell, says nothing about a later lease's; counters may wrap.
func TestStaleWord(t *testing.T) {
	for _, start := range []uint32{0, 7, 1<<32 - 2} {
		pair := &wordPair{device: new(atomic.Uint32), host: new(atomic.Uint32), next: start}
		pair.device.Store(start)
		l := &lease{pair: pair, start: start, first: start, copied: start, slots: make([]unsafe.Pointer, 2)}
		c := &chunk{job: &stagedCopy{toHost: true}}
		l.chunks = []*chunk{c, c, c}
		for i := range l.chunks {
			if l.ready(i, c) {
				t.Errorf("start %d: chunk %d is ready before the device has said so", start, i)
			}
			pair.device.Store(start + uint32(i) + 1)
			if !l.ready(i, c) {
				t.Errorf("start %d: chunk %d is not ready", start, i)
			}
		}
		pair.device.Store(start - 1) // stale
		if l.ready(0, c) {
			t.Errorf("start %d: a stale word makes a chunk ready", start)
		}
	}
}

// TestEarly: a piece is given out early only if it is of the chunk that the device is at, in the middle of a copy.
func TestEarly(t *testing.T) {
	for _, toHost := range []bool{true, false} {
		one, other := &stagedCopy{toHost: toHost}, &stagedCopy{toHost: toHost}
		pair := &wordPair{device: new(atomic.Uint32), host: new(atomic.Uint32)}
		st := &staging{tune: newStagingTune()}
		l := &lease{pair: pair, start: 0, first: 5, slots: make([]unsafe.Pointer, 2), last: one}
		for _, job := range []*stagedCopy{one, one, one, one, other, other} { // numbers 5 to 10
			l.chunks = append(l.chunks, &chunk{job: job, n: 10, left: 10})
		}
		behind := 0 // how many chunks the device must be through with before the one it is at
		if !toHost {
			behind = len(l.slots)
		}
		for i, c := range l.chunks {
			l.handed, c.given = i, 0
			at := 5 + uint32(i-behind) // the number of the chunk that it waits for
			pair.device.Store(at - 1)
			if _, ok := st.handEarly(l); ok {
				t.Errorf("to the host %v, chunk %d: given out two chunks too early", toHost, i)
			}
			pair.device.Store(at)
			p, ok := st.handEarly(l)
			middle := i >= behind && (i < 4 || i-behind != 4) && l.chunks[max(i-behind-1, 0)].job == c.job
			if ok != middle || ok && (!p.early || p.after != at+1 || p.c != c || c.out != 1) {
				t.Errorf("to the host %v, chunk %d: given out early %v, after %d", toHost, i, ok, p.after)
			}
		}
	}
}

func TestStagingVariable(t *testing.T) {
	t.Setenv(stagingVariable, "chunk=8M,threads=3,least=100K,ring=1000,bad=1,slots=x,small=0")
	got := newStagingTune()
	t.Setenv(stagingVariable, "")
	want := newStagingTune()
	want.chunk, want.threads, want.least, want.ring, want.small = 8<<20, 3, 100<<10, arenaUnit, 0
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

// TestBell: a worker that sleeps, since the copies there are have long been waiting, wakes for what is added.
func TestBell(t *testing.T) {
	st := &staging{bell: make(chan struct{}, 1), workers: 1, pausing: 1}
	woken := make(chan bool, 1)
	go func() { woken <- st.pause(time.Hour) }()
	st.mu.Lock()
	st.hire()
	st.mu.Unlock()
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
