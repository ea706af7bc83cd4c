package modeltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/model"
)

// rig runs programs on a device, one after another.
type rig struct {
	dev         *cuda.Device
	mark, delay *cuda.Kernel
	mem         *cuda.PinnedBuffer
	log         []uint64 // the kernels' log: how many marks it has, and one more than each mark
}

// newRig makes a rig. Closing the driver closes it.
func newRig(drv *cuda.Driver, ptx []byte) (*rig, error) {
	dev, err := drv.Device(0)
	if err != nil {
		return nil, err
	}
	mod, err := dev.LoadModule(ptx)
	if err != nil {
		return nil, err
	}
	r := &rig{dev: dev}
	var errs [3]error
	r.mark, errs[0] = mod.Kernel("append")
	r.delay, errs[1] = mod.Kernel("spin")
	r.mem, errs[2] = dev.AllocPinned(8 * (1 + 2*model.Most)) // with room for marks that come twice
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	r.log = cuda.PinnedSlice[uint64](r.mem)
	clear(r.log)
	return r, r.warm()
}

// warm has everything happen once: a first launch may wait for what a program holds.
func (r *rig) warm() error {
	s := r.dev.DefaultStream()
	return errors.Join(s.Launch(r.mark, one, r.mem, uint64(1)), s.Launch(r.delay, one, uint64(0)), cuda.HostLaunch(s, func() {}), s.Sync())
}

// limit is how long a program may take before it counts as one that hangs.
const limit = 5 * time.Second

// run is a program at work.
type run struct {
	*rig
	p       *model.Program
	m       *model.State
	streams []*cuda.Stream
	events  []*cuda.Event
	ends    []*cuda.Event // of streams that were closed
	kept    model.Set     // promises that were looked at

	captures map[int]*capture // by the streams that they began on
	graphs   map[int]*cuda.GraphExec

	mu    sync.Mutex
	hosts []*hostMark // in their order
	gates map[int]chan struct{}
	hung  bool
}

// hostMark is an entry of the host functions' log.
type hostMark struct{ n, begin, end int }

// run runs p and reports what it did wrong, or "".
func (r *rig) run(p *model.Program) (wrong string) {
	clear(r.log)
	u := &run{rig: r, p: p, m: model.New(p)}
	u.gates, u.captures, u.graphs = map[int]chan struct{}{}, map[int]*capture{}, map[int]*cuda.GraphExec{}
	var found atomic.Value // what is wrong so far
	watch := time.AfterFunc(limit, func() { u.openGates(true) })
	defer watch.Stop()
	dead := time.AfterFunc(2*limit, func() { panic(fmt.Sprintf("a program hangs for good (%v):\n%v", found.Load(), p)) })
	defer dead.Stop()
	defer u.close()
	wrong = u.whole()
	if found.Store(wrong); wrong != "" {
		time.Sleep(2 * time.Millisecond) // what nobody waits for now must not reach into the next program
	}
	return wrong
}

// whole runs the whole program.
func (u *run) whole() (wrong string) {
	if err := u.open(); err != nil {
		return err.Error()
	}
	for i, o := range u.p.Ops {
		got, err := u.do(o)
		wrong := ""
		switch {
		case u.isHung():
			wrong = "hung"
		case err != nil:
			wrong = err.Error()
		default:
			if wrong = u.m.Apply(o, got); wrong == "" {
				wrong = u.promised()
			}
		}
		if wrong != "" {
			return fmt.Sprintf("operation %d, %v: %s", i, o, wrong)
		}
	}
	u.openGates(false)
	return u.finish()
}

// open makes the streams and events.
func (u *run) open() error {
	for _, k := range u.p.Streams {
		s, err := u.dev.DefaultStream(), error(nil)
		if k != model.Legacy {
			flags := cuda.StreamBlocking
			if k == model.NonBlocking {
				flags = cuda.StreamNonBlocking
			}
			s, err = u.dev.NewStream(cuda.WithFlags(flags))
		}
		if err != nil {
			return err
		}
		u.streams = append(u.streams, s)
	}
	for range u.p.Events {
		e, err := u.dev.NewEvent()
		if err != nil {
			return err
		}
		u.events = append(u.events, e)
	}
	return nil
}

