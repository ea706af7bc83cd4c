package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/testkernels"
)

// pipeline is what demo runs: batches on one stream, in which kernels, copies, host functions and tasks take turns.
type pipeline struct {
	o       demoOptions
	s, side *cuda.Stream
	batch   *cuda.GraphExec // the kernels of a batch and a host node
	numbers *cuda.Buffer
	result  []uint32 // the copy of numbers, which batches use in turn

	copied                         cuda.CopyProgress
	replays, tasks, checked, wrong atomic.Int64
	ended                          chan error // of the batches
}

func newPipeline(dev *cuda.Device, o demoOptions) (p *pipeline, err error) {
	if err := fits(dev, "--count", 4*o.count); err != nil {
		return nil, err
	}
	p = &pipeline{o: o, ended: make(chan error, o.batches)}
	if p.s, err = dev.NewStream(); err != nil {
		return nil, err
	}
	if p.side, err = dev.NewStream(); err != nil {
		return nil, err
	}
	if p.numbers, err = dev.Alloc(4 * o.count); err != nil {
		return nil, fmt.Errorf("--count: %w", err)
	}
	p.result = make([]uint32, o.count)
	if err := p.s.Memset(p.numbers, 0); err != nil {
		return nil, err
	}
	return p, p.record(dev)
}

// record makes the graph of a batch.
func (p *pipeline) record(dev *cuda.Device) error {
	mod, err := dev.LoadModule(testkernels.PTX)
	if err != nil {
		return err
	}
	spin, err := mod.Kernel("spin")
	if err != nil {
		return err
	}
	increment, err := mod.Kernel("increment")
	if err != nil {
		return err
	}
	g, err := cuda.Capture(p.s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		if err := b.Launch(spin, cuda.Grid1D(1, 1), uint64(p.o.compute)); err != nil {
			return err
		}
		if err := b.Launch(increment, cuda.Grid1D(p.o.count, 256), p.numbers, uint32(p.o.count)); err != nil {
			return err
		}
		return cuda.HostLaunch(b, func() { p.replays.Add(1) }, cuda.Name("replayed"))
	})
	if err != nil {
		return err
	}
	defer g.Close()
	p.batch, err = g.Instantiate()
	return err
}

// queue queues batch i, and the task behind it if its turn has come. It waits for nothing.
func (p *pipeline) queue(i int) error {
	if err := p.batch.Launch(p.s); err != nil {
		return err
	}
	if err := cuda.CopyToHost(p.s, p.result, p.numbers, cuda.Progress(&p.copied)); err != nil {
		return err
	}
	done := func(err error) { p.ended <- err } // there is room for all
	if err := cuda.HostLaunch(p.s, func() { p.check(uint32(i + 1)) }, cuda.Name("check"), cuda.OnDone(done)); err != nil {
		return err
	}
	if (i+1)%p.o.every != 0 {
		return nil
	}
	_, err := cuda.Go(p.s, p.rewrite, cuda.Name("rewrite"))
	return err
}

// check is the host function behind each copy: every number is the batch's.
func (p *pipeline) check(want uint32) {
	for _, v := range p.result {
		if v != want {
			p.wrong.Add(1)
		}
	}
	p.checked.Add(1)
}

// rewrite is the task: it overwrites the numbers on the device, and then writes them again from the last result, on another
// stream. The next batch is right only if it waits for all that.
func (p *pipeline) rewrite(ctx context.Context) error {
	if err := p.side.Memset(p.numbers, 0xff); err != nil {
		return err
	}
	if err := cuda.CopyToDevice(p.side, p.numbers, p.result); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := p.side.Wait(ctx); err != nil {
		return err
	}
	p.tasks.Add(1)
	return nil
}
