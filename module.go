package cuda

import (
	"strings"

	"github.com/hostlaunch/cuda/internal/driver"
)

// Module is a loaded image of device code.
type Module struct {
	ctx *Context
	raw driver.Module
	res *resource
}

// Kernel is a function of a Module, to be launched with Queue.Launch. It keeps its Module alive.
type Kernel struct {
	mod    *Module
	name   string
	raw    driver.Function
	params []param
	known  bool // params are the kernel's own, as the driver tells them (CUDA 12.4); else only the arguments are known
}

// param is where a kernel parameter stands in the parameter block.
type param struct{ offset, size uintptr }

// LoadModule loads PTX text, or a cubin or fatbin. The text of a compiler's complaint is in the error. On the software device
// a kernel runs as a Go function of the same name: see softcuda.Options.Kernels.
//
// While streams are held by tasks it waits until none is; in a task it is ErrDeadlock (CONTRACT TK-03).
//
// Errors: ErrInvalidValue for an empty image, ErrInvalidImage, ErrInvalidPTX, ErrUnsupportedPTXVersion, ErrNoBinaryForGPU.
// cuModuleLoadDataEx.
func (c *Context) LoadModule(image []byte) (*Module, error) {
	const op = "LoadModule"
	if err := c.enter(op); err != nil {
		return nil, err
	}
	defer c.leave()
	if len(image) == 0 {
		return nil, failf(op, ErrInvalidValue, "the image is empty")
	}
	d := c.drv.drv
	var raw driver.Module
	var log string
	var r driver.Result
	if err := c.whileNoneHeld(op, "load the module before", func() { raw, log, r = d.ModuleLoadData(c.raw, image) }); err != nil {
		return nil, err
	}
	if r != driver.Success {
		return nil, c.resultf(op, r, "%s", moduleReason(log))
	}
	m := &Module{ctx: c, raw: raw}
	m.res = newResource(c, "Module", 0, func() driver.Result { return d.ModuleUnload(c.raw, raw) })
	dropped(m, m.res)
	return m, nil
}

func moduleReason(log string) string {
	if log = strings.TrimSpace(log); log != "" {
		return log
	}
	return "the driver cannot use this image"
}

// Context is the context that m is loaded in.
func (m *Module) Context() *Context {
	if m == nil {
		return nil
	}
	return m.ctx
}

// Kernel finds a kernel by its name, which is the mangled one unless it was declared extern "C".
//
// Errors: ErrNotFound. cuModuleGetFunction.
func (m *Module) Kernel(name string) (*Kernel, error) {
	const op = "Module.Kernel"
	if m == nil {
		return nil, failf(op, ErrInvalidValue, "the module is nil")
	}
	if err := m.ctx.enter(op); err != nil {
		return nil, err
	}
	defer m.ctx.leave()
	if !m.res.acquire() {
		return nil, failf(op, ErrClosed, "the module is closed")
	}
	defer m.res.release()
	if name == "" || strings.IndexByte(name, 0) >= 0 {
		return nil, failf(op, ErrInvalidValue, "name %q is no kernel's", name)
	}
	raw, r := m.ctx.drv.drv.ModuleGetFunction(m.ctx.raw, m.raw, name)
	if r != driver.Success {
		return nil, m.ctx.resultf(op, r, "the module has no kernel %q; C++ names are mangled unless declared extern \"C\"", name)
	}
	k := &Kernel{mod: m, name: name, raw: raw}
	return k, k.readParams(op)
}

// readParams asks the driver for the kernel's parameters.
func (k *Kernel) readParams(op string) error {
	c := k.mod.ctx
	for i := 0; ; i++ {
		off, size, r := c.drv.drv.FuncGetParamInfo(c.raw, k.raw, i)
		switch r {
		case driver.Success:
			k.params = append(k.params, param{off, size})
		case driver.ErrorInvalidValue:
			k.known = true
			return nil
		case driver.ErrorNotSupported:
			return nil
		default:
			return c.result(op, r)
		}
	}
}

// Name is the kernel's name.
func (k *Kernel) Name() string {
	if k == nil {
		return ""
	}
	return k.name
}

// Module is what k belongs to.
func (k *Kernel) Module() *Module {
	if k == nil {
		return nil
	}
	return k.mod
}

// Close unloads m and ends its kernels. It waits until queued work that may use it is done; while a task holds a stream it returns at once,
// and m is unloaded later. cuModuleUnload.
func (m *Module) Close() error {
	if m == nil {
		return nil
	}
	return closeHandle(m.res)
}
