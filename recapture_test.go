package cuda

import (
	"errors"
	"slices"
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

// recapturing is a driver that has recapture, which none of the others here have. It has one graph, one executable, and user
// objects, whose handle is what they carry.
type recapturing struct {
	refusing
	again []driver.Graph // recaptured
	end   driver.Result
	node  uint64 // what the graph's one host node was captured with
	gone  bool   // the graph was destroyed
	late  bool   // and was used afterwards

	refs         map[driver.UserObject]int
	graph, execs []driver.UserObject // references
}

func (*recapturing) StreamCreateWithPriority(driver.Context, uint32, int32) (driver.Stream, driver.Result) {
	return 9, 0
}
func (*recapturing) StreamDestroy(driver.Context, driver.Stream) driver.Result { return 0 }
func (*recapturing) StreamBeginCapture(driver.Context, driver.Stream, driver.CaptureMode) driver.Result {
	return 0
}
func (d *recapturing) StreamBeginRecaptureToGraph(_ driver.Context, _ driver.Stream, g driver.Graph, _ driver.CaptureMode) driver.Result {
	d.again = append(d.again, g)
	d.drop(&d.graph)
	return 0
}
func (d *recapturing) StreamEndCapture(driver.Context, driver.Stream) (driver.Graph, driver.Result) {
	return 5, d.end
}
func (d *recapturing) StreamIsCapturing(driver.Context, driver.Stream) (driver.CaptureStatus, driver.Result) {
	return driver.CaptureNone, 0 // a capture that could not be ended well is over
}
func (d *recapturing) GraphDestroy(driver.Context, driver.Graph) driver.Result {
	d.drop(&d.graph)
	d.gone = true
	return 0
}
func (d *recapturing) GraphGetNodes(driver.Context, driver.Graph) ([]driver.GraphNode, driver.Result) {
	return []driver.GraphNode{4}, 0
}
func (*recapturing) GraphNodeGetType(driver.Context, driver.GraphNode) (driver.NodeType, driver.Result) {
	return driver.NodeHost, 0
}
func (d *recapturing) GraphHostNodeGetParams(driver.Context, driver.GraphNode) (uint64, driver.Result) {
	return d.node, 0
}
func (*recapturing) GraphExecNodeSetParams(driver.Context, driver.GraphExec, driver.GraphNode, *driver.NodeParams) driver.Result {
	return 0
}
func (*recapturing) GraphCreate(driver.Context, uint32) (driver.Graph, driver.Result) { return 50, 0 }
func (*recapturing) GraphClone(driver.Context, driver.Graph) (driver.Graph, driver.Result) {
	return 51, 0
}
func (*recapturing) GraphAddNode(driver.Context, driver.Graph, []driver.GraphNode, []driver.EdgeData, *driver.NodeParams) (driver.GraphNode, driver.Result) {
	return 40, 0
}
func (*recapturing) GraphExecUpdate(driver.Context, driver.GraphExec, driver.Graph, *driver.ExecUpdate) driver.Result {
	return 0
}
func (d *recapturing) GraphInstantiateWithParams(driver.Context, driver.Graph, *driver.Instantiation) (driver.GraphExec, driver.Result) {
	for _, o := range d.graph {
		d.refs[o]++
	}
	d.execs = append(d.execs, d.graph...)
	return 6, 0
}
func (d *recapturing) GraphExecDestroy(driver.Context, driver.GraphExec) driver.Result {
	d.drop(&d.execs)
	return 0
}
func (d *recapturing) UserObjectCreate(data uint64) (driver.UserObject, driver.Result) {
	if d.refs == nil {
		d.refs = map[driver.UserObject]int{}
	}
	d.refs[driver.UserObject(data)] = 1
	return driver.UserObject(data), 0
}
func (d *recapturing) GraphRetainUserObject(_ driver.Context, _ driver.Graph, o driver.UserObject, _, _ uint32) driver.Result {
	d.late = d.late || d.gone
	d.graph = append(d.graph, o)
	return 0
}
func (d *recapturing) GraphReleaseUserObject(_ driver.Context, _ driver.Graph, o driver.UserObject, _ uint32) driver.Result {
	d.graph = slices.DeleteFunc(d.graph, func(other driver.UserObject) bool { return other == o })
	d.drop(&[]driver.UserObject{o})
	return 0
}

// drop lets go of references.
func (d *recapturing) drop(list *[]driver.UserObject) {
	for _, o := range *list {
		if d.refs[o]--; d.refs[o] == 0 {
			d.up.HostFunc(uint64(o))
		}
	}
	*list = nil
}
func (*recapturing) EventCreate(driver.Context, uint32) (driver.Event, driver.Result) { return 8, 0 }
func (*recapturing) EventDestroy(driver.Context, driver.Event) driver.Result          { return 0 }
func (d *recapturing) LaunchHostFunc(_ driver.Context, _ driver.Stream, data uint64) driver.Result {
	d.node = data
	return 0
}
func (*recapturing) StreamGetID(driver.Context, driver.Stream) (uint64, driver.Result) { return 1, 0 }
func (*recapturing) StreamQuery(driver.Context, driver.Stream) driver.Result           { return 0 }
func (*recapturing) StreamSynchronize(driver.Context, driver.Stream) driver.Result     { return 0 }

// TestRecapture: which functions a graph keeps, before a recapture and after it, well or not.
func TestRecapture(t *testing.T) {
	impl := new(recapturing)
	d, err := NewDriver(impl)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := dev.NewGraphBuilder()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	capture := func(begin error, functions int) (*Graph, error) {
		t.Helper()
		if begin != nil {
			t.Fatal(begin)
		}
		for range functions {
			if err := HostLaunch(b, func() {}); err != nil {
				t.Fatal(err)
			}
		}
		return b.End()
	}
	keeps := func(when string, want int) {
		t.Helper()
		if n := d.Stats().HostNodes; n != want {
			t.Errorf("%s: %d functions are kept, want %d", when, n, want)
		}
	}
	g, err := capture(b.Begin(CaptureRelaxed), 2)
	if err != nil {
		t.Fatal(err)
	}
	x, err := g.Instantiate()
	if err != nil {
		t.Fatal(err)
	}
	same, err := capture(b.BeginRecapture(g, CaptureRelaxed), 3)
	if same != g || err != nil || len(impl.again) != 1 || impl.again[0] != 5 {
		t.Errorf("a recapture gives %p, %v; recaptured %v", same, err, impl.again)
	}
	keeps("with an executable of the former graph", 5)
	x.Close()
	keeps("recaptured", 3)
	impl.end = driver.ErrorGraphRecaptureFailure
	if _, err := capture(b.BeginRecapture(g, CaptureRelaxed), 4); !errors.Is(err, ErrGraphRecaptureFailure) {
		t.Errorf("a recapture that fails: %v", err)
	}
	keeps("after a recapture that failed, what of the graph can be run no more", 4)
	other, err := dev.NewGraph()
	if err != nil {
		t.Fatal(err)
	}
	y, err := other.Instantiate()
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"Instantiate": second(g.Instantiate()), "BeginToGraph": b.BeginToGraph(g, nil, CaptureRelaxed), "BeginRecapture": b.BeginRecapture(g, CaptureRelaxed),
		"Clone": second(g.Clone()), "AddNode": second(other.AddNode(ChildGraphParams(g))), "Update": y.Update(g),
	} {
		if !errors.Is(err, ErrIllegalState) {
			t.Errorf("%s of a graph that a recapture spoiled: %v", name, err)
		}
	}
	y.Close()
	g.Close()
	other.Close()
	keeps("closed", 0)
	impl.end = driver.Success
}

