//go:build amd64 || arm64

package native

// CallerPC returns the return address of the function that calls it: for a
// function F that calls CallerPC, the place in F's caller that F returns to,
// the value that runtime.Callers(2, pcs) called in F leaves in pcs[0]. It costs
// about 2 ns, where runtime.Callers costs 80 and more.
//
// F must be marked go:noinline, or the answer is about whatever F was inlined
// into. Unlike runtime.Callers it does not skip the wrappers that the compiler
// makes: for promoted methods, value methods reached through a pointer, method
// values, and go or defer statements with arguments. Called through one, F's
// caller is the wrapper.
//
// CallerPC has a frame of its own for callerPC to start from. Called from other
// packages, an assembly function may or may not have a wrapper with a frame
// around it.
//
//go:noinline
func CallerPC() uintptr { return callerPC() }

// callerPC returns the return address of its caller's caller.
func callerPC() uintptr
