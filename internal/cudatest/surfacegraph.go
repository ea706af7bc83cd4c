package cudatest

import (
	"io"

	"github.com/hostlaunch/cuda"
)

// graphCalls are the part of everyCall that is about graphs. Those of a GraphBuilder are its stream's.
func graphCalls(t *T, s *cuda.Stream) map[string]func() error {
	g := t.Graph()
	n := t.Node(g, cuda.EmptyParams())
	x, edge, p := t.Exec(g), cuda.GraphEdge{From: n, To: n}, cuda.EmptyParams()
	return map[string]func() error{
		"Graph.Nodes":          func() error { _, err := g.Nodes(); return err },
		"Graph.NodeType":       func() error { _, err := g.NodeType(n); return err },
		"Graph.Edges":          func() error { _, err := g.Edges(); return err },
		"Graph.AddNode":        func() error { _, err := g.AddNode(p); return err },
		"Graph.SetParams":      func() error { return g.SetParams(n, p) },
		"Graph.RemoveNode":     func() error { return g.RemoveNode(n) },
		"Graph.AddEdges":       func() error { return g.AddEdges(edge) },
		"Graph.RemoveEdges":    func() error { return g.RemoveEdges(edge) },
		"Graph.Clone":          func() error { _, err := g.Clone(); return err },
		"Graph.FindInClone":    func() error { _, err := g.FindInClone(n, g); return err },
		"Graph.ChildGraph":     func() error { _, err := g.ChildGraph(n); return err },
		"Graph.AddAlloc":       func() error { _, _, err := g.AddAlloc(16); return err },
		"Graph.NewCondition":   func() error { _, err := g.NewCondition(); return err },
		"Graph.AddIf":          func() error { _, _, err := g.AddIf(cuda.Condition{}); return err },
		"Graph.AddIfElse":      func() error { _, _, _, err := g.AddIfElse(cuda.Condition{}); return err },
		"Graph.AddWhile":       func() error { _, _, err := g.AddWhile(cuda.Condition{}); return err },
		"Graph.AddSwitch":      func() error { _, _, err := g.AddSwitch(cuda.Condition{}, 1); return err },
		"Graph.DOT":            func() error { return g.DOT(io.Discard) },
		"Graph.DebugDOT":       func() error { return g.DebugDOT("nowhere", false) },
		"Graph.Instantiate":    func() error { _, err := g.Instantiate(); return err },
		"GraphExec.Launch":     func() error { return x.Launch(s) },
		"GraphExec.Upload":     func() error { return x.Upload(s) },
		"GraphExec.Update":     func() error { return x.Update(g) },
		"GraphExec.SetParams":  func() error { return x.SetParams(n, p) },
		"GraphExec.SetEnabled": func() error { return x.SetEnabled(n, true) },
		"GraphExec.Enabled":    func() error { _, err := x.Enabled(n); return err },
	}
}
