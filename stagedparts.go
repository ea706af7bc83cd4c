package cuda

import (
	"unsafe"

	"github.com/hostlaunch/cuda/internal/native"
)

// feed puts l's chunks into its queue, part by part, as far as there is room. mu is held.
func (st *staging) feed(l *lease) {
	for l.fed < len(l.chunks) {
		c := l.chunks[l.fed]
		if st.failed != nil {
			c.left.Over.Store(1)
		} else if g := l.first + uint32(l.fed); l.emptying(c, g) || !st.feedChunk(l, c, g) {
			return
		}
		l.fed++
	}
}

// emptying reports whether a copy to the device would fill a slot, with chunk g, that the host still empties: the device's word only
// says that the device has filled it. A chunk that l no longer has is over.
func (l *lease) emptying(c *chunk, g uint32) bool {
	before := int32(g - uint32(len(l.slots)) - l.first)
	if c.job.toHost || before < 0 {
		return false
	}
	b := l.chunks[before]
	return b.job.toHost && b.left.Over.Load() == 0
}

// feedChunk puts chunk g into the queue; false: not all of it. mu is held.
func (st *staging) feedChunk(l *lease, c *chunk, g uint32) bool {
	if c.given == 0 {
		c.left.Parts.Store(st.count(c, 0))
		if c.reports = l.reports(c); c.reports {
			l.quietly = 0
		}
	}
	for c.given < c.n {
		p := st.part(l, c, g)
		if !l.pair.queue.Put(&p) {
			return false
		}
		l.quietly++
		c.given += p.Bytes
	}
	return true
}

// count is how many parts c has from off bytes of it on.
func (st *staging) count(c *chunk, off uintptr) (n uint32) {
	for ; off < c.n; n++ {
		_, rows, size := st.extent(c, off)
		off += rows * size
	}
	return n
}

// extent is where in the program's memory the part of c that begins at off lies: so many rows of so many bytes.
func (st *staging) extent(c *chunk, off uintptr) (at unsafe.Pointer, rows, size uintptr) {
	h, most := &c.job.host, st.tune.partOf(c.job.toHost, c.n)
	at, size = h.at(c.off + off)
	size = min(size, c.n-off)
	if size == h.width && h.n > 1 && size <= most { // whole rows
		return at, min(max(most/size, 1), (c.n-off)/size), size
	}
	if end := (uintptr(at) + most) &^ (hugePage - 1); most >= hugePage && end > uintptr(at) {
		most = end - uintptr(at) // nobody else has to do with the huge page that is the last
	}
	return at, 1, min(size, most)
}

const hugePage = 2 << 20

// part is the next part of chunk g. mu is held.
func (st *staging) part(l *lease, c *chunk, g uint32) native.Part {
	const least = 4 << 10
	slot := uintptr(unsafe.Add(l.slots[c.slot], c.given))
	p := native.Part{
		Rows: 1, Left: uintptr(unsafe.Pointer(&c.left)), Release: uintptr(unsafe.Pointer(&l.pair.host[c.slot])),
		Value: l.readyAt(c, g), ReleaseValue: g + 1,
	}
	if c.reports {
		p.Flags |= native.PartReports
	}
	at, rows, size := st.extent(c, c.given)
	p.N, p.Rows, p.Bytes = size, rows, rows*size
	p.Dst, p.DstStep, p.Src, p.SrcStep = uintptr(at), c.job.host.pitch, slot, size
	streamed := st.tune.streamDown
	if c.job.toHost {
		p.Done = uintptr(unsafe.Pointer(c.job.done))
	} else {
		streamed = st.tune.streamUp
		p.Dst, p.DstStep, p.Src, p.SrcStep = p.Src, p.SrcStep, p.Dst, p.DstStep
	}
	if c.job.host.bytes() >= streamed && size >= least {
		p.Flags |= native.PartStream
	}
	return p
}

// readyAt is what the device's word must come to before chunk g can be copied: to the host, the device has filled its slot; to the
// device, it is through with the chunk that had the slot before.
func (l *lease) readyAt(c *chunk, g uint32) uint32 {
	before := g - uint32(len(l.slots))
	switch {
	case c.job.toHost:
		return g + 1
	case int32(before-l.start) >= 0:
		return before + 1
	}
	return l.start
}

// reports says whether somebody is to come to Go when c is copied: at the end of a copy, or for its progress, or since the queue
// may run low.
func (l *lease) reports(c *chunk) bool {
	const often = native.QueueParts / 8
	end := c.off+c.n == c.job.host.bytes()
	return end || !c.job.toHost && c.job.watched() || l.quietly >= often
}

// watched reports whether somebody looks at how far the copy is.
func (job *stagedCopy) watched() bool { return job.o != nil && job.o.watch != nil }

// partOf is the size of the parts of a chunk of n bytes: so that all workers have some of a large one, and a small one goes to few.
func (t *stagingTune) partOf(toHost bool, n uintptr) uintptr {
	least := min(128<<10, t.part)
	return max(roundUp(min(n/t.threads(toHost), t.part), arenaUnit), least)
}

// abandon has nobody begin a further part of l. What is being copied is over a moment later. mu is held.
func (st *staging) abandon(l *lease) {
	l.pair.queue.Seize()
	for _, c := range l.chunks[l.fed:] {
		if c.given == 0 {
			c.left.Over.Store(1)
		} else {
			c.left.Drop(st.count(c, c.given))
		}
	}
	l.fed = len(l.chunks)
}
