//go:build linux && (amd64 || arm64)

package native

// Await is what the C function at AwaitFunc is given: it looks at a word in memory until that has come to Value, counted
// cyclically, and then calls Fn(Data), if there is one. It leaves in Tries how many looks were left: 0, and Fn was not called, if
// it has given up. Between looks the processor pauses, for some 10 to 50 ns.
//
// So a thread can wait for a device, and then copy, without the Go runtime.
type Await struct {
	Word  uintptr // of 32 bits
	Value uint32
	_     uint32
	Tries uint64 // at least 1
	Fn    uintptr
	Data  uintptr
}

var awaitPC uintptr

// AwaitFunc is the address of the C function `void await(Await *)`.
func AwaitFunc() uintptr { return awaitPC }

// awaitGo calls it from Go.
//
//go:noescape
func awaitGo(a *Await)
