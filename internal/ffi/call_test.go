//go:build linux && (amd64 || arm64)

package ffi

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"
)

func TestDoPassesArgumentsInOrder(t *testing.T) {
	for n := range 13 {
		args := make([]uintptr, n)
		for i := range args {
			args[i] = 0xfedcba98_00000000 + uintptr(n)<<8 + uintptr(i)
		}
		if r := call(t, fmt.Sprint("take", n), args...); r != int32(n) {
			t.Errorf("take%d = %d (-1: misaligned stack)", n, r)
		}
		for i, want := range args {
			if got := seen(t, i); got != uint64(want) {
				t.Errorf("argument %d of %d = %#x, want %#x", i, n, got, want)
			}
		}
	}
}

// seen returns what argument i of the last take function was.
func seen(t *testing.T, i int) uint64 {
	fn := symbol(t, "seen_at")
	c := NewCall()
	defer c.Free()
	c.Args[0], c.Args[1] = uintptr(i), c.Ref(0)
	c.Do(nil, 0, fn, 2)
	return c.Out[0]
}

func TestDoReturnsIntResult(t *testing.T) {
	for _, want := range []int32{0, 1, -1, 999, -1 << 31, 1<<31 - 1} {
		if got := call(t, "give", uintptr(uint32(want))); got != want {
			t.Errorf("give(%d) = %d", want, got)
		}
	}
}

func TestOutParameters(t *testing.T) {
	put := symbol(t, "put")
	for range 3 {
		c := NewCall()
		c.Args[0], c.Args[1] = c.Ref(3), c.Ref(1)
		c.Do(nil, 0, put, 2)
		if want := [4]uint64{1: 0x99aabbcc, 3: 0x1122334455667788}; c.Out != want {
			t.Errorf("Out = %#x, want %#x", c.Out, want)
		}
		c.Free()
	}
}

func TestKeepHoldsGoMemory(t *testing.T) {
	sum := symbol(t, "sum")
	c := NewCall()
	defer c.Free()
	for range 100 {
		bytes := []byte{1, 2, 3, 250}
		c.Keep[0] = unsafe.Pointer(&bytes[0])
		c.Args[0], c.Args[1] = uintptr(c.Keep[0]), 4
		runtime.GC()
		if r := c.Do(nil, 0, sum, 2); r != 256 {
			t.Fatalf("sum = %d", r)
		}
	}
}

func TestCallsDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool drop some of what it is given")
	}
	b, fn := binding(t), symbol(t, "nop")
	allocs := testing.AllocsPerRun(1000, func() {
		c := NewCall()
		c.Args[0] = c.Ref(0)
		c.Do(b, 7, fn, 3)
		c.Free()
	})
	if allocs != 0 {
		t.Errorf("%v allocations per call", allocs)
	}
}

// binding is the library's fake notion of a current context.
func binding(t testing.TB) *Binding {
	return &Binding{Get: symbol(t, "context_get"), Set: symbol(t, "context_set")}
}

func TestDoBindsContext(t *testing.T) {
	tests := []struct {
		name                string
		former, ctx         uintptr
		inside, gets, sets  uint64 // as seen by the function called
		after, getsN, setsN uint64 // as seen afterwards
	}{
		{"none", 5, 0, 5, 0, 0, 5, 0, 0},
		{"already current", 5, 5, 5, 1, 0, 5, 1, 0},
		{"another", 5, 9, 9, 1, 1, 5, 1, 2},
		{"first", 0, 9, 9, 1, 1, 0, 1, 2},
		{"wide", 1<<63 + 9, 9, 9, 1, 1, 1<<63 + 9, 1, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := binding(t)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			call(t, "context_reset", test.former, 0, 0)
			r, in := contextState(t, b, test.ctx)
			if want := [3]uint64{test.inside, test.gets, test.sets}; r != 42 || in != want {
				t.Errorf("inside: %d, %v; want 42, %v", r, in, want)
			}
			_, out := contextState(t, nil, 0)
			if want := [3]uint64{test.after, test.getsN, test.setsN}; out != want {
				t.Errorf("afterwards: %v, want %v", out, want)
			}
		})
	}
}

func TestDoUnbound(t *testing.T) {
	for _, test := range []struct {
		name        string
		former      uintptr
		inside      uint64 // the context that the function called is in
		sets, after uint64 // how often one was made current, and which is afterwards
	}{
		{"none", 0, 0, 0, 0},
		{"already current", 9, 9, 0, 9},
		{"another", 5, 9, 2, 5},
		{"wide", 1 << 63, 9, 2, 1 << 63},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, fn := binding(t), symbol(t, "context_state")
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			call(t, "context_reset", test.former, 0, 0)
			defer call(t, "context_reset", 0, 0, 0)
			c := NewCall()
			defer c.Free()
			c.Args[0], c.Args[1], c.Args[2] = c.Ref(0), c.Ref(1), c.Ref(2)
			if r := c.DoUnbound(b, 9, fn, 3); r != 42 || c.Out[0] != test.inside {
				t.Errorf("result %d in context %d, want 42 in %d", r, c.Out[0], test.inside)
			}
			if _, out := contextState(t, nil, 0); out != [3]uint64{test.after, 1, test.sets} {
				t.Errorf("afterwards: %v, want %v", out, [3]uint64{test.after, 1, test.sets})
			}
		})
	}
}

// contextState returns what a call with ctx sees of the calling thread: what is
// current, and how often get and set were called.
func contextState(t *testing.T, b *Binding, ctx uintptr) (result int32, state [3]uint64) {
	fn := symbol(t, "context_state")
	c := NewCall()
	defer c.Free()
	c.Args[0], c.Args[1], c.Args[2] = c.Ref(0), c.Ref(1), c.Ref(2)
	result = c.Do(b, ctx, fn, 3)
	return result, [3]uint64(c.Out[:3])
}

func TestDoBindsContextForManyArguments(t *testing.T) {
	b, fn := binding(t), symbol(t, "context_state7")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	call(t, "context_reset", 5, 0, 0)
	c := NewCall()
	defer c.Free()
	c.Args[0], c.Args[6] = c.Ref(0), 7
	if r := c.Do(b, 9, fn, 7); r != 43 || c.Out[0] != 9 {
		t.Errorf("result %d with context %d current, want 43 with 9", r, c.Out[0])
	}
}

func TestDoReturnsBindFailure(t *testing.T) {
	tests := []struct {
		name     string
		get, set int32
	}{{"get", 201, 0}, {"set", 0, -7}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := binding(t)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			call(t, "context_reset", 5, uintptr(uint32(test.get)), uintptr(uint32(test.set)))
			defer call(t, "context_reset", 0, 0, 0)
			r, state := contextState(t, b, 9)
			if r != test.get+test.set || state != [3]uint64{} {
				t.Errorf("result %d, function saw %v; want %d and no call", r, state, test.get+test.set)
			}
			if _, after := contextState(t, nil, 0); after[0] != 5 {
				t.Errorf("context %d is current afterwards, want 5", after[0])
			}
		})
	}
}
