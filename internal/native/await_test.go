//go:build linux && (amd64 || arm64)

package native

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

func TestAwait(t *testing.T) {
	word := new(atomic.Uint32)
	at := uintptr(unsafe.Pointer(word))
	for _, c := range []struct {
		word, value uint32
		reached     bool
	}{{0, 0, true}, {0, 1, false}, {1, 1, true}, {5, 1, true}, {1<<32 - 1, 0, false}, {0, 1<<32 - 1, true}, {1 << 31, 1, true}, {1 << 31, 0, false}, {3, 7, false}} {
		word.Store(c.word)
		a := &Await{Word: at, Value: c.value, Tries: 10}
		awaitGo(a)
		if want := map[bool]uint64{true: 10}[c.reached]; a.Tries != want {
			t.Errorf("%#x for %#x: %d looks left, want %d", c.word, c.value, a.Tries, want)
		}
	}
	if AwaitFunc() == 0 {
		t.Error("no address")
	}
}

// TestAwaitCalls has it call itself, with a look at another word behind the first.
func TestAwaitCalls(t *testing.T) {
	words := new([2]atomic.Uint32)
	inner := &Await{Word: uintptr(unsafe.Pointer(&words[1])), Value: 9}
	outer := &Await{Word: uintptr(unsafe.Pointer(&words[0])), Value: 3, Fn: AwaitFunc(), Data: uintptr(unsafe.Pointer(inner))}
	for _, c := range []struct {
		first, second uint32
		left          [2]uint64
	}{{2, 9, [2]uint64{0, 5}}, {3, 8, [2]uint64{5, 0}}, {3, 9, [2]uint64{5, 5}}} {
		words[0].Store(c.first)
		words[1].Store(c.second)
		outer.Tries, inner.Tries = 5, 5
		awaitGo(outer)
		if left := [2]uint64{outer.Tries, inner.Tries}; left != c.left {
			t.Errorf("%d and %d: %d looks left, want %d", c.first, c.second, left, c.left)
		}
	}
}

// TestAwaitWaits: a word that is written meanwhile is seen.
func TestAwaitWaits(t *testing.T) {
	word := new(atomic.Uint32)
	a := &Await{Word: uintptr(unsafe.Pointer(word)), Value: 1}
	time.AfterFunc(time.Millisecond, func() { word.Store(1) })
	for start := time.Now(); a.Tries == 0; runtime.Gosched() {
		if time.Since(start) > 10*time.Second {
			t.Fatal("never seen")
		}
		a.Tries = 1000 // a goroutine in it cannot be interrupted
		awaitGo(a)
	}
}
