package cudatest

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// memOpCases: write-values and wait-values. What a case needs is made before a stream is held.
var memOpCases = []Case{
	{ID: "ST-12", Name: "writes in stream order", Run: writesInOrder},
	{ID: "ST-12", Name: "a write is behind earlier work", Run: writeBehindWork},
	{ID: "ST-12", Name: "waits for the program", Run: waitsForProgram},
	{ID: "ST-12", Name: "conditions", Run: waitConditions},
	{ID: "ST-12", Name: "waits for another stream", Run: waitsForStream},
	{ID: "ST-12", Name: "later work sees what came before the value", Run: waitSees},
	{ID: "ST-12", Name: "back and forth", Run: backAndForth},
	{ID: "ST-12", Name: "batch", Run: memOpBatch},
	{ID: "ST-12", Name: "batch, all or none", Run: memOpBatchRefused},
	{ID: "ST-12", Name: "flush of remote writes, as seen", Run: flushAsSeen},
	{ID: "ST-12", Name: "wrong operands", Run: memOpsRefused},
	{ID: "ST-12", Name: "default streams", Run: memOpsOnDefaultStreams},
}

// flagWord is 8 bytes of pinned memory, whose words streams wait for.
type flagWord struct {
	*cuda.PinnedBuffer
	low  *atomic.Uint32
	wide *atomic.Uint64
}

// Flag makes a flag of value 0.
func (t *T) Flag() flagWord {
	t.Helper()
	p := t.Pinned(8)
	f := flagWord{p, &cuda.PinnedSlice[atomic.Uint32](p)[0], &cuda.PinnedSlice[atomic.Uint64](p)[0]}
	f.wide.Store(0)
	return f
}

// Freed has f let go of its streams when the case ends, which would otherwise hang if it failed. The streams and what they use
// are made before.
func (t *T) Freed(f flagWord, value uint64) { t.Cleanup(func() { f.wide.Store(value) }) }

func writesInOrder(t *T) {
	s, b := t.Stream(), t.Buffer(32)
	out := cuda.PinnedSlice[uint32](t.Pinned(32))
	t.OK(s.Memset32(b, 1))
	t.OK(s.WriteValue32(b.Word(4), 2))
	t.OK(s.WriteValue64(b.Word(8), 3<<32|4))
	t.OK(s.WriteValue32(b.Word(16), 5))
	t.OK(s.WriteValue32(b.Word(16), 1<<32-1)) // the later one holds
	part, err := b.Slice(24, 8)
	t.OK(err)
	t.OK(s.WriteValue32(part.Word(4), 7))
	t.OK(cuda.CopyToHost(s, out, b))
	t.Sync(s)
	if got := [8]uint32(out); got != [8]uint32{1, 2, 4, 3, 1<<32 - 1, 1, 1, 7} {
		t.Errorf("wrote %v", got)
	}
}

// writeBehindWork polls memory for a value that the stream writes: what the kernel before it did is there then.
func writeBehindWork(t *T) {
	s, log, f := t.Stream(), t.DeviceLog(4), t.Flag()
	t.Spin(s, 5*time.Millisecond)
	log.Add(s, 11)
	t.OK(s.WriteValue32(f.Word(0), 1))
	if f.low.Load() == 1 {
		t.Log("the spin was over before WriteValue32 returned")
	}
	t.Eventually("the value is there", func() bool { return f.low.Load() == 1 })
	t.Sync(s) // for the race detector, which knows nothing of the stream's write
	log.Want(11)
}

func waitsForProgram(t *T) {
	s, e, f, b := t.Stream(), t.Event(), t.Flag(), t.Buffer(64)
	t.OK(s.Memset(b, 0)) // and so memset is loaded
	t.Sync(s)
	t.Freed(f, 1)
	t.OK(s.WaitValue32(f.Word(0), cuda.ValueEQ, 1))
	t.OK(s.Memset(b, 1))
	t.OK(s.Record(e))
	t.Waits("work behind a wait-value", e)
	f.low.Store(2)
	t.Waits("work behind a wait-value of another value", e)
	f.low.Store(1)
	t.Completes("work behind the wait-value", e)
	t.Sync(s)
}

