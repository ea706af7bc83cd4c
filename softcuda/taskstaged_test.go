package softcuda_test

import (
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestTaskWaitSharedStaging: a copy that is staged through another stream's memory, since there is no other, is behind what that one's
// copies are behind.
func TestTaskWaitSharedStaging(t *testing.T) {
	f := new(softcuda.Faults)
	var other *cuda.Stream
	dev, s, end := waitingTask(t, f, func() error { return other.Sync() })
	other = s[1]
	b, err := dev.Alloc(256)
	noErr(t, err)
	p := make([]byte, 512)
	noErr(t, cuda.CopyToHost(s[0], p[:256], b)) // behind the task
	noErr(t, f.Add(softcuda.Fault{Call: "EventCreate", Times: -1, Result: cuda.ErrOutOfMemory}))
	noErr(t, cuda.CopyToHost(s[1], p[256:], b))
	f.Clear()
	is(t, end(), cuda.ErrDeadlock)
}
