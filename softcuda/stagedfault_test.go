package softcuda_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestStagedWithoutEvent: a staged copy for which the driver has no event is refused with the driver's reason, once, and leaves its pool
// as it was.
func TestStagedWithoutEvent(t *testing.T) {
	f, _, dev := openFaulty(t, 0)
	pool, err := dev.NewPinnedPool(1 << 20)
	noErr(t, err)
	s := newStreams(t, dev, 1)[0]
	b, err := dev.Alloc(100_000)
	noErr(t, err)
	data := make([]byte, 100_000)
	noErr(t, f.Add(softcuda.Fault{Call: "cuEventCreate", Times: -1, Result: cuda.ErrOperatingSystem}))
	refused := make(chan error, 1)
	go func() { refused <- cuda.CopyToDevice(s, b, data, cuda.Staging(pool)) }()
	select {
	case err := <-refused:
		if !errors.Is(err, cuda.ErrOperatingSystem) {
			t.Errorf("refused with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the call does not return")
	}
	f.Clear()
	noErr(t, cuda.CopyToDevice(s, b, data, cuda.Staging(pool)))
	noErr(t, s.Sync())
}
