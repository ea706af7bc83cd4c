package cudatest

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/hostlaunch/cuda"
)

// copyCases: copies and fills. See stagedCases for copies of ordinary memory.
var copyCases = []Case{
	{ID: "CY-01", Name: "sizes and unaligned ends", Run: copySizes},
	{ID: "CY-01", Name: "element types", Run: copyTypes},
	{ID: "CY-01", Name: "nothing", Run: copyNothing},
	{ID: "CY-01", Name: "fills", Run: copyFills},
	{ID: "CY-01", Name: "ReadAt and WriteAt", Run: copyAt},
	{ID: "CY-01", Name: "WriteAt is done when it returns", Run: writeAtIsDone},
	{ID: "CY-01", Name: "random programs", Run: copyPrograms},
	{ID: "CY-01", Name: "sizes that do not match", Run: copyMismatch},
	{ID: "CY-01", Name: "overlap is refused", Run: copyOverlap},
	{ID: "CY-01", Name: "between devices", Devices: 2, Run: copyBetweenDevices},
	{ID: "CY-02", Name: "in stream order", Run: copyInOrder},
	{ID: "CY-02", Name: "both ends are retained", Run: copyRetained},
	{ID: "CY-02", Name: "a part keeps its buffer", Run: partKeepsBuffer},
	{ID: "CY-07", Name: "pinned memory is freed after the work", Run: pinnedFreedAfter},
	{ID: "CY-09", Name: "types with pointers", Run: copyPointers},
}

// pattern is n bytes that differ from each other and from those of other seeds.
func pattern(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return p
}

// Part is a part of a buffer.
func (t *T) Part(b *cuda.Buffer, offset, n int) *cuda.Buffer {
	t.Helper()
	p, err := b.Slice(offset, n)
	t.OK(err)
	return p
}

// copySizes takes bytes from pinned memory to a device, to another place there, and back to pinned and to ordinary memory,
// from and to odd addresses, and looks at the bytes beside them too.
func copySizes(t *T) {
	const most, margin = 1<<20 + 3, 16
	s := t.Stream()
	a, b := t.Buffer(most+2*margin), t.Buffer(most+2*margin)
	pinned, back := t.Pinned(most+margin).Bytes(), t.Pinned(most+2*margin).Bytes()
	sizes := []int{63, 64, 65, 511, 512, 513, 4095, 4096, 4097, 65535, 65536, 65537, most}
	for n := range 18 {
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		for _, off := range []int{0, 1, 3, 8} {
			want := pattern(n, uint64(off))
			t.OK(s.Memset(a, 0xAA))
			t.OK(s.Memset(b, 0xBB))
			copy(pinned[off:], want)
			t.OK(cuda.CopyToDevice(s, t.Part(a, 8+off, n), pinned[off:off+n]))
			t.OK(s.CopyBuffer(t.Part(b, 9-off%2, n), t.Part(a, 8+off, n)))
			ordinary := bytes.Repeat([]byte{0xCC}, n+2)
			t.OK(cuda.CopyToHost(s, ordinary[1:n+1], t.Part(b, 9-off%2, n)))
			clear(back)
			t.OK(cuda.CopyToHost(s, back, b))
			t.Sync(s)
			if !bytes.Equal(ordinary[1:n+1], want) || ordinary[0] != 0xCC || ordinary[n+1] != 0xCC {
				t.Fatalf("%d bytes, offset %d: the ordinary copy differs", n, off)
			}
			at := 9 - off%2
			if !bytes.Equal(back[at:at+n], want) || back[at-1] != 0xBB || back[at+n] != 0xBB {
				t.Fatalf("%d bytes, offset %d: the pinned copy differs, or a byte beside it", n, off)
			}
		}
	}
}

