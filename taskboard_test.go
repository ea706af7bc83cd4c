package cuda

import (
	"slices"
	"testing"
)

// TestBehindNeverRan: what is behind a task that never ran is behind what that was behind, for whoever knows of that task only.
func TestBehindNeverRan(t *testing.T) {
	runs := &Task{state: taskRuns}
	over := &Task{state: taskEnded}
	never := &Task{state: taskEnded, after: []*Task{over, runs}}
	again := &Task{state: taskEnded, after: []*Task{never}}
	if got := alive([]*Task{again}); !slices.Equal(got, []*Task{runs}) {
		t.Errorf("alive: %d tasks, want the one that runs", len(got))
	}
	p := &play{left: map[*Task]bool{runs: true}}
	if p.firstLeft([]*Task{over, again}) != runs || p.firstLeft([]*Task{over}) != nil {
		t.Error("firstLeft does not look behind a task that never ran")
	}
}
