package softcuda

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"unsafe"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
)

// Kernels are Go functions that stand for kernels, by the kernels' names.
type Kernels map[string]Kernel

// Kernel does what a kernel does, for all threads of all blocks: it is called once for a launch, on a goroutine of the
// device, in stream order. It reads its arguments with Arg and Slice. It may run at the same time as kernels of other streams,
// as on hardware. It is device code: it must not call CUDA. Nothing refuses that here, but a call that waits for the stream,
// the context or the Driver would wait for the kernel itself, and never return.
//
// A panic loses the device, as a fault of a kernel does on hardware: with ErrIllegalAddress for an address that is no device
// memory (Slice) and for what the Go runtime finds (an index out of range), with ErrLaunchFailed for everything else.
type Kernel func(l *Launch)

// Launch is one launch of a kernel.
type Launch struct {
	Kernel    string // its name
	Grid      cuda.Dim3
	Block     cuda.Dim3
	SharedMem int // bytes of dynamic shared memory

	m       *machine
	params  []byte
	offsets []uint32
	conds   map[driver.ConditionalHandle]*condValue // of the graph that it is a node of
	op      *op                                     // that it is a run of, if there is a checker or a Cost
}

// Threads is how many threads the launch has.
func (l *Launch) Threads() int {
	return l.Grid.X * l.Grid.Y * l.Grid.Z * l.Block.X * l.Block.Y * l.Block.Z
}

// Now is the device's clock in nanoseconds, as %globaltimer is on hardware. Under synctest it is virtual.
func (l *Launch) Now() uint64 {
	now := l.m.now()
	if l.m.timing != nil {
		now = later(now, l.op.notes().when.ends)
	}
	return uint64(now.UnixNano())
}

// Arg is argument i of the launch, from 0, as a T of the same size. An i or a T that does not fit is a mistake in the Kernel,
// and panics.
func Arg[T any](l *Launch, i int) T {
	if i < 0 || i >= len(l.offsets) {
		panic(fmt.Sprintf("softcuda: kernel %s has no argument %d: it was launched with %d", l.Kernel, i, len(l.offsets)))
	}
	var v T
	at, end := int(l.offsets[i]), len(l.params)
	if i+1 < len(l.offsets) {
		end = int(l.offsets[i+1])
	}
	if at+int(unsafe.Sizeof(v)) > end {
		panic(fmt.Sprintf("softcuda: argument %d of kernel %s is smaller than a %s", i, l.Kernel, reflect.TypeFor[T]()))
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v)), l.params[at:])
	return v
}

// Slice is the memory that pointer argument i points to, as n values of T; n < 0 means up to the end of the allocation. An
// address that is no device or pinned memory, or less of it than n, is the kernel's illegal address.
func Slice[T any](l *Launch, i, n int) []T {
	p := Arg[uint64](l, i)
	var zero T
	size := int(unsafe.Sizeof(zero))
	l.m.mu.Lock()
	data := l.m.reach(driver.DevicePtr(p))
	if n < 0 {
		n = len(data) / size
	}
	fits := n*size <= len(data) && len(data) > 0
	if l.op != nil && fits {
		l.touched(i, data[:n*size])
	} else if l.op != nil {
		l.m.checker.stray(l, driver.DevicePtr(p))
	}
	l.m.unlock()
	if !fits {
		panic(strayAddress{l.Kernel, i, p})
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), n)
}

// strayAddress is what Slice panics with.
type strayAddress struct {
	kernel string
	arg    int
	addr   uint64
}

func (s strayAddress) Error() string {
	return fmt.Sprintf("softcuda: kernel %s: argument %d is %#x, which is not memory enough for it", s.kernel, s.arg, s.addr)
}

// run runs the Go function of a kernel and makes a device's error of a panic.
func (l *Launch) run(k Kernel) (r driver.Result) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		err, _ := v.(error)
		var stray strayAddress
		var fault runtime.Error
		r = driver.ErrorLaunchFailed
		if errors.As(err, &stray) || errors.As(err, &fault) {
			r = driver.ErrorIllegalAddress
		}
		l.m.up.Log("softcuda: kernel failed; the device is lost", "kernel", l.Kernel, "panic", v, "result", r.Name(), "stack", string(debug.Stack()))
	}()
	k(l)
	return driver.Success
}

