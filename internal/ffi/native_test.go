//go:build linux && (amd64 || arm64)

package ffi

import (
	"bytes"
	"runtime"
	"runtime/pprof"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/hostlaunch/cuda/internal/native"
)

// The assembly of package native, called by C on threads of its own.

// cells are some cells with fn, and the list of those that have ended. They stay for good.
func cells(n int, fn, data uintptr) (*native.Ended, []native.Cell) {
	list, made := new(native.Ended), make([]native.Cell, n)
	for i := range made {
		made[i].Init(list, i+1)
		made[i].SetCall(fn, data)
	}
	keep = append(keep, list, made)
	return list, made
}

var keep []any

// counter is a number that C may write to: it is not on a stack, which moves.
func counter() *uint64 {
	n := new(uint64)
	keep = append(keep, n)
	return n
}

// collect counts the runs of the cells on the list.
func collect(list *native.Ended, made []native.Cell) (cells, runs int) {
	for at := list.Take(); at != 0; {
		c := &made[at-1]
		at = c.Next()
		runs += c.Collect()
		cells++
	}
	return cells, runs
}

func TestCellEntry(t *testing.T) {
	count := counter()
	list, made := cells(2, symbol(t, "aligned_add"), uintptr(unsafe.Pointer(count)))
	c := &made[1]
	call(t, "call_here", native.CellEntry(), c.Address(), 3)
	if *count != 0 || list.Any() {
		t.Errorf("%d runs though none was due", *count)
	}
	for range 5 {
		c.Expect()
	}
	call(t, "call_here", native.CellEntry(), c.Address(), 2)
	call(t, "call_without_frames", native.CellEntry(), c.Address(), 2)
	if *count != 4 || c.Due() != 1 || c.Begun() != 4 || c.Uncollected() != 4 {
		t.Errorf("%d runs of 5 expected and 4 called; %d due, %d begun, %d uncollected", *count, c.Due(), c.Begun(), c.Uncollected())
	}
	if cells, runs := collect(list, made); cells != 1 || runs != 4 {
		t.Errorf("collected %d runs of %d cells, want 4 of 1", runs, cells)
	}
	if !c.Take() || c.Take() {
		t.Error("the fifth run can be taken once")
	}
	call(t, "call_threads", native.CellEntry(), c.Address(), 10, 4) // as a driver may, of which a sweep knows nothing
	if *count != 4 || list.Any() {
		t.Error("ran after the run was taken")
	}
	checkNobodyInside(t)
	if n := call(t, "misaligned_calls"); n != 0 {
		t.Errorf("%d calls with a misaligned stack", n)
	}
}

// TestCellEntryAtOnce: many threads call, others take and collect. Every run goes one way.
func TestCellEntryAtOnce(t *testing.T) {
	const threads, each = 8, 2000
	count := counter()
	list, made := cells(3, symbol(t, "aligned_add"), uintptr(unsafe.Pointer(count)))
	var taken, runs atomic.Int64
	expected := 0
	for i := range made {
		for range threads * each {
			made[i].Expect()
			expected++
		}
	}
	stop := inBackground(func() {
		_, n := collect(list, made)
		runs.Add(int64(n))
		for i := range made {
			if taken.Load() < int64(expected/2) && made[i].Take() { // the rest is for the threads, however late they begin
				taken.Add(1)
			}
		}
		runtime.Gosched()
	})
	for i := range made {
		call(t, "call_threads", native.CellEntry(), made[i].Address(), each, threads)
	}
	stop()
	_, rest := collect(list, made)
	left := 0
	for i := range made {
		left += made[i].Due()
	}
	ran := runs.Load() + int64(rest)
	if uint64(ran) != *count || int(ran+taken.Load())+left != expected || ran < int64(expected/2) {
		t.Errorf("%d expected: %d ran, %d collected, %d taken, %d left", expected, *count, ran, taken.Load(), left)
	}
	checkNobodyInside(t)
}

// TestCellEntryMarks: a Go function that a native one calls is inside, on threads of C and on the calling one; with more
// threads than there are slots, some are not recognised, and nothing else goes wrong.
func TestCellEntryMarks(t *testing.T) {
	var inside, outside atomic.Int32
	back := purego.NewCallback(func(uintptr) {
		if Inside() {
			inside.Add(1)
		} else {
			outside.Add(1)
		}
		if onAnotherGoroutine(Inside) {
			t.Error("inside in a goroutine that the function started")
		}
	})
	_, made := cells(1, back, 0)
	for range 1000 {
		made[0].Expect()
	}
	call(t, "call_here", native.CellEntry(), made[0].Address(), 20)
	call(t, "call_threads", native.CellEntry(), made[0].Address(), 10, 8)
	if inside.Load() != 100 || outside.Load() != 0 || Inside() {
		t.Errorf("%d times inside and %d outside, want 100 and 0", inside.Load(), outside.Load())
	}
	for slot := native.Mark(1); slot < native.MarkSlots; slot = native.Mark(1) {
		defer native.Unmark(slot)
	}
	call(t, "call_threads", native.CellEntry(), made[0].Address(), 10, 8)
	if inside.Load() != 100 || outside.Load() != 80 {
		t.Errorf("without a slot: %d times inside and %d outside, want 100 and 80", inside.Load(), outside.Load())
	}
}

