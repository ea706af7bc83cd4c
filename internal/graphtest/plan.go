package graphtest

import (
	"fmt"
	"strings"

	"github.com/hostlaunch/cuda/internal/source"
)

// kind is what a node of a plan does. Each node has a cell of its own, some in pinned memory and some in the device's.
type kind int

const (
	host    kind = iota // a host function that checks what must have happened, and writes its count of runs to its pinned cell
	child               // a graph of its own with such a function
	counter             // a kernel that adds 1 to the device cell
	memset              // writes a value to the device cell
	copying             // copies the device cell of a node before it to the pinned cell
	write               // a memory operation that writes a value to the pinned cell
	empty
	record
	wait
	kinds
)

var kindNames = [kinds]string{"host", "child", "counter", "memset", "copy", "write", "empty", "record", "wait"}

// node is one node of a plan.
type node struct {
	kind  kind
	deps  []int  // nodes before it, each once
	from  int    // copying: whose cell
	value uint32 // memset, write
}

// plan is a random graph. A node depends on earlier ones only.
type plan struct {
	nodes   []node
	before  []set // of each node, all that come before it
	version uint32
}

// set is a set of nodes.
type set []uint64

func newSet(n int) set       { return make(set, (n+63)/64) }
func (s set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }
func (s set) addAll(others set) {
	for i, w := range others {
		s[i] |= w
	}
}

// draw makes the plan of a seed: 1 to 200 nodes.
func draw(seed uint64) *plan { return drawFrom(source.Seed(seed, 4)) }

func drawFrom(r source.Numbers) *plan {
	p := &plan{nodes: make([]node, 1+r.IntN(1+r.IntN(200)))}
	density := 1 + r.IntN(4)
	for i := range p.nodes {
		n := &p.nodes[i]
		seen := newSet(len(p.nodes))
		all := newSet(len(p.nodes))
		for range r.IntN(density + 1) {
			if i == 0 {
				break
			}
			d := max(0, i-1-r.IntN(1+r.IntN(20))) // mostly near ones
			if !seen.has(d) {
				seen.add(d)
				all.add(d)
				all.addAll(p.before[d])
				n.deps = append(n.deps, d)
			}
		}
		p.before = append(p.before, all)
		n.kind, n.value = kind(r.IntN(int(kinds))), r.Uint32()|1
		if n.kind == copying {
			n.from = p.source(i, r)
			if n.from < 0 {
				n.kind = host
			}
		}
	}
	return p
}

// source picks a node before i that has a device cell, or -1.
func (p *plan) source(i int, r source.Numbers) int {
	var list []int
	for d := range i {
		if k := p.nodes[d].kind; p.before[i].has(d) && (k == counter || k == memset) {
			list = append(list, d)
		}
	}
	if list == nil {
		return -1
	}
	return list[r.IntN(len(list))]
}

// next is the same graph with other parameters.
func (p *plan) next() *plan {
	q := &plan{nodes: append([]node(nil), p.nodes...), before: p.before, version: p.version + 1}
	for i := range q.nodes {
		q.nodes[i].value += 2
	}
	return q
}

// pinned is what the pinned cell of node i holds after launch n, from 1; ok is false if it has none.
func (p *plan) pinned(i int, n uint32) (v uint32, ok bool) {
	switch node := p.nodes[i]; node.kind {
	case host, child:
		return n, true
	case write:
		return node.value, true
	case copying:
		return p.device(node.from, n), true
	}
	return 0, false
}

// device is what the device cell of a counter or memset node holds after launch n.
func (p *plan) device(i int, n uint32) uint32 {
	if p.nodes[i].kind == counter {
		return n
	}
	return p.nodes[i].value
}

// changing reports whether the pinned cell of node i is another one after each launch.
func (p *plan) changing(i int) bool {
	n := p.nodes[i]
	return n.kind == host || n.kind == child || n.kind == copying && p.nodes[n.from].kind == counter
}

func (p *plan) String() string {
	var b strings.Builder
	for i, n := range p.nodes {
		fmt.Fprintf(&b, "%d: %s after %v", i, kindNames[n.kind], n.deps)
		if n.kind == copying {
			fmt.Fprintf(&b, " from %d", n.from)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
