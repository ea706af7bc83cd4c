package cuda

import (
	"testing"
	"unsafe"
)

// pinnedMemory is not on a stack, which may move.
var pinnedMemory [1000]byte

func TestPinnedRanges(t *testing.T) {
	at := func(off int) unsafe.Pointer { return unsafe.Pointer(&pinnedMemory[off]) }
	var p pinnedRanges
	one, two := new(resource), new(resource)
	if p.add(at(100), 100, one) || p.add(at(200), 50, two) {
		t.Fatal("ranges side by side overlap")
	}
	for _, r := range [][2]int{{100, 100}, {0, 101}, {0, 1000}, {199, 1}, {150, 10}, {249, 100}, {200, 1}} {
		if !p.add(at(r[0]), r[1], new(resource)) {
			t.Errorf("%d bytes at %d do not overlap", r[1], r[0])
		}
	}
	for _, c := range []struct {
		off, n int
		want   *resource
	}{{100, 100, one}, {100, 1, one}, {199, 1, one}, {150, 0, one}, {200, 50, two}, {220, 30, two}, {199, 2, nil}, {99, 1, nil}, {99, 50, nil}, {250, 1, nil}, {220, 31, nil}, {0, 1000, nil}} {
		if got := p.find(hostRange{at(c.off), uintptr(c.n)}); got != c.want {
			t.Errorf("%d bytes at %d: the wrong range", c.n, c.off)
		}
	}
	p.remove(at(100))
	p.remove(at(101)) // no range's beginning
	if p.find(hostRange{at(150), 1}) != nil || p.find(hostRange{at(200), 1}) != two || p.add(at(50), 150, one) {
		t.Error("the wrong range was removed")
	}
}
