package timeline

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/hostlaunch/cuda"
)

// WriteDOT writes t's dependencies in Graphviz's language; package picture makes an SVG of it. Each stream is a box with its operations
// in their order. Operations of a stream that nothing else waits for, and that wait for nothing else, are one node. Bold arrows lead
// from what was waited for to who waited, across streams; dotted ones from a task to what it queued. Waits of the host and the nodes of
// a graph's launch are left out. It is an error if t is nil or contradicts itself, or if w fails.
func WriteDOT(w io.Writer, t *cuda.Trace) error {
	if err := check(t); err != nil {
		return err
	}
	g := newDependencies(t)
	out := bufio.NewWriter(w)
	out.WriteString(dotHead)
	for _, i := range streamOrder(t) {
		g.writeStream(out, i)
	}
	g.writeEdges(out)
	out.WriteString("}\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	return nil
}

const dotHead = `digraph trace {
	rankdir=TB;
	node [shape=box, style="rounded,filled", fillcolor="#eef3f8", color="#7a8ba0", fontname="Helvetica", fontsize=11];
	edge [color="#9aa5b1", arrowsize=0.7];
	graph [fontname="Helvetica", fontsize=12, style="rounded", color="#c8d0d9"];
`

// dotNode is a run of operations of one stream.
type dotNode []*cuda.TraceSpan

// dependencies are a trace's operations, and what leads from one to the other.
type dependencies struct {
	t          *cuda.Trace
	all, spans map[int]*cuda.TraceSpan // by id; those that are drawn
	streams    [][]dotNode
	nodes      map[int]string          // the name of a span's node
	arrives    map[int][]int           // what leads to a span, from other streams
	queues     map[int][]int           // what a task queued
	begin, end map[int]bool            // spans that a node must begin or end with
	latest     map[int]*cuda.TraceSpan // of each stream, while they are connected
	drawn      map[string]bool         // edges
}

func newDependencies(t *cuda.Trace) *dependencies {
	g := &dependencies{
		t: t, all: map[int]*cuda.TraceSpan{}, spans: map[int]*cuda.TraceSpan{}, streams: make([][]dotNode, len(t.Streams)), nodes: map[int]string{},
		arrives: map[int][]int{}, queues: map[int][]int{}, begin: map[int]bool{}, end: map[int]bool{}, drawn: map[string]bool{},
		latest: map[int]*cuda.TraceSpan{},
	}
	for i := range t.Spans {
		s := &t.Spans[i]
		if g.all[s.ID] = s; s.Stream != noStream && s.Kind != cuda.TraceSync && s.Kind != cuda.TraceNode {
			g.spans[s.ID] = s
		}
	}
	for i := range t.Spans {
		s := &t.Spans[i]
		g.connect(s)
		if g.spans[s.ID] != nil {
			if before := g.latest[s.Stream]; before != nil && before.Parent != s.Parent {
				g.begin[s.ID] = true // somebody else's
			}
			g.latest[s.Stream] = s
		}
	}
	for i := range t.Spans {
		if s := &t.Spans[i]; g.spans[s.ID] != nil {
			g.place(s)
		}
	}
	for i, nodes := range g.streams {
		for j, n := range nodes {
			for _, s := range n {
				g.nodes[s.ID] = fmt.Sprintf("s%d_%d", i, j)
			}
		}
	}
	return g
}

// connect notes what leads to s. What a graph's node waited for, its launch did.
func (g *dependencies) connect(s *cuda.TraceSpan) {
	to := g.drawnAs(s.ID)
	if to == nil {
		return
	}
	for _, id := range s.After {
		if from := g.drawnAs(id); from != nil && from != to && from.Stream != to.Stream {
			g.arrives[to.ID] = append(g.arrives[to.ID], from.ID)
			g.end[from.ID], g.begin[to.ID] = true, true
		}
	}
	if task := g.spans[s.Parent]; task != nil && task.Kind == cuda.TraceTask && to == s {
		g.queue(task, s)
	}
}

// queue notes that a task queued s, if that is the first of what it queued on that stream without a break.
func (g *dependencies) queue(task, s *cuda.TraceSpan) {
	g.begin[task.ID], g.end[task.ID] = true, true
	if before := g.latest[s.Stream]; before == nil || before.Parent != task.ID {
		g.queues[task.ID] = append(g.queues[task.ID], s.ID)
		g.begin[s.ID] = true
	}
}

// drawnAs is the span with that id, or the launch that it, a graph's node, belongs to; nil if neither is drawn.
func (g *dependencies) drawnAs(id int) *cuda.TraceSpan {
	if s := g.all[id]; s != nil && s.Kind == cuda.TraceNode {
		id = s.Parent
	}
	return g.spans[id]
}

// place puts s into the latest node of its stream, or into one of its own.
func (g *dependencies) place(s *cuda.TraceSpan) {
	nodes := &g.streams[s.Stream]
	if n := len(*nodes); n > 0 && !g.begin[s.ID] {
		if last := &(*nodes)[n-1]; !g.end[(*last)[len(*last)-1].ID] {
			*last = append(*last, s)
			return
		}
	}
	*nodes = append(*nodes, dotNode{s})
}

func (g *dependencies) writeStream(out *bufio.Writer, i int) {
	if len(g.streams[i]) == 0 {
		return
	}
	name := fmt.Sprintf("%s: %s", deviceGroup(g.t.Streams[i].Device), g.t.Streams[i].Name)
	fmt.Fprintf(out, "\tsubgraph cluster_%d {\n\t\tlabel=%s;\n", i, dotQuote(name))
	for j, n := range g.streams[i] {
		fmt.Fprintf(out, "\t\ts%d_%d [label=%s%s];\n", i, j, dotQuote(n.label()), n.look())
	}
	for j := 1; j < len(g.streams[i]); j++ {
		fmt.Fprintf(out, "\t\ts%d_%d -> s%d_%d;\n", i, j-1, i, j)
	}
	out.WriteString("\t}\n")
}

func (g *dependencies) writeEdges(out *bufio.Writer) {
	for i := range g.t.Spans {
		id := g.t.Spans[i].ID
		for _, from := range g.arrives[id] {
			g.writeEdge(out, from, id, `color="#0072b2", penwidth=1.6`)
		}
		for _, to := range g.queues[id] {
			g.writeEdge(out, id, to, `style=dotted, color="#d55e00"`)
		}
	}
}

func (g *dependencies) writeEdge(out *bufio.Writer, from, to int, look string) {
	edge := fmt.Sprintf("\t%s -> %s [%s];\n", g.nodes[from], g.nodes[to], look)
	if !g.drawn[edge] && g.nodes[from] != g.nodes[to] {
		g.drawn[edge] = true
		out.WriteString(edge)
	}
}

// mostLines bounds how many different operations a node names.
const mostLines = 6

// label names the operations of n, each as often as it occurs.
func (n dotNode) label() string {
	var lines []string
	times := map[string]int{}
	for _, s := range n {
		line := string(s.Kind)
		if s.Name != "" {
			line += " " + s.Name
		}
		if times[line]++; times[line] == 1 {
			lines = append(lines, line)
		}
	}
	if len(lines) > mostLines {
		more := fmt.Sprintf("and %d others", len(lines)-mostLines+1)
		lines = append(lines[:mostLines-1], more)
	}
	for i, line := range lines {
		if times[line] > 1 {
			lines[i] = fmt.Sprintf("%s × %d", line, times[line])
		}
	}
	return strings.Join(lines, "\n")
}

// look is how a node differs from others by what it is: one in which the program's own code runs is warm, one that failed is red.
func (n dotNode) look() string {
	for _, s := range n {
		if s.Error != "" {
			return `, fillcolor="#f8d7da", color="#b02a37"`
		}
	}
	switch n[0].Kind {
	case cuda.TraceTask, cuda.TraceHost, cuda.TraceCallback, cuda.TraceNative:
		return `, fillcolor="#fdf0dc", color="#c98a2b"`
	}
	return ""
}

// dotQuote makes a string of the DOT language.
func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
