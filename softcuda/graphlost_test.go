package softcuda

import (
	"testing"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// Nodes of a context that is lost do nothing, and hold nobody up, when a graph with them is launched in another one.
func TestGraphNodesOfLostContext(t *testing.T) {
	g := newGraphRig(t)
	other, r := g.CtxCreate(0, 0)
	g.want("context", r, 0)
	raw := g.graph()
	gone, r := g.GraphAddNode(other, raw, nil, nil, hostNode(1))
	g.want("add node", r, 0)
	g.host(raw, 2, gone)
	x := g.instantiate(raw, 0, 0)
	g.run(x)
	g.expect("before", 1, 2)
	g.machine.mu.Lock()
	g.fail(g.contexts[other], driver.ErrorLaunchFailed)
	g.unlock()
	g.want("launch", g.GraphLaunch(g.ctx, x, g.a), 0)
	synced := make(chan driver.Result, 1)
	go func() { synced <- g.StreamSynchronize(g.ctx, g.a) }()
	select {
	case r := <-synced:
		g.want("synchronise", r, 0)
	case <-time.After(5 * time.Second):
		t.Fatal("the launch hangs")
	}
	g.expect("afterwards", 2)
}