// close ends the run, however it went: nothing of it is queued afterwards.
func (u *run) close() {
	u.openGates(false)
	for i := range u.captures {
		u.end(i)
	}
	for _, s := range u.streams {
		s.Sync()
		s.Close()
	}
	for _, e := range u.ends {
		e.Sync()
		e.Close()
	}
	for _, e := range u.events {
		e.Close()
	}
	for _, x := range u.graphs {
		x.Close()
	}
}

// openGates opens all gates, because the program is at its end or because it hangs.
func (u *run) openGates(hung bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.hung = u.hung || hung
	for n, g := range u.gates {
		close(g)
		delete(u.gates, n)
	}
}

func (u *run) isHung() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.hung
}

// one is the configuration of a single thread.
var one = cuda.Grid1D(1, 1)

// do calls o.
func (u *run) do(o model.Op) (model.Answer, error) {
	s, e, q := u.streams[o.S], u.events[o.E], u.queue(o.S)
	switch o.Kind {
	case model.Kernel:
		return answer(q.Launch(u.mark, one, u.mem, uint64(o.N+1)))
	case model.Host:
		return answer(cuda.HostLaunch(q, func() { u.note(o.N) }))
	case model.Gate:
		return answer(u.gate(q, o.N))
	case model.Open:
		u.mu.Lock()
		defer u.mu.Unlock()
		if g := u.gates[o.N]; g != nil {
			close(g)
			delete(u.gates, o.N)
		}
		return model.OK, nil
	case model.Delay:
		return answer(q.Launch(u.delay, one, uint64(o.N)*1000))
	case model.Record:
		return answer(q.Record(e))
	case model.WaitEvent:
		return answer(q.WaitEvent(e))
	case model.WaitStream:
		return answer(q.WaitStream(u.streams[o.O]))
	case model.QueryStream:
		return queried(s.Query())
	case model.QueryEvent:
		return queried(e.Query())
	case model.SyncStream:
		return answer(s.Sync())
	case model.SyncEvent:
		return answer(e.Sync())
	case model.AwaitStream:
		return answer(s.Wait(context.Background()))
	case model.AwaitEvent:
		return answer(e.Wait(context.Background()))
	case model.CloseStream:
		return answer(u.relaxed(func() error { return u.closeStream(o.S) }))
	case model.CloseEvent:
		return answer(u.relaxed(e.Close))
	case model.Begin, model.End, model.Launch, model.Within:
		return u.doCapture(o)
	}
	return 0, fmt.Errorf("package modeltest does not know how to run it")
}

// closeStream closes stream i, and keeps an event for its end: what it has queued must not reach into the next program.
func (u *run) closeStream(i int) error {
	s := u.streams[i]
	if u.p.Streams[i] == model.Legacy || u.m.Captures(i) {
		return s.Close() // which does nothing to a legacy stream; and a record in a capture tells nothing
	}
	e, err := u.dev.NewEvent()
	if err != nil {
		return err
	}
	u.ends = append(u.ends, e)
	if err := s.Record(e); err != nil && !errors.Is(err, cuda.ErrClosed) {
		return err
	}
	return s.Close()
}

func answer(err error) (model.Answer, error) {
	switch {
	case err == nil:
		return model.OK, nil
	case errors.Is(err, cuda.ErrClosed):
		return model.Closed, nil
	}
	for code, a := range refusals {
		if errors.Is(err, code) {
			return a, nil
		}
	}
	return 0, err
}

func queried(done bool, err error) (model.Answer, error) {
	if a, err := answer(err); a != model.OK || err != nil {
		return a, err
	}
	if done {
		return model.Done, nil
	}
	return model.NotReady, nil
}

// kernels is how many marks the kernels' log has.
func (u *run) kernels() int { return int(atomic.LoadUint64(&u.log[0])) }

// note leaves the mark of a host function.
func (u *run) note(n int) *hostMark {
	h := &hostMark{n: n, begin: u.kernels()}
	u.mu.Lock()
	defer u.mu.Unlock()
	h.end = h.begin
	u.hosts = append(u.hosts, h)
	return h
}

// gate queues a host function that waits.
func (u *run) gate(q cuda.Queue, n int) error {
	shut := make(chan struct{})
	err := cuda.HostLaunch(q, func() {
		h := u.note(n)
		<-shut
		end := u.kernels()
		u.mu.Lock()
		defer u.mu.Unlock()
		h.end = end
	})
	if err == nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.gates[n] = shut
	}
	return err
}
