package cudatest

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda"
)

// nativeCases: compiled functions as host functions on streams. The functions are those of internal/nativetest, which Config.Native has.
var nativeCases = []Case{
	{ID: "HL-11", Name: "an address arrives", Run: nativeAddress},
	{ID: "HL-11", Name: "nothing arrives as NULL", Run: nativeNull},
	{ID: "HL-11", Name: "bytes are copied before the call returns", Run: nativeBytes},
	{ID: "HL-11", Name: "between kernels and Go functions", Run: nativeBetween},
	{ID: "HL-11", Name: "data lives until the function has run", Run: nativeDataLives},
	{ID: "HL-11", Name: "under the garbage collector", Run: nativeUnderGC},
	{ID: "HL-11", Name: "100,000 queued", Child: true, Run: nativeMany},
	{ID: "HL-11", Name: "from many goroutines", Run: nativeFromMany},
	{ID: "HL-11", Name: "calls back into Go", Run: nativeCallsBack},
}

// native is a function of internal/nativetest.
func (t *T) native(name string) cuda.NativeFunc {
	t.Helper()
	if t.cfg.Native == nil {
		t.Fatal("Config.Native is missing")
	}
	return t.cfg.Native(name)
}

// Native queues a native function.
func (t *T) Native(on cuda.Queue, name string, data cuda.NativeData, opts ...cuda.HostOption) {
	t.Helper()
	t.OK(cuda.HostLaunchNative(on, t.native(name), data, opts...))
}

// noted is what the native function "note" was called with last, and how often it was.
func (t *T) noted() (data uintptr, times int) { return t.cfg.Noted() }

// entry is nativetest.Entry.
type entry struct {
	log   uintptr
	value uint64
}

// appending is the data with which "append" puts value in a log of pinned memory, as the kernel of that name does.
func appending(log *cuda.PinnedBuffer, value uint64) cuda.NativeData {
	e := entry{uintptr(unsafe.Pointer(unsafe.SliceData(log.Bytes()))), value}
	return cuda.NativeBytes((*[16]byte)(unsafe.Pointer(&e))[:])
}

func nativeAddress(t *T) {
	s := t.Stream()
	pinned, local := t.Pinned(64).Bytes(), make([]byte, 64)
	for i, at := range []unsafe.Pointer{unsafe.Pointer(&pinned[3]), unsafe.Pointer(&local[0]), unsafe.Pointer(&local[7])} {
		_, before := t.noted()
		t.Native(s, "note", cuda.NativePointer(at))
		t.Sync(s)
		if data, times := t.noted(); data != uintptr(at) || times != before+1 {
			t.Errorf("pointer %d: arrived as %#x, want %#x; %d calls", i, data, at, times-before)
		}
	}
	for _, address := range []uintptr{1, 0x7eadbeef, ^uintptr(0)} {
		t.Native(s, "note", cuda.NativeAddr(address))
		t.Sync(s)
		if data, _ := t.noted(); data != address {
			t.Errorf("arrived as %#x, want %#x", data, address)
		}
	}
	count := &cuda.PinnedSlice[atomic.Uint64](t.Pinned(8))[0]
	count.Store(5)
	t.Native(s, "add", cuda.NativePointer(unsafe.Pointer(count)))
	t.Native(s, "add", cuda.NativePointer(unsafe.Pointer(count)))
	t.Sync(s)
	if n := count.Load(); n != 7 {
		t.Errorf("the caller's memory holds %d, want 7", n)
	}
}

func nativeNull(t *T) {
	s := t.Stream()
	for i, data := range []cuda.NativeData{{}, cuda.NativeBytes(nil), cuda.NativeBytes([]byte{}), cuda.NativeAddr(0), cuda.NativePointer(nil)} {
		_, before := t.noted()
		t.Native(s, "note", cuda.NativeAddr(7))
		t.Native(s, "note", data)
		t.Sync(s)
		if data, times := t.noted(); data != 0 || times != before+2 {
			t.Errorf("data %d: arrived as %#x; %d calls of 2", i, data, times-before)
		}
	}
}

// summing is the data with which "sum" puts the sum of b's bytes into out.
func summing(out *uint64, b []byte) []byte {
	head := struct {
		out uintptr
		n   uint64
	}{uintptr(unsafe.Pointer(out)), uint64(len(b))}
	return append(slices.Clone((*[16]byte)(unsafe.Pointer(&head))[:]), b...)
}

