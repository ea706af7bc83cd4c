//go:build linux && (amd64 || arm64)

package libcuda

import (
	"sync"
	"sync/atomic"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/ffi"
)

// nvidia is the NVIDIA driver. Most of its methods are generated (zcalls.go).
type nvidia struct {
	lib     *library
	fns     [functions]uintptr // addresses; 0: this driver lacks it
	binding ffi.Binding

	tag     uint64 // beside the data of this driver's host functions
	stop    func() // ends their way back
	upcalls atomic.Pointer[driver.Upcalls]

	service  service
	polls    polls
	contexts contexts
	shut     sync.Once
}

var _ driver.Driver = (*nvidia)(nil)

// function is an index of symbols.
type function int

// symbol is a function of the driver: its name, the version to ask for, and the CUDA version that brought it, if drivers
// without it are supported (else 0).
type symbol struct {
	name           string
	version, since int
}

// resolve looks up every function of the table.
func (nv *nvidia) resolve(lib *library) error {
	nv.lib = lib
	for f, s := range symbols {
		nv.fns[f] = lib.proc(s.name, s.version)
		if nv.fns[f] == 0 && s.since == 0 {
			return openError(cuda.ErrSharedObjectSymbolNotFound, nil, "Reinstall the NVIDIA driver",
				"the driver has no %s of version %d, as every driver from CUDA 12.0 on has; reinstall the NVIDIA driver", s.name, s.version)
		}
	}
	nv.binding = ffi.Binding{Get: nv.fns[fnCtxGetCurrent], Set: nv.fns[fnCtxSetCurrent]}
	return nil
}

// call calls f with c's first n arguments, in ctx unless that is 0.
func (nv *nvidia) call(c *ffi.Call, ctx driver.Context, f function, n int) driver.Result {
	if nv.fns[f] == 0 {
		return driver.ErrorNotSupported
	}
	return driver.Result(c.Do(&nv.binding, uintptr(ctx), nv.fns[f], n))
}

// callUnbound is call for a function that needs no context: it makes ctx current only in place of another one, which spares
// most of what a short call costs. A driver that does want one answers so, and is asked again.
func (nv *nvidia) callUnbound(c *ffi.Call, ctx driver.Context, f function, n int) driver.Result {
	if nv.fns[f] == 0 {
		return driver.ErrorNotSupported
	}
	if r := driver.Result(c.DoUnbound(&nv.binding, uintptr(ctx), nv.fns[f], n)); r != driver.ErrorInvalidContext {
		return r
	}
	return nv.call(c, ctx, f, n)
}

// Name implements driver.Driver.
func (nv *nvidia) Name() string { return "nvidia" }

// Attach implements driver.Driver.
func (nv *nvidia) Attach(up driver.Upcalls) { nv.upcalls.Store(&up) }

// InHostFunction implements driver.Driver.
func (nv *nvidia) InHostFunction() bool { return ffi.Inside() }

// GoexitContained implements driver.Driver: the goroutine of a host function is the driver's thread, which must return.
func (nv *nvidia) GoexitContained() bool { return false }

// Needs says for a function of the driver that this one lacks which CUDA version has it, as CUDA counts; otherwise 0. The
// methods that need the function return ErrorNotSupported then.
func (nv *nvidia) Needs(function string) int {
	for f, s := range symbols {
		if s.name == function && nv.fns[f] == 0 {
			return s.since
		}
	}
	return 0
}

// Shut implements driver.Driver.
func (nv *nvidia) Shut() {
	nv.shut.Do(func() {
		for _, w := range nv.contexts.clear() {
			nv.unwatch(w)
		}
		nv.service.end()
		nv.stop()
	})
}
