//go:build !amd64 && !arm64

package native

// Goroutine tells running goroutines apart. A later goroutine may have the number of one that has ended.
func Goroutine() uintptr { return uintptr(GoroutineID()) }