func copyTypes(t *T) {
	type pair struct {
		A uint32
		B float64
	}
	type named uint16
	roundTrip(t, []byte{1, 2, 255})
	roundTrip(t, []bool{true, false, true})
	roundTrip(t, []int16{-1, 2, -32768})
	roundTrip(t, []named{1, 65535})
	roundTrip(t, []uint32{1, 1 << 31})
	roundTrip(t, []int{-1, 1 << 30})
	roundTrip(t, []uintptr{1, 2})
	roundTrip(t, []uint64{1, 1 << 63})
	roundTrip(t, []float32{1.5, -2})
	roundTrip(t, []float64{1.5, -2})
	roundTrip(t, []complex128{1 + 2i})
	roundTrip(t, [][3]byte{{1, 2, 3}, {4, 5, 6}})
	roundTrip(t, [][2]pair{{{1, 2}, {3, 4}}})
	roundTrip(t, []pair{{1, 2}, {3, 4}})
	roundTrip(t, []cuda.DevicePtr{7})
}

func roundTrip[V comparable](t *T, vals []V) {
	t.Helper()
	s, size := t.Stream(), int(reflect.TypeFor[V]().Size())
	b := t.Buffer(len(vals) * size)
	got := make([]V, len(vals))
	t.OK(cuda.CopyToDevice(s, b, vals))
	t.OK(cuda.CopyToHost(s, got, b))
	t.Sync(s)
	if !slices.Equal(got, vals) {
		t.Errorf("%T: %v came back as %v", vals, vals, got)
	}
	pinned := cuda.PinnedSlice[V](t.Pinned(b.Len()))
	t.OK(cuda.CopyToHost(s, pinned, b))
	t.Sync(s)
	if !slices.Equal(pinned, vals) {
		t.Errorf("%T: %v came back as %v in pinned memory", vals, vals, pinned)
	}
}

// copyNothing: a length of 0 is a length like others, at the end of a buffer too.
func copyNothing(t *T) {
	s, b, other := t.Stream(), t.Buffer(64), t.Buffer(64)
	for _, at := range []int{0, 1, 64} {
		none, too := t.Part(b, at, 0), t.Part(other, at, 0)
		t.OK(cuda.CopyToDevice(s, none, []byte{}))
		t.OK(cuda.CopyToDevice(s, none, []uint64(nil)))
		t.OK(cuda.CopyToDevice(s, none, make([]struct{}, 5)))
		t.OK(cuda.CopyToHost(s, []byte(nil), none))
		t.OK(s.CopyBuffer(none, too))
		t.OK(s.CopyBuffer(none, none))
		t.OK(s.Memset(none, 1))
		for _, p := range [][]byte{nil, {}} {
			if n, err := b.ReadAt(p, int64(at)); n != 0 || err != nil {
				t.Errorf("ReadAt of nothing at %d = %d, %v", at, n, err)
			}
			if n, err := b.WriteAt(p, int64(at)); n != 0 || err != nil {
				t.Errorf("WriteAt of nothing at %d = %d, %v", at, n, err)
			}
		}
	}
	t.Is(cuda.CopyToDevice(s, b, []byte{}), cuda.ErrInvalidValue)
	t.Sync(s)
}

func copyFills(t *T) {
	s, b := t.Stream(), t.Buffer(100)
	got := t.Pinned(100).Bytes()
	want := make([]byte, 100)
	fill := func(off, n int, value ...byte) {
		for i := range n {
			want[off+i] = value[i%len(value)]
		}
	}
	t.OK(s.Memset(b, 0x11))
	fill(0, 100, 0x11)
	t.OK(s.Memset(t.Part(b, 3, 7), 0x22))
	fill(3, 7, 0x22)
	t.OK(s.Memset16(t.Part(b, 14, 6), 0x3344))
	fill(14, 6, 0x44, 0x33)
	t.OK(s.Memset32(t.Part(b, 24, 12), 0x55667788))
	fill(24, 12, 0x88, 0x77, 0x66, 0x55)
	t.OK(s.Memset(t.Part(b, 99, 1), 0x99))
	fill(99, 1, 0x99)
	for _, err := range []error{
		s.Memset16(t.Part(b, 0, 3), 0), s.Memset16(t.Part(b, 1, 2), 0),
		s.Memset32(t.Part(b, 0, 6), 0), s.Memset32(t.Part(b, 2, 4), 0),
	} {
		t.Is(err, cuda.ErrInvalidValue)
	}
	t.OK(cuda.CopyToHost(s, got, b))
	t.Sync(s)
	if !bytes.Equal(got, want) {
		t.Errorf("filled\n% x, want\n% x", got, want)
	}
}