func nativeBytes(t *T) {
	s := t.Stream()
	out := cuda.PinnedSlice[uint64](t.Pinned(8 * 8))
	sizes := []int{0, 1, 48, 49, 63, 1000, 1 << 16, 1<<20 + 1}
	g := t.Gate(s)
	for i, n := range sizes {
		data := summing(&out[i], bytes.Repeat([]byte{3}, n))
		t.Native(s, "sum", cuda.NativeBytes(data))
		for j := range data {
			data[j] = 0xff // the address too
		}
	}
	t.Native(s, "note", cuda.NativeBytes(make([]byte, 17)))
	g.Open()
	t.Sync(s)
	for i, n := range sizes {
		if out[i] != 3*uint64(n) {
			t.Errorf("%d bytes: sum %d, want %d", n, out[i], 3*n)
		}
	}
	if at, _ := t.noted(); at%16 != 0 || at == 0 {
		t.Errorf("bytes lie at %#x, want a multiple of 16", at)
	}
}

func nativeBetween(t *T) {
	s, k, log := t.Stream(), t.Kernel("append"), t.Pinned(8*64)
	words := cuda.PinnedSlice[uint64](log)
	clear(words)
	goAppend := func(v uint64) func() { return func() { words[1+words[0]] = v; words[0]++ } }
	for i := range uint64(10) {
		t.OK(s.Launch(k, one, log, 6*i))
		t.Native(s, "append", appending(log, 6*i+1))
		t.Native(s, "append", appending(log, 6*i+2), cuda.SyncMode(cuda.Spin))
		t.OK(s.Launch(k, one, log, 6*i+3))
		t.Host(s, goAppend(6*i+4))
		t.Native(s, "append", appending(log, 6*i+5))
	}
	t.Sync(s)
	if words[0] != 60 {
		t.Fatalf("%d marks, want 60", words[0])
	}
	for i, v := range words[1:61] {
		if v != uint64(i) {
			t.Fatalf("marks %v, want 0, 1, 2, ...", words[1:61])
		}
	}
}

func nativeDataLives(t *T) {
	s := t.Stream()
	g := t.Gate(s)
	var gone atomic.Int32
	for range 50 {
		data := new([64]uint64)
		runtime.AddCleanup(data, func(int) { gone.Add(1) }, 0)
		t.Native(s, "add", cuda.NativePointer(unsafe.Pointer(&data[7])))
	}
	for range 5 {
		runtime.GC()
	}
	if n := gone.Load(); n != 0 {
		t.Errorf("%d of 50 were collected before the functions ran", n)
	}
	g.Open()
	t.Sync(s)
	t.Eventually("the data is let go of", func() bool { runtime.GC(); return gone.Load() == 50 })

	// And if nobody calls the library.
	data := new([64]uint64)
	runtime.AddCleanup(data, func(int) { gone.Add(1) }, 0)
	t.Native(s, "add", cuda.NativePointer(unsafe.Pointer(data)))
	t.Eventually("the data is let go of without a call", func() bool { runtime.GC(); return gone.Load() == 51 })
}

func nativeUnderGC(t *T) {
	const n = 2000
	s := t.Stream()
	out := cuda.PinnedSlice[uint64](t.Pinned(8 * n))
	stop := t.collecting()
	for i := range n {
		body := bytes.Repeat([]byte{byte(i)}, i)
		data := summing(&out[i], body)
		if i%2 == 0 {
			t.Native(s, "sum", cuda.NativeBytes(data))
		} else {
			t.Native(s, "sum", cuda.NativePointer(unsafe.Pointer(unsafe.SliceData(data))))
		}
	}
	t.Sync(s)
	stop()
	for i := range n {
		if want := uint64(i) * uint64(byte(i)); out[i] != want {
			t.Fatalf("function %d summed %d, want %d", i, out[i], want)
		}
	}
}

