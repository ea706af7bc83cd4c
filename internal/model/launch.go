package model

import "math/bits"

// A graph may be launched again and again, and its marks come as often. So that each coming is a mark of its own, the first
// launch has the numbers of the program, and every later one takes numbers from the other end.

// launchNext is the answer to a launch on a stream that does not capture. The first launch of a graph may have to wait while a
// gate is shut.
func (m *State) launchNext(o Op) Answer {
	g := m.graphs[o.N]
	return onlyIf(g.launched && Most-m.low-m.copied >= g.marks() || !g.launched && m.shut == 0, OK)
}

// marks is how many marks one launch leaves.
func (g *graph) marks() (n int) {
	for _, node := range g.nodes {
		if node.mark >= 0 {
			n++
		}
	}
	return n
}

// use notes that the program has used mark n.
func (m *State) use(n int) {
	m.used |= 1 << n
	m.low = max(m.low, n+1)
}

// taken reports whether mark n cannot be used any more.
func (m *State) taken(n int) bool { return m.used.Has(n) || n >= Most-m.copied }

// launch queues the graph o.N on stream o.S. Its nodes come behind what the stream had before and behind the former launch.
func (m *State) launch(o Op) {
	g := m.graphs[o.N]
	if len(g.nodes) == 0 { // it may be an operation or none
		m.wait(o.S, g.last)
		g.last.may |= m.streams[o.S].tail.may
		return
	}
	before := m.queue(o.S).and(g.last)
	all, ids := before, make([]Set, len(g.nodes)) // as marks, none or one each
	for i, n := range g.nodes {
		if n.mark < 0 {
			continue
		}
		id := n.mark
		if g.launched {
			id = m.copyOf(id)
		}
		ids[i] = 1 << id
		m.After[id] = before.must
		for j := range i {
			if n.behind.Has(j) {
				m.After[id] |= ids[j]
			}
		}
		m.queued |= ids[i]
		if n.host {
			m.hosts |= ids[i]
		}
		all = all.and(work{ids[i], ids[i]})
	}
	g.launched, g.last = true, all
	m.streams[o.S].tail = all
	m.work(o.S)
	m.record(o.S) // by the library, to know when the launch is done
}

// copyOf takes a number for another coming of mark n.
func (m *State) copyOf(n int) int {
	m.copied++
	m.copies[n] = append(m.copies[n], Most-m.copied)
	return Most - m.copied
}

// Coming is the number of the mark that is mark n coming for the k-th time, from 0; n if it was to come fewer times.
func (m *State) Coming(n, k int) int {
	if k == 0 || k > len(m.copies[n]) {
		return n
	}
	return m.copies[n][k-1]
}

// Queued is how many marks are to come.
func (m *State) Queued() int { return bits.OnesCount64(uint64(m.queued)) }
