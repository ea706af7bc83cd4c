package native_test

import (
	"testing"

	"github.com/hostlaunch/cuda/internal/native"
)

// through calls fn, from one place.
//
//go:noinline
func through(fn func()) { fn(); pass() }

//go:noinline
func pass() {}

func TestOnStack(t *testing.T) {
	var pc uintptr
	through(func() { pc = native.CallerPC() })
	if native.OnStack(pc) {
		t.Error("on the stack after the call has returned")
	}
	through(func() {
		if !native.OnStack(pc) {
			t.Error("not on the stack right inside")
		}
		if !deepOnStack(1000, pc) {
			t.Error("not on the stack a thousand frames deeper")
		}
		other := make(chan bool)
		go func() { other <- native.OnStack(pc) }()
		if <-other {
			t.Error("on the stack of a goroutine that was started inside")
		}
	})
}

//go:noinline
func deepOnStack(n int, pc uintptr) bool {
	if n == 0 {
		return native.OnStack(pc)
	}
	found := deepOnStack(n-1, pc)
	pass()
	return found
}

func BenchmarkOnStack(b *testing.B) {
	for b.Loop() {
		native.OnStack(1)
	}
}
