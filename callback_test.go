package cuda

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// silent is a driver that takes callbacks and never runs them.
type silent struct {
	refusing
	added []uint64
}

func (s *silent) StreamAddCallback(_ driver.Context, _ driver.Stream, data uint64, _ uint32) driver.Result {
	s.added = append(s.added, data)
	return s.result
}

// CB-05: what the driver leaves is run here, a second after the failure, in order and once, whatever panics or leaves.
func TestCallbacksLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		impl := &silent{}
		d, err := NewDriver(impl)
		if err != nil {
			t.Fatal(err)
		}
		dev, err := d.Device(0)
		if err != nil {
			t.Fatal(err)
		}
		s := dev.DefaultStream()
		var mu sync.Mutex
		var log []int
		ran := func() []int {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(log)
		}
		ends := make(chan error, 20)
		for i := range 10 {
			err := AddCallback(s, func(err error) {
				if !errors.Is(err, ErrIllegalAddress) || !errors.Is(err, ErrDeviceLost) {
					t.Errorf("told %v", err)
				}
				mu.Lock()
				log = append(log, i)
				mu.Unlock()
				if i == 3 {
					panic(i)
				}
			}, OnDone(func(err error) { ends <- err }))
			if err != nil {
				t.Fatal(err)
			}
		}
		if n := impl.up.Pending(7); n != 10 {
			t.Errorf("the driver is told of %d that wait, want 10", n)
		}
		impl.up.Callback(impl.added[4], driver.ErrorIllegalAddress) // the driver does run one, and so the failure is known
		time.Sleep(callbackGrace / 2)
		if !slices.Equal(ran(), []int{4}) {
			t.Errorf("ran %v before the driver had its second", ran())
		}
		time.Sleep(callbackGrace)
		if !slices.Equal(ran(), []int{4, 0, 1, 2, 3, 5, 6, 7, 8, 9}) {
			t.Errorf("ran %v", ran())
		}
		panics := 0
		for range 10 {
			var p *PanicError
			if errors.As(<-ends, &p) {
				panics++
			}
		}
		impl.up.Callback(impl.added[5], driver.ErrorIllegalAddress) // too late
		if panics != 1 || len(ran()) != 10 || len(ends) != 0 {
			t.Errorf("%d panics reported, %d ran, %d ends too many", panics, len(ran()), len(ends))
		}
		if err := AddCallback(s, func(error) { t.Error("ran") }); !errors.Is(err, ErrDeviceLost) {
			t.Errorf("AddCallback on a lost device: %v", err)
		}
		d.Close()
	})
}

// A refused callback is released and never runs.
func TestCallbackRefused(t *testing.T) {
	impl := &silent{refusing: refusing{result: driver.ErrorStreamCaptureUnsupported}}
	d, _ := NewDriver(impl)
	defer d.Close()
	dev, _ := d.Device(0)
	err := AddCallback(dev.DefaultStream(), func(error) { t.Error("ran") }, OnDone(func(error) { t.Error("OnDone") }))
	if !errors.Is(err, ErrCaptureUnsupported) {
		t.Errorf("error %v", err)
	}
	if st := d.Stats(); st.Waiting != 0 {
		t.Errorf("%d wait", st.Waiting)
	}
}
