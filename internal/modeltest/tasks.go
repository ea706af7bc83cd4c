package modeltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/model"
	"github.com/hostlaunch/cuda/internal/source"
)

// RunTasks runs random programs of tasks, and wants each to end: without a word where the model says that it can, and with
// ErrDeadlock where it says that it cannot.
func RunTasks(t *testing.T, cfg Config) {
	first := setting("HOSTLAUNCH_MODEL_SEED", 1)
	programs := setting("HOSTLAUNCH_MODEL_PROGRAMS", uint64(cfg.Programs))
	devices := map[int]*cuda.Device{}
	stuck := 0
	for seed := first; seed < first+programs && !t.Failed(); seed++ {
		p := drawTasks(seed)
		if devices[p.Held] == nil {
			drv, err := cfg.Open(cuda.MaxHeldStreams(p.Held))
			if err != nil {
				if setting("HOSTLAUNCH_REQUIRE_GPU", 0) > 0 {
					t.Fatal(err)
				}
				t.Skipf("no GPU: %v", err)
			}
			t.Cleanup(func() { drv.Close() })
			if devices[p.Held], err = drv.Device(0); err != nil {
				t.Fatal(err)
			}
		}
		m := p.Order()
		if m.Stuck != 0 {
			stuck++
		}
		if wrong := runTasks(devices[p.Held], p, m); wrong != "" {
			t.Errorf("seed %d: %s\n%v", seed, wrong, p)
		}
	}
	t.Logf("%d programs, of which %d deadlock", programs, stuck)
}

// drawTasks makes the program of a seed.
func drawTasks(seed uint64) *model.TaskProgram {
	r := source.Seed(seed, 6)
	p := &model.TaskProgram{Streams: 2 + r.IntN(5), Events: 1 + r.IntN(3), Held: []int{1, 2, 8}[r.IntN(3)]}
	marks, tasks := 0, []int{}
	waits := 1 + r.IntN(4) // of ten steps, how many wait
	for range 3 + r.IntN(18) {
		o := model.TaskOp{Kind: model.TaskOpKind(r.IntN(model.TaskOpKinds)), S: r.IntN(p.Streams), O: r.IntN(p.Streams), E: r.IntN(p.Events), Mark: marks}
		switch o.Kind {
		case model.TaskGo:
			tasks = append(tasks, len(p.Ops))
			marks++
		case model.TaskHost:
			marks++
		}
		p.Ops = append(p.Ops, o)
	}
	for _, i := range tasks {
		for range r.IntN(3) {
			s := model.Step{Kind: model.StepSleep, N: r.IntN(200)}
			if r.IntN(10) < waits {
				switch s.Kind = model.StepSyncStream + model.StepKind(r.IntN(model.StepKinds-1)); s.Kind {
				case model.StepSyncStream:
					s.N = r.IntN(p.Streams)
				case model.StepSyncEvent:
					s.N = r.IntN(p.Events)
				case model.StepAwaitTask:
					s.N = p.Ops[tasks[r.IntN(len(tasks))]].Mark
				}
			}
			p.Ops[i].Steps = append(p.Ops[i].Steps, s)
		}
	}
	return p
}

// taskRun is a TaskProgram at work.
type taskRun struct {
	p       *model.TaskProgram
	streams []*cuda.Stream
	events  []*cuda.Event
	tasks   map[int]*cuda.Task // by mark
	start   chan struct{}

	mu   sync.Mutex
	now  int
	seen [model.Most][2]int // when each mark began and ended; 0: it has not
	runs [model.Most]int
}

// runTasks runs p and reports what went wrong, or "".
func runTasks(dev *cuda.Device, p *model.TaskProgram, m *model.TaskOrder) (wrong string) {
	u := &taskRun{p: p, tasks: map[int]*cuda.Task{}, start: make(chan struct{})}
	for range p.Streams {
		s, err := dev.NewStream()
		if err != nil {
			return err.Error()
		}
		defer s.Close()
		u.streams = append(u.streams, s)
	}
	for range p.Events {
		e, err := dev.NewEvent()
		if err != nil {
			return err.Error()
		}
		defer e.Close()
		u.events = append(u.events, e)
	}
	for _, o := range p.Ops {
		if err := u.do(o); err != nil {
			close(u.start)
			return fmt.Sprintf("queuing: %v", err)
		}
	}
	close(u.start)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	told := 0
	for mark, task := range u.tasks {
		switch err := task.Wait(ctx); {
		case errors.Is(err, cuda.ErrContextEnded):
			return fmt.Sprintf("task %d hangs", mark)
		case errors.Is(err, cuda.ErrDeadlock):
			told++
		case err != nil:
			return fmt.Sprintf("task %d: %v", mark, err)
		}
	}
	for i, s := range u.streams {
		if err := s.Wait(ctx); err != nil {
			return fmt.Sprintf("stream %d: %v", i, err)
		}
	}
	if told > 0 != (m.Stuck != 0) {
		return fmt.Sprintf("%d tasks were told of a deadlock; the model has tasks %#x in one", told, uint64(m.Stuck))
	}
	return u.check(m)
}

func (u *taskRun) do(o model.TaskOp) error {
	s, e := u.streams[o.S], u.events[o.E]
	switch o.Kind {
	case model.TaskGo:
		task, err := cuda.Go(s, func(ctx context.Context) error {
			u.mark(o.Mark, 0)
			defer u.mark(o.Mark, 1)
			<-u.start
			return u.steps(ctx, o.Steps)
		}, cuda.Name(fmt.Sprint("task ", o.Mark)))
		u.tasks[o.Mark] = task
		return err
	case model.TaskHost:
		return cuda.HostLaunch(s, func() {
			u.mark(o.Mark, 0)
			u.mark(o.Mark, 1)
		})
	case model.TaskRecord:
		return s.Record(e)
	case model.TaskWaitEvent:
		return s.WaitEvent(e)
	}
	return s.WaitStream(u.streams[o.O])
}

// steps are a task's. The first deadlock ends it.
func (u *taskRun) steps(ctx context.Context, steps []model.Step) error {
	for _, step := range steps {
		var err error
		switch step.Kind {
		case model.StepSleep:
			time.Sleep(time.Duration(step.N) * time.Microsecond)
		case model.StepSyncStream:
			err = u.streams[step.N].Sync()
		case model.StepSyncEvent:
			err = u.events[step.N].Sync()
		case model.StepAwaitTask: // whose own end is not ours
			if of := new(cuda.Error); errors.As(u.tasks[step.N].Wait(ctx), &of) && of.Op == "Task.Wait" {
				err = of
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mark notes that a mark begins or ends.
func (u *taskRun) mark(n, end int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.now++
	u.seen[n][end] = u.now
	u.runs[n] += 1 - end
}

// check compares what was seen with the order promised.
func (u *taskRun) check(m *model.TaskOrder) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, o := range u.p.Ops {
		if o.Kind != model.TaskGo && o.Kind != model.TaskHost {
			continue
		}
		if u.runs[o.Mark] != 1 {
			return fmt.Sprintf("%d ran %d times", o.Mark, u.runs[o.Mark])
		}
		for before := range model.Most {
			if m.After[o.Mark].Has(before) && u.seen[before][1] >= u.seen[o.Mark][0] {
				return fmt.Sprintf("%d did not come after %d", o.Mark, before)
			}
		}
	}
	return ""
}
