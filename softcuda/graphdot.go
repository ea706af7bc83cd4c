package softcuda

import (
	"fmt"
	"os"
	"strings"

	"github.com/hostlaunch/cuda/internal/driver"
)

// dotVerbose is the flag that has GraphDebugDotPrint tell all it knows.
const dotVerbose = 1

// typeNames are the names that the picture of a graph has for what nodes do.
var typeNames = map[driver.NodeType]string{
	driver.NodeKernel: "KERNEL", driver.NodeMemcpy: "MEMCPY", driver.NodeMemset: "MEMSET", driver.NodeHost: "HOST",
	driver.NodeGraph: "CHILD_GRAPH", driver.NodeEmpty: "EMPTY", driver.NodeWaitEvent: "EVENT_WAIT",
	driver.NodeEventRecord: "EVENT_RECORD", driver.NodeMemAlloc: "MEM_ALLOC", driver.NodeMemFree: "MEM_FREE",
	driver.NodeBatchMemOp: "BATCH_MEM_OP", driver.NodeConditional: "CONDITIONAL",
}

// picture is a graph in the DOT language.
type picture struct {
	strings.Builder
	graphs  int // drawn so far
	verbose bool
}

// draw draws g and the graphs in it, each as a cluster of its own, as the driver does.
func (p *picture) draw(g *graph) {
	p.graphs++
	name := fmt.Sprintf("graph_%d", p.graphs)
	fmt.Fprintf(p, "subgraph cluster_%d {\nlabel=%q graph[style=\"dashed\"];\n", p.graphs, name)
	for i, n := range g.nodes {
		n.at = i
		fmt.Fprintf(p, "%q[style=\"solid\" shape=\"rectangle\" label=%q];\n", nodeName(name, i), p.label(n))
	}
	for i, n := range g.nodes {
		for _, d := range n.deps.list {
			fmt.Fprintf(p, "%q -> %q;\n", nodeName(name, d.on.at), nodeName(name, i))
		}
	}
	for _, n := range g.nodes {
		for _, inner := range n.inner {
			p.draw(inner)
		}
	}
	p.WriteString("}\n")
}

func nodeName(graph string, i int) string { return fmt.Sprintf("%s_node_%d", graph, i) }

// label is the text of a node, a line each of what is known.
func (p *picture) label(n *graphNode) string {
	lines := []string{fmt.Sprint(n.at), typeNames[n.typ]}
	if n.typ == driver.NodeKernel {
		lines = append(lines, n.act.call.launch.Kernel)
	}
	if p.verbose {
		lines = append(lines, fmt.Sprintf("node handle: %#016x", n.raw))
	}
	if p.verbose && n.typ == driver.NodeHost {
		lines = append(lines, fmt.Sprintf("userData: %#016x", n.act.data))
	}
	return strings.Join(lines, "\n")
}

// GraphDebugDotPrint implements driver.Graphs.
func (m *machine) GraphDebugDotPrint(_ driver.Context, raw driver.Graph, path string, flags uint32) driver.Result {
	p := picture{verbose: flags&dotVerbose != 0}
	p.WriteString("digraph dot {\n")
	_, r := graphValue(m, raw, func(g *graph) struct{} { p.draw(g); return struct{}{} })
	if r != driver.Success {
		return r
	}
	p.WriteString("}\n")
	if os.WriteFile(path, []byte(p.String()), 0o666) != nil {
		return driver.ErrorOperatingSystem
	}
	return driver.Success
}
