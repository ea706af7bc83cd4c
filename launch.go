package cuda

import (
	"fmt"
	"slices"
	"sync"

	"github.com/hostlaunch/cuda/internal/driver"
)

// Dim3 is an extent in up to three dimensions. Y and Z of 0 count as 1.
type Dim3 struct{ X, Y, Z int }

// LaunchConfig is the shape of a kernel launch.
type LaunchConfig struct {
	Grid      Dim3 // blocks
	Block     Dim3 // threads of a block
	SharedMem int  // bytes of dynamic shared memory of a block
}

// Grid1D is the configuration for n threads in blocks of block threads; the last block may have threads beyond n.
func Grid1D(n, block int) LaunchConfig {
	if block <= 0 {
		return LaunchConfig{} // refused by Launch, which can say why
	}
	return LaunchConfig{Grid: Dim3{X: (n + block - 1) / block}, Block: Dim3{X: block}}
}

// Launch queues kernel k on s. Each argument is passed as the C type of its size:
//
//   - a *Buffer, *PinnedBuffer or *ManagedBuffer of the same Driver, or a DevicePtr: a pointer
//   - a Condition: a cudaGraphConditionalHandle
//   - bool, int8 to int64, uint8 to uint64, float32, float64, complex64, complex128, and types made of those
//   - arrays of these, and structs of these that are laid out as in C
//
// int, uint and uintptr are refused, since C's int has another size: say int32(n) or int64(n). So are slices, strings, maps and
// Go pointers. The number of arguments and their sizes are checked against the kernel's own parameters, where the driver tells
// them (CUDA 12.4). Argument values are copied before Launch returns; buffers must stay open until the kernel is done.
//
// Errors: ErrInvalidValue that names the argument or dimension. cuLaunchKernel.
func (s *Stream) Launch(k *Kernel, cfg LaunchConfig, args ...any) error {
	return s.launch("Stream.Launch", k, cfg, args)
}

func (s *Stream) launch(op string, k *Kernel, cfg LaunchConfig, args []any) error {
	if err := s.beginQueue(op); err != nil {
		return err
	}
	defer s.end()
	if err := k.acquire(op, s.ctx); err != nil {
		return err
	}
	defer k.mod.res.release()
	p := packers.Get().(*packer)
	defer p.put()
	if err := p.config(op, cfg); err != nil {
		return err
	}
	if err := p.arguments(op, s.ctx, k, args); err != nil {
		return err
	}
	if c := s.capture(); c != nil {
		c.keep(k.mod.res)
		c.keep(p.held...)
	}
	sp := s.span(TraceKernel, op, k.name, 0)
	if s.waitsTurn() {
		l := p.launch
		l.Params, l.Offsets = slices.Clone(l.Params), slices.Clone(l.Offsets)
		return s.later(op, sp, func() driver.Result {
			_, r := s.driver().LaunchKernel(s.ctx.raw, k.raw, &l, s.raw)
			return r
		}, append(slices.Clone(p.held), k.mod.res)...)
	}
	sp.begins(s)
	why, r := s.driver().LaunchKernel(s.ctx.raw, k.raw, &p.launch, s.raw)
	if r == driver.Success {
		sp.ends(s, nil)
		return nil
	}
	if why == "" {
		why = fmt.Sprintf("kernel %s with grid %v, block %v, %d bytes of shared memory", k.name, cfg.Grid, cfg.Block, cfg.SharedMem)
	}
	err := s.ctx.resultf(op, r, "%s", why)
	sp.ends(s, err)
	return err
}

// acquire takes k for a launch in c; k.mod.res.release must follow if it returns nil.
func (k *Kernel) acquire(op string, c *Context) error {
	switch {
	case k == nil:
		return failf(op, ErrInvalidValue, "the kernel is nil")
	case k.mod.ctx.drv != c.drv:
		return failf(op, ErrInvalidValue, "kernel %s belongs to %s and the stream to %s; use one Driver for both", k.name, k.mod.ctx.describe(), c.describeBeside(k.mod.ctx))
	case k.mod.ctx != c:
		return failf(op, ErrInvalidHandle, "kernel %s is loaded on %s and the stream is of %s; load the module there too", k.name, k.mod.ctx.describe(), c.describe())
	case !k.mod.res.acquire():
		return failf(op, ErrClosed, "the module of kernel %s is closed", k.name)
	}
	return nil
}

// packer makes a driver's launch of a configuration and arguments. It is reused, so that a launch allocates nothing here.
type packer struct {
	launch driver.Launch
	held   []*resource // buffers among the arguments
}

var packers = sync.Pool{New: func() any { return new(packer) }}

func (p *packer) put() {
	for i, r := range p.held {
		r.release()
		p.held[i] = nil
	}
	p.held = p.held[:0]
	p.launch.Params, p.launch.Offsets = p.launch.Params[:0], p.launch.Offsets[:0]
	packers.Put(p)
}

func (p *packer) config(op string, cfg LaunchConfig) error {
	var err error
	if p.launch.Grid, err = dims(op, "Grid", cfg.Grid); err != nil {
		return err
	}
	if p.launch.Block, err = dims(op, "Block", cfg.Block); err != nil {
		return err
	}
	if cfg.SharedMem < 0 || cfg.SharedMem > 1<<31-1 {
		return failf(op, ErrInvalidValue, "SharedMem %d is out of range", cfg.SharedMem)
	}
	p.launch.SharedMem = uint32(cfg.SharedMem)
	return nil
}

// dims checks an extent. The device's own limits are the driver's to check.
func dims(op, name string, d Dim3) ([3]uint32, error) {
	if d.X < 1 || d.Y < 0 || d.Z < 0 || d.X > 1<<31-1 || d.Y > 1<<31-1 || d.Z > 1<<31-1 {
		return [3]uint32{}, failf(op, ErrInvalidValue, "%s %v: X must be at least 1, Y and Z at least 0 (which counts as 1)", name, d)
	}
	return [3]uint32{uint32(d.X), uint32(max(d.Y, 1)), uint32(max(d.Z, 1))}, nil
}
