package softcuda_test

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/modeltest"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestCheckSaysWhere wants both sites and the missing edge in a report.
func TestCheckSaysWhere(t *testing.T) {
	l := newLab(t, 1)
	defer l.drv.Close()
	_, _, line, _ := runtime.Caller(0)
	noErr(t, l.a.Memset(l.x, 1))
	noErr(t, l.b.CopyBuffer(l.y, l.x))
	l.sync(l.a)
	l.sync(l.b)
	err := l.check.Err()
	if err == nil {
		t.Fatal("nothing is found")
	}
	for _, part := range []string{
		"unordered access: memset of stream", "writes 64 bytes", "copy of stream", "reads 64 bytes",
		fmt.Sprintf("(check_test.go:%d)", line+1), fmt.Sprintf("(check_test.go:%d)", line+2), "record an event behind the first",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in %v", part, err)
		}
	}
}

// TestCheckNamesLaunchingStream wants a graph's accesses told as of the stream that it was launched on, which the program knows.
func TestCheckNamesLaunchingStream(t *testing.T) {
	for seed := firstOfWrong(); seed < 2; seed++ {
		l := newLab(t, seed)
		x := l.graph(l.a, func(g *cuda.GraphBuilder) { noErr(t, g.Memset(l.x, 1)) })
		noErr(t, x.Launch(l.a))
		l.copy(l.b, l.y, l.x)
		l.sync(l.a)
		l.sync(l.b)
		list := l.check.Reports()
		first, second := fmt.Sprintf("memset of stream %d (", must(l.a.ID())), fmt.Sprintf("copy of stream %d (", must(l.b.ID()))
		if len(list) != 1 || !strings.HasPrefix(list[0].First, first) || !strings.HasPrefix(list[0].Second, second) {
			t.Errorf("seed %d: want %q and %q, got %v", seed, first, second, list)
		}
		noErr(t, l.drv.Close())
	}
}

// TestCheckUseAfterFree has a kernel use memory that is gone.
func TestCheckUseAfterFree(t *testing.T) {
	for _, seed := range []uint64{0, 1} {
		l := newLab(t, seed)
		b := must(l.dev.Alloc(64))
		gone := b.Ptr()
		noErr(t, b.Close())
		noErr(t, l.a.Launch(l.kernels["inc"], cuda.LaunchConfig{Grid: cuda.Dim3{X: 1, Y: 1, Z: 1}, Block: cuda.Dim3{X: 1, Y: 1, Z: 1}}, gone))
		if l.a.Sync() == nil {
			t.Error("the kernel is not refused")
		}
		if list := l.check.Reports(); len(list) != 1 || list[0].Kind != "use after free" || strings.Count(list[0].First, "check_test.go:") != 2 {
			t.Errorf("seed %d: %v", seed, list)
		}
		l.drv.Close()
	}
}

// TestCheckLeaks tells what has not been closed, and where it was made; nothing of the library's own.
func TestCheckLeaks(t *testing.T) {
	check := new(softcuda.Check)
	drv, dev := openSeeded(t, softcuda.Options{Check: check})
	defer drv.Close()
	kept, closed, pinned := must(dev.Alloc(100)), must(dev.Alloc(200)), must(dev.AllocPinned(300))
	s := newStreams(t, dev, 1)[0]
	noErr(t, cuda.CopyToDevice(s, kept, make([]byte, 100)))
	noErr(t, s.Sync())
	noErr(t, closed.Close())
	list := check.Leaks()
	if len(list) != 2 || !strings.HasPrefix(list[0], "100 bytes of device memory, allocated at check_test.go:") || !strings.HasPrefix(list[1], "300 bytes of pinned memory") {
		t.Errorf("%q", list)
	}
	noErr(t, kept.Close())
	noErr(t, pinned.Close())
	if list := check.Leaks(); len(list) > 0 {
		t.Errorf("after Close: %q", list)
	}
}

// TestCheckLeaksAtClose has Close report what has not been closed, each with its place; but not what has been, by what still uses it, nor
// memory of the library's, nor what the program does not want to hear of.
func TestCheckLeaksAtClose(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		check := &softcuda.Check{IgnoreLeaks: quiet}
		drv, dev := openSeeded(t, softcuda.Options{Check: check})
		s := newStreams(t, dev, 1)[0]
		_, _, line, _ := runtime.Caller(0)
		buffer := must(dev.Alloc(100))
		pinned := must(dev.AllocPinned(300))
		managed := must(dev.AllocManaged(500, cuda.AttachGlobal))
		closed, used := must(dev.Alloc(200)), must(dev.Alloc(64))
		graph := must(dev.NewGraph())
		must(graph.AddNode(cuda.MemsetParams(used, 1)))
		must(graph.Instantiate())
		noErr(t, cuda.CopyToDevice(s, buffer, make([]byte, 100)))
		noErr(t, closed.Close())
		noErr(t, used.Close())
		noErr(t, drv.Close())
		runtime.KeepAlive([]any{buffer, pinned, managed, graph})
		list := check.Reports()
		if quiet {
			if len(list) > 0 {
				t.Errorf("IgnoreLeaks: %v", list)
			}
			continue
		}
		want := []string{"100 bytes of device", "300 bytes of pinned", "500 bytes of managed"}
		if len(list) != len(want) {
			t.Fatalf("%v", list)
		}
		for i, r := range list {
			if r.Kind != "leak" || !strings.HasPrefix(r.First, fmt.Sprintf("%s memory, allocated at check_test.go:%d", want[i], line+1+i)) {
				t.Errorf("%v, want %s", r, want[i])
			}
		}
	}
}

