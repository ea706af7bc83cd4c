package graphtest

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// clone clones a graph of its own.
func (e *edits) clone() {
	d := e.graph().root()
	codes := d.open()
	if d.branches() {
		codes = append(codes, cuda.ErrNotSupported)
	}
	if e.own() >= 2*few || len(e.graphs) >= mostGraphs {
		return
	}
	g, err := d.g.Clone()
	if !e.expect(e.name(d)+".Clone", err, codes...) {
		return
	}
	c := &definition{g: g, shape: d.shape}
	e.add(c)
	copies := map[*member]*member{}
	for _, m := range d.live() {
		n, err := d.g.FindInClone(m.n, g)
		e.expect("find in clone", err)
		copies[m] = &member{deed: m.deed, of: c, n: n}
		c.nodes = append(c.nodes, copies[m])
	}
	for m, to := range copies {
		for _, before := range m.after {
			to.after = append(to.after, copies[before])
		}
	}
}

func (e *edits) instantiate() {
	d := e.graph()
	codes := d.open()
	if d.in != nil || d.freeze().cyclic || d.unused() {
		codes = append(codes, cuda.ErrInvalidValue)
	}
	x, err := d.g.Instantiate()
	if !e.expect(e.name(d)+".Instantiate", err, codes...) {
		return
	}
	if len(e.execs) == mostExecs {
		e.expect("close executable", e.execs[0].x.Close())
		e.execs = e.execs[1:]
	}
	e.execs = append(e.execs, &executable{x: x, of: d, does: d.freeze(), places: d.live(), shape: d.shape})
}

// exec picks an executable, if there is one.
func (e *edits) exec() (*executable, string) {
	if len(e.execs) == 0 {
		return nil, ""
	}
	i := e.r.IntN(len(e.execs))
	return e.execs[i], fmt.Sprintf("x%d of %s", i, e.name(e.execs[i].of))
}

// update updates an executable from a graph: it must succeed where that is of the same shape, and fail where it has another number
// of nodes.
func (e *edits) update() {
	x, name := e.exec()
	if x == nil {
		return
	}
	d := e.graph()
	if e.r.IntN(2) == 0 {
		d = x.of
	}
	codes, does := d.open(), d.freeze()
	what, check := fmt.Sprintf("%s.Update(%s)", name, e.name(d)), e.expect
	if d.in != nil {
		codes = append(codes, cuda.ErrInvalidValue)
	}
	switch {
	case len(codes) > 0 || d.shape == x.shape && !d.unused():
	case does.cyclic, len(does.nodes) != len(x.does.nodes):
		codes = []cuda.Code{cuda.ErrGraphExecUpdateFailure}
	default:
		codes, check = []cuda.Code{cuda.ErrGraphExecUpdateFailure}, e.maybe
	}
	if check(what, x.x.Update(d.g), codes...) {
		x.does, x.updated, x.loose = does, true, x.loose || d.shape != x.shape
	}
}

// setExec sets parameters in an executable only.
func (e *edits) setExec() {
	x, name := e.exec()
	if x == nil || x.loose {
		return
	}
	m := e.member(x.of)
	if m != nil && m.of.in != nil {
		return
	}
	p, does, codes := e.params(x.of, e.kindFor(m))
	codes = append(codes, x.of.open()...)
	place := slices.Index(x.places, m)
	if !x.of.has(m) || does.kind != m.kind || place < 0 {
		codes = append(codes, cuda.ErrInvalidValue)
	}
	if x.updated && (does.kind == host || does.kind == child) {
		codes = append(codes, cuda.ErrIllegalState)
	}
	check := e.expect
	if does.kind == child && len(codes) == 0 {
		codes, check = []cuda.Code{cuda.ErrInvalidValue}, e.maybe // of another shape
	}
	if check(fmt.Sprintf("%s.SetParams(%s, %s)", name, e.names(m), kindNames[does.kind]), x.x.SetParams(m.node(), p), codes...) {
		nodes := slices.Clone(x.does.nodes)
		nodes[place] = does
		x.does = &frozen{nodes: nodes}
	}
}

