package cudatest

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
)

// borrowCases: streams that others made, and what is kept for them.
var borrowCases = []Case{
	{ID: "HL-22", Name: "a borrowed stream keeps its owner", Run: borrowKeepsOwner},
	{ID: "HL-22", Name: "a borrowed stream outlives its original", Run: borrowOutlives},
	{ID: "ST-03", Name: "functions in turn", Run: legacyFunctionsInTurn},
	{ID: "CY-07", Name: "dropped pinned memory stays", Run: pinnedDropped},
}

// lender has a stream that others made.
type lender struct {
	handle uintptr
	_      [64]byte
}

func (l *lender) CUDAStream() uintptr { return l.handle }

func borrowKeepsOwner(t *T) {
	s := t.Stream()
	var gone atomic.Bool
	b := func() *cuda.Stream {
		l := &lender{handle: s.CUDAStream()}
		runtime.AddCleanup(l, func(int) { gone.Store(true) }, 0)
		b, err := t.Device(0).StreamOf(l)
		t.OK(err)
		return b
	}()
	for range 5 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if gone.Load() {
		t.Error("the owner was collected while its stream was borrowed")
	}
	ran := false
	t.Host(b, func() { ran = true })
	t.Sync(b)
	if !ran {
		t.Error("the function did not run")
	}
	t.OK(b.Close())
	b = nil
	t.Eventually("the owner is let go", func() bool { runtime.GC(); return gone.Load() })
}

// borrowOutlives: the handle is destroyed only when nobody uses it any more, whoever closes first.
func borrowOutlives(t *T) {
	s, err := t.Device(0).NewStream()
	t.OK(err)
	b, err := t.Device(0).StreamOf(s)
	t.OK(err)
	again, err := t.Device(0).StreamOf(b)
	t.OK(err)
	t.OK(s.Close())
	t.OK(b.Close())
	t.Is(s.Sync(), cuda.ErrClosed)
	t.Is(b.Sync(), cuda.ErrClosed)
	_, err = t.Device(0).StreamOf(s)
	t.Is(err, cuda.ErrClosed)
	ran := false
	t.Host(again, func() { ran = true })
	t.Sync(again)
	if f, err := again.Flags(); f != cuda.StreamNonBlocking || err != nil || !ran {
		t.Errorf("flags %v, %v; the function ran: %v", f, err, ran)
	}
	t.OK(again.Close())
}

// legacyFunctionsInTurn: host functions of a blocking stream, one behind the other, have the legacy stream's between them.
func legacyFunctionsInTurn(t *T) {
	s, legacy := t.Stream(cuda.Blocking()), t.Device(0).DefaultStream()
	var o Order
	var want []int
	g := t.Gate(s)
	for i := range 20 {
		on := s
		if i%2 == 1 {
			on = legacy
		}
		t.Host(on, o.Add(i))
		want = append(want, i)
	}
	g.Open()
	t.Sync(legacy)
	t.Sync(s)
	o.Want(t, want...)
}

// pinnedDropped: slices of pinned memory may outlive the PinnedBuffer, and nothing tells the library when they are gone.
func pinnedDropped(t *T) {
	d := t.OpenDriver()
	b, err := t.Device(0).AllocPinned(1 << 16)
	t.OK(err)
	bytes := b.Bytes()
	b = nil
	for range 4 {
		runtime.GC()
		time.Sleep(2 * time.Millisecond)
		e, err := t.Device(0).NewEvent() // a call, which sees to what was dropped
		t.OK(err)
		t.OK(e.Close())
	}
	if n := d.Stats().PinnedBuffers; n != 1 {
		t.Fatalf("%d pinned buffers are open; the one whose bytes are in use was closed", n)
	}
	bytes[0] = 1
}
