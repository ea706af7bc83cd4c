package cudatest

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// collecting has the garbage collector at work until stop is called, at the latest when the case ends.
func (t *T) collecting() (stop func()) {
	ended := make(chan struct{})
	var collector sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				runtime.GC()
			}
		}
	})
	stop = sync.OnceFunc(func() {
		close(ended)
		collector.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// settledMemory is how many bytes of memory the process has after a collection, or 0 where that cannot be told, or means nothing
// since the race detector's memory is among it.
func settledMemory() int64 {
	if raceDetector {
		return 0
	}
	for range 2 {
		runtime.GC()
	}
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
