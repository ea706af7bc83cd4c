package cuda

import (
	"slices"
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

// noting is a driver that notes what happens to its second context.
type noting struct {
	refusing
	log []string
}

func (n *noting) CtxCreate(uint32, driver.Device) (driver.Context, driver.Result) { return 8, 0 }
func (n *noting) CtxSynchronize(c driver.Context) driver.Result                   { return n.note(c, "synchronize") }
func (n *noting) CtxDestroy(c driver.Context) driver.Result                       { return n.note(c, "destroy") }

func (n *noting) note(c driver.Context, what string) driver.Result {
	if c == 8 {
		n.log = append(n.log, what)
	}
	return 0
}

// ST-13: a context is destroyed once, after its work, by its own Close or by the Driver's.
func TestContextDestroyed(t *testing.T) {
	for name, own := range map[string]bool{"by Close": true, "by the Driver": false} {
		t.Run(name, func(t *testing.T) {
			impl := &noting{}
			d, err := NewDriver(impl)
			if err != nil {
				t.Fatal(err)
			}
			dev, err := d.Device(0)
			if err != nil {
				t.Fatal(err)
			}
			c, err := dev.NewContext()
			if err != nil {
				t.Fatal(err)
			}
			if own {
				err = c.Close()
			}
			if err != nil || own == (d.Stats().Contexts == 1) {
				t.Errorf("Close: %v; %d contexts", err, d.Stats().Contexts)
			}
			if err := d.Close(); err != nil || !slices.Equal(impl.log, []string{"synchronize", "destroy"}) {
				t.Errorf("Close: %v; done to the context: %v", err, impl.log)
			}
		})
	}
}
