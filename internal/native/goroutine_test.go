package native

import (
	"runtime"
	"sync"
	"testing"
)

// Goroutines that run at a time have numbers of their own, and keep them whatever thread they are on.
func TestGoroutine(t *testing.T) {
	const n = 100
	var mu sync.Mutex
	var together, done sync.WaitGroup
	seen := map[uintptr]bool{}
	together.Add(n)
	for range n {
		done.Go(func() {
			id := Goroutine()
			mu.Lock()
			if id == 0 || seen[id] {
				t.Errorf("number %#x is another's too", id)
			}
			seen[id] = true
			mu.Unlock()
			together.Done()
			together.Wait()
			for range 50 {
				runtime.Gosched()
				if again := Goroutine(); again != id {
					t.Errorf("number %#x has become %#x", id, again)
				}
			}
		})
	}
	done.Wait()
}

func BenchmarkGoroutine(b *testing.B) {
	for b.Loop() {
		Goroutine()
	}
}
