package cuda_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

// A mistake in a program is an error that says which call, which argument and what to do; never a crash, never silence.

// bad is a call that has to fail.
type bad struct {
	name  string
	call  func() error
	code  error
	op    string
	words string // that the message must have, with * between them
}

func checkBad(t *testing.T, calls []bad) {
	t.Helper()
	for _, b := range calls {
		t.Run(b.name, func(t *testing.T) {
			t.Helper()
			err := b.call()
			if !errors.Is(err, b.code) {
				t.Fatalf("error %v, want %v", err, b.code)
			}
			var e *cuda.Error
			if !errors.As(err, &e) || e.Op != b.op {
				t.Errorf("error %q is of call %q, want %q", err, opOf(e), b.op)
			}
			for word := range strings.SplitSeq(b.words, "*") {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %q", err, word)
				}
			}
		})
	}
}

func opOf(e *cuda.Error) string {
	if e == nil {
		return ""
	}
	return e.Op
}

// kit is a software driver with one of everything.
type kit struct {
	d     *cuda.Driver
	dev   *cuda.Device
	s     *cuda.Stream
	e     *cuda.Event // with timing, recorded
	b     *cuda.Buffer
	p     *cuda.PinnedBuffer
	m     *cuda.Module
	k     *cuda.Kernel // nothing: without parameters
	store *cuda.Kernel // store(u32 *at, u32 value)
}

