package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/testkernels"
)

// rig is what the measurements share.
type rig struct {
	o     benchOptions
	dev   *cuda.Device
	s     *cuda.Stream
	spin  *cuda.Kernel
	count atomic.Int64
	fn    func()
	nodes *cuda.GraphExec

	buf    *cuda.Buffer
	pinned *cuda.PinnedBuffer
	plain  []byte
}

const graphNodes = 32

func newRig(dev *cuda.Device, o benchOptions) (r *rig, err error) {
	r = &rig{o: o, dev: dev}
	r.fn = func() { r.count.Add(1) }
	if r.s, err = dev.NewStream(); err != nil {
		return nil, err
	}
	mod, err := dev.LoadModule(testkernels.PTX)
	if err != nil {
		return nil, err
	}
	if r.spin, err = mod.Kernel("spin"); err != nil {
		return nil, err
	}
	g, err := cuda.Capture(r.s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		for range graphNodes {
			if err := cuda.HostLaunch(b, r.fn); err != nil {
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
func (r *rig) times(n int) int {
	if r.o.quick {
		return max(n/20, 5)
	}
	return n
}

func (r *rig) measurements() []measurement {
	list := []measurement{
		{"busy", "HostLaunch behind a busy stream", "ns", true, r.behindBusy},
		{"draining", "HostLaunch on a draining stream", "ns", true, func() (float64, error) { return r.many(false) }},
		{"run", "HostLaunch and run, of very many, each", "ns", true, func() (float64, error) { return r.many(true) }},
		{"roundtrip", "HostLaunch and Sync on an idle stream", "ns", true, func() (float64, error) { return r.roundTrip() }},
		{"roundtrip-spin", "the same with SyncMode(Spin)", "ns", false, func() (float64, error) { return r.roundTrip(cuda.SyncMode(cuda.Spin)) }},
		{"task", "Go and Sync on an idle stream", "ns", false, func() (float64, error) { return r.task() }},
		{"task-spin", "the same with SyncMode(Spin)", "ns", false, func() (float64, error) { return r.task(cuda.SyncMode(cuda.Spin)) }},
		{"wake", "Event.Wait behind a kernel of 100 us, beyond it", "ns", true, r.wake},
		{"nodes", fmt.Sprintf("a graph of %d host nodes, launch and Sync, each node", graphNodes), "ns", false, r.graph},
	}
	for size := 64 << 10; size <= r.largest(); size *= 8 {
		list = append(list, r.copies(size)...)
	}
	return list
}

// largest is the size of the largest copy in bytes.
func (r *rig) largest() int {
	if r.o.quick {
		return 1 << 20
	}
	return r.o.largest << 20
}

// many queues functions on an idle stream: the time to queue one, or until all have run.
func (r *rig) many(whole bool) (float64, error) {
	n, start := r.times(20000), time.Now()
	for range n {
		if err := cuda.HostLaunch(r.s, r.fn); err != nil {
			return 0, err
		}
	}
	took := time.Since(start)
	err := r.s.Sync()
	if whole {
		took = time.Since(start)
	}
	return nanoseconds(took, n), err
}

func (r *rig) behindBusy() (float64, error) {
	if err := r.s.Launch(r.spin, cuda.Grid1D(1, 1), uint64(20*time.Millisecond)); err != nil {
		return 0, err
	}
	n, start := r.times(500), time.Now()
	for range n {
		if err := cuda.HostLaunch(r.s, r.fn); err != nil {
			return 0, err
		}
	}
	took := time.Since(start)
	return nanoseconds(took, n), r.s.Sync()
}

// each is the median time of what step does.
func (r *rig) each(n int, step func() error) (float64, error) {
	times := make([]float64, r.times(n))
	for i := range times {
		start := time.Now()
		if err := step(); err != nil {
			return 0, err
		}
		times[i] = nanoseconds(time.Since(start), 1)
	}
	return median(times), nil
}

func (r *rig) roundTrip(opts ...cuda.HostOption) (float64, error) {
	return r.each(2000, func() error {
		if err := cuda.HostLaunch(r.s, r.fn, opts...); err != nil {
			return err
		}
		return r.s.Sync()
	})
}

func (r *rig) task(opts ...cuda.HostOption) (float64, error) {
	fn := func(context.Context) error { r.fn(); return nil }
	return r.each(500, func() error {
		if _, err := cuda.Go(r.s, fn, opts...); err != nil {
			return err
		}
		return r.s.Sync()
	})
}

// wake waits for an event behind a kernel: launch, record and wake-up, without the time that the kernel spins.
func (r *rig) wake() (float64, error) {
	const kernel = 100 * time.Microsecond
	e, err := r.dev.NewEvent()
	if err != nil {
		return 0, err
	}
	defer e.Close()
	whole, err := r.each(500, func() error {
		if err := r.s.Launch(r.spin, cuda.Grid1D(1, 1), uint64(kernel)); err != nil {
			return err
		}
		if err := r.s.Record(e); err != nil {
			return err
		}
		return e.Wait(context.Background())
	})
	return whole - nanoseconds(kernel, 1), err
}

func (r *rig) graph() (float64, error) {
	whole, err := r.each(200, func() error {
		if err := r.nodes.Launch(r.s); err != nil {
			return err
		}
		return r.s.Sync()
	})
	return whole / graphNodes, err
}

// copies are the ways of copying size bytes to the host.
func (r *rig) copies(size int) []measurement {
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
func (r *rig) copy(size int, dst func() []byte, opts []cuda.CopyOption) (float64, error) {
	if err := r.memory(); err != nil {
		return 0, err
	}
	src, err := r.buf.Slice(0, size)
	if err != nil {
		return 0, err
	}
	ns, err := r.each(20, func() error {
		if err := cuda.CopyToHost(r.s, dst()[:size], src, opts...); err != nil {
			return err
		}
		return r.s.Sync()
	})
	return float64(size) / ns, err
}

// memory allocates what the copies need, the first time.
func (r *rig) memory() (err error) {
	if r.buf != nil {
		return nil
	}
	if r.pinned, err = r.dev.AllocPinned(r.largest()); err != nil {
		return err
	}
	r.plain = make([]byte, r.largest())
	r.buf, err = r.dev.Alloc(r.largest())
	return err
}
