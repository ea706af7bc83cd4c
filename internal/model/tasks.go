package model

import (
	"fmt"
	"strings"
)

// A TaskProgram is made by one goroutine: it queues tasks, whose functions wait for streams, events and each other, and what orders
// streams. No task's function does anything before all is queued. All streams are non-blocking.
type TaskProgram struct {
	Streams, Events int
	Held            int // how many streams may be held at once
	Ops             []TaskOp
}

// TaskOpKind says what an operation of a TaskProgram does.
type TaskOpKind uint8

// Operations. S is the stream it is called on, O another stream, E an event.
const (
	TaskGo         TaskOpKind = iota // queue a task on S with Steps
	TaskHost                         // queue a host function on S
	TaskRecord                       // record E in S
	TaskWaitEvent                    // have S wait for E
	TaskWaitStream                   // have S wait for O
	TaskOpKinds    = iota
)

// TaskOp is an operation of a TaskProgram. Tasks and host functions are numbered in their order, from 0, by Mark.
type TaskOp struct {
	Kind    TaskOpKind
	S, O, E int
	Mark    int
	Steps   []Step
}

// StepKind says what a step of a task's function does.
type StepKind uint8

// Steps. N is a number of microseconds, a stream, an event or the mark of a task.
const (
	StepSleep StepKind = iota
	StepSyncStream
	StepSyncEvent
	StepAwaitTask
	StepKinds = iota
)

// Step is a step of a task's function.
type Step struct {
	Kind StepKind
	N    int
}

// String writes p as a list of calls.
func (p *TaskProgram) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d streams, %d events, %d held at most\n", p.Streams, p.Events, p.Held)
	for _, o := range p.Ops {
		switch o.Kind {
		case TaskGo:
			fmt.Fprintf(&b, "  s%d.Go(%d:", o.S, o.Mark)
			for _, s := range o.Steps {
				fmt.Fprintf(&b, " "+[...]string{"sleep %d us", "sync s%d", "sync e%d", "await task %d"}[s.Kind]+";", s.N)
			}
			b.WriteString(")\n")
		case TaskHost:
			fmt.Fprintf(&b, "  s%d.Host(%d)\n", o.S, o.Mark)
		case TaskRecord:
			fmt.Fprintf(&b, "  s%d.Record(e%d)\n", o.S, o.E)
		case TaskWaitEvent:
			fmt.Fprintf(&b, "  s%d.WaitEvent(e%d)\n", o.S, o.E)
		case TaskWaitStream:
			fmt.Fprintf(&b, "  s%d.WaitStream(s%d)\n", o.S, o.O)
		}
	}
	return b.String()
}

// TaskOrder is what a TaskProgram promises.
type TaskOrder struct {
	After  [Most]Set // what comes before each mark
	Tasks  Set
	Stuck  Set // tasks that would never end if none were told of a deadlock
	Behind Set // host functions that would never run
}

// Order works out what p promises.
func (p *TaskProgram) Order() *TaskOrder {
	m := &TaskOrder{}
	streams, events := make([]Set, p.Streams), make([]Set, p.Events)
	var queued []TaskOp
	for _, o := range p.Ops {
		switch o.Kind {
		case TaskGo, TaskHost:
			m.After[o.Mark] = streams[o.S]
			streams[o.S] |= 1 << o.Mark
			queued = append(queued, o)
			if o.Kind == TaskGo {
				m.Tasks |= 1 << o.Mark
			}
		case TaskRecord:
			events[o.E] = streams[o.S]
		case TaskWaitEvent:
			streams[o.S] |= events[o.E]
		case TaskWaitStream:
			streams[o.S] |= streams[o.O]
		}
	}
	ended := p.play(m, queued, streams, events)
	for _, o := range queued {
		switch {
		case ended.Has(o.Mark):
		case o.Kind == TaskGo:
			m.Stuck |= 1 << o.Mark
		default:
			m.Behind |= 1 << o.Mark
		}
	}
	return m
}

// play lets everything end that can.
func (p *TaskProgram) play(m *TaskOrder, queued []TaskOp, streams, events []Set) (ended Set) {
	var holding Set                   // tasks
	held := make([]int, len(streams)) // tasks that hold each stream
	room := p.Held
	for moved := true; moved; {
		moved = false
		inLine := false // a task before this one waits for room
		for _, o := range queued {
			bit := Set(1) << o.Mark
			if ended.Has(o.Mark) {
				continue
			}
			if o.Kind == TaskGo && holding&bit == 0 {
				if inLine || held[o.S] == 0 && room == 0 {
					inLine = true
					continue
				}
				if held[o.S]++; held[o.S] == 1 {
					room--
				}
				holding |= bit
				moved = true
			}
			if (m.After[o.Mark]|o.needs(streams, events))&^ended != 0 {
				continue
			}
			ended |= bit
			moved = true
			if o.Kind == TaskGo {
				if held[o.S]--; held[o.S] == 0 {
					room++
				}
			}
		}
	}
	return ended
}

// needs are the marks that o's function waits for.
func (o *TaskOp) needs(streams, events []Set) (s Set) {
	for _, step := range o.Steps {
		switch step.Kind {
		case StepSyncStream:
			s |= streams[step.N]
		case StepSyncEvent:
			s |= events[step.N]
		case StepAwaitTask:
			s |= 1 << step.N
		}
	}
	return s
}
