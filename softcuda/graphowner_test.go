package softcuda

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
)

// careless is a software device that does not take owners into its care when it is told not to.
type careless struct {
	*machine
	refuseCreate, refuseRetain atomic.Bool
}

func (c *careless) UserObjectCreate(data uint64) (driver.UserObject, driver.Result) {
	if c.refuseCreate.Load() {
		return 0, driver.ErrorOutOfMemory
	}
	return c.machine.UserObjectCreate(data)
}

func (c *careless) GraphRetainUserObject(ctx driver.Context, g driver.Graph, o driver.UserObject, count, flags uint32) driver.Result {
	if c.refuseRetain.Load() {
		return driver.ErrorOutOfMemory
	}
	return c.machine.GraphRetainUserObject(ctx, g, o, count, flags)
}

// GR-07: when the driver does not take a node's owner, there is no node, what it was to own is released, and the error says so.
func TestOwnerRefused(t *testing.T) {
	for _, how := range []string{"create", "retain"} {
		t.Run(how, func(t *testing.T) {
			impl := &careless{machine: newMachine(Options{Devices: 1})}
			flag := map[string]*atomic.Bool{"create": &impl.refuseCreate, "retain": &impl.refuseRetain}[how]
			d, err := cuda.NewDriver(impl)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			refuseOwners(t, d, flag)
		})
	}
}

func refuseOwners(t *testing.T, d *cuda.Driver, refuse *atomic.Bool) {
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	g, err := dev.NewGraph()
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	n, err := g.AddNode(cuda.HostParams(func() { kept++ }))
	if err != nil {
		t.Fatal(err)
	}
	var collected atomic.Int32
	param := func() cuda.NodeParams {
		data := new([64]byte)
		runtime.AddCleanup(data, func(int) { collected.Add(1) }, 0)
		return cuda.HostParams(func() { data[0]++; t.Error("a function ran that no node has") })
	}
	refuse.Store(true)
	tries := []func() error{
		func() error { _, err := g.AddNode(param()); return err },
		func() error { return g.SetParams(n, param()) },
		func() error { _, err := g.Instantiate(); return err },
		func() error {
			_, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
				data := new([64]byte)
				runtime.AddCleanup(data, func(int) { collected.Add(1) }, 0)
				return cuda.HostLaunch(b, func() { data[0]++; t.Error("a function ran that no node has") })
			})
			return err
		},
	}
	for i, try := range tries {
		if err := try(); !errors.Is(err, cuda.ErrOutOfMemory) {
			t.Errorf("try %d: %v", i, err)
		}
	}
	refuse.Store(false)
	for deadline := time.Now().Add(5 * time.Second); collected.Load() != 3; time.Sleep(time.Millisecond) {
		if runtime.GC(); time.Now().After(deadline) {
			t.Fatalf("%d of 3 functions are released", collected.Load())
		}
	}
	x, err := g.Instantiate()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(x.Launch(s), s.Sync(), x.Close(), g.Close()); err != nil {
		t.Fatal(err)
	}
	if st := d.Stats(); kept != 1 || st.HostNodes != 0 || st.UserObjects != 0 || st.GraphExecs != 0 {
		t.Errorf("the graph's own function ran %d times; left: %+v", kept, st)
	}
}
