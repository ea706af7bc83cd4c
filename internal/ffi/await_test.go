//go:build linux && (amd64 || arm64)

package ffi

import (
	"bytes"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// TestMemcpy copies ranges of all kinds of sizes and places, through the caches and past them.
func TestMemcpy(t *testing.T) {
	src := make([]byte, 1<<20+64)
	for i := range src {
		src[i] = byte(i*7 + i>>8)
	}
	for _, n := range []int{0, 1, 63, 64, 4096, 100_001, 1 << 20} {
		for _, off := range []int{0, 1, 31} {
			for _, streamFrom := range []uintptr{1, 1 << 30} {
				dst := bytes.Repeat([]byte{0xCC}, n+64)
				Memcpy(unsafe.Pointer(&dst[off]), unsafe.Pointer(&src[64-off]), uintptr(n), streamFrom)
				if !bytes.Equal(dst[off:off+n], src[64-off:64-off+n]) {
					t.Fatalf("%d bytes, offset %d, streaming from %d: the bytes differ", n, off, streamFrom)
				}
				if off > 0 && dst[off-1] != 0xCC || dst[off+n] != 0xCC {
					t.Fatalf("%d bytes, offset %d, streaming from %d: a byte beside them has changed", n, off, streamFrom)
				}
			}
		}
	}
}

// TestMemcpyAfterHoldsNoP: with one P, the goroutine that writes the word runs while another waits for it, and so does the garbage
// collector; nothing is copied before, and what was written before is copied.
func TestMemcpyAfterHoldsNoP(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	word, src, dst := new(atomic.Uint32), make([]byte, 100), make([]byte, 100)
	after := func(value uint32, looks uint64) bool {
		return MemcpyAfter((*uint32)(unsafe.Pointer(word)), value, looks, unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), 100, 1<<20)
	}
	src[9] = 1
	if after(7, 100) || dst[9] != 0 {
		t.Error("copied before the word had come so far")
	}
	seen := make(chan bool)
	go func() { seen <- after(7, 1<<34) }()
	time.Sleep(10 * time.Millisecond)
	runtime.GC()
	src[9] = 2
	word.Store(7)
	select {
	case ok := <-seen:
		if !ok || dst[9] != 2 {
			t.Errorf("%v, copied %d", ok, dst[9])
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits on")
	}
}
