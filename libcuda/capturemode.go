//go:build linux && (amd64 || arm64)

package libcuda

import (
	"runtime"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/ffi"
)

const captureModeRelaxed = 2 // CU_STREAM_CAPTURE_MODE_RELAXED

// relaxed runs fn with its thread in Relaxed capture mode, in which it cannot invalidate a capture that some other thread
// has begun, and then gives the thread its mode back. A thread is not given up for it, as it would be if the goroutine ended
// locked: opening and closing must not consume threads (CONTRACT LI-03).
func (nv *nvidia) relaxed(fn func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	former, r := nv.exchangeCaptureMode(captureModeRelaxed)
	if r == driver.Success {
		defer nv.exchangeCaptureMode(former)
	}
	fn()
}

// exchangeCaptureMode sets the calling thread's capture mode and returns the former one.
func (nv *nvidia) exchangeCaptureMode(mode uint64) (uint64, driver.Result) {
	c := ffi.NewCall()
	defer c.Free()
	c.Out[0], c.Args[0] = mode, c.Ref(0)
	r := nv.call(c, 0, fnThreadExchangeStreamCaptureMode, 1)
	return c.Out[0], r
}
