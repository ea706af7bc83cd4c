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
