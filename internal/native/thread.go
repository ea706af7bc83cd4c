//go:build linux && (amd64 || arm64)

package native

// ThreadPointer identifies the operating system thread that it runs on: the
// address of the thread's control block, which no two living threads share. It
// is never 0.
//
// It means something only in a program that links the C library. A goroutine
// may move to another thread at any moment unless it is locked to its own.
func ThreadPointer() uintptr
