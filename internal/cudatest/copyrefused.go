package cudatest

import (
	"bytes"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda"
)

// copyMismatch: what is refused queues nothing, not even the part that would fit.
func copyMismatch(t *T) {
	s, b, small := t.Stream(), t.Buffer(64), t.Buffer(32)
	t.OK(s.Memset(b, 1))
	t.OK(s.Memset(small, 1))
	t.Sync(s)
	host := bytes.Repeat([]byte{2}, 65)
	for _, err := range []error{
		cuda.CopyToDevice(s, b, host), cuda.CopyToDevice(s, b, host[:63]), cuda.CopyToDevice(s, b, []byte(nil)),
		cuda.CopyToDevice(s, b, make([]uint32, 64)), cuda.CopyToDevice(s, b, make([]struct{}, 64)),
		cuda.CopyToHost(s, host, b), cuda.CopyToHost(s, host[:63], b), cuda.CopyToHost(s, []byte(nil), b),
		s.CopyBuffer(b, small), s.CopyBuffer(small, b), s.CopyBuffer(t.Part(b, 0, 63), t.Part(b, 0, 64)),
	} {
		t.Is(err, cuda.ErrInvalidValue)
		if msg := err.Error(); !strings.Contains(msg, "dst") || !strings.Contains(msg, "src") || !strings.Contains(msg, "equal") {
			t.Errorf("%q does not say what does not match", err)
		}
	}
	if done, err := s.Query(); !done || err != nil {
		t.Errorf("Query = %v, %v: a refused copy was queued", done, err)
	}
	got := make([]byte, 64)
	t.OK(cuda.CopyToHost(s, got, b))
	t.Sync(s)
	if !bytes.Equal(got, bytes.Repeat([]byte{1}, 64)) || !bytes.Equal(host, bytes.Repeat([]byte{2}, 65)) {
		t.Error("a refused copy has copied something")
	}
}

func copyOverlap(t *T) {
	s, b := t.Stream(), t.Buffer(64)
	for _, c := range []struct {
		dst, src, n int
		ok          bool
	}{{0, 0, 64, false}, {0, 31, 32, false}, {31, 0, 32, false}, {10, 12, 3, false}, {0, 32, 32, true}, {32, 0, 32, true}, {5, 5, 0, true}} {
		err := s.CopyBuffer(t.Part(b, c.dst, c.n), t.Part(b, c.src, c.n))
		if c.ok {
			t.OK(err)
			continue
		}
		t.Is(err, cuda.ErrInvalidValue)
		t.Contains(err, "overlap")
	}
	t.Sync(s)
}

func copyBetweenDevices(t *T) {
	s, a := t.Stream(), t.Buffer(10_001)
	b, err := t.Device(1).Alloc(10_001)
	t.OK(err)
	defer b.Close()
	want, got := pattern(10_001, 3), make([]byte, 10_001)
	t.OK(cuda.CopyToDevice(s, a, want))
	t.OK(s.CopyBuffer(b, a))
	t.Sync(s)
	other := t.StreamOn(t.Device(1))
	t.OK(cuda.CopyToHost(other, got, b))
	t.Sync(other)
	if !bytes.Equal(got, want) {
		t.Error("the bytes differ")
	}
}

// copyInOrder copies out and back in between fills; a copy out of order would catch another fill's bytes.
func copyInOrder(t *T) {
	s, b, other := t.Stream(), t.Buffer(1<<18), t.Buffer(1<<18)
	var pinned [8][]byte
	for i := range pinned {
		pinned[i] = t.Pinned(1 << 18).Bytes()
	}
	last := make([]byte, 1<<18)
	t.Spin(s, 5*time.Millisecond)
	for i, p := range pinned {
		t.OK(s.Memset(b, byte(i)))
		t.OK(cuda.CopyToHost(s, p, b))
		t.OK(s.Memset(b, 0xFF))
		t.OK(cuda.CopyToDevice(s, other, p))
	}
	t.OK(cuda.CopyToHost(s, last, other))
	t.Sync(s)
	for i, p := range pinned {
		if !bytes.Equal(p, bytes.Repeat([]byte{byte(i)}, 1<<18)) {
			t.Errorf("copy %d was out of order", i)
		}
	}
	if !bytes.Equal(last, pinned[7]) {
		t.Error("the copy back was out of order")
	}
}

