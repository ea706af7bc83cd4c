package softcuda

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// A stamp is stored when the stream has come to it, be the stream idle or busy.
func TestStreamStamp(t *testing.T) {
	for name, flags := range map[string]uint32{"blocking": 0, "non-blocking": driver.StreamNonBlocking} {
		t.Run(name, func(t *testing.T) {
			m, c, s, gate := stampRig(t, flags)
			since := time.Now()
			stamps := [5]atomic.Int64{}
			at := func(i int) {
				t.Helper()
				stamps[i].Store(-1)
				if r := m.StreamStamp(c, s, since, &stamps[i]); r != driver.Success {
					t.Fatal(r)
				}
			}
			at(0)
			if stamps[0].Load() < 0 {
				t.Error("an idle stream has not stamped")
			}
			m.LaunchHostFunc(c, s, 1)
			at(1)
			at(2)
			at(3) // one more than an operation has room for
			if stamps[1].Load() != -1 || stamps[2].Load() != -1 || stamps[3].Load() != -1 {
				t.Error("stamped though the stream is held")
			}
			gate <- struct{}{}
			m.StreamSynchronize(c, s)
			at(4)
			for i := range 4 {
				if stamps[i].Load() < 0 || stamps[i].Load() > stamps[i+1].Load() {
					t.Errorf("stamps %d and %d: %d, %d", i, i+1, stamps[i].Load(), stamps[i+1].Load())
				}
			}
		})
	}
}

// A stamp on a blocking stream is behind the legacy stream's work, though its own stream is idle, and the other way round.
func TestStreamStampLegacy(t *testing.T) {
	m, c, s, gate := stampRig(t, 0)
	for _, order := range [][2]driver.Stream{{driver.StreamLegacy, s}, {s, driver.StreamLegacy}} {
		var at, again atomic.Int64
		at.Store(-1)
		again.Store(-1)
		m.StreamStamp(c, order[1], time.Now(), &again) // idle: no place for another one
		again.Store(-1)
		m.LaunchHostFunc(c, order[0], 1)
		m.StreamStamp(c, order[1], time.Now(), &at)
		m.StreamStamp(c, order[1], time.Now(), &again)
		if at.Load() != -1 || again.Load() != -1 {
			t.Error("stamped before the other stream's work was done")
		}
		gate <- struct{}{}
		m.StreamSynchronize(c, order[1])
		if at.Load() < 0 || again.Load() < 0 {
			t.Error("not stamped")
		}
	}
}

// While a stream captures it is not stamped, and its capture stays as it is.
func TestStreamStampCapturing(t *testing.T) {
	m, c, s, _ := stampRig(t, 0)
	if r := m.StreamBeginCapture(c, s, driver.CaptureGlobal); r != driver.Success {
		t.Fatal(r)
	}
	var at atomic.Int64
	for _, on := range []driver.Stream{s, driver.StreamLegacy} {
		if r := m.StreamStamp(c, on, time.Now(), &at); r != driver.ErrorStreamCaptureUnsupported {
			t.Errorf("stream %d: %v", on, r)
		}
	}
	g, r := m.StreamEndCapture(c, s)
	if r != driver.Success {
		t.Fatal(r)
	}
	if nodes, _ := m.GraphGetNodes(c, g); len(nodes) != 0 {
		t.Errorf("%d nodes", len(nodes))
	}
}

// stampRig is a machine with a stream. Its host functions run until gate is sent to.
func stampRig(t *testing.T, flags uint32) (m *machine, c driver.Context, s driver.Stream, gate chan struct{}) {
	t.Helper()
	m, gate = newMachine(Options{}), make(chan struct{})
	m.Attach(driver.Upcalls{HostFunc: func(uint64) { <-gate }})
	c, _ = m.DevicePrimaryCtxRetain(0)
	s, r := m.StreamCreateWithPriority(c, flags, 0)
	if r != driver.Success {
		t.Fatal(r)
	}
	return m, c, s, gate
}
