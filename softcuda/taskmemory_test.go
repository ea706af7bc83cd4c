package softcuda

import (
	stdctx "context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
)

// TestTasksOfBusyStream: tasks that have ended go, though their streams are never without one that was queued before the one before it
// ended; and so does what waited in the library, of streams that the legacy stream's rules order.
func TestTasksOfBusyStream(t *testing.T) {
	d := New(Options{}, cuda.MaxHeldStreams(1))
	defer d.Close()
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := dev.NewStream(cuda.Blocking())
	if err != nil {
		t.Fatal(err)
	}
	const n = 200
	var tasks, functions atomic.Int32
	streams, open := [2]*cuda.Stream{s, dev.DefaultStream()}, make(chan struct{})
	close(open)
	over := (<-chan struct{})(open)
	for i := range n {
		former, next := open, make(chan struct{})
		open = next
		task, err := cuda.Go(streams[i%2], func(stdctx.Context) error { <-next; return nil })
		if err != nil {
			t.Fatal(err)
		}
		runtime.AddCleanup(task, func(int) { tasks.Add(1) }, 0)
		big := new([64]byte)
		runtime.AddCleanup(big, func(int) { functions.Add(1) }, 0)
		if err := cuda.HostLaunch(streams[i%2], func() { big[0]++ }); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			close(former) // now that there is another behind it
		}
		<-over
		over = task.Done()
	}
	for deadline := time.Now().Add(5 * time.Second); min(tasks.Load(), functions.Load()) < n-4 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		runtime.GC()
	}
	if tasks.Load() < n-4 || functions.Load() < n-4 {
		t.Errorf("%d tasks and %d functions of %d were let go of", tasks.Load(), functions.Load(), n)
	}
	close(open)
}
