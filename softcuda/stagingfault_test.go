package softcuda

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
)

// faulty is a machine that refuses the n'th call of a kind, counted from arm on.
type faulty struct {
	*machine
	copies, memOps, records, waits atomic.Int32 // calls left until the one that is refused; below 0: none is
}

func (f *faulty) arm(copies, memOps, records, waits int32) {
	f.copies.Store(copies)
	f.memOps.Store(memOps)
	f.records.Store(records)
	f.waits.Store(waits)
}

func refuse(left *atomic.Int32) bool { return left.Load() >= 0 && left.Add(-1) < 0 }

func (f *faulty) MemcpyHtoDAsync(ctx driver.Context, dst driver.DevicePtr, src unsafe.Pointer, n uintptr, s driver.Stream) driver.Result {
	if refuse(&f.copies) {
		return driver.ErrorNotSupported
	}
	return f.machine.MemcpyHtoDAsync(ctx, dst, src, n, s)
}

func (f *faulty) MemcpyDtoHAsync(ctx driver.Context, dst unsafe.Pointer, src driver.DevicePtr, n uintptr, s driver.Stream) driver.Result {
	if refuse(&f.copies) {
		return driver.ErrorNotSupported
	}
	return f.machine.MemcpyDtoHAsync(ctx, dst, src, n, s)
}

func (f *faulty) StreamBatchMemOp(ctx driver.Context, s driver.Stream, ops []driver.MemOp, flags uint32) driver.Result {
	if refuse(&f.memOps) {
		return driver.ErrorNotSupported
	}
	return f.machine.StreamBatchMemOp(ctx, s, ops, flags)
}

func (f *faulty) EventRecord(ctx driver.Context, e driver.Event, s driver.Stream) driver.Result {
	if refuse(&f.records) {
		return driver.ErrorNotSupported
	}
	return f.machine.EventRecord(ctx, e, s)
}

func (f *faulty) StreamWaitEvent(ctx driver.Context, s driver.Stream, e driver.Event, flags uint32) driver.Result {
	if refuse(&f.waits) {
		return driver.ErrorNotSupported
	}
	return f.machine.StreamWaitEvent(ctx, s, e, flags)
}

// TestStagedRefusedInTheMiddle has the driver refuse any one of the calls that queue a copy: the copy's call says so, nobody else is
// told, the stream goes on, and later copies are right.
func TestStagedRefusedInTheMiddle(t *testing.T) {
	for _, slots := range []string{"1", "2"} {
		t.Run("slots="+slots, func(t *testing.T) {
			t.Setenv("HOSTLAUNCH_STAGING", "chunk=512K,least=256K,slots="+slots)
			refusedInTheMiddle(t)
		})
	}
}

func refusedInTheMiddle(t *testing.T) {
	const n = 3<<20 + 5
	f := &faulty{machine: newMachine(Options{})}
	f.arm(-1, -1, -1, -1)
	d, err := cuda.NewDriver(f)
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(err)
	defer d.Close()
	dev, err := d.Device(0)
	ok(err)
	s, err := dev.NewStream()
	ok(err)
	b, err := dev.Alloc(n)
	ok(err)
	src, dst := bytes.Repeat([]byte("abcdefg"), n/7+1)[:n], make([]byte, n)
	never := cuda.CopyDone(func(err error) { t.Errorf("told of a refused copy: %v", err) })
	good := func(what string) {
		t.Helper()
		clear(dst)
		f.arm(-1, -1, -1, -1)
		ok(cuda.CopyToDevice(s, b, src))
		ok(cuda.CopyToHost(s, dst, b))
		ok(s.Sync())
		if !bytes.Equal(src, dst) {
			t.Errorf("after %s: the bytes differ", what)
		}
		for deadline := time.Now().Add(5 * time.Second); d.Stats().Copies != 0; time.Sleep(100 * time.Microsecond) {
			if time.Now().After(deadline) {
				t.Fatalf("after %s: %d copies are in progress", what, d.Stats().Copies)
			}
		}
	}
	good("nothing")
	refused := 0
	for kind := range 3 {
		for at := range int32(8) { // of nine chunks
			left := [3]int32{-1, -1, -1}
			left[kind] = at
			for _, queue := range []func() error{
				func() error { return cuda.CopyToDevice(s, b, src, never) }, func() error { return cuda.CopyToHost(s, dst, b, never) },
			} {
				f.arm(left[0], left[1], left[2], -1)
				what := fmt.Sprintf("call %d of kind %d", at, kind)
				if at > 0 && kind == 2 {
					continue // a copy has one record
				}
				if err := queue(); !errors.Is(err, cuda.ErrNotSupported) {
					t.Fatalf("%s: %v", what, err)
				}
				refused++
				good(what)
			}
		}
	}
	t.Logf("%d refusals", refused)
}

// TestStagedThreads has more goroutines copy than there are processors, small pieces of chunks of several streams.
func TestStagedThreads(t *testing.T) {
	const n, streams = 2<<20 + 77, 4
	t.Setenv("HOSTLAUNCH_STAGING", "threads=6,chunk=128K,least=16K,part=8K,slots=3,small=0")
	d := New(Options{})
	defer d.Close()
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for i := range streams {
		callers.Go(func() {
			s, err := dev.NewStream()
			b, err2 := dev.Alloc(n)
			src, dst := bytes.Repeat([]byte{byte(i), 1, 2, 3, byte(i + 100), 5, 6}, n/7+1)[:n], make([]byte, n)
			err = errors.Join(err, err2)
			for range 4 {
				clear(dst)
				if err = errors.Join(err, cuda.CopyToDevice(s, b, src), cuda.CopyToHost(s, dst, b), s.Sync()); err != nil || !bytes.Equal(src, dst) {
					t.Errorf("stream %d: equal %v, %v", i, bytes.Equal(src, dst), err)
					return
				}
			}
		})
	}
	callers.Wait()
}