// waitConditions walks memory through values, the last of which is the first to meet the condition.
func waitConditions(t *T) {
	f, e, s := t.Flag(), t.Event(), t.Stream()
	for _, c := range []struct {
		name   string
		cond   cuda.WaitCondition
		value  uint64
		memory []uint64
		wide   bool
	}{
		{"GEQ", cuda.ValueGEQ, 5, []uint64{0, 4, 5}, false},
		{"GEQ at once", cuda.ValueGEQ, 5, []uint64{6}, false},
		{"GEQ wraps", cuda.ValueGEQ, 5, []uint64{0xfffffff0, 5}, false},
		{"GEQ has wrapped", cuda.ValueGEQ, 0xfffffff0, []uint64{0xffffffef, 2}, false},
		{"EQ", cuda.ValueEQ, 5, []uint64{6, 4, 5}, false},
		{"AND", cuda.ValueAND, 6, []uint64{0, 1 | 8, 4}, false},
		{"NOR", cuda.ValueNOR, 0xfffffff0, []uint64{0xf, 0xffffffff, 0xe}, false},
		{"64 GEQ", cuda.ValueGEQ, 1 << 40, []uint64{1, 1<<40 - 1, 1 << 40}, true},
		{"64 GEQ has wrapped", cuda.ValueGEQ, 1<<64 - 2, []uint64{1<<64 - 3, 3}, true},
		{"64 EQ", cuda.ValueEQ, 1<<63 | 1, []uint64{1, 1 << 63, 1<<63 | 1}, true},
		{"64 AND", cuda.ValueAND, 1 << 50, []uint64{1<<50 - 1, 1 << 50}, true},
		{"64 NOR", cuda.ValueNOR, 1<<64 - 1 - 1<<40, []uint64{1 << 40, 1<<64 - 1, 0}, true},
	} {
		f.wide.Store(c.memory[0])
		t.Cleanup(func() { // a case that fails does not hang: one of these meets any condition
			f.wide.Store(c.value)
			time.Sleep(time.Millisecond)
			f.wide.Store(0)
		})
		last := c.memory[len(c.memory)-1]
		err := error(nil)
		if c.wide {
			err = s.WaitValue64(f.Word(0), c.cond, c.value)
		} else {
			err = s.WaitValue32(f.Word(0), c.cond, uint32(c.value))
		}
		if errors.Is(err, cuda.ErrNotSupported) {
			t.Logf("%s: %v", c.name, err)
			continue
		}
		t.OK(err)
		err = s.Record(e)
		for i, v := range c.memory {
			f.wide.Store(v)
			if i < len(c.memory)-1 {
				time.Sleep(5 * time.Millisecond)
				if done, err := e.Query(); done || err != nil {
					f.wide.Store(last)
					t.Fatalf("%s with %#x: met by %#x (%v)", c.name, c.value, v, err)
				}
			}
		}
		t.OK(err)
		t.Completes(c.name, e)
		t.Sync(s)
	}
}

