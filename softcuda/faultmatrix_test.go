package softcuda_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

// matrix has each driver call under each call of the library refused in its turn, again and again on one Driver, and wants nothing to be
// lost by that: not a slot, a cell, an event, or the room to hold a stream.
type matrix struct {
	*testing.T
	f        *softcuda.Faults
	drv      *cuda.Driver
	dev, far *cuda.Device
	s, held  *cuda.Stream
	b        *cuda.Buffer // of dev
	there    *cuda.Buffer // of far
	pool     *cuda.PinnedPool
	pinned   *cuda.PinnedBuffer
	ev       *cuda.Event
	x        *cuda.GraphExec

	queued, told atomic.Int64
}

const matrixBytes = 100_000

func (m *matrix) done() cuda.HostOption { return cuda.OnDone(func(error) { m.told.Add(1) }) }

func (m *matrix) copied(opts ...cuda.CopyOption) []cuda.CopyOption {
	return append(opts, cuda.CopyDone(func(error) { m.told.Add(1) }))
}

// once notes that something was queued whose end must be told, if err is nil.
func (m *matrix) once(err error) error {
	if err == nil {
		m.queued.Add(1)
	}
	return err
}

// calls are the calls, by name.
func (m *matrix) calls() map[string]func() error {
	host := make([]byte, matrixBytes)
	rows := cuda.Rows{Width: 100, Height: 500, DstPitch: 200, SrcPitch: 200}
	spin := cuda.SyncMode(cuda.Spin)
	return map[string]func() error{
		"Go":            func() error { return m.once(ask(cuda.Go(m.s, short, m.done()))) },
		"Go spin":       func() error { return m.once(ask(cuda.Go(m.s, short, spin, m.done()))) },
		"Go stop":       func() error { return m.once(ask(cuda.Go(m.s, short, cuda.StopOnError(), m.done()))) },
		"HostLaunch":    func() error { return m.once(cuda.HostLaunch(m.s, func() {}, m.done())) },
		"spin":          func() error { return m.once(cuda.HostLaunch(m.s, func() {}, spin, m.done())) },
		"legacy":        func() error { return m.once(cuda.HostLaunch(m.dev.DefaultStream(), func() {}, m.done())) },
		"callback":      func() error { return m.once(cuda.AddCallback(m.s, func(error) {}, m.done())) },
		"HostCopy":      func() error { return m.once(cuda.HostCopy(m.s, m.pinned, cuda.HostSlice(host), m.done())) },
		"to host":       func() error { return m.once(cuda.CopyToHost(m.s, host, m.b, m.copied()...)) },
		"to device":     func() error { return m.once(cuda.CopyToDevice(m.s, m.b, host, m.copied()...)) },
		"pool, up":      func() error { return m.once(cuda.CopyToDevice(m.s, m.b, host, m.copied(cuda.Staging(m.pool))...)) },
		"pool, down":    func() error { return m.once(cuda.CopyToHost(m.s, host, m.b, m.copied(cuda.Staging(m.pool))...)) },
		"rows to host":  func() error { return cuda.CopyRowsToHost(m.s, host, m.b, rows) },
		"rows to there": func() error { return cuda.CopyRowsToDevice(m.s, m.b, host, rows) },
		"copy":          func() error { return m.s.CopyBuffer(m.there, m.b) },
		"copy back":     func() error { return m.s.CopyBuffer(m.b, m.there) },
		"Pin": func() error {
			p, err := cuda.Pin(m.dev.Context, make([]byte, matrixBytes))
			return errors.Join(err, p.Close())
		},
		"AllocPinned": func() error {
			p, err := m.dev.AllocPinned(64)
			return errors.Join(err, p.Close())
		},
		"NewPinnedPool": func() error {
			p, err := m.dev.NewPinnedPool(8192)
			return errors.Join(err, p.Close())
		},
		"ReleaseAfter": func() error {
			block, err := m.pool.Get(context.Background(), 64)
			if err == nil {
				err = block.ReleaseAfter(m.s)
				block.Release()
			}
			return err
		},
		"Record": func() error { return errors.Join(m.s.Record(m.ev), m.held.WaitEvent(m.ev)) },
		"wait":   func() error { return errors.Join(m.s.WaitStream(m.held), m.held.WaitStream(m.s)) },
		"Launch": func() error { return m.once(m.x.Launch(m.s)) },
		"Task": func() error {
			g, err := cuda.Capture(m.s, cuda.CaptureRelaxed, func(b *cuda.GraphBuilder) error { return b.Task(short) })
			if err != nil {
				return err
			}
			return g.Close()
		},
		"NewStream": func() error {
			s, err := m.dev.NewStream()
			return errors.Join(err, s.Close())
		},
	}
}

func openMatrix(t *testing.T, spinning bool) *matrix {
	m := &matrix{T: t, f: new(softcuda.Faults)}
	o := softcuda.Options{Faults: m.f, Kernels: testkernels.Twins(), Devices: 2, Memory: 64 << 20}
	with := []cuda.Option{cuda.MaxHeldStreams(1), cuda.Logger(slog.New(slog.NewTextHandler(io.Discard, nil)))}
	m.drv = softcuda.New(o, with...)
	if spinning {
		m.drv = must(softcuda.NewSpinning(o, with...))
	}
	m.dev, m.far = must(m.drv.Device(0)), must(m.drv.Device(1))
	m.s, m.held = must(m.dev.NewStream()), must(m.dev.NewStream())
	m.b, m.there = must(m.dev.Alloc(matrixBytes)), must(m.far.Alloc(matrixBytes))
	m.pool, m.pinned = must(m.dev.NewPinnedPool(16<<10)), must(m.dev.AllocPinned(matrixBytes))
	m.ev = must(m.dev.NewEvent())
	g := must(cuda.Capture(m.s, cuda.CaptureRelaxed, func(b *cuda.GraphBuilder) error { return b.Task(short, m.done()) }))
	m.x = must(g.Instantiate())
	return m
}

