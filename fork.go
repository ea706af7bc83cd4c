package cuda

import "slices"

// Split gives n further builders that go on from where b stands, each in a branch of its own of the graph; b goes on as well.
// Branches have no order between them. Join them before End.
//
// Errors: ErrNotBuilding, ErrInvalidValue for n < 1. On an error no branch is left. CONTRACT CP-05.
func (b *GraphBuilder) Split(n int) ([]*GraphBuilder, error) {
	const op = "GraphBuilder.Split"
	c, err := b.building(op)
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, failf(op, ErrInvalidValue, "%d branches: split into at least one", n)
	}
	var forks []*GraphBuilder
	for range n {
		f, err := b.fork(op, c)
		if err != nil {
			for _, f := range forks {
				f.Close()
			}
			return nil, err
		}
		forks = append(forks, f)
	}
	return forks, nil
}

// fork makes a branch. If it cannot be forked, its stream has taken nothing.
func (b *GraphBuilder) fork(op string, c *capture) (*GraphBuilder, error) {
	if err := b.stream.begin(op); err != nil {
		return nil, err
	}
	s, err := b.stream.ctx.newHelperStream(op)
	b.stream.end()
	if err != nil {
		return nil, err
	}
	f := &GraphBuilder{stream: s, kind: forkBuilder}
	f.now.Store(c)
	if err := s.waitStream(op, b.stream); err != nil {
		s.Close()
		return nil, err
	}
	return f, nil
}

// Join has b's further work come behind that of others, which are branches of the same graph, and ends those.
//
// Errors: ErrNotBuilding, also if one of others is not building; ErrCaptureMerge if one belongs to another capture. All are
// checked before any is joined. CONTRACT CP-05.
func (b *GraphBuilder) Join(others ...*GraphBuilder) error {
	const op = "GraphBuilder.Join"
	c, err := b.building(op)
	if err != nil {
		return err
	}
	for i, f := range others {
		switch of, err := f.building(op); {
		case err != nil:
			return err
		case slices.Contains(others[:i], f):
			return failf(op, ErrInvalidValue, "a branch is given twice")
		case f == b || f.kind != forkBuilder:
			return failf(op, ErrInvalidValue, "only branches that Split made can be joined")
		case of != c:
			return failf(op, ErrCaptureMerge, "a branch belongs to another capture; join it to the builder that it was split from")
		}
	}
	for _, f := range others {
		if err := b.stream.waitStream(op, f.stream); err != nil {
			return err
		}
		f.Close()
	}
	return nil
}
