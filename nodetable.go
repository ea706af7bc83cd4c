package cuda

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
)

// GraphNode is a node of a Graph. It is comparable, and valid until the node is removed or the Graph closed, which the garbage collector
// does not do while there is a GraphNode; the zero GraphNode is none.
type GraphNode struct {
	of *nodeTable
	at int32
}

// inside reports whether n is a node of a graph inside outer, at any depth.
func (n GraphNode) inside(outer GraphNode) bool {
	for n = n.of.inside; n.of != nil; n = n.of.inside {
		if n == outer {
			return true
		}
	}
	return false
}

// nodeTable knows the nodes of a graph. The driver does not check node handles, so every GraphNode that a program passes is
// looked up here first.
type nodeTable struct {
	mu    sync.Mutex
	list  []node
	index map[driver.GraphNode]int32 // the places of those that are there; nil until it is needed
	era   int                        // how often forget was called
	loose []hostfn.Handle            // functions of host nodes of which it is not known which nodes those are: capture made them

	graph  *resource   // of the graph; of one inside a node, of the graph that has the node
	kind   graphKind   // of the graph
	inside GraphNode   // the node that the graph is inside of; none: it is in no other
	gone   atomic.Bool // then: the node was removed

	perished *atomic.Bool // of the graph that is in no other: the driver has destroyed it; nil: there is no graph yet
	open     *Graph       // likewise: the collector does not close it while there are GraphNodes of it, or GraphExecs
}

type graphKind uint8

const (
	ownGraph      graphKind = iota
	bodyGraph               // of a conditional node
	embeddedGraph           // of a child graph node
)

// root is the table of the graph that is in no other.
func (t *nodeTable) root() *nodeTable {
	for t.inside.of != nil {
		t = t.inside.of
	}
	return t
}

// lost reports whether the driver has destroyed the graph, or that which it is inside of.
func (t *nodeTable) lost() bool {
	p := t.root().perished
	return p != nil && p.Load()
}

// removed reports whether the graph is inside a node that was removed, or is lost.
func (t *nodeTable) removed() bool {
	if t.lost() {
		return true
	}
	for ; t != nil; t = t.inside.of {
		if t.gone.Load() {
			return true
		}
	}
	return false
}

// node is one node. Of those that capture made, nothing but raw is known.
type node struct {
	raw    driver.GraphNode  // 0: removed
	object driver.UserObject // carries the node's owner, and the graph refers to it; 0: it has none, or its capture's
	host   hostfn.Handle     // of a host node
	first  hostfn.Handle     // of a host node that capture made: what it was made with
	inner  *innerGraphs
}

// innerGraphs are the graphs inside a node.
type innerGraphs struct {
	hosts  []hostfn.Handle // the host functions of an embedded graph
	graphs []*Graph        // the bodies of a conditional node, or the embedded graph once it has been asked for
}

// add takes in a new node.
func (t *nodeTable) add(n node) GraphNode {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.append(n)
}

func (t *nodeTable) append(n node) GraphNode {
	at := int32(len(t.list))
	t.list = append(t.list, n)
	if t.index != nil {
		t.index[n.raw] = at
	}
	return GraphNode{t, at}
}

// of gives the node of a handle that the driver has told, and takes it in if it is new.
func (t *nodeTable) of(raw driver.GraphNode) GraphNode {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.find(raw)
}

func (t *nodeTable) find(raw driver.GraphNode) GraphNode {
	if t.index == nil {
		t.index = make(map[driver.GraphNode]int32, len(t.list))
		for i, n := range t.list {
			if n.raw != 0 {
				t.index[n.raw] = int32(i)
			}
		}
	}
	if at, ok := t.index[raw]; ok {
		return GraphNode{t, at}
	}
	return t.append(node{raw: raw})
}

// all gives the nodes of handles that the driver has told.
func (t *nodeTable) all(raw []driver.GraphNode) []GraphNode {
	t.mu.Lock()
	defer t.mu.Unlock()
	nodes := make([]GraphNode, 0, len(raw))
	for _, r := range raw {
		nodes = append(nodes, t.find(r))
	}
	return nodes
}