// run makes a call, behind a task that waits for room if inLine, and returns how it went. fault may be none.
func (m *matrix) run(call func() error, inLine bool, fault softcuda.Fault) error {
	gate := make(chan struct{})
	if inLine {
		must(cuda.Go(m.held, func(context.Context) error { <-gate; return nil }))
		must(cuda.Go(m.s, short))
	}
	if fault.Call != "" {
		noErr(m, m.f.Add(fault))
	}
	result := make(chan error, 1)
	go func() { result <- call() }()
	if inLine {
		time.AfterFunc(500*time.Microsecond, func() { close(gate) })
	}
	select {
	case err := <-result:
		for range 2 { // the fault may strike the first
			for _, s := range []*cuda.Stream{m.s, m.held, m.dev.DefaultStream()} {
				s.Wait(m.Context())
			}
			m.f.Clear()
		}
		return err
	case <-time.After(10 * time.Second):
		m.Fatalf("the call hangs\n%s", allGoroutines())
		return nil
	}
}

// works wants everything to work, and nothing to be left.
func (m *matrix) works(what string, before cuda.Stats) {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), 10*time.Second)
	defer cancel()
	from, to := bytes.Repeat([]byte{byte(m.told.Load())}, matrixBytes), make([]byte, matrixBytes)
	var errs []error
	for _, pool := range []*cuda.PinnedPool{nil, m.pool} {
		var opts []cuda.CopyOption
		if pool != nil {
			opts = append(opts, cuda.Staging(pool))
		}
		errs = append(errs, cuda.CopyToDevice(m.s, m.b, from, opts...), cuda.CopyToHost(m.s, to, m.b, opts...))
	}
	for _, s := range []*cuda.Stream{m.s, m.held, m.dev.DefaultStream()} {
		task, err := cuda.Go(s, func(context.Context) error { return nil })
		errs = append(errs, err)
		if err == nil {
			errs = append(errs, task.Wait(ctx))
		}
		errs = append(errs, s.Wait(ctx))
	}
	if !bytes.Equal(from, to) {
		errs = append(errs, errors.New("bytes are wrong"))
	}
	block, err := m.pool.Get(ctx, 16<<10)
	errs = append(errs, err)
	block.Release()
	if err := errors.Join(errs...); err != nil {
		m.Fatalf("after %s: %v", what, err)
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(50 * time.Microsecond) {
		now := m.drv.Stats()
		if now == before && m.told.Load() == m.queued.Load() {
			return
		}
		if time.Now().After(deadline) {
			m.Fatalf("after %s: left: %+v, before: %+v; %d queued, %d told", what, now, before, m.queued.Load(), m.told.Load())
		}
	}
}

// TestFaultMatrix has MATRIX times each fault, if the environment says so.
func TestFaultMatrix(t *testing.T) {
	for _, spinning := range []bool{false, true} {
		for name := range new(matrix).calls() {
			for _, inLine := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, in line %v, spinning %v", name, inLine, spinning), func(t *testing.T) { faultsOfCall(t, name, inLine, spinning) })
			}
		}
	}
}

func faultsOfCall(t *testing.T, name string, inLine, spinning bool) {
	before := runtime.NumGoroutine()
	m := openMatrix(t, spinning)
	call := m.calls()[name]
	for range 2 { // what is made once is made
		noErr(m, m.run(call, inLine, softcuda.Fault{}))
		m.f.Clear()
		time.Sleep(time.Millisecond)
	}
	start := m.drv.Stats()
	for ; start.Tasks+start.Waiting+start.Running > 0 || start.Copies > 0; start = m.drv.Stats() {
		time.Sleep(100 * time.Microsecond)
	}
	m.works("nothing", start)
	earlier := m.f.Counts()
	noErr(m, m.run(call, inLine, softcuda.Fault{}))
	counts := m.f.Counts()
	forSeeds(t, "MATRIX", 1, 1, func(uint64) {
		for of, n := range counts {
			if strings.Contains(of, "Destroy") || of == "MemHostUnregister" || of == "MemFreeHost" { // what it refuses to free is left
				continue
			}
			for k := range min(n-earlier[of], 6) {
				fault := softcuda.Fault{Call: of, After: k, Result: cuda.ErrOperatingSystem}
				err := m.run(call, inLine, fault)
				what := fmt.Sprintf("call %d of %s", k+1, of)
				if err != nil && !errors.Is(err, cuda.ErrOperatingSystem) {
					m.Errorf("%s: %v", what, err)
				}
				if err != nil && !strings.Contains(err.Error(), ": ") {
					m.Errorf("%s: %v names nothing", what, err)
				}
				m.works(what, start)
			}
		}
	})
	noErr(m, m.drv.Close())
	if st := m.drv.Stats(); st != (cuda.Stats{}) {
		m.Errorf("left: %+v", st)
	}
	goroutinesGone(m, before)
}