// waitsForStream has each kind of work meet a wait.
func waitsForStream(t *T) {
	s, other, b, e := t.Stream(), t.Stream(), t.Buffer(16), t.Event()
	store := t.Kernel("store")
	five := cuda.PinnedSlice[uint32](t.Pinned(16))
	for i := range five {
		five[i] = 5
	}
	t.OK(other.Launch(store, one, b, uint32(0))) // and so everything is loaded
	t.OK(cuda.CopyToDevice(other, b, five))
	t.Sync(other)
	t.Cleanup(func() { other.WriteValue32(b.Word(0), 5) }) // a case that fails does not hang
	for name, meet := range map[string]func() error{
		"write-value": func() error { return other.WriteValue32(b.Word(0), 5) },
		"kernel":      func() error { return other.Launch(store, one, b, uint32(5)) },
		"memset":      func() error { return other.Memset32(b, 5) },
		"copy":        func() error { return cuda.CopyToDevice(other, b, five) },
		"batch":       func() error { return other.Batch(cuda.Write32(b.Word(4), 1), cuda.Write32(b.Word(0), 5)) },
	} {
		t.OK(other.Memset32(b, 0))
		t.Sync(other)
		t.OK(s.WaitValue32(b.Word(0), cuda.ValueEQ, 5))
		t.OK(s.Record(e))
		time.Sleep(2 * time.Millisecond)
		if done, err := e.Query(); done || err != nil {
			t.Errorf("%s: Query = %v, %v before it", name, done, err)
		}
		if err := meet(); err != nil {
			t.Errorf("%s: %v", name, err)
			t.OK(other.WriteValue32(b.Word(0), 5))
		}
		t.Completes("what waits for a "+name, e)
		t.Sync(other)
	}
}

// waitSees: the program writes data, then the flag; a host function behind the wait reads the data.
func waitSees(t *T) {
	s, f := t.Stream(), t.Flag()
	t.Freed(f, 1<<31-1)
	data, wrong := 0, 0
	for i := range 200 {
		t.OK(s.WaitValue32(f.Word(0), cuda.ValueGEQ, uint32(i+1)))
		done := make(chan struct{})
		t.Host(s, func() {
			if data != i {
				wrong++
			}
			close(done)
		})
		data = i
		f.low.Store(uint32(i + 1))
		Receive(t, "the function", done)
	}
	t.Sync(s)
	if wrong > 0 {
		t.Errorf("%d of 200 functions saw old data", wrong)
	}
}

// backAndForth is a ball between the program and a stream.
func backAndForth(t *T) {
	s, f, g := t.Stream(), t.Flag(), t.Flag()
	t.Freed(f, 1<<31-1)
	const turns = 100
	for i := range uint32(turns) {
		t.OK(s.WaitValue32(f.Word(0), cuda.ValueGEQ, i+1))
		t.OK(s.WriteValue32(g.Word(0), i+1))
	}
	for i := range uint32(turns) {
		if got := g.low.Load(); got != i {
			t.Fatalf("the stream is at %d, want %d", got, i)
		}
		f.low.Store(i + 1)
		t.Eventually("the stream's turn", func() bool { return g.low.Load() == i+1 })
	}
	t.Sync(s)
}

func memOpBatch(t *T) {
	s, e, f, g := t.Stream(), t.Event(), t.Flag(), t.Flag()
	t.Freed(f, 7)
	t.OK(s.Batch())
	t.OK(s.Batch(
		cuda.Write32(g.Word(0), 1),
		cuda.Barrier(cuda.SystemScope),
		cuda.Wait32(f.Word(0), cuda.ValueEQ, 7),
		cuda.Write32(g.Word(4), 2),
		cuda.Barrier(cuda.DeviceScope),
		cuda.Wait64(f.Word(0), cuda.ValueGEQ, 7),
		cuda.Write64(g.Word(0), 3<<32|4),
	))
	t.OK(s.Record(e))
	t.Eventually("what stands before the wait is done", func() bool { return g.wide.Load() == 1 })
	t.Waits("a batch with a wait in it", e)
	if v := g.wide.Load(); v != 1 {
		t.Errorf("what stands behind the wait is done: %#x", v)
	}
	f.wide.Store(7)
	t.Completes("the batch", e)
	t.Sync(s)
	if v := g.wide.Load(); v != 3<<32|4 {
		t.Errorf("at the end %#x", v)
	}
	full := make([]cuda.MemOp, 255)
	for i := range full {
		full[i] = cuda.Write32(g.Word(4*(i%2)), uint32(i))
	}
	t.OK(s.Batch(full...))
	t.Sync(s)
	if v := g.wide.Load(); v != 253<<32|254 {
		t.Errorf("after 255 writes %#x", v)
	}
}

