package cudatest

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda"
)

// nativeCases: compiled functions as host functions. The functions are those of internal/nativetest, which Config.Native has.
var nativeCases = []Case{
	{ID: "HL-11", Name: "an address arrives", Run: nativeAddress},
	{ID: "HL-11", Name: "nothing arrives as NULL", Run: nativeNull},
	{ID: "HL-11", Name: "bytes are copied before the call returns", Run: nativeBytes},
	{ID: "HL-11", Name: "between kernels and Go functions", Run: nativeBetween},
	{ID: "HL-11", Name: "data lives until the function has run", Run: nativeDataLives},
	{ID: "HL-11", Name: "under the garbage collector", Run: nativeUnderGC},
	{ID: "HL-11", Name: "100,000 queued", Run: nativeMany},
	{ID: "HL-11", Name: "from many goroutines", Run: nativeFromMany},
	{ID: "HL-11", Name: "calls back into Go", Run: nativeCallsBack},
	{ID: "HL-11", Name: "in a graph", Run: nativeInGraph},
	{ID: "HL-11", Name: "data of a graph", Run: nativeGraphData},
	{ID: "HL-11", Name: "nodes changed, removed, cloned", Run: nativeNodeChanged},
	{ID: "GR-09", Name: "native functions by name", Run: nativeNodeNamed},
	{ID: "HL-12", Name: "null address", Run: nativeNullAddress},
	{ID: "HL-12", Name: "refused", Run: nativeRefused},
	{ID: "HL-27", Name: "OnDone of native functions", Run: nativeOnDone},
	{ID: "HL-17", Name: "native, lost", Child: true, Run: nativeLost},
	{ID: "HL-17", Name: "native, lost while one runs", Child: true, Run: nativeLostWhileRunning},
	{ID: "HL-17", Name: "native, lost in a graph", Child: true, Run: nativeLostInGraph},
	{ID: "LI-01", Name: "Close waits for native functions", Run: closeWaitsForNative},
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
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
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
	close(stop)
	<-stopped
	for i := range n {
		if want := uint64(i) * uint64(byte(i)); out[i] != want {
			t.Fatalf("function %d summed %d, want %d", i, out[i], want)
		}
	}
}

func nativeMany(t *T) {
	const n = 100_000
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
	t.OK(Receive(t, "the enqueuer", queued))
	t.Sync(s)
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

func nativeInGraph(t *T) {
	const launches = 100
	log := t.Pinned(8 * (3*launches + 1))
	words := cuda.PinnedSlice[uint64](log)
	clear(words)
	var told atomic.Int64
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		return errors.Join(
			b.Launch(t.Kernel("append"), one, log, uint64(0)),
			cuda.HostLaunchNative(b, t.native("append"), appending(log, 1), cuda.OnDone(func(err error) {
				if err == nil {
					told.Add(1)
				}
			})),
			cuda.HostLaunch(b, func() { words[1+words[0]] = 2; words[0]++ }))
	})
	s, x := t.Stream(), t.Exec(g)
	for range launches {
		t.OK(x.Launch(s))
	}
	t.Sync(s)
	if words[0] != 3*launches {
		t.Fatalf("%d marks, want %d", words[0], 3*launches)
	}
	for i, v := range words[1:] {
		if v != uint64(i%3) {
			t.Fatalf("mark %d is %d, want %d", i, v, i%3)
		}
	}
	t.Eventually("OnDone is told for each launch", func() bool { return told.Load() == launches })
	time.Sleep(2 * time.Millisecond)
	if st := t.Driver.Stats(); told.Load() != launches || st.Waiting != 0 || st.Running != 0 || st.HostNodes != 2 {
		t.Errorf("told %d times; afterwards %+v", told.Load(), st)
	}
}

