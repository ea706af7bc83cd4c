package cuda

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/native"
)

// TestLeaseWaitInTask: TK-03, a task that waits for slots while other calls queue on all there are is refused also if those calls begin to
// wait for their turn, which may be behind the task, only afterwards.
func TestLeaseWaitInTask(t *testing.T) {
	impl := &spinless{}
	s := refusingStream(t, &impl.refusing)
	s.ctx.drv.drv = impl
	st := newStaging(s.ctx, newStagingTune(), 64<<10)
	defer st.close()
	if r := st.open(); r != driver.Success {
		t.Fatal(r)
	}
	busy := &lease{stream: 77, queues: true, pair: st.pairs[0], size: 64 << 10}
	st.pairs = nil // there is no other
	busy.pair.begin()
	st.leases = []*lease{busy}
	b, task, answer := &s.ctx.drv.tasks, &Task{drv: s.ctx.drv, stream: s}, make(chan driver.Result, 1)
	go callTask(context.Background(), func(context.Context) error {
		b.mu.Lock()
		b.run(task, native.Goroutine())
		b.mu.Unlock()
		defer func() {
			b.mu.Lock()
			b.leave(task)
			b.mu.Unlock()
		}()
		_, r, turns := st.lease(s, 1000)
		if !turns {
			t.Error("it is not said that the other call waits for its turn")
		} else if err := st.noRoom("CopyToHost", r, turns); !errors.Is(err, ErrOutOfMemory) || !errors.Is(err, ErrDeadlock) || strings.Contains(err.Error(), "blocks") {
			t.Errorf("the error is %v", err)
		}
		answer <- r
		return nil
	})
	time.Sleep(20 * time.Millisecond) // the task waits: the other call is about to be through
	st.setWaits(busy, true)           // but it is not
	select {
	case r := <-answer:
		if r != driver.ErrorOutOfMemory {
			t.Errorf("answer %v", r)
		}
	case <-time.After(2 * time.Second):
		t.Error("the task waits on, and the other call may wait for the task")
		st.mem.wake()
		<-answer
	}
	busy.waits = false
	st.queued(busy, false)
}
