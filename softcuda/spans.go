package softcuda

import (
	"slices"
	"sort"
)

// spans keep values for ranges of addresses. They are sorted and do not meet; what is in none has the zero value. They lie in chunks, so that
// it costs little to put one among very many.
//
// A value is never changed in place: a range that is cut in two shares it.
type spans[V any] struct {
	chunks [][]span[V]       // none is empty
	n      int               // spans
	same   func(a, b V) bool // such neighbours become one
	none   func(v V) bool    // it need not be kept
	made   []span[V]         // of change
	spare  []span[V]         // memory of a chunk
}

type span[V any] struct {
	from, to uintptr
	v        V
}

const mostInChunk = 256

// find is the place of the first span that ends behind an address: that chunk and the place in it, or one behind the last chunk.
func (s *spans[V]) find(at uintptr) (c, i int) {
	c = sort.Search(len(s.chunks), func(c int) bool {
		last := s.chunks[c]
		return last[len(last)-1].to > at
	})
	if c < len(s.chunks) {
		i = sort.Search(len(s.chunks[c]), func(i int) bool { return s.chunks[c][i].to > at })
	}
	return c, i
}

// next is the place behind another.
func (s *spans[V]) next(c, i int) (int, int) {
	if i++; i < len(s.chunks[c]) {
		return c, i
	}
	return c + 1, 0
}

// visit is called with the values of all spans that meet a range.
func (s *spans[V]) visit(from, to uintptr, visit func(v V)) {
	for c, i := s.find(from); c < len(s.chunks) && s.chunks[c][i].from < to; c, i = s.next(c, i) {
		visit(s.chunks[c][i].v)
	}
}

// change gives every part of a range a new value.
func (s *spans[V]) change(from, to uintptr, change func(v V) V) {
	c, i := s.find(from)
	s.made = s.made[:0]
	endC, endI := c, i
	var zero V
	at := from
	for ; endC < len(s.chunks) && s.chunks[endC][endI].from < to; endC, endI = s.next(endC, endI) {
		sp := s.chunks[endC][endI]
		if sp.from < from {
			s.make(sp.from, from, sp.v)
		} else if sp.from > at {
			s.make(at, sp.from, change(zero))
		}
		at = min(sp.to, to)
		s.make(max(sp.from, from), at, change(sp.v))
		if sp.to > to {
			s.make(to, sp.to, sp.v)
		}
	}
	if at < to {
		s.make(at, to, change(zero))
	}
	s.replace(c, i, endC, endI)
}

// make adds a span to those that change makes.
func (s *spans[V]) make(from, to uintptr, v V) {
	if s.none(v) {
		return
	}
	if n := len(s.made); n > 0 && s.made[n-1].to == from && s.same(s.made[n-1].v, v) {
		s.made[n-1].to = to
		return
	}
	s.made = append(s.made, span[V]{from, to, v})
}

// replace puts made in the place of the spans from one place to before another.
func (s *spans[V]) replace(c, i, endC, endI int) {
	switch {
	case len(s.chunks) == 0 && len(s.made) <= mostInChunk:
		s.chunks, s.n = append(s.chunks, append(s.spare[:0], s.made...)), len(s.made)
		if s.spare = nil; s.n == 0 {
			s.drop(0)
		}
		return
	case c == len(s.chunks) && c > 0: // behind the last one
		c--
		i = len(s.chunks[c])
		endC, endI = c, i
	case endC == c+1 && endI == 0:
		endC, endI = c, len(s.chunks[c])
	}
	if c == endC && c < len(s.chunks) && len(s.chunks[c])+len(s.made)-(endI-i) <= mostInChunk {
		s.n += len(s.made) - (endI - i)
		s.chunks[c] = slices.Replace(s.chunks[c], i, endI, s.made...)
		if len(s.chunks[c]) == 0 {
			s.drop(c)
		}
		return
	}
	s.rechunk(c, i, endC, endI)
}

// drop takes an empty chunk away, and keeps its memory for the next one.
func (s *spans[V]) drop(c int) {
	s.spare = s.chunks[c]
	s.chunks = slices.Delete(s.chunks, c, c+1)
}

// rechunk is replace where more than one chunk changes.
func (s *spans[V]) rechunk(c, i, endC, endI int) {
	var all []span[V]
	if c < len(s.chunks) {
		all = append(all, s.chunks[c][:i]...)
	}
	all = append(all, s.made...)
	last := c
	if endC < len(s.chunks) {
		all = append(all, s.chunks[endC][endI:]...)
		last = endC + 1
	} else {
		last = len(s.chunks)
	}
	for _, old := range s.chunks[c:last] {
		s.n -= len(old)
	}
	s.n += len(all)
	s.chunks = slices.Replace(s.chunks, c, last, chunked(all)...)
}

// chunked is list in chunks that have room for more.
func chunked[V any](list []span[V]) (chunks [][]span[V]) {
	const size = mostInChunk / 2
	for len(list) > 0 {
		n := min(size, len(list))
		chunks = append(chunks, append(make([]span[V], 0, mostInChunk), list[:n]...))
		list = list[n:]
	}
	return chunks
}

// all gives every span a new value.
func (s *spans[V]) all(change func(v V) V) {
	s.made = s.made[:0]
	for _, chunk := range s.chunks {
		for _, sp := range chunk {
			s.make(sp.from, sp.to, change(sp.v))
		}
	}
	s.chunks, s.n = chunked(s.made), len(s.made)
	s.made = nil
}
