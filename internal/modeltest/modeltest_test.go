package modeltest

import (
	"testing"

	"github.com/hostlaunch/cuda/internal/model"
)

// TestDraw: what is drawn can be run, is the same for one seed, and has operations of every kind.
func TestDraw(t *testing.T) {
	var seen [model.Kinds]int
	for seed := range uint64(2000) {
		p := draw(seed)
		if !p.Valid() {
			t.Fatalf("seed %d may hang:\n%v", seed, p)
		}
		if p.String() != draw(seed).String() {
			t.Fatalf("seed %d gives another program each time", seed)
		}
		for _, o := range p.Ops {
			seen[o.Kind]++
		}
	}
	for k, n := range seen {
		if n < 500 {
			t.Errorf("%d operations like %v in 2,000 programs", n, model.Op{Kind: model.Kind(k)})
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
