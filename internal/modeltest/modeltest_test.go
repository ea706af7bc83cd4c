package modeltest

import (
	"testing"

	"github.com/hostlaunch/cuda/internal/model"
)

// TestDraw: what is drawn can be run, is the same for one seed, and has operations of every kind, and every answer.
func TestDraw(t *testing.T) {
	const programs = 5000 // as in CI
	var seen [model.Kinds]int
	var answers [model.Answers]int
	for seed := range uint64(programs) {
		p := draw(seed)
		if !p.Valid() {
			t.Fatalf("seed %d may hang:\n%v", seed, p)
		}
		if p.String() != draw(seed).String() {
			t.Fatalf("seed %d gives another program each time", seed)
		}
		for m, i := model.New(p), 0; i < len(p.Ops); i++ {
			o := p.Ops[i]
			want := m.Next(o)
			seen[o.Kind]++
			if int(want) < len(answers) {
				answers[want]++
			}
			m.Apply(o, want.Least())
		}
	}
	for k, n := range seen {
		if n < 700 {
			t.Errorf("%d operations like %v in %d programs", n, model.Op{Kind: model.Kind(k)}, programs)
		}
	}
	for a, n := range answers {
		if n < 5 && model.Answer(a) != model.InvalidValue { // which is wanted only beside another answer
			t.Errorf("%d operations that must answer %v in %d programs", n, model.Answer(a), programs)
		}
	}
}

// TestShrink: of a program that goes wrong now and then, what is wrong with it is left.
func TestShrink(t *testing.T) {
	runs := 0
	run := func(p *model.Program) string {
		recorded := false
		runs++
		for _, o := range p.Ops {
			recorded = recorded || o.Kind == model.Record && o.E == 0
			if recorded && o.Kind == model.WaitEvent && o.E == 0 && runs%3 == 0 {
				return "wrong"
			}
		}
		return ""
	}
	for seed := range uint64(300) {
		p := draw(seed)
		small, wrong := shrink(p, run)
		if wrong == "" {
			continue // not one that goes wrong
		}
		if len(small.Ops) != 2 || len(p.Ops) < 8 {
			t.Errorf("seed %d: shrunk from %d operations to\n%v", seed, len(p.Ops), small)
		}
		return
	}
	t.Error("no program goes wrong")
}
