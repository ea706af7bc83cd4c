package softcuda

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hostlaunch/cuda/internal/native"
)

// Check finds accesses to the same bytes that nothing orders (Options.Check). It goes by what the program has promised with streams,
// events, host functions, graphs and waits, not by what has happened to come first; so one run finds what goes wrong once in a
// thousand. The zero value is ready for use, for one driver. A nil *Check does nothing.
//
// It also reports device memory that is read before it is written, kernels that use memory which has been freed, and streams that wait
// for each other's write-values for ever, once the program waits for one of them; and, when the Driver is closed, memory of every kind that has
// not been (Buffer, PinnedBuffer, ManagedBuffer), with the place where it was allocated.
//
// It sees all copies and memsets, what kernels reach with Slice, and that host memory of a queued copy has changed. What else the
// program does with pinned memory it must tell, with Reads and Writes. It takes the program's goroutines to be ordered among
// themselves: the race detector is for those. Of a copy that goes through pinned memory of the library (cuda.CopyToHost, and cuda.CopyToDevice
// of more than 64 KiB, with ordinary memory) it sees the device's end only: goroutines read and write the slice, so the
// race detector tells of a program that uses it too soon, if the copy comes first. Copies with cuda.Direct it sees whole.
type Check struct {
	// IgnoreLeaks has Driver.Close not report memory that the program has not closed. It is to be set before softcuda.New.
	IgnoreLeaks bool

	mu      sync.Mutex
	m       *machine
	reports []Report
	known   map[string]bool
}

// Report is one thing that Check has found. Streams go by their numbers, as cuda.Stream.ID gives them.
type Report struct {
	Kind   string // "unordered access", "uninitialised read", "use after free", "deadlock", "leak"
	First  string // what was done or queued first, and where
	Second string // what is not ordered with that; empty if it takes only one
	Advice string // what is missing
	DOT    string // a deadlock as a graph, for Graphviz
}

// String is the report in a line.
func (r Report) String() string {
	text := r.Kind + ": " + r.First
	if r.Second != "" {
		text += "; and " + r.Second
	}
	return text + ": " + r.Advice
}

// Reports are what has been found so far.
func (c *Check) Reports() []Report {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.reports)
}

// Err is nil, or an error that tells all reports.
func (c *Check) Err() error {
	var lines []string
	for _, r := range c.Reports() {
		lines = append(lines, r.String())
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("softcuda: %s", strings.Join(lines, "\n"))
}

// Reads tells that the program, or the host function that calls it, reads b.
func (c *Check) Reads(b []byte) { c.program(b, false) }

// Writes tells that the program, or the host function that calls it, writes to b.
func (c *Check) Writes(b []byte) { c.program(b, true) }

// Leaks are the allocations of device memory, pinned memory and managed memory that have not been freed: what they are, and where they were made.
// It is to be asked before the Driver is closed, which frees them, and reports what the program has not closed. The library's own are not
// among them.
func (c *Check) Leaks() (list []string) {
	if c == nil || c.m == nil {
		return nil
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	return c.m.checker.left()
}

func (c *Check) program(b []byte, write bool) {
	if c == nil || c.m == nil || len(b) == 0 {
		return
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	k := c.m.checker
	if write {
		k.rewritten(b) // the watches are for those who do not tell
	}
	who := k.inside[native.Goroutine()]
	if who == nil {
		who = k.program()
	}
	k.access(who, touch{data: b, write: write, host: true})
}

// bind makes c the check of m.
func (c *Check) bind(m *machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m, c.known = m, map[string]bool{}
	m.checker = newChecker(c)
}

func (c *Check) report(r Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if text := r.String(); !c.known[text] {
		c.known[text] = true
		c.reports = append(c.reports, r)
	}
}
