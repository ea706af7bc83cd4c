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

// TestTaskWaitOwnStaging: a copy that is staged through its own stream's memory, which another stream has shared meanwhile, is behind what that
// one's copy is behind.
func TestTaskWaitOwnStaging(t *testing.T) {
	f := new(softcuda.Faults)
	var other *cuda.Stream
	dev, s, end := waitingTask(t, f, func() error { return other.Sync() })
	other = s[1]
	b, err := dev.Alloc(256)
	noErr(t, err)
	p := make([]byte, 768)
	gate := make(chan struct{})
	noErr(t, cuda.HostLaunch(s[1], func() { <-gate }))
	noErr(t, cuda.CopyToHost(s[1], p[:256], b))
	noErr(t, f.Add(softcuda.Fault{Call: "EventCreate", Times: -1, Result: cuda.ErrOutOfMemory}))
	noErr(t, cuda.CopyToHost(s[0], p[256:512], b)) // behind the task, through s[1]'s
	f.Clear()
	noErr(t, cuda.CopyToHost(s[1], p[512:], b))
	close(gate)
	is(t, end(), cuda.ErrDeadlock)
}
