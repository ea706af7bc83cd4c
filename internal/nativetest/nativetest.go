// Package nativetest has compiled functions `void f(void *)` for the tests of native host functions: in C where the build has
// cgo, else in assembly, so that no C compiler is needed; and their twins in Go, for the software device in programs that do
// not call C.
package nativetest

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/native"
)

// The functions. What they are called with is the address of the type that is named, or anything where none is.
const (
	Add    = iota // 1 to the uint64 there, atomically
	Append        // Entry: its Value to its Log, as the test kernel "append" does
	Note          // the argument itself, which Noted tells, and counts
	Hold          // Gate: says that it is there and waits to be let go
	Sum           // Bytes: the sum of its bytes to Out
	functions
)

// Entry is what Append is called with. Log is the address of an array of uint64, the first of which counts the others.
type Entry struct {
	Log   uintptr
	Value uint64
}

// Gate is what Hold is called with.
type Gate struct{ Open, Entered atomic.Uint32 }

// Bytes is what Sum is called with: N bytes follow. Out is the address of a uint64.
type Bytes struct {
	Out uintptr
	N   uint64
}

// Func is the address of a function.
func Func(which int) uintptr { return address(which) }

// ByName is Func by the function's name in small letters.
func ByName(name string) uintptr {
	return Func(map[string]int{"add": Add, "append": Append, "note": Note, "hold": Hold, "sum": Sum}[name])
}

// Noted is what Note was called with last, and how often it was called.
func Noted() (data uintptr, times int) { return lastNoted().Load(), int(timesNoted().Load()) }

func init() {
	for i, twin := range [functions]func(uintptr){addTwin, appendTwin, noteTwin, holdTwin, sumTwin} {
		native.Twin(Func(i), twin)
	}
}

// at is what an address points to.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

func addTwin(data uintptr) { at[atomic.Uint64](data).Add(1) }

func noteTwin(data uintptr) {
	lastNoted().Store(data)
	timesNoted().Add(1)
}

func appendTwin(data uintptr) {
	e := at[Entry](data)
	log := at[[1 << 20]uint64](e.Log)
	log[1+log[0]] = e.Value
	log[0]++
}

func holdTwin(data uintptr) {
	g := at[Gate](data)
	g.Entered.Store(1)
	for g.Open.Load() == 0 {
		runtime.Gosched()
	}
}

func sumTwin(data uintptr) {
	b := at[Bytes](data)
	sum := uint64(0)
	for _, v := range unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(b), unsafe.Sizeof(*b))), b.N) {
		sum += uint64(v)
	}
	*at[uint64](b.Out) = sum
}
