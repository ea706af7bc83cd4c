package softcuda_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestStagedVirtualTime: in a synctest bubble a copy behind a kernel of a minute is done after a minute, and none of the library's
// goroutines keeps time from passing.
func TestStagedVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := softcuda.New(softcuda.Options{Kernels: testkernels.Twins()})
		defer d.Close()
		dev, err := d.Device(0)
		check(t, err)
		s, err := dev.NewStream()
		check(t, err)
		b, err := dev.Alloc(1 << 20)
		check(t, err)
		m, err := dev.LoadModule(testkernels.PTX)
		check(t, err)
		spin, err := m.Kernel("spin")
		check(t, err)
		src, dst := bytes.Repeat([]byte{7}, 1<<20), make([]byte, 1<<20)
		start := time.Now()
		check(t, s.Launch(spin, cuda.Grid1D(1, 1), uint64(time.Minute)))
		check(t, cuda.CopyToDevice(s, b, src))
		check(t, cuda.CopyToHost(s, dst, b))
		if time.Since(start) != 0 {
			t.Error("queueing took time")
		}
		check(t, s.Sync())
		if took := time.Since(start) - time.Minute; took < 0 || took > 100*time.Millisecond {
			t.Errorf("it took a minute and %v", took)
		}
		if !bytes.Equal(src, dst) {
			t.Error("the bytes differ")
		}
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestStagedLittleMemory: where the driver gives little pinned memory the ring is small, and where it gives none the copy is
// refused, and nothing is queued or left behind.
func TestStagedLittleMemory(t *testing.T) {
	for _, c := range []struct {
		memory, n int
		ok        bool
	}{{8 << 20, 5 << 20, true}, {1<<20 + 64<<10, 1 << 20, true}, {600 << 10, 300 << 10, true}, {32 << 10, 16 << 10, false}, {16, 1, false}} {
		d := softcuda.New(softcuda.Options{Memory: int64(c.memory)})
		dev, err := d.Device(0)
		check(t, err)
		s, err := dev.NewStream()
		check(t, err)
		b, err := dev.Alloc(c.n)
		check(t, err)
		src, dst := bytes.Repeat([]byte{7}, c.n), make([]byte, c.n)
		check(t, cuda.CopyToDevice(s, b, src, cuda.Direct()))
		never := func(err error) { t.Errorf("told of a refused copy: %v", err) }
		if !c.ok {
			err := cuda.CopyToHost(s, dst, b, cuda.CopyDone(never))
			if e := new(cuda.Error); !errors.Is(err, cuda.ErrOutOfMemory) || !errors.As(err, &e) || e.Op != "CopyToHost" {
				t.Errorf("%d bytes of memory: %v", c.memory, err)
			}
			check(t, s.Sync())
			check(t, cuda.CopyToHost(s, dst, b, cuda.Direct()))
		} else {
			for range 3 {
				clear(dst)
				check(t, cuda.CopyToDevice(s, b, src))
				check(t, cuda.CopyToHost(s, dst, b))
				check(t, s.Sync())
			}
		}
		check(t, s.Sync())
		if !bytes.Equal(src, dst) {
			t.Errorf("%d bytes of memory: the bytes differ", c.memory)
		}
		if ring := d.StagingBytes(); ring > int64(c.memory) {
			t.Errorf("%d bytes of memory: a ring of %d", c.memory, ring)
		}
		check(t, d.Close())
		if n := d.Stats().Copies; n != 0 {
			t.Errorf("%d bytes of memory: %d copies are left", c.memory, n)
		}
	}
}
