package timeline_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/timeline"
)

func dotOf(t *testing.T, trace *cuda.Trace) string {
	t.Helper()
	var b bytes.Buffer
	if err := timeline.WriteDOT(&b, trace); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestDOT: what waits for what, with the names of the nodes replaced by their labels.
func TestDOT(t *testing.T) {
	got := dotOf(t, sample())
	for _, want := range []string{
		"subgraph cluster_0 {\n\t\tlabel=\"Device 0: stream 1\";",
		`s0_0 [label="kernel produce\nhost function check <all> & \"more\"\nrecord"];`, // up to what others wait for
		`s0_1 [label="kernel endless\nhost function never", fillcolor="#f8d7da"`,
		"s0_0 -> s0_1;",
		`s2_0 [label="wait\ncopy to host"];`,
		`s2_1 [label="memset memset"];`,
		`s1_0 [label="graph batch"];`,
		`s1_1 [label="task rewrite", fillcolor="#fdf0dc"`,
		`s1_2 [label="native memmove"`,
		"s0_0 -> s2_0 [color=",          // the wait, after the record
		"s2_0 -> s1_2 [color=",          // across devices
		"s1_1 -> s2_1 [style=dotted, c", // what the task queued
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "->"); n != 7 {
		t.Errorf("%d edges\n%s", n, got)
	}
	for _, absent := range []string{"sync", "replayed", "unused"} {
		if strings.Contains(got, absent) {
			t.Errorf("%s is drawn", absent)
		}
	}
}

// TestDOTMerges: runs of operations are one node, also if they are many.
func TestDOTMerges(t *testing.T) {
	trace := &cuda.Trace{Streams: []cuda.TraceStream{{Name: "s"}, {Name: "r"}}}
	add := func(stream int, name string, after ...int) {
		trace.Spans = append(trace.Spans, cuda.TraceSpan{ID: len(trace.Spans) + 1, Kind: cuda.TraceKernel, Name: name, Stream: stream, After: after})
	}
	for range 1000 {
		add(0, "a")
	}
	add(1, "b", 500)
	for _, name := range strings.Fields("c d e f g h i") {
		add(1, name)
	}
	got := dotOf(t, trace)
	for _, want := range []string{`s0_0 [label="kernel a × 500"]`, `s0_1 [label="kernel a × 500"]`, "s0_0 -> s1_0 [", `kernel f\nand 3 others"]`} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
	if n := len(regexp.MustCompile(`s\d_\d \[label`).FindAllString(got, -1)); n != 3 {
		t.Errorf("%d nodes\n%s", n, got)
	}
}

// TestDOTQueues: what a task queues in a row is one node behind it, and what others queued after that is not.
func TestDOTQueues(t *testing.T) {
	trace := &cuda.Trace{Streams: []cuda.TraceStream{{Name: "s"}, {Name: "r"}}, Spans: []cuda.TraceSpan{
		{ID: 1, Kind: cuda.TraceTask, Name: "t"}, {ID: 2, Kind: cuda.TraceCopy, Name: "a", Stream: 1, Parent: 1}, {ID: 3, Kind: cuda.TraceCopy, Name: "b", Stream: 1, Parent: 1},
		{ID: 4, Kind: cuda.TraceTask, Name: "u"}, {ID: 5, Kind: cuda.TraceCopy, Name: "c", Stream: 1, Parent: 4},
		{ID: 6, Kind: cuda.TraceCopy, Name: "d", Stream: 1},
	}}
	got := dotOf(t, trace)
	for _, want := range []string{`s1_0 [label="copy a\ncopy b"]`, `s1_1 [label="copy c"]`, `s1_2 [label="copy d"]`, "s0_0 -> s1_0 [style=dotted", "s0_1 -> s1_1 [style=dotted"} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "dotted"); n != 2 {
		t.Errorf("%d arrows\n%s", n, got)
	}
}

// TestDOTNodes: what a node of a graph's launch waited for is drawn to the launch.
func TestDOTNodes(t *testing.T) {
	trace := sample()
	trace.Spans[6].After = []int{5}
	if got := dotOf(t, trace); !strings.Contains(got, "s2_0 -> s1_0 [color=") {
		t.Errorf("the launch does not wait:\n%s", got)
	}
}
