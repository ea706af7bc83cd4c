package cuda

import "github.com/hostlaunch/cuda/internal/driver"

// BeginRecapture begins a capture that gives the nodes of g other work to do, or other arguments: what is captured must have
// the nodes of what g was made of, of the same types, in the same order and with the same edges. So a graph whose buffers or
// sizes have changed is captured anew by the code that made it. Executables made of g before are not affected.
//
// End returns g, which lets go of what its nodes used before. If the recapture fails, g is of no use any more: the program can
// only close it. It fails with ErrGraphRecaptureFailure, at End or where a call differs, if the nodes do.
//
// Needs CUDA 13.3.
//
// Errors: as Begin's; ErrNotSupported, ErrIllegalState for a graph that a recapture has spoiled. CONTRACT CP-13;
// cuStreamBeginRecaptureToGraph.
func (b *GraphBuilder) BeginRecapture(g *Graph, mode CaptureMode) error {
	return b.beginInto("GraphBuilder.BeginRecapture", mode, target{into: g, again: true})
}

// settle notes what the graph that c captured into has now. After a recapture the nodes have no other work than what was
// captured now, and the driver has let go of what the graph owned before; after one that failed, anything may be left of either.
//
// Whatever else was captured into a graph and failed, the driver has destroyed the graph: seen on an H200 for captures that were
// spoiled, unjoined or ended on another thread. Its handle must not be used again, nor that of a graph that it was inside of.
func (c *capture) settle(op string, well bool) error {
	if !well && !c.again {
		c.nodes.root().perished.Store(true)
		return nil
	}
	if c.again {
		c.nodes.forget()
	}
	c.nodes.addLoose(c.owner.hosts)
	if !c.again {
		return nil
	}
	if !well {
		c.into.spoiled.Store(true)
	}
	c.owner.shares.Add(1) // which is kept if the driver does not take the owner: the nodes are there, so better a leak
	ctx := c.origin.ctx
	if r := c.owner.attach(ctx, c.into.raw); r != driver.Success {
		c.into.spoiled.Store(true)
		return ctx.resultf(op, r, "the driver did not take what the nodes use into its care; the graph is of no use any more")
	}
	c.owner.release()
	return nil
}

// defined refuses a graph, which an error calls what, of which nobody knows what it would do.
func (g *Graph) defined(op, what string) error {
	if g.spoiled.Load() {
		return failf(op, ErrIllegalState, "a recapture into %s has failed, and it is of no use any more; close it", what)
	}
	return nil
}

// complete refuses a graph that cannot be run or copied as it is.
func (g *Graph) complete(op, what string) error {
	if err := g.refuseCaptured(op, what); err != nil {
		return err
	}
	return g.defined(op, what)
}
