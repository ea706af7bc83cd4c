package softcuda

import (
	"maps"

	"github.com/hostlaunch/cuda/internal/driver"
)

// module is a loaded image: the kernels that it declares.
type module struct {
	ctx     *context
	kernels map[string]entry
}

// entry is a kernel as its image declares it.
type entry struct {
	params []param
	known  bool // the image tells its parameters
}

// param is a parameter's place in the parameter block.
type param struct{ offset, size uintptr }

// function is a kernel of a module.
type function struct {
	mod  *module
	name string
	entry
}

// ModuleLoadData implements driver.Modules. The image's code is not run; it says which kernels there are, and their
// parameters.
func (m *machine) ModuleLoadData(ctx driver.Context, image []byte) (driver.Module, string, driver.Result) {
	kernels, log, r := parseImage(image)
	m.mu.Lock()
	defer m.unlock()
	c, cr := m.context(ctx)
	if cr != driver.Success {
		return 0, "", cr
	}
	if r == driver.Success {
		r = m.forbidden()
	}
	if r != driver.Success {
		return 0, log, r
	}
	raw := driver.Module(m.handle())
	m.modules[raw] = &module{ctx: c, kernels: kernels}
	return raw, "", driver.Success
}

// ModuleUnload implements driver.Modules. Like the driver's it first waits for the context's work.
func (m *machine) ModuleUnload(ctx driver.Context, raw driver.Module) driver.Result {
	return m.afterAll(ctx, func(*context) driver.Result {
		mod := m.modules[raw]
		if mod == nil {
			return driver.ErrorInvalidHandle
		}
		delete(m.modules, raw)
		maps.DeleteFunc(m.functions, func(_ driver.Function, f *function) bool { return f.mod == mod })
		return driver.Success
	})
}

// ModuleGetFunction implements driver.Modules.
func (m *machine) ModuleGetFunction(ctx driver.Context, raw driver.Module, name string) (driver.Function, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	if _, r := m.context(ctx); r != driver.Success {
		return 0, r
	}
	mod := m.modules[raw]
	switch {
	case mod == nil:
		return 0, driver.ErrorInvalidHandle
	case name == "":
		return 0, driver.ErrorInvalidValue
	}
	e, ok := mod.kernels[name]
	if !ok {
		return 0, driver.ErrorNotFound
	}
	f := driver.Function(m.handle())
	m.functions[f] = &function{mod: mod, name: name, entry: e}
	return f, driver.Success
}

// FuncGetParamInfo implements driver.Modules.
func (m *machine) FuncGetParamInfo(ctx driver.Context, raw driver.Function, i int) (offset, size uintptr, r driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	if _, r := m.context(ctx); r != driver.Success {
		return 0, 0, r
	}
	f := m.functions[raw]
	switch {
	case f == nil:
		return 0, 0, driver.ErrorInvalidHandle
	case !f.known:
		return 0, 0, driver.ErrorNotSupported
	case i < 0 || i >= len(f.params):
		return 0, 0, driver.ErrorInvalidValue
	}
	return f.params[i].offset, f.params[i].size, driver.Success
}

// FuncGetName implements driver.Graphs.
func (m *machine) FuncGetName(_ driver.Context, raw driver.Function) (string, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	f := m.functions[raw]
	if f == nil {
		return "", driver.ErrorInvalidHandle
	}
	return f.name, driver.Success
}
