package cuda

import (
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

// destroysEvents notes which events are destroyed, and in which contexts.
type destroysEvents struct {
	eventful
	destroyed map[driver.Event]driver.Context
}

func (d *destroysEvents) EventDestroy(ctx driver.Context, e driver.Event) driver.Result {
	d.destroyed[e] = ctx
	return driver.Success
}

// TestEventPoolDrained: an event that comes back when its green context is gone is destroyed all the same, by the device's context.
func TestEventPoolDrained(t *testing.T) {
	impl := &destroysEvents{destroyed: map[driver.Event]driver.Context{}}
	d := &Driver{drv: impl}
	primary := &Context{drv: d, raw: 1}
	green := &Context{drv: d, raw: 2, green: &resource{ctx: primary}}
	green.events.put(10)
	green.events.drain(green)
	green.events.put(11)
	if impl.destroyed[10] != 2 || impl.destroyed[11] != 1 || len(green.events.free) != 0 {
		t.Errorf("destroyed (event: context): %v, kept: %v", impl.destroyed, green.events.free)
	}
}
