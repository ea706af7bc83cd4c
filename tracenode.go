package cuda

import (
	"reflect"
	"slices"

	"github.com/hostlaunch/cuda/internal/hostfn"
)

// nodeRuns are the runs of a graph's function that are to come, by the launches that they belong to.
type nodeRuns struct {
	before   int      // runs that were due before the first of them
	launches []opSpan // in their order
}

// expects says that a launch is about to run functions of the graph, before they are told to expect it.
func (sp opSpan) expects(hosts []hostfn.Handle) {
	if sp.t == nil || len(hosts) == 0 {
		return
	}
	t := sp.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.nodes == nil {
		t.nodes = map[hostfn.Handle]*nodeRuns{}
	}
	for _, h := range hosts {
		runs := t.nodes[h]
		if runs == nil {
			fn, _ := t.drv.funcs.KeptFunc(h)
			if o, _ := fn.More.(*hostOptions); o != nil && o.native != 0 {
				continue // Go does not see it run
			}
			runs = &nodeRuns{before: t.drv.funcs.Due(h)}
			t.nodes[h] = runs
		}
		runs.launches = append(runs.launches, sp)
	}
}

// unexpects takes back what expects said: the launch was refused.
func (sp opSpan) unexpects(hosts []hostfn.Handle) {
	if sp.t == nil {
		return
	}
	t := sp.t
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range hosts {
		if runs := t.nodes[h]; runs != nil {
			runs.launches = slices.DeleteFunc(runs.launches, func(other opSpan) bool { return other == sp })
		}
	}
}

// launchOf is the launch that the run of a graph's function belongs to that is about to begin, if that is traced.
func (t *Tracer) launchOf(h hostfn.Handle) opSpan {
	t.mu.Lock()
	defer t.mu.Unlock()
	runs := t.nodes[h]
	switch {
	case runs == nil || runs.before == 0 && len(runs.launches) == 0:
		return opSpan{}
	case runs.before > 0:
		runs.before--
		return opSpan{}
	}
	sp := runs.launches[0]
	runs.launches = runs.launches[1:]
	return sp
}

// node has a graph's function, which is about to run, carry a span.
func (t *Tracer) node(h hostfn.Handle, fn hostfn.Func) hostfn.Func {
	launch := t.launchOf(h)
	if launch.t == nil {
		return fn
	}
	var o hostOptions
	if given, _ := fn.More.(*hostOptions); given != nil {
		o = *given
	}
	w := traceWhat{kind: TraceNode, op: "HostLaunch", name: o.name, lane: t.laneOf(launch)}
	if o.graph != nil {
		w.op = "GraphBuilder.Task"
	}
	if w.pcs[0] = fn.Site; w.name == "" {
		w.fn = reflect.ValueOf(fn.Run).Pointer()
	}
	if o.span = t.addIn(&w, 0, 0, launch.rec.id); o.span.t != nil {
		fn.More = &o
	}
	return fn
}

// laneOf is the lane of a span.
func (t *Tracer) laneOf(sp opSpan) *traceLane {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.whats[sp.rec.what].lane
}