func newKit(t *testing.T) *kit {
	t.Helper()
	k := &kit{d: softcuda.New(softcuda.Options{Kernels: testkernels.Twins()})}
	t.Cleanup(func() { k.d.Close() })
	k.dev = must(k.d.Device(0))(t)
	k.s = must(k.dev.NewStream())(t)
	k.e = must(k.dev.NewEvent(cuda.WithTiming()))(t)
	k.b = must(k.dev.Alloc(64))(t)
	k.p = must(k.dev.AllocPinned(64))(t)
	k.m = must(k.dev.LoadModule(testkernels.PTX))(t)
	k.k = must(k.m.Kernel("nothing"))(t)
	k.store = must(k.m.Kernel("store"))(t)
	if err := errors.Join(k.s.Record(k.e), k.s.Sync()); err != nil {
		t.Fatal(err)
	}
	return k
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// second is the error of a call with a value.
func second[T any](_ T, err error) error { return err }

func third[A, B any](_ A, _ B, err error) error { return err }

var one = cuda.Grid1D(1, 1)

func TestNilArguments(t *testing.T) {
	k := newKit(t)
	host := make([]byte, 64)
	var (
		s   *cuda.Stream
		e   *cuda.Event
		b   *cuda.Buffer
		m   *cuda.Module
		d   *cuda.Driver
		c   *cuda.Context
		ctx context.Context
	)
	invalid := func(op, words string, call func() error) bad {
		return bad{op + " " + strings.ReplaceAll(words, "*", " "), call, cuda.ErrInvalidValue, op, words}
	}
	checkBad(t, []bad{
		invalid("Stream.Query", "stream is nil", func() error { return second(s.Query()) }),
		invalid("Stream.Sync", "stream is nil", func() error { return s.Sync() }),
		invalid("Stream.Wait", "stream is nil", func() error { return s.Wait(t.Context()) }),
		invalid("Stream.Wait", "ctx is nil", func() error { return k.s.Wait(ctx) }),
		invalid("Stream.ID", "stream is nil", func() error { return second(s.ID()) }),
		invalid("Stream.Flags", "stream is nil", func() error { return second(s.Flags()) }),
		invalid("Stream.Priority", "stream is nil", func() error { return second(s.Priority()) }),
		invalid("Stream.DeviceOrdinal", "stream is nil", func() error { return second(s.DeviceOrdinal()) }),
		invalid("Stream.Launch", "stream is nil", func() error { return s.Launch(k.k, one) }),
		invalid("Stream.Launch", "kernel is nil", func() error { return k.s.Launch(nil, one) }),
		invalid("Stream.Launch", "argument 0*nil *DevicePtr(0)", func() error { return k.s.Launch(k.store, one, nil, uint32(1)) }),
		invalid("Stream.Launch", "argument 0*Buffer*DevicePtr(0)", func() error { return k.s.Launch(k.store, one, b, uint32(1)) }),
		invalid("Stream.Launch", "argument 0*PinnedBuffer*DevicePtr(0)", func() error { return k.s.Launch(k.store, one, (*cuda.PinnedBuffer)(nil), uint32(1)) }),
		invalid("Stream.Memset", "stream is nil", func() error { return s.Memset(k.b, 1) }),
		invalid("Stream.Memset", "b is nil", func() error { return k.s.Memset(nil, 1) }),
		invalid("Stream.Memset16", "b is nil", func() error { return k.s.Memset16(nil, 1) }),
		invalid("Stream.Memset32", "b is nil", func() error { return k.s.Memset32(nil, 1) }),
		invalid("Stream.CopyBuffer", "stream is nil", func() error { return s.CopyBuffer(k.b, k.b) }),
		invalid("Stream.CopyBuffer", "dst is nil", func() error { return k.s.CopyBuffer(nil, k.b) }),
		invalid("Stream.CopyBuffer", "src is nil", func() error { return k.s.CopyBuffer(k.b, nil) }),
		invalid("Stream.Record", "stream is nil", func() error { return s.Record(k.e) }),
		invalid("Stream.Record", "event is nil", func() error { return k.s.Record(nil) }),
		invalid("Stream.WaitEvent", "stream is nil", func() error { return s.WaitEvent(k.e) }),
		invalid("Stream.WaitEvent", "event is nil", func() error { return k.s.WaitEvent(nil) }),
		invalid("Stream.WaitStream", "stream is nil", func() error { return s.WaitStream(k.s) }),
		invalid("Stream.WaitStream", "other is nil", func() error { return k.s.WaitStream(nil) }),
		invalid("HostLaunch", "on is nil", func() error { return cuda.HostLaunch(nil, func() {}) }),
		invalid("HostLaunch", "stream is nil", func() error { return cuda.HostLaunch(s, func() {}) }),
		invalid("HostLaunch", "fn is nil", func() error { return cuda.HostLaunch(k.s, nil) }),
		invalid("CopyToHost", "on is nil", func() error { return cuda.CopyToHost(nil, host, k.b) }),
		invalid("CopyToHost", "stream is nil", func() error { return cuda.CopyToHost(s, host, k.b) }),
		invalid("CopyToHost", "src is nil", func() error { return cuda.CopyToHost(k.s, host, nil) }),
		invalid("CopyToHost", "dst has 0 bytes", func() error { return cuda.CopyToHost(k.s, []byte(nil), k.b) }),
		invalid("CopyToDevice", "on is nil", func() error { return cuda.CopyToDevice(nil, k.b, host) }),
		invalid("CopyToDevice", "stream is nil", func() error { return cuda.CopyToDevice(s, k.b, host) }),
		invalid("CopyToDevice", "dst is nil", func() error { return cuda.CopyToDevice(k.s, nil, host) }),
		invalid("CopyToDevice", "src has 0 bytes", func() error { return cuda.CopyToDevice(k.s, k.b, []byte(nil)) }),
		invalid("Event.Query", "event is nil", func() error { return second(e.Query()) }),
		invalid("Event.Sync", "event is nil", func() error { return e.Sync() }),
		invalid("Event.Wait", "event is nil", func() error { return e.Wait(t.Context()) }),
		invalid("Event.Wait", "ctx is nil", func() error { return k.e.Wait(ctx) }),
		invalid("Event.Elapsed", "event is nil", func() error { return second(e.Elapsed(k.e)) }),
		invalid("Event.Elapsed", "since is nil", func() error { return second(k.e.Elapsed(nil)) }),
		invalid("Buffer.ReadAt", "buffer is nil", func() error { return second(b.ReadAt(host, 0)) }),
		invalid("Buffer.WriteAt", "buffer is nil", func() error { return second(b.WriteAt(host, 0)) }),
		invalid("Buffer.Slice", "buffer is nil", func() error { return second(b.Slice(0, 0)) }),
		invalid("Module.Kernel", "module is nil", func() error { return second(m.Kernel("nothing")) }),
		invalid("Driver.Device", "driver is nil", func() error { return second(d.Device(0)) }),
		invalid("Driver.Shutdown", "ctx is nil", func() error { return k.d.Shutdown(ctx) }),
		invalid("NewStream", "context is nil", func() error { return second(c.NewStream()) }),
		invalid("NewEvent", "context is nil", func() error { return second(c.NewEvent()) }),
		invalid("Alloc", "context is nil", func() error { return second(c.Alloc(1)) }),
		invalid("AllocPinned", "context is nil", func() error { return second(c.AllocPinned(1)) }),
		invalid("LoadModule", "context is nil", func() error { return second(c.LoadModule(testkernels.PTX)) }),
		invalid("LoadModule", "image is empty", func() error { return second(k.dev.LoadModule(nil)) }),
		invalid("LoadModule", "image is empty", func() error { return second(k.dev.LoadModule([]byte{})) }),
		invalid("BorrowStream", "context is nil", func() error { return second(c.BorrowStream(0)) }),
		invalid("StreamOf", "x is nil", func() error { return second(k.dev.StreamOf(nil)) }),
		invalid("StreamOf", "x is nil", func() error { return second(k.dev.StreamOf(s)) }),
		invalid("WithThreadStream", "fn is nil", func() error { return k.dev.WithThreadStream(nil) }),
		invalid("WithThreadStream", "context is nil", func() error { return c.WithThreadStream(func(*cuda.Stream) error { return nil }) }),
		invalid("Context.StreamPriorities", "context is nil", func() error { return third(c.StreamPriorities()) }),
	})
	if st := k.d.Stats(); st.Waiting != 0 || st.Streams != 1 {
		t.Errorf("something was kept: %+v", st)
	}
}

// TestNilIsHarmless calls what cannot fail. What a nil answers matters little; that it answers does.
func TestNilIsHarmless(t *testing.T) {
	var (
		s *cuda.Stream
		e *cuda.Event
		b *cuda.Buffer
		p *cuda.PinnedBuffer
		m *cuda.Module
		k *cuda.Kernel
		d *cuda.Driver
	)
	for what, err := range map[string]error{
		"Stream": s.Close(), "Event": e.Close(), "Buffer": b.Close(), "PinnedBuffer": p.Close(), "Module": m.Close(),
		"Driver": d.Close(), "Driver.Shutdown": d.Shutdown(t.Context()),
	} {
		if err != nil {
			t.Errorf("Close of a nil %s: %v", what, err)
		}
	}
	if b.Len() != 0 || p.Len() != 0 || p.Bytes() != nil || cuda.PinnedSlice[int32](p) != nil {
		t.Error("a nil buffer has memory")
	}
	if s.Context() != nil || e.Context() != nil || b.Context() != nil || p.Context() != nil || m.Context() != nil || k.Module() != nil {
		t.Error("a nil object belongs to something")
	}
	if s.CUDAStream() != 0 || b.Ptr() != 0 || k.Name() != "" || d.DeviceCount() != 0 || d.Name() != "" || d.Version() != 0 || d.Stats() != (cuda.Stats{}) {
		t.Error("a nil object has values")
	}
	select {
	case <-e.Done():
	default:
		t.Error("Done of a nil event is open")
	}

	kit := newKit(t)
	for what, err := range map[string]error{
		"stream option": second(kit.dev.NewStream(nil)),
		"event option":  second(kit.dev.NewEvent(nil)),
		"host option":   cuda.HostLaunch(kit.s, func() {}, nil, cuda.OnDone(nil)),
	} {
		if err != nil {
			t.Errorf("nil %s: %v", what, err)
		}
	}
	other := softcuda.New(softcuda.Options{}, nil, cuda.OnPanic(nil), cuda.OnLost(nil), cuda.Logger(nil))
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

func TestClosedArguments(t *testing.T) {
	k := newKit(t)
	host := make([]byte, 64)
	s := must(k.dev.NewStream())(t)
	e := must(k.dev.NewEvent(cuda.WithTiming()))(t)
	b := must(k.dev.Alloc(64))(t)
	part := must(b.Slice(8, 8))(t)
	p := must(k.dev.AllocPinned(64))(t)
	m := must(k.dev.LoadModule(testkernels.PTX))(t)
	kernel := must(m.Kernel("nothing"))(t)
	if err := errors.Join(k.s.Record(e), s.Close(), e.Close(), b.Close(), p.Close(), m.Close()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), e.Close(), b.Close(), part.Close(), p.Close(), m.Close()); err != nil {
		t.Errorf("Close again: %v", err)
	}
	closed := func(op, words string, call func() error) bad {
		return bad{op + " " + words, call, cuda.ErrClosed, op, words}
	}
	checkBad(t, []bad{
		closed("Stream.Sync", "stream is closed", func() error { return s.Sync() }),
		closed("HostLaunch", "stream is closed", func() error { return cuda.HostLaunch(s, func() {}) }),
		closed("Stream.WaitStream", "stream is closed", func() error { return s.WaitStream(k.s) }),
		closed("Stream.WaitStream", "other is closed", func() error { return k.s.WaitStream(s) }),
		closed("Stream.Record", "event is closed", func() error { return k.s.Record(e) }),
		closed("Stream.WaitEvent", "event is closed", func() error { return k.s.WaitEvent(e) }),
		closed("Event.Query", "event is closed", func() error { return second(e.Query()) }),
		closed("Event.Elapsed", "event is closed", func() error { return second(e.Elapsed(k.e)) }),
		closed("Event.Elapsed", "since is closed", func() error { return second(k.e.Elapsed(e)) }),
		closed("Stream.Memset", "b is closed", func() error { return k.s.Memset(b, 1) }),
		closed("Stream.Memset", "b is closed", func() error { return k.s.Memset(part, 1) }),
		closed("Stream.CopyBuffer", "dst is closed", func() error { return k.s.CopyBuffer(b, k.b) }),
		closed("Stream.CopyBuffer", "src is closed", func() error { return k.s.CopyBuffer(k.b, b) }),
		closed("CopyToHost", "src is closed", func() error { return cuda.CopyToHost(k.s, host, b) }),
		closed("CopyToDevice", "dst is closed", func() error { return cuda.CopyToDevice(k.s, b, host) }),
		closed("Buffer.ReadAt", "buffer is closed", func() error { return second(b.ReadAt(host, 0)) }),
		closed("Buffer.WriteAt", "buffer is closed", func() error { return second(b.WriteAt(host, 0)) }),
		closed("Stream.Launch", "module of kernel nothing is closed", func() error { return k.s.Launch(kernel, one) }),
		closed("Stream.Launch", "argument 0", func() error { return k.s.Launch(k.store, one, b, uint32(1)) }),
		closed("Stream.Launch", "argument 0", func() error { return k.s.Launch(k.store, one, p, uint32(1)) }),
		closed("Module.Kernel", "module is closed", func() error { return second(m.Kernel("nothing")) }),
		closed("StreamOf", "x is closed", func() error { return second(k.dev.StreamOf(s)) }),
	})
	if p.Bytes() != nil || cuda.PinnedSlice[byte](p) != nil {
		t.Error("closed pinned memory is still to be had")
	}
}

// TestForeignArguments mixes two drivers. Their handles may be the same numbers, so only the library can tell.
func TestForeignArguments(t *testing.T) {
	a, b := newKit(t), newKit(t)
	host := make([]byte, 64)
	invalid := func(op, words string, call func() error) bad {
		return bad{op + " " + words, call, cuda.ErrInvalidValue, op, words}
	}
	checkBad(t, []bad{
		invalid("Stream.Memset", "b belongs to device 0 of the software driver*another software driver*use one Driver", func() error { return a.s.Memset(b.b, 1) }),
		invalid("Stream.CopyBuffer", "dst belongs to", func() error { return a.s.CopyBuffer(b.b, a.b) }),
		invalid("Stream.CopyBuffer", "src belongs to", func() error { return a.s.CopyBuffer(a.b, b.b) }),
		invalid("CopyToHost", "src belongs to", func() error { return cuda.CopyToHost(a.s, host, b.b) }),
		invalid("CopyToDevice", "dst belongs to", func() error { return cuda.CopyToDevice(a.s, b.b, host) }),
		{"Stream.Record", func() error { return a.s.Record(b.e) }, cuda.ErrInvalidHandle, "Stream.Record", "event belongs to"},
		invalid("Stream.WaitEvent", "event belongs to", func() error { return a.s.WaitEvent(b.e) }),
		invalid("Stream.WaitStream", "other belongs to", func() error { return a.s.WaitStream(b.s) }),
		invalid("Stream.Launch", "kernel nothing belongs to", func() error { return a.s.Launch(b.k, one) }),
		invalid("Stream.Launch", "argument 0*belongs to", func() error { return a.s.Launch(a.store, one, b.b, uint32(1)) }),
		invalid("Stream.Launch", "argument 0*belongs to ", func() error { return a.s.Launch(a.store, one, b.p, uint32(1)) }),
		invalid("Event.Elapsed", "since belongs to", func() error { return second(a.e.Elapsed(b.e)) }),
		invalid("StreamOf", "x belongs to", func() error { return second(a.dev.StreamOf(b.s)) }),
		invalid("StreamOf", "x belongs to device 0 of the software driver and the context to device 0 of another software driver", func() error { return second(a.dev.StreamOf(b.dev.DefaultStream())) }),
	})
	// Pinned memory as ordinary memory is anybody's.
	if err := errors.Join(cuda.CopyToHost(a.s, b.p.Bytes(), a.b), a.s.Sync()); err != nil {
		t.Error(err)
	}
}

// TestOtherDevice mixes two devices of one driver, where buffers and waits may cross, and kernels and records may not.
func TestOtherDevice(t *testing.T) {
	d := softcuda.New(softcuda.Options{Devices: 2, Kernels: testkernels.Twins()})
	defer d.Close()
	dev := must(d.Device(0))(t)
	s := must(must(d.Device(1))(t).NewStream())(t)
	e := must(dev.NewEvent())(t)
	k := must(must(dev.LoadModule(testkernels.PTX))(t).Kernel("nothing"))(t)
	checkBad(t, []bad{
		{"kernel", func() error { return s.Launch(k, one) }, cuda.ErrInvalidHandle, "Stream.Launch", "kernel nothing*device 0*device 1*load the module there"},
		{"record", func() error { return s.Record(e) }, cuda.ErrInvalidHandle, "Stream.Record", "event*device 0*device 1"},
	})
	b := must(dev.Alloc(64))(t)
	if err := errors.Join(s.WaitEvent(e), s.Memset(b, 1), s.Sync()); err != nil {
		t.Error(err)
	}
}

func TestBadSizes(t *testing.T) {
	k := newKit(t)
	part := must(k.b.Slice(1, 8))(t)
	invalid := func(op, words string, call func() error) bad {
		return bad{op + " " + words, call, cuda.ErrInvalidValue, op, words}
	}
	calls := []bad{
		invalid("CopyToHost", "dst*63*src*64", func() error { return cuda.CopyToHost(k.s, make([]byte, 63), k.b) }),
		invalid("CopyToHost", "dst*512*src*64", func() error { return cuda.CopyToHost(k.s, make([]int64, 64), k.b) }),
		invalid("CopyToDevice", "src*65*dst*64", func() error { return cuda.CopyToDevice(k.s, k.b, make([]byte, 65)) }),
		invalid("Stream.CopyBuffer", "dst*64*src*8", func() error { return k.s.CopyBuffer(k.b, part) }),
		invalid("Stream.CopyBuffer", "overlap", func() error { return k.s.CopyBuffer(must(k.b.Slice(0, 8))(t), part) }),
		invalid("Stream.Memset16", "b*multiples of 2", func() error { return k.s.Memset16(part, 1) }),
		invalid("Stream.Memset32", "b*multiples of 4", func() error { return k.s.Memset32(part, 1) }),
		invalid("Alloc", "size 0", func() error { return second(k.dev.Alloc(0)) }),
		invalid("Alloc", "size -1", func() error { return second(k.dev.Alloc(-1)) }),
		invalid("AllocPinned", "size 0", func() error { return second(k.dev.AllocPinned(0)) }),
		invalid("AllocPinned", "size -5", func() error { return second(k.dev.AllocPinned(-5)) }),
		{"Alloc of too much", func() error { return second(k.dev.Alloc(1 << 40)) }, cuda.ErrOutOfMemory, "Alloc", "1099511627776 bytes"},
		{"AllocPinned of too much", func() error { return second(k.dev.AllocPinned(1 << 40)) }, cuda.ErrOutOfMemory, "AllocPinned", "1099511627776 bytes"},
		invalid("NewStream", "flags 0x2", func() error { return second(k.dev.NewStream(cuda.WithFlags(2))) }),
		invalid("NewStream", "priority 1*Clamp", func() error { return second(k.dev.NewStream(cuda.Priority(1))) }),
		invalid("NewStream", "priority -6*Clamp", func() error { return second(k.dev.NewStream(cuda.Priority(-6))) }),
		invalid("HostLaunch", "sync mode 2", func() error { return cuda.HostLaunch(k.s, func() {}, cuda.SyncMode(2)) }),
		{"per-thread handle", func() error { return second(k.dev.BorrowStream(2)) }, cuda.ErrInvalidHandle, "BorrowStream", "WithThreadStream"},
		{"no handle", func() error { return second(k.dev.BorrowStream(0xdead0)) }, cuda.ErrInvalidHandle, "BorrowStream", "0xdead0"},
	}
	for _, r := range []struct{ off, n int }{{-1, 1}, {0, -1}, {0, 65}, {64, 1}, {65, 0}, {1 << 62, 1 << 62}, {1, 1<<63 - 1}, {-1 << 63, 1}} {
		calls = append(calls, invalid("Buffer.Slice", "offset*length*64 bytes", func() error { return second(k.b.Slice(r.off, r.n)) }))
	}
	for _, r := range []struct {
		off int64
		n   int
	}{{-1, 1}, {0, 65}, {64, 1}, {65, 0}, {1 << 62, 1}, {-1 << 63, 1}} {
		calls = append(calls,
			invalid("Buffer.ReadAt", "offset*length*64 bytes", func() error { return second(k.b.ReadAt(make([]byte, r.n), r.off)) }),
			invalid("Buffer.WriteAt", "offset*length*64 bytes", func() error { return second(k.b.WriteAt(make([]byte, r.n), r.off)) }))
	}
	for _, i := range []int{-1, 1, 1 << 40} {
		calls = append(calls, bad{"device index", func() error { return second(k.d.Device(i)) }, cuda.ErrInvalidDevice, "Driver.Device", "no device*has 1"})
	}
	checkBad(t, calls)
}

func TestBadLaunches(t *testing.T) {
	k := newKit(t)
	type withInt struct{ A, N int }
	type withPointer struct{ P *int }
	type inner struct{ Words [2]uint }
	type deep struct{ In inner }
	type mine int
	n := 1
	calls := []bad{
		{"too few arguments", func() error { return k.s.Launch(k.store, one, k.b) }, cuda.ErrInvalidValue, "Stream.Launch", "store*2 parameters*1 argument"},
		{"too many arguments", func() error { return k.s.Launch(k.k, one, k.b) }, cuda.ErrInvalidValue, "Stream.Launch", "nothing*0 parameters*1 argument"},
	}
	for name, arg := range map[string]any{
		"int*int32": 1, "uint*int32": uint(1), "uintptr*DevicePtr": uintptr(1), "mine*int32": mine(1),
		"[]uint8*Buffer": []byte{1}, "string": "s", "map[int]int": map[int]int{}, "*int": &n, "func()": func() {}, "chan int": make(chan int),
		"unsafe.Pointer": unsafe.Pointer(&n), "withInt*A int*int32": withInt{}, "withPointer*P *int": withPointer{&n},
		"deep*In Words uint*int32": deep{}, "[2]int*int32": [2]int{}, "[2]*int": [2]*int{}, "*cuda.Event": k.e, "*cuda.Stream": k.s, "cuda.Buffer": *k.b,
		"no size": struct{}{}, "[0]uint32*no size": [0]uint32{}, "uint64*8 bytes*has 4": uint64(1), "uint8*1 bytes*has 4": uint8(1), "bool*has 4": true,
		"[3]uint32*12 bytes*has 4": [3]uint32{}, "nil": nil,
	} {
		calls = append(calls, bad{"argument " + name, func() error { return k.s.Launch(k.store, one, k.b, arg) }, cuda.ErrInvalidValue, "Stream.Launch", "argument 1*store*" + name})
	}
	for _, c := range []struct {
		name, words string
		cfg         cuda.LaunchConfig
	}{
		{"no grid", "Grid", cuda.LaunchConfig{Block: cuda.Dim3{X: 1}}},
		{"no block", "Block", cuda.LaunchConfig{Grid: cuda.Dim3{X: 1}}},
		{"nothing", "Grid", cuda.LaunchConfig{}},
		{"no threads", "Grid", cuda.Grid1D(0, 32)},
		{"blocks of none", "Grid", cuda.Grid1D(32, 0)},
		{"negative", "Grid", cuda.Grid1D(-100, 32)},
		{"negative Y", "Grid", cuda.LaunchConfig{Grid: cuda.Dim3{X: 1, Y: -1}, Block: cuda.Dim3{X: 1}}},
		{"negative Z", "Block", cuda.LaunchConfig{Grid: cuda.Dim3{X: 1}, Block: cuda.Dim3{X: 1, Z: -1}}},
		{"huge X", "Grid", cuda.LaunchConfig{Grid: cuda.Dim3{X: 1 << 31}, Block: cuda.Dim3{X: 1}}},
		{"huge Y", "grid*65535", cuda.LaunchConfig{Grid: cuda.Dim3{X: 1, Y: 65536}, Block: cuda.Dim3{X: 1}}},
		{"block of 1025", "block*1024", cuda.LaunchConfig{Grid: cuda.Dim3{X: 1}, Block: cuda.Dim3{X: 1025}}},
		{"block of 33 by 32", "block*1024", cuda.LaunchConfig{Grid: cuda.Dim3{X: 1}, Block: cuda.Dim3{X: 33, Y: 32}}},
		{"deep block", "block*64", cuda.LaunchConfig{Grid: cuda.Dim3{X: 1}, Block: cuda.Dim3{X: 1, Z: 65}}},
		{"negative memory", "SharedMem -1", cuda.LaunchConfig{Grid: cuda.Dim3{X: 1}, Block: cuda.Dim3{X: 1}, SharedMem: -1}},
		{"huge memory", "SharedMem", cuda.LaunchConfig{Grid: cuda.Dim3{X: 1}, Block: cuda.Dim3{X: 1}, SharedMem: 1 << 40}},
		{"a grid whose product overflows", "grid*65535", cuda.LaunchConfig{Grid: cuda.Dim3{X: 1 << 30, Y: 1 << 17, Z: 1 << 17}, Block: cuda.Dim3{X: 1}}},
		{"more threads than an int counts", "Grid", cuda.Grid1D(1<<63-1, 256)},
		{"much memory", "shared memory", cuda.LaunchConfig{Grid: cuda.Dim3{X: 1}, Block: cuda.Dim3{X: 1}, SharedMem: 1 << 20}},
	} {
		calls = append(calls, bad{c.name, func() error { return k.s.Launch(k.k, c.cfg) }, cuda.ErrInvalidValue, "Stream.Launch", c.words})
	}
	checkBad(t, calls)
	if err := k.s.Sync(); err != nil {
		t.Errorf("a refused launch was queued: %v", err)
	}
	var at uint32
	if err := errors.Join(k.s.Launch(k.store, one, k.b, float32(1)), k.s.Launch(k.store, one, cuda.DevicePtr(k.b.Ptr()), [2]uint16{7, 0})); err != nil {
		t.Errorf("arguments of the right size: %v", err)
	}
	if err := errors.Join(cuda.CopyToHost(k.s, unsafe.Slice(&at, 1), must(k.b.Slice(0, 4))(t)), k.s.Sync()); err != nil || at != 7 {
		t.Errorf("stored %d, %v; want 7", at, err)
	}
}

func TestBadImages(t *testing.T) {
	k := newKit(t)
	lone := softcuda.New(softcuda.Options{})
	defer lone.Close()
	s := must(must(lone.Device(0))(t).NewStream())(t)
	unregistered := must(must(must(lone.Device(0))(t).LoadModule(testkernels.PTX))(t).Kernel("store"))(t)
	load := func(name, text string, code error, words string) bad {
		return bad{name, func() error { return second(k.dev.LoadModule([]byte(text))) }, code, "LoadModule", words}
	}
	checkBad(t, []bad{
		load("garbage", "hello", cuda.ErrInvalidImage, "neither PTX*nor a cubin"),
		load("a zero", "\x00", cuda.ErrInvalidImage, "neither PTX*nor a cubin"),
		load("half an ELF", "\x7fELF\x02\x01", cuda.ErrInvalidImage, "damaged"),
		load("a version in a comment", "// .version 8.0\n.target sm_90\n", cuda.ErrInvalidImage, ".version"),
		load("a newer PTX", ".version 99.0\n.target sm_90\n", cuda.ErrUnsupportedPTXVersion, "99.0"),
		load("no target", ".version 8.0\n.address_size 64\n", cuda.ErrInvalidPTX, ".target"),
		load("bad parameters", ".version 8.0\n.target sm_90\n.entry k(.param .x9 a) {}\n", cuda.ErrInvalidPTX, "kernel k"),
		{"no such kernel", func() error { return second(k.m.Kernel("missing")) }, cuda.ErrNotFound, "Module.Kernel", "missing*extern \"C\""},
		{"no name", func() error { return second(k.m.Kernel("")) }, cuda.ErrInvalidValue, "Module.Kernel", "name \"\""},
		{"a zero in the name", func() error { return second(k.m.Kernel("store\x00")) }, cuda.ErrInvalidValue, "Module.Kernel", "name"},
		{"no Go function", func() error { return s.Launch(unregistered, one, cuda.DevicePtr(0), uint32(1)) }, cuda.ErrNotFound, "Stream.Launch",
			"store*softcuda.Options{Kernels: softcuda.Kernels{\"store\": func(l *softcuda.Launch)"},
	})
}

func TestNoDevices(t *testing.T) {
	d := softcuda.New(softcuda.Options{Devices: -1})
	if n := d.DeviceCount(); n != 0 {
		t.Errorf("%d devices, want none", n)
	}
	checkBad(t, []bad{{"device 0", func() error { return second(d.Device(0)) }, cuda.ErrInvalidDevice, "Driver.Device", "no device 0*has 0"}})
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	checkBad(t, []bad{{"closed", func() error { return second(d.Device(0)) }, cuda.ErrClosed, "Driver.Device", "Driver is closed"}})
}

func TestPinnedSlicePanics(t *testing.T) {
	k := newKit(t)
	defer func() {
		if v := recover(); v == nil || !strings.Contains(v.(string), "PinnedSlice") || !strings.Contains(v.(string), "string") {
			t.Errorf("panicked with %v", v)
		}
	}()
	cuda.PinnedSlice[struct{ Name string }](k.p)
}

func TestBadMemoryOperations(t *testing.T) {
	k, other := newKit(t), newKit(t)
	part := must(k.b.Slice(2, 8))(t)
	gone := must(k.dev.Alloc(8))(t)
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	var noBuffer *cuda.Buffer
	invalid := func(op, words string, call func() error) bad {
		return bad{op + " " + words, call, cuda.ErrInvalidValue, op, words}
	}
	checkBad(t, []bad{
		invalid("Stream.WriteValue32", "at of Write32 is no place*not nil*Word", func() error { return k.s.WriteValue32(noBuffer.Word(0), 1) }),
		invalid("Stream.WriteValue32", "offset 64*64 bytes*on 4", func() error { return k.s.WriteValue32(k.b.Word(64), 1) }),
		invalid("Stream.WriteValue64", "offset 60*64 bytes*on 8", func() error { return k.s.WriteValue64(k.b.Word(60), 1) }),
		invalid("Stream.WaitValue32", "at of Wait32*address*multiple of 4", func() error { return k.s.WaitValue32(part.Word(0), cuda.ValueEQ, 1) }),
		invalid("Stream.WaitValue64", "at of Wait64*address*multiple of 8", func() error { return k.s.WaitValue64(k.p.Word(4), cuda.ValueEQ, 1) }),
		invalid("Stream.WaitValue32", "condition 4*Wait32*ValueGEQ", func() error { return k.s.WaitValue32(k.b.Word(0), 4, 1) }),
		invalid("Stream.WriteValue32", "belongs to", func() error { return k.s.WriteValue32(other.b.Word(0), 1) }),
		invalid("Stream.Batch", "zero MemOp*Write32", func() error { return k.s.Batch(cuda.MemOp{}) }),
		invalid("Stream.Batch", "256 operations*at most 255", func() error { return k.s.Batch(make([]cuda.MemOp, 256)...) }),
		invalid("Stream.Batch", "scope 2*SystemScope", func() error { return k.s.Batch(cuda.Barrier(2)) }),
		{"closed", func() error { return k.s.WriteValue32(gone.Word(0), 1) }, cuda.ErrClosed, "Stream.WriteValue32", "closed buffer"},
		{"flush", func() error { return k.s.Batch(cuda.FlushWrites()) }, cuda.ErrNotSupported, "Stream.Batch", "device 0 cannot flush remote writes"},
		{"flushing wait", func() error { return k.s.WaitValue32(k.b.Word(0), cuda.ValueEQ|cuda.FlushRemote, 0) }, cuda.ErrNotSupported, "Stream.WaitValue32", "cannot flush"},
	})
}

func TestBadAttributesAndContexts(t *testing.T) {
	k := newKit(t)
	c := must(k.dev.NewContext())(t)
	far := must(c.NewStream())(t)
	var noDevice *cuda.Device
	invalid := func(op, words string, call func() error) bad {
		return bad{op + " " + words, call, cuda.ErrInvalidValue, op, words}
	}
	checkBad(t, []bad{
		invalid("Stream.SetSynchronizationPolicy", "policy 0*SyncAuto", func() error { return k.s.SetSynchronizationPolicy(0) }),
		invalid("Stream.SetPriority", "priority 1*-5 to 0", func() error { return k.s.SetPriority(1) }),
		invalid("Stream.SetAccessPolicyWindow", "Bytes -1", func() error { return k.s.SetAccessPolicyWindow(cuda.AccessPolicyWindow{Bytes: -1}) }),
		invalid("Stream.SetAccessPolicyWindow", "HitRatio 2", func() error { return k.s.SetAccessPolicyWindow(cuda.AccessPolicyWindow{HitRatio: 2}) }),
		invalid("Stream.SetAccessPolicyWindow", "Hit 3", func() error { return k.s.SetAccessPolicyWindow(cuda.AccessPolicyWindow{Hit: 3}) }),
		invalid("Stream.SetAccessPolicyWindow", "Miss 2", func() error { return k.s.SetAccessPolicyWindow(cuda.AccessPolicyWindow{Miss: 2}) }),
		invalid("Stream.SetMemSyncDomain", "domain 2*DomainRemote", func() error { return k.s.SetMemSyncDomain(2) }),
		invalid("Stream.SetMemSyncDomainMap", "device has 4", func() error { return k.s.SetMemSyncDomainMap(cuda.MemSyncDomainMap{Remote: 4}) }),
		invalid("Stream.CopyAttributes", "from is nil", func() error { return k.s.CopyAttributes(nil) }),
		{"across", func() error { return k.s.CopyAttributes(far) }, cuda.ErrInvalidContext, "Stream.CopyAttributes", "from belongs to context*one context"},
		invalid("Device.NewContext", "device is nil", func() error { return second(noDevice.NewContext()) }),
		invalid("Device.NewContext", "policy 9*SyncBlock", func() error { return second(k.dev.NewContext(cuda.ContextSync(9))) }),
		invalid("AddCallback", "stream is nil", func() error { return cuda.AddCallback(nil, func(error) {}) }),
		invalid("AddCallback", "fn is nil", func() error { return cuda.AddCallback(k.s, nil) }),
		invalid("AddCallback", "sync mode 7", func() error { return cuda.AddCallback(k.s, func(error) {}, cuda.SyncMode(7)) }),
		invalid("AddCallback", "no sync mode*HostLaunch", func() error { return cuda.AddCallback(k.s, func(error) {}, cuda.SyncMode(cuda.Spin)) }),
		{"open", func() error { return c.Close() }, cuda.ErrIllegalState, "Context.Close", "1 of Stream*close them first"},
		{"record", func() error { return far.Record(k.e) }, cuda.ErrInvalidHandle, "Stream.Record", "event belongs to device 0*stream to context 0x"},
	})
	if err := errors.Join(far.Close(), c.Close(), k.dev.Close()); err != nil {
		t.Error(err)
	}
	checkBad(t, []bad{{"closed", func() error { return second(c.NewStream()) }, cuda.ErrClosed, "NewStream", "context is closed"}})
}
