package softcuda

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/hostlaunch/cuda/internal/driver"
)

// Trace notes what a program has queued on a device with a Seed, and what the device has done, in order. The zero value is ready for use. It may be read at any time.
type Trace struct {
	mu    sync.Mutex
	steps []Step
}

// Step is one operation that has been queued, or that the device has begun. What the device began last has been done before, unless
// it takes long.
type Step struct {
	Queued bool   // and not yet begun
	Op     uint64 // which operation, counted as they were queued, from 1
	Stream uint64 // which stream, as cuda.Stream.ID numbers them; a launch of a graph has streams of its own
	What   string // "kernel add", "copy", "host function", "event record", ...
	Site   string // file:line of the call that queued it; empty for what a graph queues later
}

// String is the step as a line: "do    3 stream 1: kernel add (main.go:12)".
func (s Step) String() string {
	verb := "do   "
	if s.Queued {
		verb = "queue"
	}
	text := fmt.Sprintf("%s %d stream %d: %s", verb, s.Op, s.Stream, s.What)
	if s.Site != "" {
		text += " (" + s.Site + ")"
	}
	return text
}

func (t *Trace) add(s Step) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps = append(t.steps, s)
}

// Steps are the steps so far.
func (t *Trace) Steps() []Step {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.steps)
}

// String has a line for each step.
func (t *Trace) String() string {
	var b strings.Builder
	for _, s := range t.Steps() {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

// what says what o is.
func (o *op) what() string {
	switch o.kind {
	case opHost:
		return opHostText
	case opCallback:
		return "callback"
	case opHold:
		return "wait-value"
	case opBranch:
		return "conditional"
	case opMark:
		if o.extra != nil && o.extra.record != nil {
			return "event record"
		}
		return "mark"
	}
	if o.notes().kernel != "" {
		return "kernel " + o.notes().kernel
	}
	return map[driver.NodeType]string{
		driver.NodeKernel: "kernel", driver.NodeMemcpy: "copy", driver.NodeMemset: "memset", driver.NodeBatchMemOp: "write-value",
	}[driver.NodeType(o.node)]
}

const modulePath = "github.com/hostlaunch/cuda"

// callSite is the file and line of the program's call into the library; empty on a goroutine of the library.
func callSite() string {
	site, _ := callOf()
	return site
}

// sites remembers call sites by the stack, which is much faster to have than their names.
type sites map[[24]uintptr]string

// here is callSite.
func (s sites) here() string {
	var pcs [24]uintptr
	runtime.Callers(3, pcs[:])
	text, ok := s[pcs]
	if !ok {
		text = callSite()
		s[pcs] = text
	}
	return text
}

// callOf is the program's call into the library: where it is, and which function it calls.
func callOf() (site, function string) {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		if f.Function != "" && !ofLibrary(f) {
			if strings.HasPrefix(f.Function, "runtime.") {
				return "", ""
			}
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line), function
		}
		if !more {
			return "", ""
		}
		function = f.Function
	}
}

// ofLibrary reports whether f is code of package cuda or of this package, tests aside.
func ofLibrary(f runtime.Frame) bool {
	rest, ok := strings.CutPrefix(f.Function, modulePath)
	if !ok || strings.HasSuffix(f.File, "_test.go") {
		return false
	}
	return strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "/softcuda.") || strings.HasPrefix(rest, "/internal/hostfn.") || strings.HasPrefix(rest, "/internal/native.")
}

const opHostText = "host function"
