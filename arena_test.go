package cuda

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// testArena takes its memory from Go, at most most bytes of it.
func testArena(limit, segment, most uintptr) (*arena, map[unsafe.Pointer]uintptr) {
	taken := map[unsafe.Pointer]uintptr{}
	total := uintptr(0)
	return &arena{limit: limit, segment: segment, take: func(n uintptr) (unsafe.Pointer, driver.Result) {
		if total+n > most {
			return nil, driver.ErrorOutOfMemory
		}
		total += n
		p := unsafe.Pointer(unsafe.SliceData(make([]byte, n)))
		taken[p] = n
		return p, driver.Success
	}}, taken
}

// TestArena hands random pieces out and takes them back: none overlaps another, or reaches over the end of a segment.
func TestArena(t *testing.T) {
	const limit = 64 * arenaUnit
	a, segments := testArena(limit, 16*arenaUnit, limit)
	r := rand.New(rand.NewPCG(1, 2))
	out := map[unsafe.Pointer]uintptr{}
	used := uintptr(0)
	for range 20_000 {
		if r.IntN(2) == 0 {
			for p, n := range out {
				a.put(p, n)
				used -= roundUp(n, arenaUnit)
				delete(out, p)
				break
			}
			continue
		}
		n := 1 + uintptr(r.IntN(12*arenaUnit))
		p, _ := a.get(n)
		if p == nil {
			continue
		}
		checkPiece(t, p, n, out, segments)
		out[p] = n
		if used += roundUp(n, arenaUnit); used > limit || a.room() != limit-used {
			t.Fatalf("%d bytes are out, room for %d", used, a.room())
		}
	}
	for p, n := range out {
		a.put(p, n)
	}
	if len(a.free) != len(segments) || len(segments) != 4 || a.size() != limit || a.room() != limit {
		t.Errorf("%d free spans, %d segments, size %d", len(a.free), len(segments), a.size())
	}
}

func checkPiece(t *testing.T, p unsafe.Pointer, n uintptr, out, segments map[unsafe.Pointer]uintptr) {
	t.Helper()
	within := false
	for at, size := range segments {
		within = within || uintptr(p) >= uintptr(at) && uintptr(p)+n <= uintptr(at)+size
	}
	if !within {
		t.Fatal("a piece lies in no segment")
	}
	for at, size := range out {
		if uintptr(p) < uintptr(at)+size && uintptr(at) < uintptr(p)+n {
			t.Fatal("two pieces overlap")
		}
	}
}

// TestArenaRefused: what the driver does not give is asked for by halves, down to what is needed, and no more is counted than it
// gave.
func TestArenaRefused(t *testing.T) {
	a, _ := testArena(64*arenaUnit, 32*arenaUnit, 11*arenaUnit)
	p, r := a.get(3 * arenaUnit)
	if p == nil || r != driver.Success || a.size() != 8*arenaUnit {
		t.Fatalf("%v, %d, size %d", p, r, a.size())
	}
	if q, r := a.get(6 * arenaUnit); q != nil || r != driver.ErrorOutOfMemory || a.size() != 8*arenaUnit {
		t.Errorf("%v, %d, size %d", q, r, a.size())
	}
	changed := a.changed()
	a.put(p, 3*arenaUnit)
	select {
	case <-changed:
	default:
		t.Error("nobody is told that memory is free")
	}
	given := 0
	if r := a.drop(func(unsafe.Pointer) driver.Result { given++; return driver.Success }); r != driver.Success || given != 1 {
		t.Errorf("%d, %d segments given back", r, given)
	}
	if p, _ := a.get(1); p != nil {
		t.Error("memory after the end")
	}
	a.put(unsafe.Pointer(&given), 1) // a block that comes back late
	if p, _ := a.get(1); p != nil {
		t.Error("memory that came back after the end was handed out")
	}
}
