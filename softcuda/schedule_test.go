package softcuda_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/modeltest"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

// noErr fails the test on an error.
func noErr(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openSeeded(t testing.TB, o softcuda.Options, opts ...cuda.Option) (*cuda.Driver, *cuda.Device) {
	t.Helper()
	drv := softcuda.New(o, opts...)
	dev, err := drv.Device(0)
	noErr(t, err)
	return drv, dev
}

func newStreams(t testing.TB, dev *cuda.Device, n int) (list []*cuda.Stream) {
	t.Helper()
	for range n {
		s, err := dev.NewStream()
		noErr(t, err)
		list = append(list, s)
	}
	return list
}

// diamond queues one function, behind it two on each of three streams, and one behind all of them. It returns the order in which
// the six ran.
func diamond(t testing.TB, seed uint64) (order, trace string) {
	var tr softcuda.Trace
	drv, dev := openSeeded(t, softcuda.Options{Seed: seed, Trace: &tr})
	s := newStreams(t, dev, 4)
	var b strings.Builder
	note := func(on *cuda.Stream, name string) {
		noErr(t, cuda.HostLaunch(on, func() { b.WriteString(name) }))
	}
	note(s[0], "<")
	for i, mid := range s[1:] {
		noErr(t, mid.WaitStream(s[0]))
		note(mid, fmt.Sprint(i))
		note(mid, fmt.Sprint(i))
	}
	for _, mid := range s[1:] {
		noErr(t, s[0].WaitStream(mid))
	}
	note(s[0], ">")
	noErr(t, s[0].Sync())
	noErr(t, drv.Close())
	return b.String(), tr.String()
}

// TestSeedsReachEveryOrder wants every legal order of a diamond of four streams, and no other.
func TestSeedsReachEveryOrder(t *testing.T) {
	const orders = 90 // 6! / (2! 2! 2!)
	seen := map[string]bool{}
	for seed := uint64(1); seed <= 3000 && len(seen) < orders; seed++ {
		order, _ := diamond(t, seed)
		if !strings.HasPrefix(order, "<") || !strings.HasSuffix(order, ">") || len(order) != 8 {
			t.Fatalf("seed %d: order %q", seed, order)
		}
		seen[order] = true
		if len(seen) == orders {
			t.Logf("all after %d seeds", seed)
		}
	}
	if len(seen) != orders {
		t.Errorf("%d orders of %d", len(seen), orders)
	}
}

// TestSameSeedSameTrace wants one trace of a seed, a thousand times.
func TestSameSeedSameTrace(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		_, first := diamond(t, seed)
		for i := range 200 {
			if _, again := diamond(t, seed); again != first {
				t.Fatalf("seed %d, run %d:\n%s\nafter\n%s", seed, i, again, first)
			}
		}
	}
}

// TestSameSeedSameTraceInBubble has a program whose goroutines are ordered by time and channels only.
func TestSameSeedSameTraceInBubble(t *testing.T) {
	run := func(seed uint64) (trace string) {
		synctest.Test(t, func(t *testing.T) {
			var tr softcuda.Trace
			drv, dev := openSeeded(t, softcuda.Options{Seed: seed, Trace: &tr})
			var workers sync.WaitGroup
			for i, s := range newStreams(t, dev, 3) {
				workers.Go(func() {
					for j := range 3 {
						time.Sleep(time.Duration(1+(i*7+j*3)%5) * time.Millisecond)
						time.Sleep(time.Duration(10*i+1) * time.Microsecond) // never two at one time
						done := make(chan struct{})
						noErr(t, cuda.HostLaunch(s, func() { close(done) }))
						<-done
					}
				})
			}
			workers.Wait()
			noErr(t, drv.Close())
			trace = tr.String()
		})
		return trace
	}
	for seed := uint64(1); seed <= 4; seed++ {
		first := run(seed)
		for i := range 250 {
			if again := run(seed); again != first {
				t.Fatalf("seed %d, run %d:\n%s\nafter\n%s", seed, i, again, first)
			}
		}
	}
}

// TestModelSeeded compares devices with seeds with the model of stream order.
func TestModelSeeded(t *testing.T) {
	seed := uint64(0)
	modeltest.Run(t, modeltest.Config{
		Open: func(opts ...cuda.Option) (*cuda.Driver, error) {
			seed++
			return softcuda.New(softcuda.Options{Seed: seed, Kernels: testkernels.Twins()}, opts...), nil
		},
		PTX:      testkernels.PTX,
		Programs: 500,
		Workers:  1,
	})
}
