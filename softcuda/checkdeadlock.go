package softcuda

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hostlaunch/cuda/internal/driver"
)

// Deadlocks of wait-values: streams that wait for words which are only written behind each other's waits. Tasks have their own
// account of that, in package cuda.

// hopeless finds the wait-values that are not met and that only writes behind hopeless wait-values would meet. One that nobody is
// to write for may yet be met by the program.
func (k *checker) hopeless() map[*op]bool {
	stuck := map[*op]bool{}
	for o, a := range k.live {
		if a.kind == opHold && len(k.writers(o)) > 0 && o.work() != driver.Success {
			stuck[o] = true
		}
	}
	for before := -1; before != len(stuck); {
		before = len(stuck)
		maps.DeleteFunc(stuck, func(o *op, _ bool) bool {
			return slices.ContainsFunc(k.writers(o), func(w *op) bool { return k.stuckBehind(w, stuck) == nil })
		})
	}
	return stuck
}

func (k *checker) sorted(list []*op) []*op {
	slices.SortFunc(list, func(a, b *op) int { return int(k.live[a].number) - int(k.live[b].number) })
	return list
}

// writers are the queued writes to the word that o waits for.
func (k *checker) writers(o *op) (list []*op) {
	for w, a := range k.live {
		if a.kind == opWork && w.notes().word.at() == o.notes().word.at() {
			list = append(list, w)
		}
	}
	return k.sorted(list)
}

// stuckBehind is one of stuck that o is ordered behind, or nil.
func (k *checker) stuckBehind(o *op, stuck map[*op]bool) *op {
	for _, s := range k.sorted(slices.Collect(maps.Keys(stuck))) {
		if k.live[o].follows(k.live[s]) {
			return s
		}
	}
	return nil
}

// deadlock reports a cycle of waits, if there is one. It is asked when the program waits: until then it may queue what ends it.
// mu is held.
func (k *checker) deadlock() {
	if k == nil || len(k.live) == 0 {
		return
	}
	stuck := k.hopeless()
	if len(stuck) == 0 {
		return
	}
	var path []*op // a wait, the write that it waits for, the wait that that is behind, ...
	at := k.sorted(slices.Collect(maps.Keys(stuck)))[0]
	for !slices.Contains(path, at) {
		w := k.writers(at)[0]
		path = append(path, at, w)
		at = k.stuckBehind(w, stuck)
	}
	k.reportCycle(path[slices.Index(path, at):])
}

// reportCycle reports a cycle of waits and writes, in words and in DOT.
func (k *checker) reportCycle(path []*op) {
	var words, dot []string
	name := func(i int) string { return fmt.Sprint(k.live[path[i%len(path)]]) }
	for i := 0; i < len(path); i += 2 {
		words = append(words, fmt.Sprintf("%s waits for the %s, which is behind the %s", name(i), name(i+1), name(i+2)))
		dot = append(dot, fmt.Sprintf("\t%q -> %q [label=\"waits for\"]\n\t%q -> %q [label=\"is behind\"]\n", name(i), name(i+1), name(i+1), name(i+2)))
	}
	k.out.report(Report{
		Kind: "deadlock", First: strings.Join(words, "; "), Advice: "have one of the streams write before it waits",
		DOT: "digraph deadlock {\n" + strings.Join(dot, "") + "}\n",
	})
}
