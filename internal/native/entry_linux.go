//go:build linux && (amd64 || arm64)

package native

// hasAssembly: native functions have addresses that C can call.
const hasAssembly = true

// Addresses of assembly functions in the C calling convention.
var cellEntryPC, copyFuncPC uintptr

func cellEntry() uintptr { return cellEntryPC }
func copyFunc() uintptr  { return copyFuncPC }
