package native_test

import (
	"runtime"
	"testing"

	"github.com/hostlaunch/cuda/internal/native"
)

//go:noinline
func askAll(pcs, slow []uintptr) (n, m int) { return native.CallerPCs(pcs), runtime.Callers(2, slow) }

//go:noinline
func askDeep(depth int, pcs, slow []uintptr) (n, m int) {
	if depth == 0 {
		return askAll(pcs, slow)
	}
	n, m = askDeep(depth-1, pcs, slow)
	pass()
	return n, m
}

// CallerPCs gives the frames that the runtime gives, however many there are and fit.
func TestCallerPCs(t *testing.T) {
	for _, room := range []int{0, 1, 6, 64} {
		for _, depth := range []int{0, 1, 20} {
			done := make(chan bool)
			go func() { // a stack that ends soon
				defer close(done)
				pcs, slow := make([]uintptr, room), make([]uintptr, room)
				n, m := askDeep(depth, pcs, slow)
				if m == n+1 { // the runtime counts runtime.goexit, which has no frame
					m--
				}
				if n != m {
					t.Errorf("%d frames of %d", n, m)
					return
				}
				for i := 1; i < n; i++ { // the first are two places of one line
					if pcs[i] != slow[i] {
						t.Errorf("frame %d is in %s, by the runtime in %s", i, function(pcs[i]), function(slow[i]))
					}
				}
				if n > 0 && function(pcs[0]) != function(slow[0]) {
					t.Errorf("called by %s, by the runtime by %s", function(pcs[0]), function(slow[0]))
				}
			}()
			<-done
		}
	}
}

func BenchmarkCallerPCs(b *testing.B) {
	var pcs [6]uintptr
	for b.Loop() {
		native.CallerPCs(pcs[:])
	}
}