// nativeMany runs in a process where nothing has been attached: the first cuStreamAttachMemAsync of a process makes an H200's driver slower
// with host functions by 30 times and more, for good (docs/results/2026-11-30-h200-conformance.md).
func nativeMany(t *T) {
	const n = 100_000
	t.OpenDriver()
	s := t.Stream()
	log := t.Pinned(8 * (n + 1))
	words := cuda.PinnedSlice[uint64](log)
	clear(words)
	g := t.Gate(s)
	<-g.Entered
	queued := make(chan error, 1)
	go func() { // a driver may hold so many back until some have run
		for i := range n {
			if err := cuda.HostLaunchNative(s, t.native("append"), appending(log, uint64(i))); err != nil {
				queued <- err
				return
			}
		}
		queued <- nil
	}()
	time.Sleep(100 * time.Millisecond)
	g.Open()
	ran := (*atomic.Uint64)(unsafe.Pointer(&words[0]))
	t.OK(t.whileMoving("the enqueuer", queued, ran))
	synced := make(chan error, 1)
	go func() { synced <- s.Sync() }()
	t.OK(t.whileMoving("Sync", synced, ran))
	if words[0] != n {
		t.Fatalf("%d ran, want %d", words[0], n)
	}
	for i, v := range words[1:] {
		if v != uint64(i) {
			t.Fatalf("number %d ran as number %d", v, i)
		}
	}
	if st := t.Driver.Stats(); st.Waiting != 0 || st.Running != 0 {
		t.Errorf("%d wait and %d run afterwards", st.Waiting, st.Running)
	}
}

// whileMoving waits for what as long as a counter goes on: how long that takes is the driver's business.
func (t *T) whileMoving(what string, ch <-chan error, ran *atomic.Uint64) error {
	t.Helper()
	for start, last := time.Now(), uint64(0); ; {
		select {
		case err := <-ch:
			return err
		case <-time.After(10 * time.Second):
		}
		now := ran.Load()
		if t.Logf("%s: %d ran after %v", what, now, time.Since(start)); now == last {
			t.Fatalf("nothing came: %s", what)
		}
		last = now
	}
}

func nativeFromMany(t *T) {
	const goroutines, each = 16, 300
	count := &cuda.PinnedSlice[atomic.Uint64](t.Pinned(8))[0]
	count.Store(0)
	var told atomic.Int64
	errs := make(chan error, goroutines)
	s := t.Stream()
	for i := range goroutines {
		on := s
		if i%2 == 0 {
			on = t.Stream()
		}
		go func() {
			var err error
			for j := range each {
				var opts []cuda.HostOption
				if j%10 == 0 {
					opts = append(opts, cuda.OnDone(func(error) { told.Add(1) }))
				}
				err = errors.Join(err, cuda.HostLaunchNative(on, t.native("add"), cuda.NativePointer(unsafe.Pointer(count)), opts...))
				if j%50 == 0 {
					err = errors.Join(err, on.Sync())
				}
			}
			errs <- errors.Join(err, on.Sync())
		}()
	}
	for range goroutines {
		t.OK(Receive(t, "an enqueuer", errs))
	}
	if n := count.Load(); n != goroutines*each {
		t.Errorf("%d ran, want %d", n, goroutines*each)
	}
	t.Eventually("OnDone is told", func() bool { return told.Load() == goroutines*each/10 })
}

func nativeCallsBack(t *T) {
	if t.cfg.Callback == nil {
		t.Skip("the program calls no C, so that nothing can call back")
	}
	s, other := t.Stream(), t.Stream()
	var query, launch error
	var bytes []byte
	ran := 0
	p := t.Pinned(8)
	fn := t.cfg.Callback(func() {
		ran++
		_, query = other.Query()
		launch = cuda.HostLaunch(other, func() { t.Error("ran") })
		bytes = p.Bytes()
	})
	g := t.Capture(func(b *cuda.GraphBuilder) error { return cuda.HostLaunchNative(b, fn, cuda.NativeData{}) })
	x := t.Exec(g)
	for i, queue := range []func() error{
		func() error { return cuda.HostLaunchNative(s, fn, cuda.NativeData{}) },
		func() error { return x.Launch(s) },
	} {
		query, launch, bytes = nil, nil, nil
		t.OK(queue())
		t.Sync(s)
		t.Is(query, cuda.ErrNotPermitted)
		t.Is(launch, cuda.ErrNotPermitted)
		if ran != i+1 || len(bytes) != 8 {
			t.Errorf("ran %d times, pinned bytes %d", ran, len(bytes))
		}
	}
	_, err := other.Query() // and nobody else is inside
	t.OK(err)
}
