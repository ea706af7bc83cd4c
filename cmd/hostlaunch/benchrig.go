package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

const (
	graphNodes = 32
	mostMiB    = 1 << 20
)

// start makes what the measurements work with.
func (r *benchRig) start(dev *cuda.Device) (err error) {
	if err := fits(dev, "--largest", r.largest()); err != nil {
		return err
	}
	if r.Rig, err = rig.New(dev); err != nil {
		return err
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
		return err
	}
	defer g.Close()
	r.nodes, err = g.Instantiate()
	return err
}

// times is n, or less for a quick look.
func (r *benchRig) times(n int) int {
	if r.o.quick {
		return max(n/20, 5)
	}
	return n
}

// measurements are all that there are, in their order. They measure once the rig has started.
func (r *benchRig) measurements() []measurement {
	list := []measurement{
		{"busy", "HostLaunch behind a busy stream", "ns", "busy", func() (float64, error) { return r.BehindBusy(r.times(500)) }, nil},
		{"draining", "HostLaunch on a draining stream", "ns", "draining", func() (float64, error) { return r.Many(r.times(20000), false) }, nil},
		{"run", "HostLaunch and run, of very many, each", "ns", "run", func() (float64, error) { return r.Many(r.times(20000), true) }, nil},
		{"roundtrip", "HostLaunch and Sync on an idle stream", "ns", "roundtrip", func() (float64, error) { return r.RoundTrip(r.times(2000)) }, nil},
		{"roundtrip-spin", "HostLaunch with Spin, and Sync, on an idle stream", "ns", "", func() (float64, error) { return r.RoundTrip(r.times(2000), cuda.SyncMode(cuda.Spin)) }, nil},
		{"task", "Go and Sync on an idle stream", "ns", "", func() (float64, error) { return r.task() }, nil},
		{"task-spin", "Go with Spin, and Sync, on an idle stream", "ns", "", func() (float64, error) { return r.task(cuda.SyncMode(cuda.Spin)) }, nil},
		{"wake", "Event.Wait behind a kernel of 100 us, beyond it", "ns", "wake", func() (float64, error) { return r.Wake(r.times(500)) }, nil},
		{"nodes", fmt.Sprintf("a graph of %d host nodes, for each", graphNodes), "ns", "", r.graph, nil},
	}
	for size := 64 << 10; size <= r.largest(); size *= 4 {
		list = append(list, r.copies(size)...)
	}
	return list
}

// largest is the size of the largest copy in bytes.
func (r *benchRig) largest() int { return r.o.largest << 20 }

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

// copies are the ways of copying size bytes. The C++ program has those of the driver.
func (r *benchRig) copies(size int) (list []measurement) {
	for _, direction := range []string{"down", "up"} {
		for _, way := range []string{"pinned", "staged", "direct"} {
			list = append(list, r.copyOf(copied{direction, way, size}))
		}
	}
	return list
}

// copyOf is the measurement of a way to copy.
func (r *benchRig) copyOf(c copied) measurement {
	name := map[string]string{"down": "copy-", "up": "copy-up-"}[c.Direction]
	memory := map[string]string{"pinned": "pinned memory", "staged": "ordinary memory, staged", "direct": "ordinary memory by the driver"}[c.Way]
	m := measurement{
		name: fmt.Sprintf("%s%s-%d", name, c.Way, c.Bytes>>10), unit: "GB/s", copy: &c, measure: func() (float64, error) { return r.copy(c) },
		title: fmt.Sprintf("%s %s %s", rig.SizeName(c.Bytes), map[string]string{"down": "to", "up": "from"}[c.Direction], memory),
	}
	switch c.Way {
	case "pinned":
		m.floor = fmt.Sprintf("%s pinned %d", c.Direction, c.Bytes)
	case "direct":
		m.floor = fmt.Sprintf("%s pageable %d", c.Direction, c.Bytes)
	}
	return m
}

// names are the names of list for people: copies in a few words, since there is one of each kind for each size.
func names(list []measurement) string {
	var all, sizes []string
	add := func(to *[]string, name string) {
		if !slices.Contains(*to, name) {
			*to = append(*to, name)
		}
	}
	for _, m := range list {
		if m.copy == nil {
			add(&all, m.name)
			continue
		}
		size := strconv.Itoa(m.copy.Bytes >> 10)
		add(&all, strings.TrimSuffix(m.name, size)+"N")
		add(&sizes, size)
	}
	return fmt.Sprintf("%s, where N, the size in KiB, is %s", strings.Join(all, ", "), strings.Join(sizes, ", "))
}

// copy is the rate of copies that are waited for one by one.
func (r *benchRig) copy(c copied) (float64, error) {
	if err := r.memory(); err != nil {
		return 0, err
	}
	part, err := r.buf.Slice(0, c.Bytes)
	if err != nil {
		return 0, err
	}
	host, opts := r.plain[:c.Bytes], []cuda.CopyOption(nil)
	switch c.Way {
	case "pinned":
		host = r.pinned.Bytes()[:c.Bytes]
	case "direct":
		opts = append(opts, cuda.Direct())
	}
	ns, err := rig.Each(r.times(20), func() error {
		err := error(nil)
		if c.Direction == "down" {
			err = cuda.CopyToHost(r.S, host, part, opts...)
		} else {
			err = cuda.CopyToDevice(r.S, part, host, opts...)
		}
		if err != nil {
			return err
		}
		return r.S.Sync()
	})
	return float64(c.Bytes) / ns, err
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
	for i := 0; i < len(r.plain); i += 4096 {
		r.plain[i] = 1 // so that the system has given it
	}
	r.buf, err = r.Dev.Alloc(r.largest())
	return err
}
