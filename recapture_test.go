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
func (d *recapturing) GraphDestroy(driver.Context, driver.Graph) driver.Result {
	d.drop(&d.graph)
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
func (*recapturing) EventCreate(driver.Context, uint32) (driver.Event, driver.Result)   { return 8, 0 }
func (*recapturing) EventDestroy(driver.Context, driver.Event) driver.Result            { return 0 }
func (*recapturing) LaunchHostFunc(driver.Context, driver.Stream, uint64) driver.Result { return 0 }
func (*recapturing) StreamGetID(driver.Context, driver.Stream) (uint64, driver.Result)  { return 1, 0 }
func (*recapturing) StreamQuery(driver.Context, driver.Stream) driver.Result            { return 0 }
func (*recapturing) StreamSynchronize(driver.Context, driver.Stream) driver.Result      { return 0 }

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
	for name, err := range map[string]error{
		"Instantiate": second(g.Instantiate()), "BeginToGraph": b.BeginToGraph(g, nil, CaptureRelaxed), "BeginRecapture": b.BeginRecapture(g, CaptureRelaxed),
	} {
		if !errors.Is(err, ErrIllegalState) {
			t.Errorf("%s of a graph that a recapture spoiled: %v", name, err)
		}
	}
	g.Close()
	keeps("closed", 0)
	impl.end = driver.Success
}

func second[T any](_ T, err error) error { return err }
