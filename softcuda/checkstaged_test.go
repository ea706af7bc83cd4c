package softcuda_test

import (
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// Staged copies fill and empty slots of the library's own after the work on them is queued, which is no mistake of the program's.
func TestCheckStaged(t *testing.T) {
	check := new(softcuda.Check)
	d := softcuda.New(softcuda.Options{Check: check})
	defer d.Close()
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	b, err := dev.Alloc(8 << 20)
	if err != nil {
		t.Fatal(err)
	}
	in, out := make([]byte, b.Len()), make([]byte, b.Len())
	for i := range in {
		in[i] = byte(i % 251)
	}
	for range 3 {
		for _, err := range []error{cuda.CopyToDevice(s, b, in), cuda.CopyToHost(s, out, b), s.Sync()} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, r := range check.Reports() {
		t.Error(r)
	}
	if out[1<<20] != in[1<<20] {
		t.Error("copied something else")
	}
}

// TestCheckStagedStreams: a slot goes from one stream's copies to another's when the library has seen that it is free, of which the checker
// knows nothing but what it is told; and whoever has been told by CopyDone that a copy is done may use its memory on any stream.
func TestCheckStagedStreams(t *testing.T) {
	for _, c := range []struct {
		name  string
		wrong int
		do    func(p *stagedProgram)
	}{
		{"slots, one after the other", 0, func(p *stagedProgram) {
			for i := range 40 {
				p.down(i%2, i%2, make([]byte, p.n))
			}
		}},
		{"slots, both ways", 0, func(p *stagedProgram) {
			for i := range 40 {
				p.down(i%2, i%2, make([]byte, p.n))
				p.up(i%2, i%2, make([]byte, p.n))
			}
		}},
		{"CopyDone of a copy to the device", 0, func(p *stagedProgram) {
			p.told(func(o cuda.CopyOption) { p.up(0, 0, make([]byte, p.n), o) })
			p.check(p.s[1].Memset(p.b[0], 3))
		}},
		{"CopyDone of a copy to the host", 0, func(p *stagedProgram) {
			p.told(func(o cuda.CopyOption) { p.down(0, 0, make([]byte, p.n), o) })
			p.check(p.s[1].Memset(p.b[0], 3))
		}},
		{"nobody told", 1, func(p *stagedProgram) {
			p.up(0, 0, make([]byte, p.n))
			p.check(p.s[1].Memset(p.b[0], 3))
		}},
		{"another copy's CopyDone", 1, func(p *stagedProgram) {
			p.told(func(o cuda.CopyOption) { p.up(1, 1, make([]byte, p.n), o) })
			p.up(0, 0, make([]byte, p.n))
			p.check(p.s[1].Memset(p.b[0], 3))
		}},
		{"blocks of a pool that staged before", 0, func(p *stagedProgram) {
			pool, err := p.dev.NewPinnedPool(p.n)
			p.check(err)
			defer pool.Close()
			for i := range 10 {
				p.down(i%2, i%2, make([]byte, p.n), cuda.Staging(pool))
				block, err := pool.Get(p.t.Context(), p.n) // once the copy is done
				p.check(err)
				p.up(1-i%2, 1-i%2, block.Bytes())
				p.check(block.ReleaseAfter(p.s[1-i%2]))
				p.check(p.s[1-i%2].Sync())
				block, err = pool.Get(p.t.Context(), p.n) // the next copy finds room
				p.check(err)
				block.Release()
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			check := new(softcuda.Check)
			o := softcuda.Options{Check: check}
			if raceDetector && c.wrong > 0 {
				o.Seed = 1 // else both are done at the same time now and then, which the race detector tells too
			}
			d := softcuda.New(o)
			defer d.Close()
			p := &stagedProgram{t: t, n: 128 << 10}
			var err error
			p.dev, err = d.Device(0)
			p.check(err)
			for i := range p.s {
				p.s[i], err = p.dev.NewStream()
				p.check(err)
				p.b[i], err = p.dev.Alloc(p.n)
				p.check(err)
				p.check(p.s[i].Memset(p.b[i], 1))
				p.check(p.s[i].Sync())
			}
			c.do(p)
			for i := range p.s {
				p.check(p.s[i].Sync())
				p.check(p.b[i].Close())
			}
			if got := check.Reports(); len(got) != c.wrong {
				t.Errorf("%d reports, want %d: %v", len(got), c.wrong, got)
			}
		})
	}
}

// stagedProgram copies with two streams and a buffer for each.
type stagedProgram struct {
	t   *testing.T
	n   int
	dev *cuda.Device
	s   [2]*cuda.Stream
	b   [2]*cuda.Buffer
}

func (p *stagedProgram) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *stagedProgram) down(s, b int, dst []byte, opts ...cuda.CopyOption) {
	p.t.Helper()
	p.check(cuda.CopyToHost(p.s[s], dst, p.b[b], opts...))
}

func (p *stagedProgram) up(s, b int, src []byte, opts ...cuda.CopyOption) {
	p.t.Helper()
	p.check(cuda.CopyToDevice(p.s[s], p.b[b], src, opts...))
}

// told waits until the copy is told to be done.
func (p *stagedProgram) told(copied func(cuda.CopyOption)) {
	p.t.Helper()
	done := make(chan error, 1)
	copied(cuda.CopyDone(func(err error) { done <- err }))
	p.check(<-done)
}