// copyRetained drops ordinary memory, and a buffer, while copies from and to them wait behind a kernel.
func copyRetained(t *T) {
	s, b := t.Stream(), t.Buffer(1<<16)
	want, got := pattern(1<<16, 5), make([]byte, 1<<16)
	t.Spin(s, 20*time.Millisecond)
	func() {
		src := slices.Clone(want)
		tmp, err := t.Device(0).Alloc(1 << 16)
		t.OK(err)
		t.OK(cuda.CopyToDevice(s, tmp, src))
		t.OK(s.CopyBuffer(b, tmp))
		t.OK(cuda.CopyToHost(s, make([]byte, 1<<16), tmp))
	}()
	for range 5 {
		runtime.GC()
		for range 50 { // whatever was freed would be used again
			runtime.KeepAlive(bytes.Repeat([]byte{0xDD}, 1<<16))
		}
	}
	t.OK(cuda.CopyToHost(s, got, b))
	t.Sync(s)
	if !bytes.Equal(got, want) {
		t.Error("the bytes were lost on the way")
	}
	t.Eventually("the dropped buffer is freed", func() bool {
		runtime.GC()
		t.Driver.Device(0)
		return t.Driver.Stats().Buffers == 1
	})
}

func partKeepsBuffer(t *T) {
	s := t.Stream()
	part := func() *cuda.Buffer {
		b, err := t.Device(0).Alloc(1000)
		t.OK(err)
		return t.Part(t.Part(b, 100, 800), 100, 600)
	}()
	for range 5 {
		runtime.GC()
		t.Driver.Device(0) // any call has what was dropped closed
		time.Sleep(time.Millisecond)
	}
	want, got := pattern(600, 9), make([]byte, 600)
	t.OK(cuda.CopyToDevice(s, part, want))
	t.OK(cuda.CopyToHost(s, got, part))
	t.Sync(s)
	if !bytes.Equal(got, want) {
		t.Error("the bytes differ")
	}
	t.OK(part.Close()) // closes the allocation
	t.Is(cuda.CopyToHost(s, got, part), cuda.ErrClosed)
}

// pinnedFreedAfter closes pinned memory with a copy to it queued. Close waits for the copy.
func pinnedFreedAfter(t *T) {
	s, b, e := t.Stream(), t.Buffer(1<<16), t.Event()
	for range 10 {
		p, err := t.Device(0).AllocPinned(1 << 16)
		t.OK(err)
		t.Spin(s, 2*time.Millisecond)
		t.OK(cuda.CopyToHost(s, p.Bytes(), b))
		t.OK(s.Record(e))
		t.OK(p.Close())
		if done, err := e.Query(); !done || err != nil {
			t.Errorf("Query = %v, %v: the memory was freed before the copy was done", done, err)
		}
		if p.Bytes() != nil {
			t.Error("Bytes of closed memory")
		}
	}
	t.Sync(s)
}

func copyPointers(t *T) {
	type plain struct{ A, B int32 }
	type deep struct {
		A plain
		B [2]struct{ Name string }
	}
	type link struct{ Next *link }
	refused[string](t, "string")
	refused[*int](t, "*int")
	refused[[]byte](t, "[]uint8")
	refused[map[string]int](t, "map[string]int")
	refused[any](t, "interface {}")
	refused[error](t, "error")
	refused[func()](t, "func()")
	refused[chan int](t, "chan int")
	refused[unsafe.Pointer](t, "unsafe.Pointer")
	refused[link](t, "link", "Next")
	refused[deep](t, "deep", "B", "Name", "string")
	refused[[3][2]*byte](t, "[3][2]*uint8")
	refused[[2]deep](t, "deep")
}

// refused wants copies of Vs to be refused with a message that has the words.
func refused[V any](t *T, words ...string) {
	t.Helper()
	s, vals := t.Stream(), make([]V, 2)
	b := t.Buffer(2 * int(reflect.TypeFor[V]().Size()))
	for _, err := range []error{cuda.CopyToHost(s, vals, b), cuda.CopyToDevice(s, b, vals)} {
		t.Is(err, cuda.ErrInvalidValue)
		t.Contains(err, words...)
	}
	if done, err := s.Query(); !done || err != nil {
		t.Errorf("Query = %v, %v: a refused copy was queued", done, err)
	}
}
