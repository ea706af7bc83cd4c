package softcuda

import (
	stdctx "context"
	"errors"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
)

// handles are what of a machine a library may have for its own use.
type handles struct {
	streams, events int
	pinned          int64
}

func (m *machine) countHandles() handles {
	m.mu.Lock()
	defer m.unlock()
	return handles{len(m.streams), len(m.events), m.devices[0].mem.usedPinned}
}

// useContext has the library make what it may need for its own use in a context: for copies, tasks, waits and helpers.
func useContext(t *testing.T, dev *cuda.Device, c *cuda.Context) {
	t.Helper()
	s, err := c.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	b, err := dev.Alloc(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	task, err := cuda.Go(s, func(stdctx.Context) error {
		own, err := c.NewStream()
		return errors.Join(err, own.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
	copied := make(chan error, 1)
	data := make([]byte, 1<<20)
	err = errors.Join(s.Wait(stdctx.Background()), task.Err(), cuda.HostLaunch(s, func() {}, cuda.SyncMode(cuda.Spin)),
		cuda.CopyToDevice(s, b, data), cuda.CopyToHost(s, data, b, cuda.CopyDone(func(err error) { copied <- err })), s.Record(e), e.Close(), s.Close())
	if err != nil {
		t.Fatal(err)
	}
	if err := <-copied; err != nil {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// whileAllocating is a machine that does something else first.
type whileAllocating struct {
	*machine
	do func()
}

func (w *whileAllocating) MemAlloc(ctx driver.Context, n uintptr) (driver.DevicePtr, driver.Result) {
	w.do()
	return w.machine.MemAlloc(ctx, n)
}

// TestGreenClosedUnderCall: ST-09, a green context that is closed while a call in its Context is in progress stays until that is over, and
// until what the call has made is closed.
func TestGreenClosedUnderCall(t *testing.T) {
	w := &whileAllocating{machine: newMachine(Options{}), do: func() {}}
	d, err := cuda.NewDriver(w)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	all, err := dev.SMResource()
	if err != nil {
		t.Fatal(err)
	}
	g, err := dev.NewGreenContext(all)
	if err != nil {
		t.Fatal(err)
	}
	w.do = func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	b, err := g.Context().Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	if n := d.Stats().GreenContexts; n != 1 {
		t.Errorf("%d green contexts, with memory in one", n)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if n := d.Stats().GreenContexts; n != 0 {
		t.Errorf("%d green contexts are left", n)
	}
}

// TestGreenGivesBack: ST-09, nothing that the library had in a green context is left when that is closed, its latest work under way or
// not.
func TestGreenGivesBack(t *testing.T) {
	m := newMachine(Options{})
	for _, open := range []driver.Driver{m, spinning{m}} {
		d, err := cuda.NewDriver(open)
		if err != nil {
			t.Fatal(err)
		}
		dev, err := d.Device(0)
		if err != nil {
			t.Fatal(err)
		}
		useContext(t, dev, dev.Context) // which keeps what it has to the end
		before := m.countHandles()
		for range 3 {
			all, err := dev.SMResource()
			if err != nil {
				t.Fatal(err)
			}
			g, err := dev.NewGreenContext(all)
			if err != nil {
				t.Fatal(err)
			}
			useContext(t, dev, g.Context())
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
		after := m.countHandles()
		for deadline := time.Now().Add(3 * time.Second); after != before && time.Now().Before(deadline); after = m.countHandles() {
			time.Sleep(time.Millisecond)
		}
		if after != before {
			t.Errorf("%+v when the green contexts are closed, %+v before they were made", after, before)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if now := m.countHandles(); now.pinned != 0 {
			t.Errorf("%+v when the driver is closed", now)
		}
	}
}
