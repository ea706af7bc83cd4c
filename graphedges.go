package cuda

import (
	"fmt"

	"github.com/hostlaunch/cuda/internal/driver"
)

// AddEdges has To run after From, for each of edges. Needs CUDA 12.3.
//
// Errors: ErrInvalidValue for an edge that is there already, that leads from a node to itself, or to a node of another graph.
// A cycle is refused by Instantiate. On an error no edge was added. cuGraphAddDependencies.
func (g *Graph) AddEdges(edges ...GraphEdge) error {
	const reason = "an edge is there already, or leads from a node to itself"
	return g.changeEdges("Graph.AddEdges", edges, driver.Driver.GraphAddDependencies, func(op string, r driver.Result) error {
		return g.ctx.needs(op, r, "cuGraphAddDependencies", reason)
	})
}

// RemoveEdges takes edges out. Needs CUDA 12.3.
//
// Errors: ErrInvalidValue for an edge that is not there, ErrNotSupported for one of a memory node. On an error all are there
// still. cuGraphRemoveDependencies.
func (g *Graph) RemoveEdges(edges ...GraphEdge) error {
	return g.changeEdges("Graph.RemoveEdges", edges, driver.Driver.GraphRemoveDependencies, func(op string, r driver.Result) error {
		reason := "an edge is not there, or is there with other data"
		if r == driver.ErrorNotSupported {
			reason = "the edges of memory nodes cannot be removed"
		}
		return g.ctx.needs(op, r, "cuGraphRemoveDependencies", "%s", reason)
	})
}

type edgeCall func(driver.Driver, driver.Context, driver.Graph, []driver.GraphNode, []driver.GraphNode, []driver.EdgeData) driver.Result

func (g *Graph) changeEdges(op string, edges []GraphEdge, call edgeCall, refused func(op string, r driver.Result) error) error {
	if err := g.change(op); err != nil {
		return err
	}
	defer g.end()
	if len(edges) == 0 {
		return nil
	}
	from, to, data := make([]driver.GraphNode, len(edges)), make([]driver.GraphNode, len(edges)), make([]driver.EdgeData, len(edges))
	for i, e := range edges {
		f, err := g.nodes.get(op, "From of "+edgeArgument(i, len(edges)), e.From)
		if err != nil {
			return err
		}
		t, err := g.nodes.get(op, "To of "+edgeArgument(i, len(edges)), e.To)
		if err != nil {
			return err
		}
		from[i], to[i] = f.raw, t.raw
		data[i] = e.Data.raw()
	}
	return refused(op, call(g.ctx.drv.drv, g.ctx.raw, g.raw, from, to, data))
}

// edgeArgument names edge i of n in an error.
func edgeArgument(i, n int) string {
	if n == 1 {
		return "the edge"
	}
	return fmt.Sprintf("edge %d", i)
}