// get is node n, if it is in t and has not been removed. what names n in the error.
func (t *nodeTable) get(op, what string, n GraphNode) (node, error) {
	switch {
	case n.of == nil:
		return node{}, failf(op, ErrInvalidValue, "%s is no node: it is the zero GraphNode", what)
	case n.of != t:
		return node{}, failf(op, ErrInvalidValue, "%s is a node of another graph", what)
	}
	if t.lost() {
		return node{}, failf(op, ErrClosed, "a capture into the graph of %s has failed, and the driver has destroyed the graph; build it anew", what)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.list[n.at]
	if found.raw == 0 || t.removed() {
		return node{}, failf(op, ErrInvalidValue, "%s was removed from the graph", what)
	}
	return found, nil
}

// raws are the driver's handles of nodes of t.
func (t *nodeTable) raws(op string, nodes []GraphNode, raw []driver.GraphNode) ([]driver.GraphNode, error) {
	for i, n := range nodes {
		found := t.handle(n)
		if found == 0 {
			_, err := t.get(op, nodeArgument(i, len(nodes)), n)
			return nil, err
		}
		raw = append(raw, found)
	}
	return raw, nil
}

// handle is the driver's handle of node n of t, or 0.
func (t *nodeTable) handle(n GraphNode) driver.GraphNode {
	if n.of != t || t.removed() {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.list[n.at].raw
}

// set changes what is known of n.
func (t *nodeTable) set(n GraphNode, to node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list[n.at] = to
}

// remove forgets n.
func (t *nodeTable) remove(n GraphNode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.index != nil {
		delete(t.index, t.list[n.at].raw)
	}
	t.list[n.at] = node{}
}

// forget has nothing be known of the nodes but their handles.
func (t *nodeTable) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loose = nil
	t.era++
	for i := range t.list {
		t.list[i] = node{raw: t.list[i].raw}
	}
}

// epoch is how often a recapture has given the nodes other work.
func (t *nodeTable) epoch() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.era
}

// addLoose takes in host functions of nodes that a capture made.
func (t *nodeTable) addLoose(hosts []hostfn.Handle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loose = append(t.loose, hosts...)
}

// mayHaveHosts refuses host nodes where the driver does.
func (t *nodeTable) mayHaveHosts(op string) error {
	if t.kind == bodyGraph {
		return failf(op, ErrNotSupported, "the body of a conditional node cannot have host nodes")
	}
	return nil
}

// tie says that a loose function is node n's.
func (t *nodeTable) tie(n GraphNode, h hostfn.Handle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.takeLoose(h) {
		t.list[n.at].host, t.list[n.at].first = h, h
	}
}

// tieInner says that loose functions are those of the graph inside node n.
func (t *nodeTable) tieInner(n GraphNode, hosts []hostfn.Handle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.list[n.at].inner != nil { // another executable's call was first
		return
	}
	inner := new(innerGraphs)
	for _, h := range hosts {
		if t.takeLoose(h) {
			inner.hosts = append(inner.hosts, h)
		}
	}
	t.list[n.at].inner = inner
}

// takeLoose reports whether h was loose. mu is held.
func (t *nodeTable) takeLoose(h hostfn.Handle) bool {
	i := slices.Index(t.loose, h)
	if i >= 0 {
		t.loose = slices.Delete(t.loose, i, i+1)
	}
	return i >= 0
}

// hosts are the functions that one launch of the graph runs, each as often as it is run.
func (t *nodeTable) hosts() []hostfn.Handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	hosts := slices.Clone(t.loose)
	for i := range t.list {
		hosts = t.list[i].appendHosts(hosts)
	}
	return hosts
}

// appendHosts appends the functions that n runs at a launch.
func (n *node) appendHosts(hosts []hostfn.Handle) []hostfn.Handle {
	if n.host != 0 {
		hosts = append(hosts, n.host)
	}
	if n.inner != nil {
		hosts = append(hosts, n.inner.hosts...)
	}
	return hosts
}

// snapshot is what is known of the nodes now, and the functions of which it is not known which nodes those are.
func (t *nodeTable) snapshot() (list []node, loose []hostfn.Handle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.list), slices.Clone(t.loose)
}
