package softcuda_test

import (
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
)

// TestGreenContextLost: CY-06, HL-17, what waits in a green context is told that the device is lost, though nobody calls anything there.
func TestGreenContextLost(t *testing.T) {
	f, _, dev := openFaulty(t, 0)
	g := must(dev.NewGreenContext(must(dev.SMResource())))
	s := must(g.Context().NewStream())
	b := must(g.Context().Alloc(1 << 20))
	gate := make(chan struct{})
	told := make(chan error, 2)
	noErr(t, cuda.HostLaunch(s, func() { <-gate }))
	noErr(t, cuda.CopyToHost(s, make([]byte, 1<<20), b, cuda.CopyDone(func(err error) { told <- err })))
	noErr(t, cuda.HostLaunch(s, func() { t.Error("ran") }, cuda.OnDone(func(err error) { told <- err })))
	noErr(t, f.LoseDevice(0, cuda.ErrECCUncorrectable))
	for range 2 {
		select {
		case err := <-told:
			is(t, err, cuda.ErrDeviceLost)
		case <-time.After(3 * time.Second):
			t.Error("not told")
		}
	}
	close(gate)
	s.Sync()
	noErr(t, g.Close())
}
