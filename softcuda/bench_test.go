package softcuda_test

import (
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

func BenchmarkHost(b *testing.B) {
	d := softcuda.New(softcuda.Options{})
	defer d.Close()
	dev, _ := d.Device(0)
	s, _ := dev.NewStream()
	n := 0
	fn := func() { n++ }
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		cuda.HostLaunch(s, fn)
	}
	s.Sync()
	if n != b.N {
		b.Fatal(n)
	}
}

func BenchmarkHostSync(b *testing.B) {
	d := softcuda.New(softcuda.Options{})
	defer d.Close()
	dev, _ := d.Device(0)
	s, _ := dev.NewStream()
	n := 0
	fn := func() { n++ }
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		cuda.HostLaunch(s, fn)
		s.Sync()
	}
}