func memOpBatchRefused(t *T) {
	s, f := t.Stream(), t.Flag()
	good := cuda.Write32(f.Word(0), 1)
	for name, bad := range map[string]cuda.MemOp{
		"zero": {}, "offset": cuda.Write64(f.Word(4), 1), "condition": cuda.Wait32(f.Word(0), 9, 1), "scope": cuda.Barrier(7), "nil": cuda.Write32(cuda.Word{}, 1),
	} {
		t.Log(name)
		t.Is(s.Batch(good, bad), cuda.ErrInvalidValue)
	}
	many := make([]cuda.MemOp, 256)
	for i := range many {
		many[i] = good
	}
	t.Is(s.Batch(many...), cuda.ErrInvalidValue)
	t.Sync(s)
	if f.low.Load() != 0 {
		t.Error("a part of a refused batch was queued")
	}
}

func flushAsSeen(t *T) {
	s, f := t.Stream(), t.Flag()
	for name, err := range map[string]error{
		"FlushRemote": s.WaitValue32(f.Word(0), cuda.ValueEQ|cuda.FlushRemote, 0),
		"FlushWrites": s.Batch(cuda.FlushWrites()),
	} {
		t.Logf("%s: %v", name, err)
		if err != nil {
			t.Is(err, cuda.ErrNotSupported)
		}
	}
	t.Sync(s)
}

func memOpsRefused(t *T) {
	s, b, p := t.Stream(), t.Buffer(16), t.Pinned(16)
	gone, err := t.Device(0).Alloc(16)
	t.OK(err)
	t.OK(gone.Close())
	var noBuffer *cuda.Buffer
	var noPinned *cuda.PinnedBuffer
	for _, at := range []cuda.Word{{}, noBuffer.Word(0), noPinned.Word(0), b.Word(-4), b.Word(16), b.Word(2), p.Word(14), p.Word(1 << 40)} {
		t.Is(s.WriteValue32(at, 1), cuda.ErrInvalidValue)
		t.Is(s.WaitValue32(at, cuda.ValueEQ, 0), cuda.ErrInvalidValue)
	}
	for _, at := range []cuda.Word{{}, b.Word(4), b.Word(12), p.Word(-8), p.Word(16)} {
		t.Is(s.WriteValue64(at, 1), cuda.ErrInvalidValue)
		t.Is(s.WaitValue64(at, cuda.ValueEQ, 0), cuda.ErrInvalidValue)
	}
	for _, cond := range []cuda.WaitCondition{4, 8, 1 << 29, 1 << 31} {
		t.Is(s.WaitValue32(b.Word(0), cond, 0), cuda.ErrInvalidValue)
		t.Is(s.WaitValue64(b.Word(0), cond, 0), cuda.ErrInvalidValue)
	}
	t.Is(s.WriteValue32(gone.Word(0), 1), cuda.ErrClosed)
	t.Is(s.Batch(cuda.Write32(gone.Word(0), 1)), cuda.ErrClosed)
	var noStream *cuda.Stream
	t.Is(noStream.WriteValue32(b.Word(0), 1), cuda.ErrInvalidValue)
	t.Is(noStream.Batch(), cuda.ErrInvalidValue)
	if done, err := s.Query(); !done || err != nil {
		t.Errorf("something was queued: %v, %v", done, err)
	}
}

func memOpsOnDefaultStreams(t *T) {
	f := t.Flag()
	legacy := t.Device(0).DefaultStream()
	t.OK(legacy.WriteValue32(f.Word(0), 1))
	t.OK(legacy.WaitValue32(f.Word(0), cuda.ValueEQ, 1))
	t.Sync(legacy)
	t.OK(t.Device(0).WithThreadStream(func(s *cuda.Stream) error {
		t.OK(s.WriteValue32(f.Word(4), 2))
		return s.Sync()
	}))
	if v := f.wide.Load(); v != 2<<32|1 {
		t.Errorf("wrote %#x", v)
	}
}
