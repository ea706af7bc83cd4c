package native

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// partsRig is a board with queues, and chunks that are copied from src to dst.
type partsRig struct {
	board    *Board
	queues   []*Queue
	device   []*atomic.Uint32
	release  []*atomic.Uint32
	src, dst []byte
}

func newPartsRig(queues, n int) *partsRig {
	r := &partsRig{board: new(Board), src: make([]byte, n), dst: make([]byte, n)}
	for i := range r.src {
		r.src[i] = byte(i*7 + i>>8*13)
	}
	for range queues {
		word := new(atomic.Uint32)
		r.device, r.release = append(r.device, word), append(r.release, new(atomic.Uint32))
		r.queues = append(r.queues, NewQueue(uintptr(unsafe.Pointer(word))))
	}
	r.board.Set(r.queues)
	return r
}

// put queues a part.
func (r *partsRig) put(t *testing.T, q int, left *Left, off, n int, value, release uint32, change func(*Part)) {
	t.Helper()
	p := &Part{
		Dst: uintptr(unsafe.Pointer(&r.dst[off])), Src: uintptr(unsafe.Pointer(&r.src[off])), N: uintptr(n), Rows: 1, Bytes: uintptr(n),
		Left: uintptr(unsafe.Pointer(left)), Release: uintptr(unsafe.Pointer(r.release[q])), Value: value, ReleaseValue: release,
	}
	if change != nil {
		change(p)
	}
	if !r.queues[q].Put(p) {
		t.Fatal("no room")
	}
}

func (r *partsRig) work(run func(*Work), w *Work) *Work {
	w.Board, w.Looks = uintptr(unsafe.Pointer(r.board)), 100
	w.Did = 0
	run(w)
	return w
}

// TestParts: a part is copied when its word says so and not before; chunks are released with their last part, and reports made.
func TestParts(t *testing.T) {
	for name, run := range partRunners() {
		t.Run(name, func(t *testing.T) {
			r, w := newPartsRig(2, 4<<10), new(Work)
			left, second := new(Left), new(Left)
			left.Parts.Store(2)
			second.Parts.Store(1)
			var done atomic.Int64
			r.put(t, 1, left, 0, 100, 1, 7, func(p *Part) { p.Done = uintptr(unsafe.Pointer(&done)) })
			r.put(t, 1, left, 100, 1000, 1, 7, func(p *Part) { p.Flags = PartStream | PartReports })
			r.put(t, 1, second, 1100, 50, 2, 8, nil)
			if r.work(run, w); w.Did != 0 || w.Outcome != WorkIdle || r.dst[1] != 0 {
				t.Fatalf("before the word: %d parts, outcome %d", w.Did, w.Outcome)
			}
			r.device[1].Store(1)
			if r.work(run, w); w.Did != 2 || w.Outcome != WorkReport || left.Over.Load() != 1 || r.release[1].Load() != 7 || done.Load() != 100 {
				t.Fatalf("%d parts, outcome %d, over %d, released %d, %d bytes done", w.Did, w.Outcome, left.Over.Load(), r.release[1].Load(), done.Load())
			}
			if !bytes.Equal(r.dst[:1100], r.src[:1100]) || r.dst[1100] != 0 && r.src[1100] != 0 {
				t.Fatal("the bytes differ")
			}
			r.device[1].Store(1 << 31) // before 2, counted cyclically, by far
			if r.work(run, w); w.Did != 1 {
				r.device[1].Store(2)
				r.work(run, w)
			}
			if second.Over.Load() != 1 || r.release[1].Load() != 8 || !bytes.Equal(r.dst[:1150], r.src[:1150]) {
				t.Fatal("the second chunk is not copied")
			}
		})
	}
}

