package cuda

import (
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// slow is a driver whose pinned memory takes a while.
type slow struct {
	spinless
	asked, give chan struct{}
}

func (d *slow) EventCreate(driver.Context, uint32) (driver.Event, driver.Result) {
	return 1, driver.Success
}

func (d *slow) EventDestroy(driver.Context, driver.Event) driver.Result { return driver.Success }

func (d *slow) MemHostAlloc(c driver.Context, n uintptr, flags uint32) (unsafe.Pointer, driver.Result) {
	if n != pairsPerStaging*wordPairSize {
		d.asked <- struct{}{}
		<-d.give
	}
	return d.spinless.MemHostAlloc(c, n, flags)
}

// TestLeaseInTheMaking: CY-05, who finds no memory since another copy has just taken it, and has no lease yet, takes its turn behind
// that copy. It is no reason to refuse.
func TestLeaseInTheMaking(t *testing.T) {
	impl := &slow{asked: make(chan struct{}), give: make(chan struct{})}
	s := refusingStream(t, &impl.refusing)
	s.ctx.drv.drv = impl
	st := newStaging(s.ctx, newStagingTune(), 64<<10)
	defer st.close()
	type outcome struct {
		l   *lease
		err driver.Result
	}
	lease := func() <-chan outcome {
		ch := make(chan outcome, 1)
		go func() {
			l, r, _ := st.lease(s, 100<<10)
			ch <- outcome{l, r}
		}()
		return ch
	}
	first := lease()
	<-impl.asked
	second := lease()
	select {
	case o := <-second:
		t.Fatalf("the second copy was answered while the first one takes its memory: %v", o.err)
	case <-time.After(20 * time.Millisecond):
	}
	close(impl.give)
	one := <-first
	if one.l == nil {
		t.Fatal(one.err)
	}
	st.queued(one.l, false) // the first copy is queued, and done
	two := <-second
	if two.l == nil {
		t.Fatal(two.err)
	}
	st.queued(two.l, false)
}

// TestCloseBehindEndingTask: ST-13, who has waited for a task may close its context at once, while the task lets go of it still. Another
// call that is in progress is refused as ever.
func TestCloseBehindEndingTask(t *testing.T) {
	d, err := NewDriver(&noting{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	c, err := dev.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	c.uses.Add(1)
	if err := c.Close(); !errors.Is(err, ErrIllegalState) {
		t.Errorf("a call in progress: %v", err)
	}
	c.ending.Add(1)
	time.AfterFunc(10*time.Millisecond, func() {
		c.uses.Add(-1)
		c.ending.Add(-1)
	})
	if err := c.Close(); err != nil {
		t.Errorf("a task that ends: %v", err)
	}
}

// TestSlotSizes: the slots of a lease leave little of the segments that they lie in unused.
func TestSlotSizes(t *testing.T) {
	tune := newStagingTune()
	for n := uintptr(1 << 20); n <= 4<<30; n += 1 << 20 {
		size := tune.slotFor(n)
		if size < stagingSegment && stagingSegment%size > stagingSegment/4 {
			t.Errorf("a copy of %d MiB has slots of %d bytes", n>>20, size)
		}
		if size > tune.chunk || size < min(tune.least/2, n) {
			t.Errorf("a copy of %d MiB: slots of %d bytes", n>>20, size)
		}
	}
}
