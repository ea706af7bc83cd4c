package cuda

import (
	"fmt"
	"strings"
)

// DeadlockError says who waits for whom where a task would wait for itself: errors.As finds it in the error, which is ErrDeadlock, of the
// call that would have closed the ring (CONTRACT TK-03). It is not changed afterwards.
type DeadlockError struct {
	Waits []DeadlockWait // the first one is the call's; each is for what the next one is about, and the last for one before it
}

// DeadlockWait is one wait of a DeadlockError.
type DeadlockWait struct {
	Task string // who waits: its name, where it was queued, and its stream
	How  string // "waits in Stream.Sync for", "is queued behind", ...
	For  string // the task that is waited for; "the task itself"; or empty, if it cannot begin for no task's sake
}

// String is the wait in words.
func (w DeadlockWait) String() string { return strings.TrimSuffix(w.Task+", "+w.How+" "+w.For, " ") }

// Error tells all waits in words.
func (e *DeadlockError) Error() string { return "cuda: " + e.reason() }

// roomOption is the option that bounds the room which some of a deadlock's waits are for.
const roomOption = "MaxHeldStreams"

func (e *DeadlockError) reason() string {
	var parts []string
	wayOut := ""
	for _, w := range e.Waits {
		parts = append(parts, w.String())
		if strings.Contains(w.How, roomOption) {
			wayOut = ", or raise " + roomOption
		}
	}
	return strings.Join(parts, "; ") + ": none of them would ever end; wait after the task, or from another goroutine" + wayOut
}

// Unwrap gives ErrDeadlock.
func (e *DeadlockError) Unwrap() error { return ErrDeadlock }

// DOT is the waits as a graph in Graphviz's language: tasks, and an arrow for each wait.
func (e *DeadlockError) DOT() string {
	var b strings.Builder
	fmt.Fprintln(&b, "digraph deadlock {")
	for i, w := range e.Waits {
		fmt.Fprintf(&b, "\t%q -> %q [label=%q]\n", w.Task, e.target(i), w.How)
	}
	fmt.Fprintln(&b, "}")
	return b.String()
}

// target is who wait i is for, as that one's own wait calls it.
func (e *DeadlockError) target(i int) string {
	w := e.Waits[i]
	if w.For == "the task itself" {
		return w.Task
	}
	for _, other := range e.Waits {
		if w.For != "" && strings.HasPrefix(other.Task, w.For+", of stream") {
			return other.Task
		}
	}
	return w.For
}