// TestCheckNil does nothing.
func TestCheckNil(t *testing.T) {
	var none *softcuda.Check
	none.Reads([]byte{1})
	none.Writes([]byte{1})
	if none.Err() != nil || none.Reports() != nil || none.Leaks() != nil {
		t.Error("a nil Check has something to tell")
	}
	new(softcuda.Check).Writes([]byte{1}) // of no driver yet
}

// TestModelChecked runs random programs, which use memory as they should, under the checker: it reports nothing, and changes nothing.
func TestModelChecked(t *testing.T) {
	var mu sync.Mutex
	var checks []*softcuda.Check
	modeltest.Run(t, modeltest.Config{
		Open: func(opts ...cuda.Option) (*cuda.Driver, error) {
			check := new(softcuda.Check)
			mu.Lock()
			checks = append(checks, check)
			seed := uint64(len(checks) % 3)
			mu.Unlock()
			return softcuda.New(softcuda.Options{
				Seed: seed, Check: check, Kernels: testkernels.Twins(), Arguments: map[string][]softcuda.ArgKind{"append": {softcuda.Atomic}},
			}, opts...), nil
		},
		PTX:      testkernels.PTX,
		Programs: 300,
		Workers:  1,
	})
	found := 0
	for _, c := range checks {
		if err := c.Err(); err != nil && found < 5 {
			found++
			t.Error(err)
		}
	}
	t.Logf("%d drivers", len(checks))
}

// TestCheckDeadlock has two streams wait for words that each writes behind its wait.
func TestCheckDeadlock(t *testing.T) {
	for _, seed := range []uint64{0, 1} {
		l := newLab(t, seed)
		words := must(l.dev.AllocPinned(8))
		one, two := words.Word(0), words.Word(4)
		noErr(t, l.a.WaitValue32(one, cuda.ValueEQ, 1))
		noErr(t, l.a.WriteValue32(two, 1))
		noErr(t, l.b.WaitValue32(two, cuda.ValueEQ, 1))
		noErr(t, l.b.WriteValue32(one, 1))
		done := make(chan error)
		go func() { done <- l.a.Sync() }()
		for deadline := time.Now().Add(10 * time.Second); len(l.check.Reports()) == 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		atomic.StoreUint32((*uint32)(unsafe.Pointer(&words.Bytes()[0])), 1) // which ends it
		noErr(t, <-done)
		list := l.check.Reports()
		if len(list) != 1 || list[0].Kind != "deadlock" || strings.Count(list[0].First, "waits for the write-value") != 2 || strings.Count(list[0].DOT, "->") != 4 {
			t.Errorf("seed %d: %+v", seed, list)
		}
		ring(t, list[0].DOT, 4)
		noErr(t, l.drv.Close())
	}
}

// ring wants a picture in Graphviz's language to be one ring of n arrows.
func ring(t *testing.T, dot string, n int) {
	t.Helper()
	next := map[string]string{}
	for _, arrow := range regexp.MustCompile(`"([^"]*)" -> "([^"]*)" \[label="[^"]+"\]`).FindAllStringSubmatch(dot, -1) {
		next[arrow[1]] = arrow[2]
	}
	first := ""
	for at := range next {
		first = at
	}
	at := first
	for range n - 1 {
		if at = next[at]; at == first || at == "" {
			break
		}
	}
	if len(next) != n || next[at] != first || !strings.HasPrefix(dot, "digraph") {
		t.Errorf("no ring of %d arrows:\n%s", n, dot)
	}
}

// TestCheckNoDeadlock has the same ring, but the program sets it going from a third stream before it waits.
func TestCheckNoDeadlock(t *testing.T) {
	for seed := range uint64(8) {
		l := newLab(t, seed)
		words := must(l.dev.AllocPinned(8))
		one, two := words.Word(0), words.Word(4)
		noErr(t, l.a.WaitValue32(one, cuda.ValueEQ, 1))
		noErr(t, l.a.WriteValue32(two, 1))
		noErr(t, l.b.WaitValue32(two, cuda.ValueEQ, 1))
		noErr(t, l.b.WriteValue32(one, 1))
		noErr(t, l.c.WriteValue32(one, 1))
		l.sync(l.a)
		l.sync(l.b)
		noErr(t, l.drv.Close())
		if err := l.check.Err(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// TestExploreChecked takes a report for a failure, in each run anew.
func TestExploreChecked(t *testing.T) {
	p, runs := &probe{}, 0
	var faults softcuda.Faults
	noErr(t, faults.Add(softcuda.Fault{Call: "EventCreate", Result: cuda.ErrUnknown}))
	softcuda.ExploreWith(p, 5, softcuda.Explorer{Options: softcuda.Options{Check: new(softcuda.Check), Faults: &faults}, NoShrink: true}, func(p *probe, drv *cuda.Driver) {
		runs++
		if _, err := must(drv.Device(0)).NewEvent(); err == nil {
			t.Errorf("run %d has no fault", runs)
		}
		stagedTwice(drv, runs < 3)
	})
	if !p.failed || runs != 3 || !strings.Contains(strings.Join(p.log, "\n"), "seed 3 fails after 3 schedules") {
		t.Errorf("%d runs: %s", runs, p.log)
	}
}