// TestPartsRows: rows lie apart on either side, and what is between them stays as it is.
func TestPartsRows(t *testing.T) {
	for name, run := range partRunners() {
		t.Run(name, func(t *testing.T) {
			r, left := newPartsRig(1, 10_000), new(Left)
			left.Parts.Store(1)
			r.put(t, 0, left, 0, 70, 0, 1, func(p *Part) { p.Rows, p.DstStep, p.SrcStep = 33, 200, 70 })
			r.work(run, new(Work))
			want := make([]byte, len(r.dst))
			for i := range 33 {
				copy(want[i*200:][:70], r.src[i*70:])
			}
			if !bytes.Equal(r.dst, want) || left.Over.Load() != 1 {
				t.Error("the rows differ")
			}
		})
	}
}

// TestPartsHome: a turn is over when as many parts of one queue are taken, also by others.
func TestPartsHome(t *testing.T) {
	for name, run := range partRunners() {
		t.Run(name, func(t *testing.T) {
			r, left, w := newPartsRig(1, 1000), new(Left), new(Work)
			left.Parts.Store(3)
			for i := range 3 {
				r.put(t, 0, left, i*100, 100, 0, 1, nil)
			}
			w.Home, w.Target = uintptr(unsafe.Pointer(r.queues[0])), 2
			if r.work(run, w); w.Did != 2 || w.Outcome != WorkHome {
				t.Errorf("%d parts, outcome %d", w.Did, w.Outcome)
			}
			if r.work(run, w); w.Did != 0 || w.Outcome != WorkHome {
				t.Errorf("%d more parts, outcome %d", w.Did, w.Outcome)
			}
		})
	}
}

// TestSeize: what nobody has taken is not copied and not released, and is over.
func TestSeize(t *testing.T) {
	r, left, other := newPartsRig(1, 1000), new(Left), new(Left)
	left.Parts.Store(2)
	other.Parts.Store(2)
	r.put(t, 0, left, 0, 10, 0, 1, nil)
	r.put(t, 0, left, 10, 10, 1, 1, nil)
	r.put(t, 0, other, 20, 10, 1, 1, nil)
	r.work(RunParts, new(Work))
	r.queues[0].Seize()
	r.device[0].Store(5)
	w := r.work(RunParts, new(Work))
	if w.Did != 0 || left.Over.Load() != 1 || other.Over.Load() != 0 || r.release[0].Load() != 0 {
		t.Errorf("%d parts, over %d and %d, released %d", w.Did, left.Over.Load(), other.Over.Load(), r.release[0].Load())
	}
	if other.Drop(1); other.Over.Load() != 1 {
		t.Error("the other chunk is not over")
	}
}

// TestPartsThreads: many threads and queues, many turns of the rings; each part is copied once, whoever takes it.
func TestPartsThreads(t *testing.T) {
	const queues, turns, size = 2, 60, 16
	for name, run := range partRunners() {
		t.Run(name, func(t *testing.T) {
			const parts = QueueParts * turns
			r := newPartsRig(queues, queues*parts*size)
			var done atomic.Int64
			var stop atomic.Bool
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for w := new(Work); !stop.Load(); runtime.Gosched() {
						r.work(run, w)
					}
				})
			}
			lefts := make([]Left, queues*parts)
			for i := range lefts {
				q, n := i%queues, i/queues
				lefts[i].Parts.Store(1)
				for r.queues[q].Tail.Load()-r.queues[q].Ticket.Load() == QueueParts {
					runtime.Gosched()
				}
				r.put(t, q, &lefts[i], i*size, size, uint32(n/2), uint32(n), func(p *Part) { p.Done = uintptr(unsafe.Pointer(&done)) })
				r.device[q].Store(uint32(n / 2))
			}
			for start := time.Now(); done.Load() < queues*parts*size && time.Since(start) < 20*time.Second; {
				runtime.Gosched()
			}
			stop.Store(true)
			wg.Wait()
			for i := range lefts {
				if lefts[i].Over.Load() != 1 {
					t.Fatalf("part %d is not over", i)
				}
			}
			if done.Load() != queues*parts*size || !bytes.Equal(r.dst, r.src) {
				t.Errorf("%d of %d bytes, equal %v", done.Load(), queues*parts*size, bytes.Equal(r.dst, r.src))
			}
		})
	}
}