// nativeGraphData: bytes and memory of a node live as long as anything can run it, and go then.
func nativeGraphData(t *T) {
	s := t.Stream()
	out := cuda.PinnedSlice[uint64](t.Pinned(16))
	var gone atomic.Bool
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		data := new([8]uint64)
		runtime.AddCleanup(data, func(int) { gone.Store(true) }, 0)
		body := summing(&out[0], bytes.Repeat([]byte{5}, 10_000))
		defer clear(body)
		return errors.Join(
			cuda.HostLaunchNative(b, t.native("sum"), cuda.NativeBytes(body)),
			cuda.HostLaunchNative(b, t.native("add"), cuda.NativePointer(unsafe.Pointer(data))))
	})
	t.OK(err)
	x, err := g.Instantiate()
	t.OK(err)
	t.OK(g.Close())
	for range 3 {
		out[0] = 0
		runtime.GC()
		t.OK(x.Launch(s))
		t.Sync(s)
		if out[0] != 50_000 {
			t.Fatalf("sum %d, want 50000", out[0])
		}
	}
	t.Spin(s, 20*time.Millisecond)
	t.OK(x.Launch(s))
	t.OK(x.Close()) // with a launch in flight
	runtime.GC()
	if gone.Load() {
		t.Error("a node's data went while a launch was in flight")
	}
	t.Sync(s)
	t.Eventually("the data is let go of", func() bool { runtime.GC(); return gone.Load() && t.Driver.Stats().HostNodes == 0 })
}

// nativeNodeChanged: a node of a native function is changed, removed, cloned and embedded as others are; what does not run any
// more is not waited for.
func nativeNodeChanged(t *T) {
	s := t.Stream()
	count := &cuda.PinnedSlice[atomic.Uint64](t.Pinned(8))[0]
	ran := 0
	capture := func() (*cuda.Graph, cuda.GraphNode) {
		g := t.Capture(func(b *cuda.GraphBuilder) error {
			t.Native(b, "add", cuda.NativePointer(unsafe.Pointer(count)))
			return nil
		})
		nodes, err := g.Nodes()
		t.OK(err)
		return g, nodes[0]
	}
	check := func(what string, g *cuda.Graph, native, closures int) {
		t.Helper()
		count.Store(0)
		ran = 0
		x := t.Exec(g)
		t.OK(x.Launch(s))
		t.OK(x.Launch(s))
		t.Sync(s)
		if int(count.Load()) != native || ran != closures {
			t.Errorf("%s: two launches ran it %d times, and the Go function %d times; want %d and %d", what, count.Load(), ran, native, closures)
		}
		if st := t.Driver.Stats(); st.Waiting != 0 || st.Running != 0 {
			t.Errorf("%s: %d wait and %d run", what, st.Waiting, st.Running)
		}
	}
	g, n := capture()
	clone, err := g.Clone()
	t.OK(err)
	t.Cleanup(func() { clone.Close() })
	parent, err := t.Device(0).NewGraph()
	t.OK(err)
	t.Cleanup(func() { parent.Close() })
	t.Node(parent, cuda.ChildGraphParams(g))
	t.Node(parent, cuda.ChildGraphParams(g))
	check("as captured", g, 2, 0)
	t.OK(g.SetParams(n, cuda.HostParams(func() { ran++ })))
	check("changed", g, 0, 2)
	check("cloned before", clone, 2, 0)
	check("embedded twice before", parent, 4, 0)
	removed, n := capture()
	t.OK(removed.RemoveNode(n))
	check("removed", removed, 0, 0)
	updated, n := capture()
	x := t.Exec(updated)
	t.OK(x.SetParams(n, cuda.HostParams(func() { ran++ })))
	count.Store(0)
	ran = 0
	t.OK(x.Launch(s))
	t.Sync(s)
	if st := t.Driver.Stats(); count.Load() != 0 || ran != 1 || st.Waiting != 0 {
		t.Errorf("an executable's node changed: ran %d times, the Go function %d times; %d wait", count.Load(), ran, st.Waiting)
	}
}

func nativeNodeNamed(t *T) {
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		t.Native(b, "note", cuda.NativeData{}, cuda.Name("the decoder"))
		t.Native(b, "note", cuda.NativeData{})
		return cuda.HostCopy(b, cuda.HostSlice(make([]byte, 8)), cuda.HostSlice(make([]byte, 8)))
	})
	var dot strings.Builder
	err := g.DOT(&dot)
	if errors.Is(err, cuda.ErrNotSupported) {
		t.Skip("needs a driver of CUDA 12.3")
	}
	t.OK(err)
	for _, name := range []string{"the decoder", "native function 0x", "HostCopy", "native.go:"} {
		if !strings.Contains(dot.String(), name) {
			t.Errorf("the picture has no %q:\n%s", name, dot.String())
		}
	}
}

