package native

// CallerPCs fills pcs with the return addresses of the function that calls it, of that function's caller, and so on: what
// runtime.Callers(2, pcs) called there leaves in pcs, for a nanosecond or two each. It returns how many those are.
//
// The function must be marked go:noinline. What CallerPC says of wrappers holds here too. Functions that were inlined have no address of
// their own; runtime.CallersFrames tells of them all the same.
//
//go:noinline
func CallerPCs(pcs []uintptr) int { return callerPCs(pcs) }