// Limits of a launch, those of an H200.
const (
	maxThreads = 1024
	maxGridX   = 1<<31 - 1
	maxGridYZ  = 65535
	maxBlockZ  = 64
	maxShared  = 227 << 10
)

// LaunchKernel implements driver.Modules.
func (m *machine) LaunchKernel(ctx driver.Context, f driver.Function, l *driver.Launch, onto driver.Stream) (string, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.queueable(ctx, onto)
	if r != driver.Success {
		return "", r
	}
	call, why, r := m.newCall(s.ctx, f, l)
	switch {
	case r != driver.Success:
		return why, r
	case s.capture != nil:
		m.add(s, &graphNode{typ: driver.NodeKernel, act: call.action()})
	default:
		o := &op{kind: opWork, work: call.run}
		m.named(o, call)
		if m.checker != nil || m.timing != nil {
			o.work = call.within(nil, o)
		}
		m.enqueue(s, o)
	}
	return "", driver.Success
}

// named notes the name of a kernel that o runs, where somebody wants to know. mu is held.
func (m *machine) named(o *op, call *kernelCall) {
	if m.sched != nil || m.faults != nil || m.checker != nil || m.timing != nil {
		x := o.note()
		x.kernel, x.launch = call.launch.Kernel, call.launch
	}
}

// kernelCall is a launch of a kernel that has been looked at, and the Go function that stands for the kernel.
type kernelCall struct {
	function    driver.Function
	grid, block [3]uint32
	launch      *Launch
	kernel      Kernel
}

// run does the launch.
func (k *kernelCall) run() driver.Result { return k.launch.run(k.kernel) }

// action is what a node of k does; nil for nil.
func (k *kernelCall) action() *action {
	if k == nil {
		return nil
	}
	return &action{kind: opWork, work: k.run, call: k}
}

// newCall makes a launch of f, a kernel of c. why explains a refusal, where it can. mu is held.
func (m *machine) newCall(c *context, f driver.Function, l *driver.Launch) (call *kernelCall, why string, r driver.Result) {
	fn := m.functions[f]
	if fn == nil || fn.mod.ctx != c {
		return nil, "", driver.ErrorInvalidHandle
	}
	if why := outOfLimits(l); why != "" {
		return nil, why, driver.ErrorInvalidValue
	}
	kernel := m.kernels[fn.name]
	if kernel == nil {
		return nil, fmt.Sprintf("the software device has no Go function for kernel %q; give it one: softcuda.Options{Kernels: softcuda.Kernels{%q: func(l *softcuda.Launch) { ... }}}",
			fn.name, fn.name), driver.ErrorNotFound
	}
	launch := &Launch{
		Kernel: fn.name, Grid: dim3(l.Grid), Block: dim3(l.Block), SharedMem: int(l.SharedMem),
		m: m, params: slices.Clone(l.Params), offsets: slices.Clone(l.Offsets),
	}
	return &kernelCall{f, l.Grid, l.Block, launch, kernel}, "", driver.Success
}

func dim3(d [3]uint32) cuda.Dim3 { return cuda.Dim3{X: int(d[0]), Y: int(d[1]), Z: int(d[2])} }

// outOfLimits says which of the device's limits a launch breaks, or "".
func outOfLimits(l *driver.Launch) string {
	threads := uint64(l.Block[0]) * uint64(l.Block[1]) * uint64(l.Block[2])
	switch {
	case slices.Contains(l.Block[:], 0) || slices.Contains(l.Grid[:], 0):
		return "a dimension is 0"
	case l.Block[0] > maxThreads || l.Block[1] > maxThreads || l.Block[2] > maxBlockZ || threads > maxThreads:
		return fmt.Sprintf("block %v has too many threads: at most %d in all, and %d in Z", dim3(l.Block), maxThreads, maxBlockZ)
	case l.Grid[0] > maxGridX || l.Grid[1] > maxGridYZ || l.Grid[2] > maxGridYZ:
		return fmt.Sprintf("grid %v is too large: Y and Z can be at most %d", dim3(l.Grid), maxGridYZ)
	case l.SharedMem > maxShared:
		return fmt.Sprintf("%d bytes of shared memory: a block can have %d", l.SharedMem, maxShared)
	}
	return ""
}
