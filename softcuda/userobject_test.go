package softcuda

import (
	"slices"
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

// own has a graph own a new object with data, whose destructor is noted like a host function.
func (g *graphRig) own(raw driver.Graph, data uint64) driver.UserObject {
	g.t.Helper()
	o, r := g.UserObjectCreate(data)
	g.want("create object", r, 0)
	g.want("retain", g.GraphRetainUserObject(g.ctx, raw, o, 1, driver.UserObjectMove), 0)
	return o
}

const owned = 1000 // data of the objects

// The references of a graph, its clones, what embeds it and its executables, by what is destroyed last.
func TestUserObjectLivesAsLongAsAnyHolder(t *testing.T) {
	g := newGraphRig(t)
	holders := []struct {
		name string
		make func(raw driver.Graph) (destroy func() driver.Result)
	}{
		{"graph", func(raw driver.Graph) func() driver.Result {
			return func() driver.Result { return g.GraphDestroy(g.ctx, raw) }
		}},
		{"clone", func(raw driver.Graph) func() driver.Result {
			c, r := g.GraphClone(g.ctx, raw)
			g.want("clone", r, 0)
			return func() driver.Result { return g.GraphDestroy(g.ctx, c) }
		}},
		{"child", func(raw driver.Graph) func() driver.Result {
			parent := g.graph()
			g.add(parent, &driver.NodeParams{Type: driver.NodeGraph, Child: raw})
			return func() driver.Result { return g.GraphDestroy(g.ctx, parent) }
		}},
		{"child node", func(raw driver.Graph) func() driver.Result {
			parent := g.graph()
			n := g.add(parent, &driver.NodeParams{Type: driver.NodeGraph, Child: raw})
			return func() driver.Result {
				r := g.GraphDestroyNode(g.ctx, n)
				g.want("destroy", g.GraphDestroy(g.ctx, parent), 0)
				return r
			}
		}},
		{"executable", func(raw driver.Graph) func() driver.Result {
			x := g.instantiate(raw, 0, 0)
			return func() driver.Result { return g.GraphExecDestroy(g.ctx, x) }
		}},
		{"executable of a parent", func(raw driver.Graph) func() driver.Result {
			parent := g.graph()
			g.add(parent, &driver.NodeParams{Type: driver.NodeGraph, Child: raw})
			x := g.instantiate(parent, 0, 0)
			g.want("destroy", g.GraphDestroy(g.ctx, parent), 0)
			return func() driver.Result { return g.GraphExecDestroy(g.ctx, x) }
		}},
		{"updated executable", func(raw driver.Graph) func() driver.Result {
			x := g.instantiate(g.graph(), 0, 0)
			var u driver.ExecUpdate
			g.want("update", g.GraphExecUpdate(g.ctx, x, raw, &u), 0)
			return func() driver.Result { return g.GraphExecDestroy(g.ctx, x) }
		}},
		{"executable with a new child", func(raw driver.Graph) func() driver.Result {
			parent := g.graph()
			n := g.add(parent, &driver.NodeParams{Type: driver.NodeGraph, Child: g.graph()})
			x := g.instantiate(parent, 0, 0)
			g.want("set", g.GraphExecNodeSetParams(g.ctx, x, n, &driver.NodeParams{Type: driver.NodeGraph, Child: raw}), 0)
			return func() driver.Result { return g.GraphExecDestroy(g.ctx, x) }
		}},
	}
	for last := range holders {
		raw := g.graph()
		g.own(raw, owned)
		destroy := make([]func() driver.Result, len(holders))
		for i, h := range holders {
			destroy[i] = h.make(raw)
		}
		for i := range holders {
			if i != last {
				g.want(holders[i].name, destroy[i](), 0)
			}
		}
		g.expect("before the " + holders[last].name)
		g.want(holders[last].name, destroy[last](), 0)
		g.expect("after the "+holders[last].name, owned)
	}
}

func TestUserObjectReferences(t *testing.T) {
	g := newGraphRig(t)
	raw := g.graph()
	o, _ := g.UserObjectCreate(owned)
	for what, r := range map[string]driver.Result{
		"release of nothing":   g.UserObjectRelease(1, 1),
		"release of none":      g.UserObjectRelease(o, 0),
		"release of too many":  g.UserObjectRelease(o, 2),
		"no graph":             g.GraphRetainUserObject(g.ctx, 1, o, 1, 0),
		"no object":            g.GraphRetainUserObject(g.ctx, raw, 1, 1, 0),
		"retain of none":       g.GraphRetainUserObject(g.ctx, raw, o, 0, 0),
		"unknown flag":         g.GraphRetainUserObject(g.ctx, raw, o, 1, 2),
		"move of too many":     g.GraphRetainUserObject(g.ctx, raw, o, 2, driver.UserObjectMove),
		"graph has none":       g.GraphReleaseUserObject(g.ctx, raw, o, 1),
		"no graph to let go":   g.GraphReleaseUserObject(g.ctx, 1, o, 1),
		"no object to let go":  g.GraphReleaseUserObject(g.ctx, raw, 1, 1),
		"a graph lets none go": g.GraphReleaseUserObject(g.ctx, raw, o, 0),
	} {
		g.want(what, r, driver.ErrorInvalidValue)
	}
	g.want("retain", g.GraphRetainUserObject(g.ctx, raw, o, 3, 0), 0)
	g.want("release", g.UserObjectRelease(o, 1), 0)
	g.want("release the graph's", g.UserObjectRelease(o, 1), driver.ErrorInvalidValue)
	g.want("graph release", g.GraphReleaseUserObject(g.ctx, raw, o, 2), 0)
	x := g.instantiate(raw, 0, 0)
	g.want("graph release", g.GraphReleaseUserObject(g.ctx, raw, o, 1), 0)
	g.expect("the executable has it")
	g.want("destroy", g.GraphExecDestroy(g.ctx, x), 0)
	g.expect("nobody has it", owned)
	g.want("release", g.UserObjectRelease(o, 1), driver.ErrorInvalidValue)
	g.want("destroy", g.GraphDestroy(g.ctx, raw), 0)
	g.expect("once only")
	g.empty()
}

// Launches in flight keep what they began with: the executable may be updated or destroyed. A refused update keeps nothing.
func TestUserObjectOfLaunchesInFlight(t *testing.T) {
	g := newGraphRig(t)
	one, two, three := g.graph(), g.graph(), g.graph()
	for i, raw := range []driver.Graph{one, two, three} {
		g.host(raw, uint64(i+1))
		g.own(raw, uint64(owned+i+1))
	}
	g.add(three, emptyNode)
	x := g.instantiate(one, 0, 0)
	_, release := g.gate(7)
	g.want("hold", g.LaunchHostFunc(g.ctx, g.a, 7), 0)
	g.want("launch", g.GraphLaunch(g.ctx, x, g.a), 0)
	var u driver.ExecUpdate
	g.want("refused", g.GraphExecUpdate(g.ctx, x, three, &u), driver.ErrorGraphExecUpdateFailure)
	g.want("update", g.GraphExecUpdate(g.ctx, x, two, &u), 0)
	g.want("launch", g.GraphLaunch(g.ctx, x, g.b), 0)
	g.want("destroy", g.GraphExecDestroy(g.ctx, x), 0)
	for _, raw := range []driver.Graph{one, two, three} {
		g.want("destroy", g.GraphDestroy(g.ctx, raw), 0)
	}
	g.expect("only of the refused one", owned+3)
	close(release)
	g.want("synchronise", g.CtxSynchronize(g.ctx), 0)
	g.eventually("both let go", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return len(g.ran) == 5 })
	ran := g.noted()
	if slices.Index(ran, owned+1) < slices.Index(ran, 1) || slices.Index(ran, owned+2) < slices.Index(ran, 2) {
		t.Errorf("ran %v", ran)
	}
	g.empty()
}

