package graphtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/source"
)

// edits change graphs call by call, as numbers say: rightly, and wrongly. What each call may answer, and what each launch runs, is known.
type edits struct {
	r      source.Numbers
	dev    *cuda.Device
	s      *cuda.Stream
	mark   *cuda.Kernel
	memory *cuda.PinnedBuffer
	marks  []uint64 // of memory: how many there are, and the slots

	graphs []*definition // open or closed, bodies among them
	execs  []*executable
	shapes int
	slots  int

	mu    sync.Mutex
	ran   map[int]int // host functions, by slot
	ended int         // host functions whose end was told

	log   []string
	wrong error
}

// executable is what is known of an executable graph.
type executable struct {
	x       *cuda.GraphExec
	of      *definition
	does    *frozen
	places  []*member // the nodes of the graph that it was made of, in does' order
	shape   int
	updated bool
	loose   bool // by an update from a graph of another shape: which node is which is not known
}

const (
	few        = 3  // graphs that are begun; clones come on top
	mostGraphs = 16 // bodies among them
	mostExecs  = 5
	mostNodes  = 300 // in a graph and what is in it
	mostMarks  = 4096
)

func newEdits(drv *cuda.Driver, ptx []byte) (*edits, error) {
	e := &edits{ran: map[int]int{}}
	var errs [5]error
	if e.dev, errs[0] = drv.Device(0); errs[0] != nil {
		return nil, errs[0]
	}
	m, err := e.dev.LoadModule(ptx)
	if err != nil {
		return nil, err
	}
	e.s, errs[1] = e.dev.NewStream()
	e.mark, errs[2] = m.Kernel("append")
	e.memory, errs[3] = e.dev.AllocPinned(8 * (1 + mostMarks))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	e.marks = cuda.PinnedSlice[uint64](e.memory)
	return e, e.s.Sync()
}

// run makes edits until it is over, and closes everything.
func (e *edits) run(r source.Numbers, over func() bool) error {
	e.r, e.graphs, e.execs, e.log, e.wrong = r, nil, nil, nil, nil
	defer bound(func() string { return strings.Join(e.log, "\n") })()
	for n := 0; !over() && e.wrong == nil; n++ {
		e.step()
	}
	for _, x := range e.execs {
		e.expect("close executable", x.x.Close())
	}
	for _, d := range e.graphs {
		e.expect("close", d.g.Close())
	}
	if e.wrong != nil {
		return fmt.Errorf("%w\n%s", e.wrong, strings.Join(e.log, "\n"))
	}
	return nil
}

// expect compares what a call answers with what it may answer: one of the codes, or no error if there are none.
func (e *edits) expect(what string, err error, codes ...cuda.Code) bool {
	e.log = append(e.log, fmt.Sprintf("%s: %v", what, err))
	if err == nil && len(codes) > 0 || err != nil && !answers(err, codes) {
		e.fail("%s: %v, want %v", what, err, codes)
	}
	return err == nil
}

// maybe is expect for a call that may as well succeed.
func (e *edits) maybe(what string, err error, codes ...cuda.Code) bool {
	if err == nil {
		codes = nil
	}
	return e.expect(what, err, codes...)
}

// answers reports whether err is one of the library's own, of one of the codes, with a reason.
func answers(err error, codes []cuda.Code) bool {
	var of *cuda.Error
	return errors.As(err, &of) && of.Op != "" && of.Reason != "" && slices.ContainsFunc(codes, func(c cuda.Code) bool { return errors.Is(err, c) })
}

func (e *edits) fail(format string, args ...any) {
	if e.wrong == nil {
		e.wrong = fmt.Errorf(format, args...)
	}
}

func (e *edits) step() {
	if len(e.graphs) == 0 {
		e.newGraph()
		return
	}
	steps := []func(){
		e.addNode, e.addNode, e.addNode, e.addEdges, e.addEdges, e.removeEdges, e.removeNode, e.setParams, e.addConditional,
		e.clone, e.instantiate, e.instantiate, e.update, e.setExec, e.setExec, e.launch, e.launch, e.launch, e.newGraph, e.close, e.ask,
	}
	steps[e.r.IntN(len(steps))]()
}

func (e *edits) newGraph() {
	if e.own() >= few {
		return
	}
	g, err := e.dev.NewGraph()
	if e.expect("new", err) {
		e.add(&definition{g: g})
	}
}

// own is how many graphs are open, bodies aside.
func (e *edits) own() (n int) {
	for _, d := range e.graphs {
		if d.in == nil && !d.closed {
			n++
		}
	}
	return n
}

func (e *edits) add(d *definition) {
	if d.shape == 0 {
		d.shape = e.newShape()
	}
	e.graphs = append(e.graphs, d)
}

func (e *edits) newShape() int {
	e.shapes++
	return e.shapes
}

// graph picks one, which is mostly open.
func (e *edits) graph() *definition {
	for range 8 {
		if d := e.graphs[e.r.IntN(len(e.graphs))]; !d.dead() {
			return d
		}
	}
	return e.graphs[e.r.IntN(len(e.graphs))]
}

