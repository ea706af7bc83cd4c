package graphtest

import (
	"slices"

	"github.com/hostlaunch/cuda"
)

// definition is what is known of a graph that is changed call by call.
type definition struct {
	g      *cuda.Graph
	in     *member   // the conditional node that it is a body of; nil: it is a graph of its own
	nodes  []*member // in the order of their addition, those that were removed among them
	idle   int       // conditions that no node uses
	shape  int       // graphs of one shape differ in the parameters of their nodes only
	closed bool
}

// member is a node of a definition.
type member struct {
	deed
	of     *definition
	n      cuda.GraphNode
	after  []*member
	bodies []*definition
	gone   bool
}

// Kinds of members, beside those of a plan's nodes.
const conditional kind = kinds

// deed is what a node does.
type deed struct {
	kind  kind
	slot  int       // host, counter: what it counts in
	form  int       // conditional: if, while or switch
	value int       // conditional: what decides
	inner []*frozen // the embedded graph, or the bodies
}

// Forms of conditional nodes.
const (
	ifForm = iota
	ifElseForm
	whileForm
	switchForm
	forms
)

// frozen is what a graph does, as it was at some moment.
type frozen struct {
	nodes  []deed
	cyclic bool
}

func (d *definition) root() *definition {
	for d.in != nil {
		d = d.in.of
	}
	return d
}

// dead reports whether d is closed, or the node that it is in has gone.
func (d *definition) dead() bool {
	return d.closed || d.in != nil && (d.in.gone || d.in.of.dead())
}

// live are the nodes that are there.
func (d *definition) live() (list []*member) {
	for _, m := range d.nodes {
		if !m.gone {
			list = append(list, m)
		}
	}
	return list
}

// has reports whether m can be named as a node of d.
func (d *definition) has(m *member) bool { return m != nil && m.of == d && !m.gone }

// within lists d, and the bodies in it.
func (d *definition) within() []*definition {
	list := []*definition{d}
	for _, m := range d.live() {
		for _, b := range m.bodies {
			list = append(list, b.within()...)
		}
	}
	return list
}

// unused reports whether d has conditions that no node uses, or a body has.
func (d *definition) unused() bool {
	return slices.ContainsFunc(d.within(), func(d *definition) bool { return d.idle > 0 })
}

// branches reports whether d has conditional nodes.
func (d *definition) branches() bool {
	return slices.ContainsFunc(d.live(), func(m *member) bool { return m.kind == conditional })
}

// circular reports whether the edges of d have a cycle: whether taking away nodes that no node is before leaves some.
func (d *definition) circular() bool {
	left := d.live()
	for {
		rest := slices.DeleteFunc(slices.Clone(left), func(m *member) bool {
			return !slices.ContainsFunc(m.after, func(before *member) bool { return slices.Contains(left, before) })
		})
		if len(rest) == len(left) {
			return len(left) > 0
		}
		left = rest
	}
}

// freeze is what d does now.
func (d *definition) freeze() *frozen {
	f := &frozen{cyclic: d.circular()}
	for _, m := range d.live() {
		does := m.deed
		if m.kind == conditional {
			does.inner = nil
			for _, b := range m.bodies {
				does.inner = append(does.inner, b.freeze())
			}
		}
		for _, inside := range does.inner {
			f.cyclic = f.cyclic || inside.cyclic
		}
		f.nodes = append(f.nodes, does)
	}
	return f
}

// size is how many nodes f has, with those in its nodes.
func (f *frozen) size() int {
	n := len(f.nodes)
	for _, does := range f.nodes {
		for _, inside := range does.inner {
			n += inside.size()
		}
	}
	return n
}

// hosts reports whether f has host nodes.
func (f *frozen) hosts() bool {
	return slices.ContainsFunc(f.nodes, func(does deed) bool {
		return does.kind == host || slices.ContainsFunc(does.inner, (*frozen).hosts)
	})
}

// count adds what a launch of f counts, by slot.
func (f *frozen) count(slots map[int]int) {
	for _, does := range f.nodes {
		switch does.kind {
		case host, counter:
			slots[does.slot]++
		case child:
			does.inner[0].count(slots)
		case conditional:
			if i := does.taken(); i >= 0 {
				does.inner[i].count(slots)
			}
		}
	}
}

// taken is which of its bodies a conditional runs, or -1.
func (d deed) taken() int {
	at := d.value
	if d.form != switchForm {
		at = 1
		if d.value != 0 {
			at = 0
		}
	}
	if at >= len(d.inner) {
		return -1
	}
	return at
}
