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

// A capture into a graph ends with its context, if it is ended at all: the graph goes, with what it owns.
func TestCaptureIntoGraphOfLostContext(t *testing.T) {
	g := newGraphRig(t)
	raw := g.graph()
	owner, r := g.UserObjectCreate(5)
	g.want("owner", r, 0)
	g.want("own", g.GraphRetainUserObject(g.ctx, raw, owner, 1, driver.UserObjectMove), 0)
	g.want("begin", g.StreamBeginCaptureToGraph(g.ctx, g.a, raw, nil, nil, driver.CaptureRelaxed), 0)
	g.want("capture", g.LaunchHostFunc(g.ctx, g.a, 1), 0)
	g.machine.mu.Lock()
	g.fail(g.contexts[g.ctx], driver.ErrorLaunchFailed)
	g.unlock()
	g.want("destroy what is captured into", g.GraphDestroy(g.ctx, raw), driver.ErrorIllegalState)
	g.end(g.a, driver.ErrorLaunchFailed)
	g.want("destroy", g.GraphDestroy(g.ctx, raw), driver.ErrorInvalidValue)
	g.expect("the destructor", 5)
	g.empty()
}
