package softcuda_test

import (
	"context"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// BenchmarkTrace is what a tracer costs: compare what it prints for off, on and host only.
func BenchmarkTrace(b *testing.B) {
	drv := softcuda.New(softcuda.Options{})
	b.Cleanup(func() { drv.Close() })
	dev, _ := drv.Device(0)
	s, _ := dev.NewStream()
	d, err := dev.Alloc(1024)
	if err != nil {
		b.Fatal(err)
	}
	fn := func() {}
	for _, op := range []struct {
		name string
		call func()
	}{{"host function", func() { cuda.HostLaunch(s, fn) }}, {"memset", func() { s.Memset(d, 1) }}} {
		for _, tracer := range []struct {
			name string
			opts []cuda.TraceOption
		}{{"off", nil}, {"on", []cuda.TraceOption{cuda.TraceLimit(1 << 24)}}, {"host only", []cuda.TraceOption{cuda.TraceLimit(1 << 24), cuda.TraceHostOnly()}}} {
			b.Run(op.name+"/"+tracer.name, func(b *testing.B) {
				b.ReportAllocs()
				if tracer.opts != nil {
					t, err := drv.StartTrace(tracer.opts...)
					if err != nil {
						b.Fatal(err)
					}
					defer func() {
						b.StopTimer()
						t.Stop(context.Background())
					}()
				}
				b.ResetTimer()
				for range b.N {
					op.call()
				}
				s.Sync()
			})
		}
	}
}