func copyAt(t *T) {
	b := t.Buffer(10_000)
	want := pattern(10_000, 1)
	for off := 0; off < len(want); off += 999 {
		end := min(off+999, len(want))
		if n, err := b.WriteAt(want[off:end], int64(off)); n != end-off || err != nil {
			t.Fatalf("WriteAt %d = %d, %v", off, n, err)
		}
	}
	got := make([]byte, 10_000)
	for off := 0; off < len(got); off += 777 {
		end := min(off+777, len(got))
		if n, err := b.ReadAt(got[off:end], int64(off)); n != end-off || err != nil {
			t.Fatalf("ReadAt %d = %d, %v", off, n, err)
		}
	}
	if !bytes.Equal(got, want) {
		t.Error("the bytes differ")
	}
	part := t.Part(b, 100, 50)
	if _, err := part.ReadAt(got[:50], 0); err != nil || !bytes.Equal(got[:50], want[100:150]) {
		t.Errorf("a part reads other bytes, or %v", err)
	}
	for _, c := range []struct {
		n   int
		off int64
	}{{51, 0}, {1, 50}, {0, 51}, {1, -1}, {10, 1 << 62}, {10, -1 << 63}} {
		_, err := part.ReadAt(make([]byte, c.n), c.off)
		t.Is(err, cuda.ErrInvalidValue)
		_, err = part.WriteAt(make([]byte, c.n), c.off)
		t.Is(err, cuda.ErrInvalidValue)
	}
}

// writeAtIsDone: "done" means for everybody, also for streams that are not ordered behind the legacy stream's copies.
func writeAtIsDone(t *T) {
	s, b := t.Stream(), t.Buffer(60_000)
	got, want := t.Pinned(60_000).Bytes(), make([]byte, 60_000)
	for i := range 200 {
		for j := range want {
			want[j] = byte(i + j)
		}
		_, err := b.WriteAt(want, 0)
		t.OK(err)
		t.OK(cuda.CopyToHost(s, got, b))
		t.Sync(s)
		if !bytes.Equal(got, want) {
			t.Fatalf("round %d: a stream read other bytes than WriteAt had written", i)
		}
	}
}

// copyPrograms runs random copies and fills and keeps the books about what each memory holds.
func copyPrograms(t *T) {
	for seed := range uint64(10) {
		p := newProgram(t, seed)
		for range 300 {
			p.step()
		}
		p.finish()
	}
}

const programMemory = 5000

// program is a random program, with a model of each memory.
type program struct {
	t       *T
	r       *rand.Rand
	seed    uint64
	streams []*cuda.Stream // joined at each change of streams, so that everything is in one order
	current int

	dev        [2]*cuda.Buffer
	devModel   [2][]byte
	pinned     []byte
	pinModel   []byte
	read, want [][]byte // ordinary memory that copies go to, and what it must hold in the end
}

func newProgram(t *T, seed uint64) *program {
	p := &program{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 0)), pinned: t.Pinned(programMemory).Bytes(), pinModel: pattern(programMemory, seed)}
	for i := range p.dev {
		p.dev[i], p.devModel[i] = t.Buffer(programMemory), make([]byte, programMemory)
	}
	p.streams = []*cuda.Stream{t.Stream(), t.Stream(), t.Stream(cuda.Blocking()), t.Device(0).DefaultStream()}
	copy(p.pinned, p.pinModel)
	for _, d := range p.dev {
		t.OK(p.streams[0].Memset(d, 0))
	}
	return p
}

// span is a random range of the memories, short as often as long, aligned to align.
func (p *program) span(align int) (off, n int) {
	n = p.r.IntN(programMemory)
	if p.r.IntN(2) == 0 {
		n = p.r.IntN(40)
	}
	n -= n % align
	off = p.r.IntN(programMemory - n + 1)
	return off - off%align, n
}