// name writes d in the log.
func (e *edits) name(d *definition) string { return fmt.Sprintf("g%d", slices.Index(e.graphs, d)) }

// names writes a member in the log.
func (e *edits) names(m *member) string {
	if m == nil {
		return "none"
	}
	return fmt.Sprintf("%s.%d", e.name(m.of), slices.Index(m.of.nodes, m))
}

// member picks a node of d; or of another graph, or one that was removed, or none.
func (e *edits) member(d *definition) *member {
	switch e.r.IntN(16) {
	case 0:
		return nil
	case 1:
		d = e.graph()
	case 2:
		if len(d.nodes) > 0 {
			return d.nodes[e.r.IntN(len(d.nodes))]
		}
	}
	live := d.live()
	if len(live) == 0 {
		return nil
	}
	return live[e.r.IntN(len(live))]
}

// node is what a program names m by.
func (m *member) node() cuda.GraphNode {
	if m == nil {
		return cuda.GraphNode{}
	}
	return m.n
}

// open are the answers of a call that has to do with d.
func (d *definition) open() []cuda.Code {
	if d.dead() {
		return []cuda.Code{cuda.ErrClosed}
	}
	return nil
}

// params draws what a node of d is to do, and which errors that gives.
func (e *edits) params(d *definition, k kind) (p cuda.NodeParams, does deed, codes []cuda.Code) {
	e.slots++
	does = deed{kind: k, slot: e.slots}
	switch k {
	case host:
		slot := does.slot
		p = cuda.HostParams(func() { e.count(slot) }, cuda.OnDone(func(error) { e.tell() }))
		if d.in != nil {
			codes = append(codes, cuda.ErrNotSupported)
		}
	case counter:
		p = cuda.KernelParams(e.mark, cuda.Grid1D(1, 1), e.memory, uint64(does.slot))
	case child:
		c := e.graph()
		inside := c.freeze()
		if d.root().freeze().size()+inside.size() > mostNodes {
			return e.params(d, empty)
		}
		p, does.inner = cuda.ChildGraphParams(c.g), []*frozen{inside}
		codes = append(c.open(), e.embeddable(d, c, inside)...)
	default:
		does.kind, p = empty, cuda.EmptyParams()
	}
	return p, does, codes
}

// embeddable says which errors embedding c, which does inside, in d gives.
func (e *edits) embeddable(d, c *definition, inside *frozen) (codes []cuda.Code) {
	if c.in != nil || c.branches() || d.in != nil && inside.hosts() {
		codes = append(codes, cuda.ErrNotSupported)
	}
	if c.root() == d.root() {
		codes = append(codes, cuda.ErrInvalidValue)
	}
	return codes
}

func (e *edits) kind() kind { return []kind{host, counter, counter, child, empty}[e.r.IntN(5)] }

// addNode adds a node behind some others.
func (e *edits) addNode() {
	d := e.graph()
	p, does, codes := e.params(d, e.kind())
	after, nodes, bad := e.after(d)
	codes = append(append(codes, bad...), d.open()...)
	n, err := d.g.AddNode(p, nodes...)
	if e.expect(fmt.Sprintf("%s.AddNode(%s) after %s", e.name(d), kindNames[does.kind], e.list(after)), err, codes...) {
		d.nodes = append(d.nodes, &member{deed: does, of: d, n: n, after: after})
		d.root().shape = e.newShape()
	}
}

// after draws what a new node of d is to come behind.
func (e *edits) after(d *definition) (list []*member, nodes []cuda.GraphNode, codes []cuda.Code) {
	for range e.r.IntN(3) {
		m := e.member(d)
		if !d.has(m) || slices.Contains(list, m) {
			codes = []cuda.Code{cuda.ErrInvalidValue}
		}
		list, nodes = append(list, m), append(nodes, m.node())
	}
	return list, nodes, codes
}

func (e *edits) list(nodes []*member) string {
	var names []string
	for _, m := range nodes {
		names = append(names, e.names(m))
	}
	return "[" + strings.Join(names, " ") + "]"
}

// edges draws edges of d.
func (e *edits) edges(d *definition) (list [][2]*member, edges []cuda.GraphEdge, text string) {
	for range 1 + e.r.IntN(2) {
		from, to := e.member(d), e.member(d)
		list, edges = append(list, [2]*member{from, to}), append(edges, cuda.GraphEdge{From: from.node(), To: to.node()})
		text += " " + e.names(from) + "-" + e.names(to)
	}
	return list, edges, text
}

// addEdges adds some, or none if one is wrong.
func (e *edits) addEdges() {
	d := e.graph()
	list, edges, text := e.edges(d)
	codes := d.open()
	for i, x := range list {
		if !d.has(x[0]) || !d.has(x[1]) || x[0] == x[1] || slices.Contains(x[1].after, x[0]) || slices.Contains(list[:i], x) {
			codes = append(codes, cuda.ErrInvalidValue)
		}
	}
	if e.expect(e.name(d)+".AddEdges"+text, d.g.AddEdges(edges...), codes...) {
		for _, x := range list {
			x[1].after = append(x[1].after, x[0])
		}
		d.root().shape = e.newShape()
	}
}

