package cuda

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/hostlaunch/cuda/internal/driver"
)

// DOT writes g as a picture in Graphviz's language: each node with its type, host nodes with the name and the place of their
// function, kernel nodes with the kernel's name and shape; graphs inside nodes are boxes, tied to them by dashed lines (CONTRACT
// GR-09). Package picture makes an SVG of it. Needs CUDA 12.3.
func (g *Graph) DOT(w io.Writer) error {
	const op = "Graph.DOT"
	if w == nil {
		return failf(op, ErrInvalidValue, "w is nil")
	}
	if err := g.begin(op); err != nil {
		return err
	}
	defer g.end()
	p := &dotPrinter{w: bufio.NewWriter(w)}
	p.printf("digraph graph_ {\n\tcompound=true;\n\tfontname=Helvetica;\n\tnode [shape=box, fontname=Helvetica];\n")
	if r := p.graph(g, "\t"); r != driver.Success {
		return g.ctx.needs(op, r, "cuGraphGetEdges", "")
	}
	p.printf("}\n")
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("cuda: %s: %w", op, err)
	}
	return nil
}

// DebugDOT has the driver write its own picture of g to a file, with all parameters if verbose. It names no host functions.
// cuGraphDebugDotPrint.
func (g *Graph) DebugDOT(path string, verbose bool) error {
	const op = "Graph.DebugDOT"
	if path == "" || strings.IndexByte(path, 0) >= 0 {
		return failf(op, ErrInvalidValue, "path %q is no file's", path)
	}
	if err := g.begin(op); err != nil {
		return err
	}
	defer g.end()
	var flags uint32
	if verbose {
		flags = 1
	}
	r := g.ctx.drv.drv.GraphDebugDotPrint(g.ctx.raw, g.raw, path, flags)
	return g.ctx.resultf(op, r, "the driver could not write %s", path)
}

type dotPrinter struct {
	w *bufio.Writer
	n int // nodes so far
}

func (p *dotPrinter) printf(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

// graph prints the nodes and edges of g, and those inside its nodes.
func (p *dotPrinter) graph(g *Graph, indent string) driver.Result {
	d, c := g.ctx.drv.drv, g.ctx
	nodes, r := d.GraphGetNodes(c.raw, g.raw)
	if r != driver.Success {
		return r
	}
	names := make(map[driver.GraphNode]string, len(nodes))
	for _, raw := range nodes {
		names[raw] = fmt.Sprintf("n%d", p.n)
		p.n++
		label := g.label(raw)
		p.printf("%s%s [label=%s];\n", indent, names[raw], dotQuote(label.String()))
		for i, inside := range g.insideOf(raw, label.kind) {
			first, cluster := p.n, fmt.Sprintf("cluster_%s_%d", names[raw], i)
			p.printf("%ssubgraph %s {\n%s\tlabel=%s;\n", indent, cluster, indent, dotQuote(fmt.Sprintf("%s of %s", label.kind, names[raw])))
			if r := p.graph(inside, indent+"\t"); r != driver.Success {
				return r
			}
			p.printf("%s}\n", indent)
			if p.n > first { // which box is the node's
				p.printf("%s%s -> n%d [lhead=%s, style=dashed, arrowhead=none];\n", indent, names[raw], first, cluster)
			}
		}
	}
	edges, r := d.GraphGetEdges(c.raw, g.raw)
	for _, e := range edges {
		p.printf("%s%s -> %s;\n", indent, names[e.From], names[e.To])
	}
	return r
}

// insideOf are the graphs inside a node.
func (g *Graph) insideOf(raw driver.GraphNode, kind GraphNodeType) []*Graph {
	n := g.nodes.of(raw)
	if kind == ChildGraphNode {
		if child, err := g.ChildGraph(n); err == nil {
			return []*Graph{child}
		}
		return nil
	}
	if found, err := g.nodes.get("", "", n); err == nil && found.inner != nil {
		return found.inner.graphs
	}
	return nil
}

// nodeLabel says what a node is.
type nodeLabel struct {
	kind GraphNodeType
	name string // of a host function or a kernel
	more string
}

func (l nodeLabel) String() string {
	s := l.kind.String()
	if l.name != "" {
		s += "\n" + l.name
	}
	if l.more != "" {
		s += "\n" + l.more
	}
	return s
}

// label says what node raw of g is, as far as the driver tells.
func (g *Graph) label(raw driver.GraphNode) nodeLabel {
	d, c := g.ctx.drv.drv, g.ctx
	t, r := d.GraphNodeGetType(c.raw, raw)
	label := nodeLabel{kind: GraphNodeType(t)}
	if r != driver.Success {
		return label
	}
	switch t {
	case driver.NodeHost:
		data, _ := d.GraphHostNodeGetParams(c.raw, raw)
		if fn, ok := c.drv.funcs.KeptFunc(c.drv.hostOf(data)); ok {
			label.name, label.more = funcName(fn), siteName(fn.Site)
		}
	case driver.NodeKernel:
		f, grid, block, r := d.GraphKernelNodeGetParams(c.raw, raw)
		if r != driver.Success {
			break
		}
		label.name, _ = d.FuncGetName(c.raw, f)
		label.more = fmt.Sprintf("%dx%dx%d blocks of %dx%dx%d", grid[0], grid[1], grid[2], block[0], block[1], block[2])
	}
	return label
}

// dotQuote makes a string of the DOT language.
func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
