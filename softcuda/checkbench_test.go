package softcuda_test

import (
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// BenchmarkCheck is what the checker costs: copies and host functions on two streams, without it and with it.
func BenchmarkCheck(b *testing.B) {
	for _, c := range []struct {
		name string
		o    softcuda.Options
	}{{"off", softcuda.Options{}}, {"on", softcuda.Options{Check: new(softcuda.Check)}}, {"seeded", softcuda.Options{Seed: 1}}} {
		b.Run(c.name, func(b *testing.B) {
			drv, dev := openSeeded(b, c.o)
			defer drv.Close()
			s := newStreams(b, dev, 2)
			x, h := must(dev.Alloc(4096)), must(dev.AllocPinned(4096)).Bytes()
			for b.Loop() {
				noErr(b, cuda.CopyToDevice(s[0], x, h))
				noErr(b, cuda.HostLaunch(s[0], func() {}))
				noErr(b, s[1].WaitStream(s[0]))
				noErr(b, cuda.CopyToHost(s[1], h, x))
				noErr(b, s[1].Sync())
			}
			if err := c.o.Check.Err(); err != nil {
				b.Error(err)
			}
		})
	}
}
