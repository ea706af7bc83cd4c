//go:build linux && (amd64 || arm64)

package ffi

import (
	"os"
	"runtime/pprof"
	"testing"
)

// A thread that entered Go and ended gives back what the runtime lent it.
func TestEndedThreadsAreDetached(t *testing.T) {
	data, calls := counting(t)
	call(t, "call_short", HostEntry(), data, 200)
	before := pprof.Lookup("threadcreate").Count()

	const threads = 5000
	if n := call(t, "call_short", HostEntry(), data, threads); n != threads {
		t.Fatalf("%d threads started", n)
	}
	if n := calls.Load(); n != threads+200 {
		t.Errorf("%d calls", n)
	}
	if after := pprof.Lookup("threadcreate").Count(); after > before+20 {
		t.Errorf("the runtime had %d threads before %d short-lived ones called, %d after", before, threads, after)
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	if len(tasks) > 200 {
		t.Errorf("%d threads are alive", len(tasks))
	}
}
