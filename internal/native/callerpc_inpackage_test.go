package native

import (
	"runtime"
	"testing"
)

// Calls of assembly from its own package are compiled differently from those
// from another, so CallerPC is checked from both.
func TestCallerPCFromThisPackage(t *testing.T) {
	if fast, slow := askHere(); fast != slow {
		t.Errorf("CallerPC = %#x, runtime.Callers gives %#x", fast, slow)
	}
}

//go:noinline
func askHere() (fast, slow uintptr) {
	var pcs [1]uintptr
	runtime.Callers(2, pcs[:])
	return CallerPC(), pcs[0]
}
