package cudatest

import (
	"context"
	"errors"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
)

// T is a case at work. What its helpers open is closed when the case ends.
type T struct {
	*testing.T
	*board // nil in a Child, until OpenDriver
	cfg    Config
}

// OpenDriver opens a driver for this case alone, and makes it the case's driver.
func (t *T) OpenDriver(opts ...cuda.Option) *cuda.Driver {
	t.Helper()
	t.board = newBoard(t.T, t.cfg, opts...)
	return t.Driver
}

// SpinDriver has the case use a driver on which mode Spin is the library's, if there is one.
func (t *T) SpinDriver(opts ...cuda.Option) {
	t.Helper()
	cfg := t.cfg
	if cfg.OpenSpin != nil {
		cfg.Open = cfg.OpenSpin
	}
	t.board = newBoard(t.T, cfg, opts...)
}

// Device is device i.
func (t *T) Device(i int) *cuda.Device {
	t.Helper()
	dev, err := t.Driver.Device(i)
	t.OK(err)
	return dev
}

// Stream makes a stream on device 0.
func (t *T) Stream(opts ...cuda.StreamOption) *cuda.Stream {
	t.Helper()
	return t.StreamOn(t.Device(0), opts...)
}

// StreamOn makes a stream.
func (t *T) StreamOn(dev *cuda.Device, opts ...cuda.StreamOption) *cuda.Stream {
	t.Helper()
	s, err := dev.NewStream(opts...)
	t.OK(err)
	t.Cleanup(func() { s.Sync(); s.Close() })
	return s
}

// Event makes an event on device 0.
func (t *T) Event(opts ...cuda.EventOption) *cuda.Event {
	t.Helper()
	e, err := t.Device(0).NewEvent(opts...)
	t.OK(err)
	t.Cleanup(func() { e.Close() })
	return e
}

// Buffer allocates on device 0.
func (t *T) Buffer(n int) *cuda.Buffer {
	t.Helper()
	b, err := t.Device(0).Alloc(n)
	t.OK(err)
	t.Cleanup(func() { b.Close() })
	return b
}

// Pinned allocates pinned memory.
func (t *T) Pinned(n int) *cuda.PinnedBuffer {
	t.Helper()
	b, err := t.Device(0).AllocPinned(n)
	t.OK(err)
	t.Cleanup(func() { b.Close() })
	return b
}

// Kernel finds a kernel of internal/testkernels on device 0.
func (t *T) Kernel(name string) *cuda.Kernel {
	t.Helper()
	return t.KernelOn(t.Device(0), name)
}

// KernelOn finds a kernel of internal/testkernels.
func (t *T) KernelOn(dev *cuda.Device, name string) *cuda.Kernel {
	t.Helper()
	k, err := t.modules[dev.Context].Kernel(name)
	t.OK(err)
	return k
}

// one is the configuration of a single thread.
var one = cuda.Grid1D(1, 1)

// Spin keeps a stream of device 0 busy for d with a kernel.
func (t *T) Spin(s *cuda.Stream, d time.Duration) {
	t.Helper()
	t.OK(s.Launch(t.Kernel("spin"), one, uint64(d)))
}

// Fault queues a kernel that writes to an illegal address.
func (t *T) Fault(s *cuda.Stream) {
	t.Helper()
	t.OK(s.Launch(t.Kernel("store"), one, cuda.DevicePtr(16), uint32(1)))
}

// faultDelay is time enough to queue more behind a fault.
const faultDelay = 200 * time.Millisecond

// FaultLater is Fault, faultDelay later.
func (t *T) FaultLater(s *cuda.Stream) {
	t.Helper()
	t.Spin(s, faultDelay)
	t.Fault(s)
}

// Host queues fn.
func (t *T) Host(on cuda.Queue, fn func(), opts ...cuda.HostOption) {
	t.Helper()
	t.OK(cuda.HostLaunch(on, fn, opts...))
}

// Sync waits for a stream.
func (t *T) Sync(s *cuda.Stream) {
	t.Helper()
	t.OK(s.Sync())
}

// OK wants no error.
func (t *T) OK(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Is wants err to be each of the codes, with a message that names an argument or a way out.
func (t *T) Is(err error, codes ...error) {
	t.Helper()
	for _, code := range codes {
		if !errors.Is(err, code) {
			t.Fatalf("error %v, want %v", err, code)
		}
	}
	if e := new(cuda.Error); !errors.As(err, &e) || e.Op == "" {
		t.Fatalf("error %v does not say which call failed", err)
	}
}

// Contains wants err's message to have each of the words.
func (t *T) Contains(err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

// Eventually waits until cond holds, for some seconds.
func (t *T) Eventually(what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !cond(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not so: %s", what)
		}
	}
}

// Receive waits for a value, for some seconds.
func Receive[V any](t *T, what string, from <-chan V) V {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(10 * time.Second):
		var all strings.Builder
		pprof.Lookup("goroutine").WriteTo(&all, 2) // who waits for what
		t.Fatalf("nothing came: %s\n%s", what, all.String())
		panic("unreachable")
	}
}

// Gate holds who passes it until it is opened. It is opened when its case ends, if not before: whatever the case made before the gate
// can be waited for then.
type Gate struct {
	Entered chan struct{} // closed once somebody has reached the gate
	open    chan struct{}
	enter   sync.Once
	once    sync.Once
}

// newGate makes a gate that is nowhere yet.
func (t *T) newGate() *Gate {
	g := &Gate{Entered: make(chan struct{}), open: make(chan struct{})}
	t.Cleanup(g.Open)
	return g
}

// Gate holds s, by a host function that waits. It holds the other host functions of the context too.
func (t *T) Gate(s *cuda.Stream, opts ...cuda.HostOption) *Gate {
	t.Helper()
	g := t.newGate()
	t.Host(s, g.pass, append([]cuda.HostOption{cuda.Name("gate")}, opts...)...)
	return g
}

// pass waits at the gate.
func (g *Gate) pass() {
	g.enter.Do(func() { close(g.Entered) })
	<-g.open
}

// task is pass, as a task's function.
func (g *Gate) task(context.Context) error {
	g.pass()
	return nil
}

// Open lets pass who waits and who comes later.
func (g *Gate) Open() { g.once.Do(func() { close(g.open) }) }

// Order is a log of what happened in which order.
type Order struct {
	mu  sync.Mutex
	log []int
}

// Add returns a function that notes n.
func (o *Order) Add(n int) func() {
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.log = append(o.log, n)
	}
}

// Log is what was noted so far.
func (o *Order) Log() []int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.log)
}

// Want fails the case unless the log is just so.
func (o *Order) Want(t *T, want ...int) {
	t.Helper()
	if got := o.Log(); !slices.Equal(got, want) {
		t.Fatalf("order %v, want %v", got, want)
	}
}
