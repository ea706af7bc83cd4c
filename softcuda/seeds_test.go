package softcuda_test

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// forSeeds calls run with seed after seed, each of which must be over in 20 seconds, until one fails: n of them, fewer with -short, or as
// many as the environment's variable env says.
func forSeeds(t *testing.T, env string, n, short int, run func(seed uint64)) {
	t.Helper()
	if testing.Short() {
		n = short
	}
	if want, err := strconv.Atoi(os.Getenv(env)); err == nil {
		n = want
	}
	for seed := range uint64(n) {
		over := make(chan struct{})
		go func() {
			defer close(over)
			run(seed)
		}()
		select {
		case <-over:
		case <-time.After(20 * time.Second):
			t.Fatalf("seed %d hangs\n%s", seed, allGoroutines())
		}
		if t.Failed() {
			return
		}
	}
}

// goroutinesGone wants no more goroutines than before, soon.
func goroutinesGone(t testing.TB, before int) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, allGoroutines())
			return
		}
	}
}

func allGoroutines() string {
	buf := make([]byte, 1<<22)
	return string(buf[:runtime.Stack(buf, true)])
}
