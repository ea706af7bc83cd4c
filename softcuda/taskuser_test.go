package softcuda_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestDeadlockForRoom: TK-03, a task that waits for one which has no room is told who waits for whom, and that more room is a way out; it
// is not where it would not help.
func TestDeadlockForRoom(t *testing.T) {
	d := softcuda.New(softcuda.Options{}, cuda.MaxHeldStreams(1))
	defer d.Close()
	dev, err := d.Device(0)
	noErr(t, err)
	s := newStreams(t, dev, 2)
	var own error
	outer, err := cuda.Go(s[0], func(ctx context.Context) error {
		own = s[0].Sync()
		inner, err := cuda.Go(s[1], func(context.Context) error { return nil }, cuda.Name("inner"))
		if err != nil {
			return err
		}
		return inner.Wait(ctx)
	}, cuda.Name("outer"))
	noErr(t, err)
	room := outer.Wait(t.Context())
	for _, err := range []error{own, room} {
		is(t, err, cuda.ErrDeadlock)
	}
	var ring *cuda.DeadlockError
	if !errors.As(room, &ring) || len(ring.Waits) != 2 || !strings.Contains(ring.Waits[0].Task, "outer") || !strings.Contains(ring.Waits[0].For, "inner") ||
		!strings.Contains(ring.Waits[1].Task, "inner") || !strings.Contains(ring.Waits[1].For, "outer") {
		t.Errorf("the waits are %+v", ring)
	}
	const wayOut, limit = "or raise MaxHeldStreams", "(MaxHeldStreams is 1)"
	if text := room.Error(); !strings.Contains(text, wayOut) || !strings.Contains(text, limit) {
		t.Errorf("no way out in %q", text)
	}
	if text := own.Error(); strings.Contains(text, wayOut) {
		t.Errorf("the wrong way out in %q", text)
	}
}

// TestTaskQueuesOnItsStream: TK-03, a task may queue everything on its own stream that returns at once, copies of small sources too, and it
// is done when the task has ended, in its order.
func TestTaskQueuesOnItsStream(t *testing.T) {
	d := softcuda.New(softcuda.Options{})
	defer d.Close()
	s, b := streamAndBuffer(t, d, 300)
	src, dst, copied, ran := []byte(strings.Repeat("abc", 100)), make([]byte, 300), make([]byte, 300), false
	part, err := b.Slice(0, 200)
	noErr(t, err)
	e, err := b.Context().NewEvent()
	noErr(t, err)
	k, err := cuda.Go(s, func(context.Context) error {
		return errors.Join(
			cuda.CopyToDevice(s, b, src),
			s.Record(e),
			s.WaitEvent(e),
			s.Memset(part, 'x'),
			cuda.CopyRowsToDevice(s, part, src[:100], cuda.Rows{Width: 100, Height: 1}),
			cuda.CopyToHost(s, dst, b),
			cuda.HostCopy(s, cuda.HostSlice(copied), cuda.HostSlice(dst)),
			cuda.HostLaunch(s, func() { ran = true }),
		)
	})
	noErr(t, err)
	noErr(t, k.Wait(t.Context()))
	noErr(t, s.Sync())
	if want := string(src[:100]) + strings.Repeat("x", 100) + string(src[200:]); string(copied) != want || !ran {
		t.Errorf("%q, host function %v", copied, ran)
	}
}

// TestTaskSyncsIdleStream: TK-03, a task may Sync a blocking stream on which nothing is queued, though the legacy stream's work is behind the
// task; once something is queued there it may not.
func TestTaskSyncsIdleStream(t *testing.T) {
	d := softcuda.New(softcuda.Options{})
	defer d.Close()
	dev, err := d.Device(0)
	noErr(t, err)
	b, err := dev.Alloc(8)
	noErr(t, err)
	held, err := dev.NewStream(cuda.Blocking())
	noErr(t, err)
	other, err := dev.NewStream(cuda.Blocking())
	noErr(t, err)
	goes := make(chan struct{})
	var idle, busy error
	k, err := cuda.Go(held, func(context.Context) error {
		<-goes
		idle = other.Sync()
		err := other.Memset(b, 2)
		busy = other.Sync()
		return err
	})
	noErr(t, err)
	noErr(t, dev.DefaultStream().Memset(b, 1))
	close(goes)
	noErr(t, k.Wait(t.Context()))
	noErr(t, idle)
	is(t, busy, cuda.ErrDeadlock)
}