// removeEdges removes some, or none if one is not there. Mostly one is.
func (e *edits) removeEdges() {
	d := e.graph()
	list, edges, text := e.edges(d)
	if to := e.member(d); d.has(to) && len(to.after) > 0 {
		from := to.after[e.r.IntN(len(to.after))]
		list, edges, text = [][2]*member{{from, to}}, []cuda.GraphEdge{{From: from.n, To: to.n}}, " "+e.names(from)+"-"+e.names(to)
	}
	codes := d.open()
	for i, x := range list {
		if !d.has(x[0]) || !d.has(x[1]) || !slices.Contains(x[1].after, x[0]) || slices.Contains(list[:i], x) {
			codes = append(codes, cuda.ErrInvalidValue)
		}
	}
	if e.expect(e.name(d)+".RemoveEdges"+text, d.g.RemoveEdges(edges...), codes...) {
		for _, x := range list {
			x[1].after = without(x[1].after, x[0])
		}
		d.root().shape = e.newShape()
	}
}

func without(list []*member, m *member) []*member {
	return slices.DeleteFunc(slices.Clone(list), func(other *member) bool { return other == m })
}

func (e *edits) removeNode() {
	d := e.graph()
	m := e.member(d)
	codes := d.open()
	if !d.has(m) {
		codes = append(codes, cuda.ErrInvalidValue)
	}
	if !e.expect(e.name(d)+".RemoveNode "+e.names(m), d.g.RemoveNode(m.node()), codes...) {
		return
	}
	m.gone = true
	for _, other := range d.nodes {
		other.after = without(other.after, m)
	}
	d.root().shape = e.newShape()
}

// setParams sets a node's, which are mostly of its kind.
func (e *edits) setParams() {
	d := e.graph()
	m := e.member(d)
	p, does, codes := e.params(d, e.kindFor(m))
	codes = append(codes, d.open()...)
	if !d.has(m) || does.kind != m.kind {
		codes = append(codes, cuda.ErrInvalidValue)
	}
	if e.expect(fmt.Sprintf("%s.SetParams(%s, %s)", e.name(d), e.names(m), kindNames[does.kind]), d.g.SetParams(m.node(), p), codes...) {
		m.deed = does
		if does.kind == child {
			d.root().shape = e.newShape()
		}
	}
}

// kindFor is mostly m's kind.
func (e *edits) kindFor(m *member) kind {
	if m == nil || m.kind == conditional || e.r.IntN(8) == 0 {
		return e.kind()
	}
	return m.kind
}

// addConditional adds a conditional node whose value is known; now and then one whose condition is used already, or no node at all.
func (e *edits) addConditional() {
	d := e.graph()
	if len(e.graphs) >= mostGraphs {
		return
	}
	does := deed{kind: conditional, form: e.r.IntN(forms), value: e.r.IntN(4)}
	if does.form == whileForm {
		does.value = 0 // nothing would end it
	}
	cond, err := d.g.NewCondition(cuda.AtLaunch(uint32(does.value)))
	if !e.expect(e.name(d)+".NewCondition", err, d.open()...) {
		return
	}
	d.idle++
	if e.r.IntN(16) == 0 {
		return
	}
	after, nodes, codes := e.after(d)
	n, bodies, err := addForm(d.g, does.form, 1+e.r.IntN(3), cond, nodes)
	if !e.expect(fmt.Sprintf("%s.AddConditional(form %d, value %d) after %s", e.name(d), does.form, does.value, e.list(after)), err, codes...) {
		return
	}
	d.idle--
	m := &member{deed: does, of: d, n: n, after: after}
	d.nodes = append(d.nodes, m)
	for _, g := range bodies {
		body := &definition{g: g, in: m}
		m.bodies = append(m.bodies, body)
		e.add(body)
	}
	d.root().shape = e.newShape()
	if e.r.IntN(4) == 0 {
		_, _, err := d.g.AddIf(cond)
		e.expect("the condition again", err, cuda.ErrInvalidValue)
	}
}

func addForm(g *cuda.Graph, form, cases int, cond cuda.Condition, after []cuda.GraphNode) (cuda.GraphNode, []*cuda.Graph, error) {
	switch form {
	case ifForm:
		n, then, err := g.AddIf(cond, after...)
		return n, []*cuda.Graph{then}, err
	case ifElseForm:
		n, then, otherwise, err := g.AddIfElse(cond, after...)
		return n, []*cuda.Graph{then, otherwise}, err
	case whileForm:
		n, body, err := g.AddWhile(cond, after...)
		return n, []*cuda.Graph{body}, err
	}
	return g.AddSwitch(cond, cases, after...)
}
