package cuda

import (
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

// idleGraphs is a driver whose graph calls do nothing, to see what the library's own part of them costs.
type idleGraphs struct{ refusing }

func (*idleGraphs) GraphCreate(driver.Context, uint32) (driver.Graph, driver.Result) { return 1, 0 }
func (*idleGraphs) GraphDestroy(driver.Context, driver.Graph) driver.Result          { return 0 }
func (*idleGraphs) GraphAddNode(driver.Context, driver.Graph, []driver.GraphNode, []driver.EdgeData, *driver.NodeParams) (driver.GraphNode, driver.Result) {
	return 1, 0
}
func (*idleGraphs) UserObjectCreate(uint64) (driver.UserObject, driver.Result) { return 1, 0 }
func (*idleGraphs) GraphRetainUserObject(driver.Context, driver.Graph, driver.UserObject, uint32, uint32) driver.Result {
	return 0
}

func BenchmarkAddHostNode(b *testing.B) {
	impl := new(idleGraphs)
	d, err := NewDriver(impl)
	if err != nil {
		b.Fatal(err)
	}
	dev, err := d.Device(0)
	if err != nil {
		b.Fatal(err)
	}
	fn := func() {}
	b.ReportAllocs()
	for b.Loop() {
		g, err := dev.NewGraph()
		if err != nil {
			b.Fatal(err)
		}
		var last GraphNode
		for i := range 2000 {
			if i == 0 {
				last, err = g.AddNode(HostParams(fn))
			} else {
				last, err = g.AddNode(HostParams(fn), last)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		d.owners.slots.Each(func(key uint64, _ *carried) bool { d.owners.gone(key | ownerTag); return true })
		g.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2000, "ns/node")
}
