package native

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// TestPin: what is pinned lives until Unpin, and a Pin that is dropped does no harm.
func TestPin(t *testing.T) {
	var gone atomic.Int32
	pin := func(p *Pin) {
		for range 3 {
			data := new([64]byte)
			runtime.AddCleanup(data, func(int) { gone.Add(1) }, 0)
			p.Add(unsafe.Pointer(&data[5]))
		}
		p.Add(nil)
	}
	p := new(Pin)
	pin(p)
	pin(new(Pin)) // dropped
	for range 3 {
		runtime.GC()
	}
	if n := gone.Load(); n != 0 {
		t.Errorf("%d were collected while pinned", n)
	}
	p.Unpin()
	p.Unpin()
	for deadline := time.Now().Add(5 * time.Second); gone.Load() < 3; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatalf("%d were let go of, want 3", gone.Load())
		}
	}
	pin(p) // again
	p.Unpin()
}
