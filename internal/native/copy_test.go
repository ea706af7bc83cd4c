package native

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"
	"unsafe"
)

// copier is a way to copy.
type copier struct {
	name string
	copy func(dst, src unsafe.Pointer, n uintptr)
}

// room is memory whose bytes tell their places.
type room struct{ got, want []byte }

func newRoom(n int) *room {
	r := &room{make([]byte, n), make([]byte, n)}
	for i := range r.got {
		r.got[i] = byte(i*7 + i>>8*13 + i>>16)
	}
	copy(r.want, r.got)
	return r
}

// move copies within the room, both ways, and compares all of it.
func (r *room) move(t *testing.T, c copier, dst, src, n int) {
	t.Helper()
	c.copy(unsafe.Pointer(&r.got[dst]), unsafe.Pointer(&r.got[src]), uintptr(n))
	copy(r.want[dst:dst+n], r.want[src:src+n])
	if !bytes.Equal(r.got, r.want) {
		i := 0
		for r.got[i] == r.want[i] {
			i++
		}
		t.Fatalf("%s: %d bytes from %d to %d: byte %d is %d, want %d", c.name, n, src, dst, i, r.got[i], r.want[i])
	}
}

// TestCopySizes: every size up to some blocks, at every alignment to a vector of either end.
func TestCopySizes(t *testing.T) {
	for _, c := range copiers() {
		r := newRoom(4096)
		for n := range 1100 {
			if testing.Short() && n > 300 && n%17 != 0 {
				continue
			}
			for a := 0; a < 64; a += 1 + n/64%7 {
				r.move(t, c, 64+a, 2500+(a*5+n)%64, n)
			}
		}
	}
}

// TestCopyOverlap: every distance up to some blocks, either way.
func TestCopyOverlap(t *testing.T) {
	for _, c := range copiers() {
		r := newRoom(4096)
		for _, n := range []int{0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 65, 127, 128, 129, 200, 256, 257, 320, 511, 512, 513, 640, 1000, 1500} {
			for d := range 700 {
				r.move(t, c, 100+d, 100, n)
				r.move(t, c, 101, 101+d, n)
			}
		}
	}
}

// TestCopyLarge: more than Copy copies in one go, and more than is streamed by itself.
func TestCopyLarge(t *testing.T) {
	r := newRoom(30 << 20)
	c := copier{"Copy", Copy}
	for _, n := range []int{4096, 4097, 1<<20 + 1, 4<<20 - 1, 4<<20 + 1, 8 << 20, 13<<20 + 7} {
		r.move(t, c, 3, 14<<20+5, n)
		r.move(t, c, 14<<20, 1, n)
		for _, d := range []int{1, 100, 4096, 4 << 20, 5 << 20} {
			r.move(t, c, 10+d, 10, n)
			r.move(t, c, 11, 11+d, n)
		}
	}
}

// BenchmarkCopy compares Copy with Go's copy by size, in turn, so that what else the machine does hits both. It reports the
// median rate of each and their ratio.
func BenchmarkCopy(b *testing.B) {
	const least = 1 << 20 // of a turn
	most := 1 << 30
	if testing.Short() {
		most = 1 << 24
	}
	dst, src := make([]byte, most), make([]byte, most)
	for i := 0; i < most; i += 4096 {
		dst[i], src[i] = 1, 2
	}
	for n := 64; n <= most; n *= 4 {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			times := max(1, least/n)
			var rates [2][]float64
			for b.Loop() {
				for i, c := range [2]func(dst, src unsafe.Pointer, n uintptr){goCopy, Copy} {
					start := time.Now()
					for range times {
						c(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), uintptr(n))
					}
					rates[i] = append(rates[i], float64(n*times)/float64(time.Since(start)))
				}
			}
			slices.Sort(rates[0])
			slices.Sort(rates[1])
			golang, ours := rates[0][len(rates[0])/2], rates[1][len(rates[1])/2]
			b.ReportMetric(golang, "go-GB/s")
			b.ReportMetric(ours, "native-GB/s")
			b.ReportMetric(ours/golang, "ratio")
		})
	}
}

func goCopy(dst, src unsafe.Pointer, n uintptr) {
	copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
}
