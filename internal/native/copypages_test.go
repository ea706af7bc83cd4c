//go:build linux

package native

import (
	"bytes"
	"syscall"
	"testing"
	"unsafe"
)

// fenced is n bytes between two pages that nobody may touch.
func fenced(t *testing.T, n int) []byte {
	t.Helper()
	page := syscall.Getpagesize()
	b, err := syscall.Mmap(-1, 0, n+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(b) })
	for _, fence := range [][]byte{b[:page], b[page+n:]} {
		if err := syscall.Mprotect(fence, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return b[page : page+n : page+n]
}

// TestCopyTouchesNothingElse: a byte read or written before or behind the ranges would end the test.
func TestCopyTouchesNothingElse(t *testing.T) {
	size := 4 * syscall.Getpagesize()
	dst, src := fenced(t, size), fenced(t, size)
	for i := range src {
		src[i] = byte(i * 3)
	}
	for _, c := range copiers() {
		for n := range 1100 {
			for _, at := range []int{0, size - n} { // at the beginning and at the end
				for _, from := range []int{0, size - n} {
					if n == 0 {
						c.copy(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), 0)
						continue
					}
					dst[at], dst[at+n-1] = ^src[from], ^src[from+n-1]
					c.copy(unsafe.Pointer(&dst[at]), unsafe.Pointer(&src[from]), uintptr(n))
					if !bytes.Equal(dst[at:at+n], src[from:from+n]) {
						t.Fatalf("%s: %d bytes from %d to %d differ", c.name, n, from, at)
					}
				}
			}
		}
		c.copy(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), uintptr(size))
		if !bytes.Equal(dst, src) {
			t.Fatalf("%s: whole pages differ", c.name)
		}
	}
}