func nativeNullAddress(t *T) {
	s := t.Stream()
	told := cuda.OnDone(func(error) { t.Error("OnDone of a refused function") })
	err := cuda.HostLaunchNative(s, 0, cuda.NativeData{}, told)
	t.Is(err, cuda.ErrInvalidValue)
	t.Contains(err, "fn is 0")
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		t.Is(cuda.HostLaunchNative(b, 0, cuda.NativeData{}, told), cuda.ErrInvalidValue)
		return nil
	})
	if nodes, err := g.Nodes(); err != nil || len(nodes) != 0 {
		t.Errorf("%d nodes, %v: a refused function is in the graph", len(nodes), err)
	}
	if done, err := s.Query(); !done || err != nil {
		t.Errorf("Query = %v, %v: a refused function was queued", done, err)
	}
}

func nativeRefused(t *T) {
	closed, s := t.Stream(), t.Stream()
	t.OK(closed.Close())
	told := cuda.OnDone(func(error) { t.Error("OnDone of a refused function") })
	_, before := t.noted()
	launch := func(on cuda.Queue, opts ...cuda.HostOption) error {
		return cuda.HostLaunchNative(on, t.native("note"), cuda.NativeBytes([]byte{1}), append(opts, told)...)
	}
	t.Is(launch(nil), cuda.ErrInvalidValue)
	t.Is(launch((*cuda.Stream)(nil)), cuda.ErrInvalidValue)
	t.Is(launch((*cuda.GraphBuilder)(nil)), cuda.ErrInvalidValue)
	t.Is(launch(closed), cuda.ErrClosed)
	t.Is(launch(s, cuda.SyncMode(7)), cuda.ErrInvalidValue)
	var b *cuda.GraphBuilder
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(now *cuda.GraphBuilder) error {
		b = now
		t.Is(launch(s), cuda.ErrCapturing)
		return nil
	})
	t.OK(err)
	t.OK(g.Close())
	t.Is(launch(b), cuda.ErrNotBuilding)
	t.Sync(s)
	if _, times := t.noted(); times != before {
		t.Errorf("%d refused functions ran", times-before)
	}
	if st := t.Driver.Stats(); st.Waiting != 0 {
		t.Errorf("%d functions are retained", st.Waiting)
	}
}

func nativeOnDone(t *T) {
	s, b := t.Stream(), t.Buffer(64)
	count := &cuda.PinnedSlice[atomic.Uint64](t.Pinned(8))[0]
	count.Store(0)
	ends := make(chan error, 300)
	for i := range 100 {
		t.Native(s, "add", cuda.NativePointer(unsafe.Pointer(count)), cuda.OnDone(func(err error) {
			ran := count.Load() > uint64(i)
			ends <- errors.Join(err, s.Memset(b, 1)) // CUDA is allowed
			if !ran {
				ends <- errors.New("told before the function ran")
			}
		}))
		if i%2 == 0 {
			t.Sync(s) // and else nobody calls
		}
	}
	for range 100 {
		t.OK(Receive(t, "OnDone", ends))
	}
	t.Sync(s)
	time.Sleep(2 * time.Millisecond)
	if len(ends) > 0 {
		t.Errorf("told %d times too often, at first %v", len(ends), <-ends)
	}
}

func nativeLost(t *T) {
	told := lost(t)
	s, other := t.Stream(), t.Stream()
	data := t.Pinned(8)
	count := &cuda.PinnedSlice[atomic.Uint64](data)[0]
	count.Store(0)
	g := t.Gate(other)
	<-g.Entered
	var gone atomic.Int32
	ends := make(chan error, 100)
	fault := time.Now().Add(faultDelay)
	t.FaultLater(s)
	for i := range 50 {
		for _, on := range []*cuda.Stream{s, other} {
			local := new([64]uint64)
			runtime.AddCleanup(local, func(int) { gone.Add(1) }, 0)
			if i%2 == 0 {
				t.Native(on, "add", cuda.NativePointer(unsafe.Pointer(count)), cuda.Name("counter"))
				t.Native(on, "add", cuda.NativePointer(unsafe.Pointer(local)), cuda.OnDone(func(err error) { ends <- err }))
			} else {
				t.Native(on, "add", cuda.NativeAddr(uintptr(unsafe.Pointer(count))))
				t.Native(on, "add", cuda.NativePointer(unsafe.Pointer(local)), cuda.OnDone(func(err error) { ends <- err }))
			}
		}
	}
	for range 100 { // and meanwhile nobody calls the library
		e := Receive(t, "OnLost", told)
		t.Is(unwrap(e), cuda.ErrIllegalAddress, cuda.ErrDeviceLost)
		if e.Name != "counter" && !strings.HasPrefix(e.Name, "native function 0x") || !strings.Contains(e.Site, "native.go:") {
			t.Errorf("name %q, site %q", e.Name, e.Site)
		}
		err := Receive(t, "OnDone", ends)
		if l := new(cuda.LostError); !errors.As(err, &l) {
			t.Errorf("OnDone got %v", err)
		}
	}
	if took := time.Since(fault); took > time.Second {
		t.Errorf("resolved %v after the fault, want within a second", took)
	}
	g.Open()
	t.Eventually("the data is let go of", func() bool { runtime.GC(); return gone.Load() == 100 })
	time.Sleep(50 * time.Millisecond)
	if n := count.Load(); n != 0 || len(told) != 0 || len(ends) != 0 {
		t.Errorf("%d ran, %d told twice", n, len(told)+len(ends))
	}
	t.Is(cuda.HostLaunchNative(other, t.native("note"), cuda.NativeData{}), cuda.ErrDeviceLost)
	t.OK(t.Driver.Close())
}

