//go:build linux && (amd64 || arm64)

package libcuda

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// TestHostCall: a native function is called, and nothing is where there is none.
func TestHostCall(t *testing.T) {
	f := newFake(t)
	nv := f.open(driver.Upcalls{})
	current := ^uintptr(0)
	if nv.HostCall(0, 0) {
		t.Error("called nothing")
	}
	if !nv.HostCall(f.lib.Symbol("cuCtxGetCurrent"), uintptr(unsafe.Pointer(&current))) || current == ^uintptr(0) {
		t.Error("not called")
	}
}

// TestHostPause: a short pause is short, although the usual granularity of a thread's sleep is 50 µs, and leaves that granularity
// as it was.
func TestHostPause(t *testing.T) {
	nv := newFake(t).open(driver.Upcalls{})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	slack := func() uintptr {
		v, _, _ := syscall.RawSyscall(syscall.SYS_PRCTL, 30 /* PR_GET_TIMERSLACK */, 0, 0)
		return v
	}
	before := slack()
	for d, most := range map[time.Duration]time.Duration{
		0: 5 * time.Microsecond, 5 * time.Microsecond: 45 * time.Microsecond, 90 * time.Microsecond: 130 * time.Microsecond,
	} {
		shortest := time.Hour
		for range 200 {
			start := time.Now()
			nv.HostPause(d)
			shortest = min(shortest, time.Since(start))
		}
		if shortest < d || shortest > most {
			t.Errorf("a pause of %v takes %v", d, shortest)
		}
	}
	if slack() != before {
		t.Errorf("timer slack %d, %d before", slack(), before)
	}
}

// TestHostPrepare: memory stays as it is, and the system is told that huge pages are welcome there: the flag "hg" of its mapping.
func TestHostPrepare(t *testing.T) {
	nv := newFake(t).open(driver.Upcalls{})
	const n = 16 << 20
	mem, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(mem)
	mem[1], mem[n-2] = 3, 4
	nv.HostPrepare(unsafe.Pointer(&mem[100]), 1<<20) // not worth it
	if flagged(t, mem[8<<20:]) {
		t.Error("advised for a small range")
	}
	nv.HostPrepare(unsafe.Pointer(&mem[1]), n-2)
	if mem[1] != 3 || mem[n-2] != 4 {
		t.Error("memory has changed")
	}
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err == nil && !flagged(t, mem[8<<20:]) {
		t.Error("the mapping has no flag hg")
	}
	nv.HostPrepare(nil, n) // no memory: refused by the system, and no harm
}

// flagged reports whether the mapping that mem begins in is advised to have huge pages.
func flagged(t *testing.T, mem []byte) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	at, inside := uintptr(unsafe.Pointer(&mem[0])), false
	for line := range strings.Lines(string(text)) {
		var from, to uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			inside = at >= from && at < to
		}
		if inside && strings.HasPrefix(line, "VmFlags:") {
			return strings.Contains(line, " hg")
		}
	}
	return false
}

// TestWatchContext: while something is pending, the loss of a context is noticed though nobody calls.
func TestWatchContext(t *testing.T) {
	f := newFake(t)
	lost := make(chan driver.Result, 1)
	var pending atomic.Int32
	nv := f.open(driver.Upcalls{
		Pending: func(driver.Context) int { return int(pending.Load()) },
		Lost:    func(_ driver.Context, r driver.Result) { lost <- r },
	})
	pending.Store(1)
	nv.WatchContext(ctx)
	f.set(knobLost, 700)
	select {
	case r := <-lost:
		if r != driver.ErrorIllegalAddress {
			t.Errorf("lost with %d", r)
		}
	case <-time.After(time.Second):
		t.Error("nobody was told within a second")
	}
	f.set(knobLost, 0)
}