func (p *program) step() {
	if next := p.r.IntN(len(p.streams)); p.r.IntN(4) == 0 && next != p.current {
		p.t.OK(p.streams[next].WaitStream(p.streams[p.current]))
		p.current = next
	}
	s, i := p.streams[p.current], p.r.IntN(2)
	switch p.r.IntN(8) {
	case 0:
		p.fill(s, i)
	case 1, 2:
		p.between(s, i)
	case 3:
		off, n := p.span(1)
		from := p.r.IntN(programMemory - n + 1)
		p.t.OK(cuda.CopyToDevice(s, p.t.Part(p.dev[i], off, n), p.pinned[from:from+n]))
		copy(p.devModel[i][off:off+n], p.pinModel[from:])
	case 4:
		off, n := p.span(1)
		to := p.r.IntN(programMemory - n + 1)
		p.t.OK(cuda.CopyToHost(s, p.pinned[to:to+n], p.t.Part(p.dev[i], off, n)))
		copy(p.pinModel[to:to+n], p.devModel[i][off:])
	case 5:
		off, n := p.span(1)
		src := pattern(n, p.r.Uint64())
		p.t.OK(cuda.CopyToDevice(s, p.t.Part(p.dev[i], off, n), src))
		copy(p.devModel[i][off:], src)
	case 6:
		off, n := p.span(1)
		dst := make([]byte, n)
		p.t.OK(cuda.CopyToHost(s, dst, p.t.Part(p.dev[i], off, n)))
		p.read, p.want = append(p.read, dst), append(p.want, slices.Clone(p.devModel[i][off:off+n]))
	case 7:
		p.at(s, i)
	}
}

func (p *program) fill(s *cuda.Stream, i int) {
	size := 1 << p.r.IntN(3)
	off, n := p.span(size)
	v, b := p.r.Uint32(), p.t.Part(p.dev[i], off, n)
	switch size {
	case 1:
		p.t.OK(s.Memset(b, byte(v)))
	case 2:
		p.t.OK(s.Memset16(b, uint16(v)))
	case 4:
		p.t.OK(s.Memset32(b, v))
	}
	for j := range n {
		p.devModel[i][off+j] = byte(v >> (8 * (j % size)))
	}
}

// between copies on the device, from the other buffer or from this one, where overlapping ranges are refused.
func (p *program) between(s *cuda.Stream, i int) {
	from := p.r.IntN(2)
	off, n := p.span(1)
	at := p.r.IntN(programMemory - n + 1)
	err := s.CopyBuffer(p.t.Part(p.dev[i], at, n), p.t.Part(p.dev[from], off, n))
	if i == from && at < off+n && off < at+n {
		p.t.Is(err, cuda.ErrInvalidValue)
		return
	}
	p.t.OK(err)
	copy(p.devModel[i][at:at+n], p.devModel[from][off:])
}

// at uses ReadAt or WriteAt, which wait by themselves for the legacy stream and blocking streams only.
func (p *program) at(s *cuda.Stream, i int) {
	if flags, err := s.Flags(); err != nil || flags == cuda.StreamNonBlocking {
		p.t.OK(err)
		p.t.Sync(s)
	}
	off, n := p.span(1)
	if p.r.IntN(2) == 0 {
		got := make([]byte, n)
		_, err := p.dev[i].ReadAt(got, int64(off))
		p.t.OK(err)
		if !bytes.Equal(got, p.devModel[i][off:off+n]) {
			p.t.Fatalf("seed %d: ReadAt(%d, %d) differs", p.seed, off, n)
		}
		return
	}
	src := pattern(n, p.r.Uint64())
	_, err := p.dev[i].WriteAt(src, int64(off))
	p.t.OK(err)
	copy(p.devModel[i][off:], src)
}

func (p *program) finish() {
	s := p.streams[p.current]
	for i, d := range p.dev {
		got := make([]byte, programMemory)
		p.t.OK(cuda.CopyToHost(s, got, d))
		p.read, p.want = append(p.read, got), append(p.want, p.devModel[i])
	}
	p.t.Sync(s)
	for i := range p.read {
		if !bytes.Equal(p.read[i], p.want[i]) {
			p.t.Fatalf("seed %d: copy %d of %d to ordinary memory differs", p.seed, i, len(p.read))
		}
	}
	if !bytes.Equal(p.pinned, p.pinModel) {
		p.t.Fatalf("seed %d: the pinned memory differs", p.seed)
	}
}