// nativeLostWhileRunning: the function that runs when the context fails keeps its data, and is told that it ran.
func nativeLostWhileRunning(t *T) {
	told := lost(t)
	s, other := t.Stream(), t.Stream()
	gate := &cuda.PinnedSlice[[2]atomic.Uint32](t.Pinned(8))[0] // nativetest.Gate
	gate[0].Store(0)
	gate[1].Store(0)
	ends := make(chan error, 2)
	t.Native(other, "hold", cuda.NativePointer(unsafe.Pointer(gate)), cuda.OnDone(func(err error) { ends <- err }))
	t.Eventually("the function runs", func() bool { return gate[1].Load() == 1 })
	if st := t.Driver.Stats(); st.Running != 1 || st.Waiting != 0 {
		t.Errorf("%d run and %d wait, want 1 and 0", st.Running, st.Waiting)
	}
	t.Native(other, "note", cuda.NativeData{})
	t.Fault(s)
	Receive(t, "OnLost", told)
	time.Sleep(20 * time.Millisecond)
	if len(ends) > 0 {
		t.Errorf("OnDone of the running function: %v", <-ends)
	}
	gate[0].Store(1)
	if err := Receive(t, "OnDone of the function that ran", ends); err != nil {
		t.Errorf("the function that ran to its end is told %v", err)
	}
	t.OK(t.Driver.Close())
	if len(told) > 0 || len(ends) > 0 {
		t.Error("something was told twice")
	}
}

func nativeLostInGraph(t *T) {
	t.OpenDriver(cuda.Logger(discard))
	told := make(chan error, 10)
	var gone atomic.Bool
	g := t.Capture(func(b *cuda.GraphBuilder) error {
		data := new([8]uint64)
		runtime.AddCleanup(data, func(int) { gone.Store(true) }, 0)
		t.Native(b, "add", cuda.NativePointer(unsafe.Pointer(data)), cuda.OnDone(func(err error) { told <- err }))
		return nil
	})
	x, s := t.Exec(g), t.Stream()
	t.FaultLater(s)
	t.OK(x.Launch(s))
	t.OK(x.Launch(s))
	for range 2 {
		err := Receive(t, "why the function never ran", told)
		if l := new(cuda.LostError); !errors.As(err, &l) || !errors.Is(err, cuda.ErrDeviceLost) {
			t.Errorf("told %v", err)
		}
	}
	t.OK(x.Close())
	t.OK(g.Close())
	t.Eventually("the function and its data are let go of", func() bool {
		runtime.GC()
		return t.Driver.Stats().HostNodes == 0 && gone.Load()
	})
	t.OK(t.Driver.Close())
	if len(told) > 0 {
		t.Error("told too often")
	}
}

func closeWaitsForNative(t *T) {
	for range 5 {
		d, err := t.cfg.Open()
		t.OK(err)
		dev, err := d.Device(0)
		t.OK(err)
		s, err := dev.NewStream()
		t.OK(err)
		count := new(atomic.Uint64)
		var told atomic.Int64
		t.OK(cuda.HostLaunch(s, func() { time.Sleep(time.Millisecond) }))
		for range 200 {
			t.OK(cuda.HostLaunchNative(s, t.native("add"), cuda.NativePointer(unsafe.Pointer(count)), cuda.OnDone(func(err error) {
				if err == nil {
					told.Add(1)
				}
			})))
		}
		t.OK(d.Close())
		if count.Load() != 200 || told.Load() != 200 || d.Stats() != (cuda.Stats{}) {
			t.Fatalf("%d ran and %d were told of 200; left: %+v", count.Load(), told.Load(), d.Stats())
		}
	}
}
