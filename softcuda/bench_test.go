package softcuda_test

import (
	"fmt"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// BenchmarkHostLaunch is to be compared with BenchmarkHop, which does by hand what a host function needs at least: a closure
// goes to another goroutine, which runs it and answers.
func BenchmarkHostLaunch(b *testing.B) {
	s := benchStreams(b, 1)[0]
	n := 0
	fn := func() { n++ }
	b.Run("enqueue and run", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			cuda.HostLaunch(s, fn)
		}
		s.Sync()
	})
	b.Run("one at a time", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			cuda.HostLaunch(s, fn)
			s.Sync()
		}
	})
}

func BenchmarkHop(b *testing.B) {
	work, answers := make(chan func()), make(chan struct{})
	go func() {
		for fn := range work {
			fn()
			answers <- struct{}{}
		}
	}()
	defer close(work)
	n := 0
	fn := func() { n++ }
	for b.Loop() {
		work <- fn
		<-answers
	}
}

// BenchmarkStreams must show the same time per function for any number of streams.
func BenchmarkStreams(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			streams := benchStreams(b, n)
			fn := func() {}
			b.ResetTimer()
			for i := range b.N {
				cuda.HostLaunch(streams[i%n], fn)
			}
			for _, s := range streams[:min(n, b.N)] {
				s.Sync()
			}
		})
	}
}

func benchStreams(b *testing.B, n int) []*cuda.Stream {
	d := softcuda.New(softcuda.Options{})
	b.Cleanup(func() { d.Close() })
	dev, err := d.Device(0)
	if err != nil {
		b.Fatal(err)
	}
	streams := make([]*cuda.Stream, n)
	for i := range streams {
		if streams[i], err = dev.NewStream(); err != nil {
			b.Fatal(err)
		}
	}
	return streams
}
