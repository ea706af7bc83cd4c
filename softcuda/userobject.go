package softcuda

import "github.com/hostlaunch/cuda/internal/driver"

// userObject is something with a destructor that graphs keep by references.
type userObject struct {
	raw  driver.UserObject
	data uint64
	refs int // all of them
	own  int // those of the program
}

// letGo takes n references off o. With the last one the destructor is called, without mu.
func (m *machine) letGo(o *userObject, n int) {
	if o.refs -= n; o.refs > 0 {
		return
	}
	delete(m.objects, o.raw)
	m.calls = append(m.calls, func() { m.up.HostFunc(o.data) })
}

func (m *machine) letGoAll(objects map[*userObject]int) {
	for o, n := range objects {
		m.letGo(o, n)
	}
}

// give gives g n references more.
func (g *graph) give(o *userObject, n int) {
	if g.objects == nil {
		g.objects = map[*userObject]int{}
	}
	g.objects[o] += n
	o.refs += n
}

// bundle is the references of an executable. Launches share it, so that it stays when it is superseded.
type bundle struct {
	objects map[*userObject]int
	users   int // the executable and launches
}

// bundleOf has the references of g and of the graphs in it; nil if there are none.
func bundleOf(g *graph) *bundle {
	b := &bundle{objects: map[*userObject]int{}, users: 1}
	g.every(func(g *graph) bool {
		b.take(g.objects)
		return true
	})
	if len(b.objects) == 0 {
		return nil
	}
	return b
}

func (b *bundle) take(objects map[*userObject]int) {
	for o, n := range objects {
		b.objects[o] += n
		o.refs += n
	}
}

// joined is a bundle with the references of both; either may be nil.
func joined(a, b *bundle) *bundle {
	all := &bundle{objects: map[*userObject]int{}, users: 1}
	for _, part := range []*bundle{a, b} {
		if part != nil {
			all.take(part.objects)
		}
	}
	return all
}

// leave ends one use of b, which may be nil.
func (m *machine) leave(b *bundle) {
	if b == nil {
		return
	}
	if b.users--; b.users == 0 {
		m.letGoAll(b.objects)
	}
}

// UserObjectCreate implements driver.Graphs.
func (m *machine) UserObjectCreate(data uint64) (driver.UserObject, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	o := &userObject{raw: driver.UserObject(m.handle()), data: data, refs: 1, own: 1}
	m.objects[o.raw] = o
	return o.raw, driver.Success
}

// UserObjectRelease implements driver.Graphs. More than the program has is refused; on hardware that is not defined.
func (m *machine) UserObjectRelease(raw driver.UserObject, count uint32) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	o, n := m.objects[raw], int(count)
	if o == nil || n == 0 || n > o.own {
		return driver.ErrorInvalidValue
	}
	o.own -= n
	m.letGo(o, n)
	return driver.Success
}

// GraphRetainUserObject implements driver.Graphs.
func (m *machine) GraphRetainUserObject(_ driver.Context, raw driver.Graph, object driver.UserObject, count, flags uint32) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	g, o, n := m.graphs[raw], m.objects[object], int(count)
	move := flags == driver.UserObjectMove
	if g == nil || o == nil || n == 0 || flags&^driver.UserObjectMove != 0 || move && n > o.own {
		return driver.ErrorInvalidValue
	}
	g.give(o, n)
	if move {
		o.own -= n
		o.refs -= n
	}
	return driver.Success
}

// GraphReleaseUserObject implements driver.Graphs. More than g has is refused; on hardware that is not defined.
func (m *machine) GraphReleaseUserObject(_ driver.Context, raw driver.Graph, object driver.UserObject, count uint32) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	g, o, n := m.graphs[raw], m.objects[object], int(count)
	if g == nil || o == nil || n == 0 || n > g.objects[o] {
		return driver.ErrorInvalidValue
	}
	if g.objects[o] -= n; g.objects[o] == 0 {
		delete(g.objects, o)
	}
	m.letGo(o, n)
	return driver.Success
}
