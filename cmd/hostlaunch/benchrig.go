package main

import (
	"context"
	"fmt"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/bench/rig"
)

// benchRig is what the measurements share.
type benchRig struct {
	*rig.Rig
	o     benchOptions
	nodes *cuda.GraphExec

	buf    *cuda.Buffer
	pinned *cuda.PinnedBuffer
	plain  []byte
}

const graphNodes = 32

func newBenchRig(dev *cuda.Device, o benchOptions) (r *benchRig, err error) {
	r = &benchRig{o: o}
	if r.Rig, err = rig.New(dev); err != nil {
		return nil, err
	}
	g, err := cuda.Capture(r.S, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		for range graphNodes {
			if err := cuda.HostLaunch(b, r.Fn); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer g.Close()
	r.nodes, err = g.Instantiate()
	return r, err
}

// times is n, or less for a quick look.
func (r *benchRig) times(n int) int {
	if r.o.quick {
		return max(n/20, 5)
	}
	return n
}

func (r *benchRig) measurements() []measurement {
	list := []measurement{
		{"busy", "HostLaunch behind a busy stream", "ns", true, func() (float64, error) { return r.BehindBusy(r.times(500)) }},
		{"draining", "HostLaunch on a draining stream", "ns", true, func() (float64, error) { return r.Many(r.times(20000), false) }},
		{"run", "HostLaunch and run, of very many, each", "ns", true, func() (float64, error) { return r.Many(r.times(20000), true) }},
		{"roundtrip", "HostLaunch and Sync on an idle stream", "ns", true, func() (float64, error) { return r.RoundTrip(r.times(2000)) }},
		{"roundtrip-spin", "the same with SyncMode(Spin)", "ns", false, func() (float64, error) { return r.RoundTrip(r.times(2000), cuda.SyncMode(cuda.Spin)) }},
		{"task", "Go and Sync on an idle stream", "ns", false, func() (float64, error) { return r.task() }},
		{"task-spin", "the same with SyncMode(Spin)", "ns", false, func() (float64, error) { return r.task(cuda.SyncMode(cuda.Spin)) }},
		{"wake", "Event.Wait behind a kernel of 100 us, beyond it", "ns", true, func() (float64, error) { return r.Wake(r.times(500)) }},
		{"nodes", fmt.Sprintf("a graph of %d host nodes, launch and Sync, each node", graphNodes), "ns", false, r.graph},
	}
	for size := 64 << 10; size <= r.largest(); size *= 8 {
		list = append(list, r.copies(size)...)
	}
	return list
}

// largest is the size of the largest copy in bytes.
func (r *benchRig) largest() int {
	if r.o.quick {
		return 1 << 20
	}
	return r.o.largest << 20
}

func (r *benchRig) task(opts ...cuda.HostOption) (float64, error) {
	fn := func(context.Context) error { r.Fn(); return nil }
	return rig.Each(r.times(500), func() error {
		if _, err := cuda.Go(r.S, fn, opts...); err != nil {
			return err
		}
		return r.S.Sync()
	})
}

func (r *benchRig) graph() (float64, error) {
	whole, err := rig.Each(r.times(200), func() error {
		if err := r.nodes.Launch(r.S); err != nil {
			return err
		}
		return r.S.Sync()
	})
	return whole / graphNodes, err
}

// copies are the ways of copying size bytes to the host.
func (r *benchRig) copies(size int) []measurement {
	title := fmt.Sprintf("%d KiB", size>>10)
	if size >= 1<<20 {
		title = fmt.Sprintf("%d MiB", size>>20)
	}
	way := func(name, to string, dst func() []byte, opts ...cuda.CopyOption) measurement {
		return measurement{fmt.Sprintf("copy-%s-%d", name, size>>10), title + " to " + to, "GB/s", false, func() (float64, error) {
			return r.copy(size, dst, opts)
		}}
	}
	plain := func() []byte { return r.plain }
	return []measurement{
		way("pinned", "pinned memory", func() []byte { return r.pinned.Bytes() }),
		way("staged", "ordinary memory, staged", plain),
		way("direct", "ordinary memory by the driver", plain, cuda.Direct()),
	}
}

// copy is the rate of copies of size bytes, waited for one by one.
func (r *benchRig) copy(size int, dst func() []byte, opts []cuda.CopyOption) (float64, error) {
	if err := r.memory(); err != nil {
		return 0, err
	}
	src, err := r.buf.Slice(0, size)
	if err != nil {
		return 0, err
	}
	ns, err := rig.Each(r.times(20), func() error {
		if err := cuda.CopyToHost(r.S, dst()[:size], src, opts...); err != nil {
			return err
		}
		return r.S.Sync()
	})
	return float64(size) / ns, err
}

// memory allocates what the copies need, the first time.
func (r *benchRig) memory() (err error) {
	if r.buf != nil {
		return nil
	}
	if r.pinned, err = r.Dev.AllocPinned(r.largest()); err != nil {
		return err
	}
	r.plain = make([]byte, r.largest())
	r.buf, err = r.Dev.Alloc(r.largest())
	return err
}
