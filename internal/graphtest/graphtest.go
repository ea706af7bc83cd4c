// Package graphtest builds random graphs of up to 200 nodes of mixed kinds, by hand and by capture, runs them on a driver, and
// checks that everything happened as often and in the order that the graph promises; then clones them, updates them as a whole
// and node by node, and runs them again.
//
// HOSTLAUNCH_MODEL_SEED is the seed of the first graph, and each later one has the next; HOSTLAUNCH_MODEL_GRAPHS is how many.
package graphtest

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
)

// Config is what a driver package's test hands Run.
type Config struct {
	Open   func(...cuda.Option) (*cuda.Driver, error) // an error: there is no GPU here
	PTX    []byte                                     // internal/testkernels
	Graphs int                                        // how many, unless the environment says otherwise
}

// Run runs the graphs.
func Run(t *testing.T, cfg Config) {
	drv, err := cfg.Open()
	if err != nil {
		if setting("HOSTLAUNCH_REQUIRE_GPU", 0) > 0 {
			t.Fatal(err)
		}
		t.Skipf("no GPU: %v", err)
	}
	t.Cleanup(func() { drv.Close() })
	r, err := newRig(drv, cfg.PTX)
	if err != nil {
		t.Fatal(err)
	}
	first, graphs := setting("HOSTLAUNCH_MODEL_SEED", 1), setting("HOSTLAUNCH_MODEL_GRAPHS", uint64(cfg.Graphs))
	start, nodes := time.Now(), 0
	defer unchanged(t, drv)()
	for seed := first; seed < first+graphs; seed++ {
		p := draw(seed)
		nodes += len(p.nodes)
		if err := r.try(p); err != nil {
			t.Fatalf("seed %d: %v\n%v", seed, err, p)
		}
	}
	t.Logf("%d graphs of %d nodes from seed %d in %v", graphs, nodes, first, time.Since(start))
}

func setting(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// try takes a plan through all that a graph can go through.
func (r *rig) try(p *plan) error {
	steps := []struct {
		name string
		do   func(*plan) error
	}{{"by capture", r.captured}, {"by hand", r.built}}
	for _, step := range steps {
		if err := step.do(p); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

func (r *rig) captured(p *plan) error {
	v := r.newRun(p)
	g, nodes, err := v.byCapture()
	if err != nil {
		return err
	}
	defer g.Close()
	x, err := g.Instantiate()
	if err != nil {
		return err
	}
	defer x.Close()
	if err := v.launch(x, 3); err != nil {
		return err
	}
	changed := r.newRun(p.next())
	for i := range p.nodes {
		if err := changed.set(x, nodes[i].Node, i); err != nil {
			return fmt.Errorf("setting node %d: %w", i, err)
		}
	}
	if err := changed.launch(x, 2); err != nil {
		return fmt.Errorf("set node by node: %w", err)
	}
	return nil
}

// launchGraph makes an executable of g and launches that.
func (v *run) launchGraph(g *cuda.Graph, times uint32) error {
	x, err := g.Instantiate()
	if err != nil {
		return err
	}
	return errors.Join(v.launch(x, times), x.Close())
}

func (r *rig) built(p *plan) error {
	v := r.newRun(p)
	g, nodes, err := v.byHand()
	if err != nil {
		return err
	}
	defer g.Close()
	x, err := g.Instantiate()
	if err != nil {
		return err
	}
	defer x.Close()
	if err := v.launch(x, 3); err != nil {
		return err
	}
	clone, err := g.Clone()
	if err != nil {
		return err
	}
	if err := errors.Join(v.launchGraph(clone, 2), clone.Close()); err != nil {
		return fmt.Errorf("the clone: %w", err)
	}
	changed := r.newRun(p.next())
	for i := range p.nodes {
		if err := changed.set(x, nodes[i], i); err != nil {
			return fmt.Errorf("setting node %d: %w", i, err)
		}
	}
	if err := changed.launch(x, 2); err != nil {
		return fmt.Errorf("set node by node: %w", err)
	}
	if err := v.launchGraph(g, 1); err != nil {
		return fmt.Errorf("the graph, after its executable was changed: %w", err)
	}
	again := r.newRun(changed.plan.next())
	h, _, err := again.byHand()
	if err != nil {
		return err
	}
	if err := errors.Join(x.Update(h), h.Close()); err != nil {
		return err
	}
	if err := again.launch(x, 2); err != nil {
		return fmt.Errorf("updated as a whole: %w", err)
	}
	return nil
}

// set gives node i of x its parameters in this version.
func (v *run) set(x *cuda.GraphExec, n cuda.GraphNode, i int) error {
	if k := v.plan.nodes[i].kind; k == empty { // has none
		return nil
	}
	p, drop, err := v.params(i)
	if err != nil {
		return err
	}
	defer drop()
	return x.SetParams(n, p)
}