// count notes a run of a host function.
func (e *edits) count(slot int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ran[slot]++
}

// tell notes that a host function's end was told.
func (e *edits) tell() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended++
}

// launch launches an executable, and compares what ran.
func (e *edits) launch() {
	x, name := e.exec()
	if x == nil {
		return
	}
	e.mu.Lock()
	e.ended = 0
	clear(e.ran)
	e.mu.Unlock()
	clear(e.marks)
	times, want := 1+e.r.IntN(2), map[int]int{}
	for range times {
		x.does.count(want)
		e.expect(name+".Launch", x.x.Launch(e.s))
	}
	e.expect("sync", e.s.Sync())
	if got := e.counted(); !maps.Equal(got, want) {
		e.fail("%d launches of %s have run %v, want %v", times, name, got, want)
	}
	e.mu.Lock()
	hosts := 0
	for _, n := range e.ran {
		hosts += n
	}
	e.mu.Unlock()
	for deadline := time.Now().Add(5 * time.Second); e.told() != hosts; time.Sleep(20 * time.Microsecond) {
		if time.Now().After(deadline) {
			e.fail("%d launches of %s have run %d host functions; the end of %d was told", times, name, hosts, e.told())
			return
		}
	}
}

func (e *edits) told() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended
}

// counted is how often each slot was counted: by host functions and by kernels.
func (e *edits) counted() map[int]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	got := maps.Clone(e.ran)
	for i := range min(atomic.LoadUint64(&e.marks[0]), mostMarks) {
		got[int(e.marks[1+i])]++
	}
	return got
}

// close closes a graph or an executable.
func (e *edits) close() {
	if len(e.execs) > 0 && e.r.IntN(2) == 0 {
		i := e.r.IntN(len(e.execs))
		e.expect("close executable", e.execs[i].x.Close())
		e.execs = slices.Delete(e.execs, i, i+1)
		return
	}
	d := e.graph().root()
	e.expect(e.name(d)+".Close", d.g.Close())
	d.closed = true
	if e.r.IntN(2) == 0 { // it is forgotten too, as far as no other call may meet it
		e.graphs = slices.DeleteFunc(e.graphs, func(other *definition) bool { return other.root() == d })
		e.execs = slices.DeleteFunc(e.execs, func(x *executable) bool {
			return x.of == d && e.expect("close executable", x.x.Close())
		})
	}
}

// ask compares a graph's own answers.
func (e *edits) ask() {
	d := e.graph()
	nodes, err := d.g.Nodes()
	if !e.expect(e.name(d)+".Nodes", err, d.open()...) {
		return
	}
	edges, err := d.g.Edges()
	e.expect(e.name(d)+".Edges", err)
	want := 0
	for _, m := range d.live() {
		want += len(m.after)
	}
	if len(nodes) != len(d.live()) || len(edges) != want {
		e.fail("%s has %d nodes and %d edges, want %d and %d", e.name(d), len(nodes), len(edges), len(d.live()), want)
	}
	m := e.member(d)
	var codes []cuda.Code
	if !d.has(m) {
		codes = []cuda.Code{cuda.ErrInvalidValue}
	}
	typ, err := d.g.NodeType(m.node())
	if e.expect(e.name(d)+".NodeType "+e.names(m), err, codes...) && typ != typeOf[m.kind] {
		e.fail("%s is a %v node, want %v", e.names(m), typ, typeOf[m.kind])
	}
	err = d.g.DOT(io.Discard)
	e.expect(e.name(d)+".DOT", err)
}

var typeOf = map[kind]cuda.GraphNodeType{
	host: cuda.HostNode, counter: cuda.KernelNode, child: cuda.ChildGraphNode, empty: cuda.EmptyNode, conditional: cuda.ConditionalNode,
}
