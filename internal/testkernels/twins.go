// Package testkernels holds the kernels of the conformance suite and the benchmarks: CUDA source, its PTX, and their Go twins
// for the software device.
package testkernels

import (
	_ "embed"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda/softcuda"
)

// PTX is kernels.cu, compiled. scripts/ptx.sh makes it.
//
//go:embed kernels.ptx
var PTX []byte

// ConditionalPTX is conditional.cu, compiled: kernels that set the value of a conditional node of a graph. They are a module of
// their own because drivers before CUDA 12.3 cannot load it.
//
//go:embed conditional.ptx
var ConditionalPTX []byte

// Pair is the struct parameter of the kernel "arguments".
type Pair struct {
	A uint32
	B uint64
}

// Twins are the Go functions for the kernels of PTX and ConditionalPTX.
func Twins() softcuda.Kernels {
	return softcuda.Kernels{
		"spin":      spin,
		"stamp":     func(l *softcuda.Launch) { softcuda.Slice[uint64](l, 0, 1)[0] = l.Now() },
		"append":    appendValue,
		"store":     func(l *softcuda.Launch) { softcuda.Slice[uint32](l, 0, 1)[0] = softcuda.Arg[uint32](l, 1) },
		"increment": increment,
		"arguments": arguments,
		"nothing":   func(*softcuda.Launch) {},
		"setcond":   func(l *softcuda.Launch) { l.SetConditional(softcuda.Arg[uint64](l, 0), softcuda.Arg[uint32](l, 1)) },
		"countdown": countdown,
	}
}

// spin sleeps for long times, as a GPU is no load for the host, and spins for short ones, which no sleep would keep.
func spin(l *softcuda.Launch) {
	d := time.Duration(softcuda.Arg[uint64](l, 0))
	if d >= time.Millisecond {
		time.Sleep(d)
		return
	}
	for start := time.Now(); time.Since(start) < d; {
		runtime.Gosched()
	}
}

func appendValue(l *softcuda.Launch) {
	log := softcuda.Slice[uint64](l, 0, -1)
	i := atomic.AddUint64(&log[0], 1)
	atomic.StoreUint64(&log[i], softcuda.Arg[uint64](l, 1)) // whoever looks at once may see the count without the value
}

func increment(l *softcuda.Launch) {
	n := min(int(softcuda.Arg[uint32](l, 1)), l.Threads())
	v := softcuda.Slice[uint32](l, 0, n)
	for i := range v {
		v[i]++
	}
}

func countdown(l *softcuda.Launch) {
	n := softcuda.Slice[int32](l, 1, 1)
	n[0]--
	var more uint32
	if n[0] > 0 {
		more = 1
	}
	l.SetConditional(softcuda.Arg[uint64](l, 0), more)
}

func arguments(l *softcuda.Launch) {
	out, p := softcuda.Slice[uint64](l, 7, 8), softcuda.Arg[Pair](l, 6)
	out[0] = uint64(softcuda.Arg[uint8](l, 0))
	out[1] = uint64(softcuda.Arg[uint16](l, 1))
	out[2] = uint64(softcuda.Arg[uint32](l, 2))
	out[3] = softcuda.Arg[uint64](l, 3)
	out[4] = uint64(softcuda.Arg[float32](l, 4))
	out[5] = uint64(softcuda.Arg[float64](l, 5))
	out[6], out[7] = uint64(p.A), p.B
}