// recaptured is a driver with a builder, and a graph of one host node that it made.
func recaptured(t *testing.T) (impl *recapturing, b *GraphBuilder, g *Graph) {
	t.Helper()
	impl = new(recapturing)
	d, err := NewDriver(impl)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	if b, err = dev.NewGraphBuilder(); err != nil {
		t.Fatal(err)
	}
	err = errors.Join(b.Begin(CaptureRelaxed), HostLaunch(b, func() {}))
	g, end := b.End()
	if err = errors.Join(err, end); err != nil {
		t.Fatal(err)
	}
	return impl, b, g
}

// TestRecaptureOfClosedGraph: a graph that is closed while it is captured anew is not used after it is destroyed.
func TestRecaptureOfClosedGraph(t *testing.T) {
	impl, b, g := recaptured(t)
	err := errors.Join(b.BeginRecapture(g, CaptureRelaxed), HostLaunch(b, func() {}), g.Close())
	_, end := b.End()
	if err := errors.Join(err, end); err != nil {
		t.Error(err)
	}
	if !impl.gone || impl.late {
		t.Errorf("destroyed: %v, used afterwards: %v", impl.gone, impl.late)
	}
}

// TestSetAfterRecapture: which function a node had that an executable of the former graph runs, nobody knows any more.
func TestSetAfterRecapture(t *testing.T) {
	_, b, g := recaptured(t)
	x, err := g.Instantiate()
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	err = errors.Join(b.BeginRecapture(g, CaptureRelaxed), HostLaunch(b, func() {}))
	_, end := b.End()
	nodes, list := g.Nodes()
	if err := errors.Join(err, end, list); err != nil {
		t.Fatal(err)
	}
	if err := x.SetParams(nodes[0], HostParams(func() {})); !errors.Is(err, ErrIllegalState) {
		t.Errorf("set in an executable of the graph before: %v", err)
	}
	y, err := g.Instantiate()
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	if err := y.SetParams(nodes[0], HostParams(func() {})); err != nil || len(y.state.hosts) != 1 {
		t.Errorf("set in an executable of the graph now: %v; a launch runs %d functions", err, len(y.state.hosts))
	}
}

func second[T any](_ T, err error) error { return err }
