package cudatest

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

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