// TestNativePreservesRegisters: what C expects to be left alone is.
func TestNativePreservesRegisters(t *testing.T) {
	count := counter()
	_, made := cells(1, symbol(t, "aligned_add"), uintptr(unsafe.Pointer(count)))
	src, dst := make([]byte, 3<<20), make([]byte, 3<<20)
	for i := range 10 {
		made[0].Expect()
		for _, n := range []int{0, 1, 10, 17, 33, 100, 200, 1000, 3 << 20} {
			args := copyArgs(dst[:n], src[:n], 0)
			if call(t, "preserves", native.CopyFunc(), uintptr(unsafe.Pointer(args))) != 1 {
				t.Fatalf("callee-saved registers changed in a copy of %d bytes", n)
			}
		}
		if call(t, "preserves", native.PartsFunc(), uintptr(unsafe.Pointer(oneRow(dst, src)))) != 1 || dst[9] != src[9] {
			t.Fatal("callee-saved registers changed in a turn at a board, or nothing was copied")
		}
		if call(t, "preserves", native.CellEntry(), made[0].Address()) != 1 || *count != uint64(i+1) {
			t.Fatal("callee-saved registers changed in the entry")
		}
	}
}

// oneRow is a turn at a board with one part, a row of ten bytes.
func oneRow(dst, src []byte) *native.Work {
	word, left, board := new(atomic.Uint32), new(native.Left), new(native.Board)
	left.Parts.Store(1)
	src[9]++
	q := native.NewQueue(uintptr(unsafe.Pointer(word)))
	q.Put(&native.Part{
		Dst: uintptr(unsafe.Pointer(&dst[0])), Src: uintptr(unsafe.Pointer(&src[0])), N: 10, Rows: 1,
		Left: uintptr(unsafe.Pointer(left)), Release: uintptr(unsafe.Pointer(word)), ReleaseValue: 1,
	})
	board.Set([]*native.Queue{q})
	w := &native.Work{Board: uintptr(unsafe.Pointer(board)), Looks: 10}
	keep = append(keep, w, board, q, left, word, dst, src)
	return w
}

func copyArgs(dst, src []byte, from uintptr) *native.CopyArgs {
	args := &native.CopyArgs{
		Dst: uintptr(unsafe.Pointer(unsafe.SliceData(dst))), Src: uintptr(unsafe.Pointer(unsafe.SliceData(src))), N: uintptr(len(src)), StreamFrom: from,
	}
	keep = append(keep, args, dst, src)
	return args
}

// TestCopyFunc: the copy on C's threads, large and small, overlapping and not, by way of a cell and without.
func TestCopyFunc(t *testing.T) {
	defer func() { keep = nil }()
	for _, n := range []int{0, 1, 15, 64, 300, 4097, 1<<20 + 3, 5 << 20} {
		for _, from := range []uintptr{0, 1, 1 << 40} {
			for _, at := range [][2]int{{0, n + 8}, {n + 8, 0}, {3, 0}, {0, 5}, {n / 2, 0}} {
				got := make([]byte, 2*n+16)
				for i := range got {
					got[i] = byte(i*5 + i>>8)
				}
				want := bytes.Clone(got)
				copy(want[at[0]:at[0]+n], want[at[1]:at[1]+n])
				args := uintptr(unsafe.Pointer(copyArgs(got[at[0]:at[0]+n], got[at[1]:at[1]+n], from)))
				if n%2 == 0 {
					call(t, "call_threads", native.CopyFunc(), args, 1, 1)
				} else {
					list, made := cells(1, native.CopyFunc(), args)
					made[0].Expect()
					call(t, "call_threads", native.CellEntry(), made[0].Address(), 1, 1)
					if _, runs := collect(list, made); runs != 1 {
						t.Errorf("%d runs ended, want 1", runs)
					}
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("%d bytes, streaming from %d, offsets %v: the bytes differ", n, from, at)
				}
			}
		}
	}
}

// TestNativeUnderProfiler: signals that find a thread in the assembly do no harm.
func TestNativeUnderProfiler(t *testing.T) {
	var profile bytes.Buffer
	if err := pprof.StartCPUProfile(&profile); err != nil {
		t.Skip(err) // another profile is being taken
	}
	defer pprof.StopCPUProfile()
	stop := inBackground(runtime.GC)
	defer stop()
	src, dst := make([]byte, 1<<20), make([]byte, 1<<20)
	_, made := cells(1, native.CopyFunc(), uintptr(unsafe.Pointer(copyArgs(dst, src, 1))))
	for range 8 * 500 {
		made[0].Expect()
	}
	call(t, "call_threads", native.CellEntry(), made[0].Address(), 500, 8)
	if n := made[0].Due(); n != 0 {
		t.Errorf("%d runs are left", n)
	}
}

// TestNativeCall: package native calls C where this package is linked.
func TestNativeCall(t *testing.T) {
	count := counter()
	fn := symbol(t, "aligned_add")
	if !native.Callable(fn, 0) || !native.Call(fn, uintptr(unsafe.Pointer(count))) || *count != 1 {
		t.Errorf("counted %d, want 1", *count)
	}
}

func BenchmarkCellEntry(b *testing.B) {
	list, made := cells(1, symbol(b, "host_nop"), 0)
	for range b.N {
		made[0].Expect()
	}
	b.ResetTimer()
	call(b, "call_here", native.CellEntry(), made[0].Address(), uintptr(b.N))
	b.StopTimer()
	collect(list, made)
}