// A child graph that an executable takes over comes with its objects, and takes none away.
func TestUserObjectOfANewChild(t *testing.T) {
	g := newGraphRig(t)
	raw, child := g.graph(), g.graph()
	g.own(raw, owned)
	g.own(child, owned+1)
	n := g.add(raw, &driver.NodeParams{Type: driver.NodeGraph, Child: g.graph()})
	g.host(child, 1)
	inner, r := g.GraphChildGraphNodeGetGraph(g.ctx, n)
	g.want("child", r, 0)
	g.host(inner, 2)
	x := g.instantiate(raw, 0, 0)
	g.want("set", g.GraphExecNodeSetParams(g.ctx, x, n, &driver.NodeParams{Type: driver.NodeGraph, Child: child}), 0)
	g.want("destroy", g.GraphDestroy(g.ctx, raw), 0)
	g.want("destroy", g.GraphDestroy(g.ctx, child), 0)
	g.expect("the executable has both")
	g.want("destroy", g.GraphExecDestroy(g.ctx, x), 0)
	if ran := g.noted(); len(ran) != 2 {
		t.Errorf("destroyed %v", ran)
	}
}

// A destructor may call the driver: the lock is free.
func TestUserObjectDestructorCallsTheDriver(t *testing.T) {
	g := newGraphRig(t)
	raw := g.graph()
	g.own(raw, owned)
	g.hook[owned] = func() { g.graph() }
	g.want("destroy", g.GraphDestroy(g.ctx, raw), 0)
	g.expect("destroyed", owned)
}

// In a lost context destructors run as ever, but not while a host function of a launch runs yet.
func TestUserObjectInALostContext(t *testing.T) {
	g := newGraphRig(t)
	raw, before := g.graph(), g.graph()
	started, release := g.gate(1)
	g.host(raw, 1)
	g.own(raw, owned)
	g.own(before, owned+1)
	x := g.instantiate(raw, 0, 0)
	g.want("launch", g.GraphLaunch(g.ctx, x, g.a), 0)
	<-started
	p := g.kernelNode("fault")
	g.LaunchKernel(g.ctx, p.Func, p.Launch, g.b)
	g.want("synchronise", g.StreamSynchronize(g.ctx, g.b), driver.ErrorLaunchFailed)
	g.want("instantiate", second(g.GraphInstantiateWithParams(g.ctx, raw, &driver.Instantiation{})), driver.ErrorLaunchFailed)
	g.want("destroy executable", g.GraphExecDestroy(g.ctx, x), 0)
	g.want("destroy graph", g.GraphDestroy(g.ctx, raw), 0)
	g.want("destroy graph", g.GraphDestroy(g.ctx, before), 0)
	g.expect("while the function runs", owned+1)
	close(release)
	g.eventually("the rest", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return len(g.ran) == 2 })
	g.expect("afterwards", 1, owned)
	late := g.graph()
	g.own(late, owned+2)
	g.want("destroy graph", g.GraphDestroy(g.ctx, late), 0)
	g.expect("made in a lost context", owned+2)
	g.empty()
}

func second[A, B any](_ A, b B) B { return b }
