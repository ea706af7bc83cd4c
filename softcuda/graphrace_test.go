package softcuda_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestGraphsUnderFire: goroutines use one executable, and graphs that embed one child, until the driver is closed under them or
// the context is lost. Every launch that was accepted tells the end of each of its functions once, and Close returns.
func TestGraphsUnderFire(t *testing.T) {
	quiet(t)
	for _, end := range []string{"close", "lose", "close what is used"} {
		t.Run(end, func(t *testing.T) {
			for range 20 {
				underFire(t, end)
			}
		})
	}
}

func underFire(t *testing.T, end string) {
	kernels := softcuda.Kernels{"fault": func(*softcuda.Launch) { panic("a fault") }}
	var told, due atomic.Int64
	d := softcuda.New(softcuda.Options{Kernels: kernels})
	dev := must(d.Device(0))
	done := cuda.OnDone(func(error) { told.Add(1) })
	node := func() cuda.NodeParams { return cuda.HostParams(func() {}, done) }
	build := func() (*cuda.Graph, cuda.GraphNode, error) {
		g, err := dev.NewGraph()
		if err != nil {
			return nil, cuda.GraphNode{}, err
		}
		a, err1 := g.AddNode(node())
		_, err2 := g.AddNode(node(), a)
		return g, a, errors.Join(err1, err2)
	}
	child, _, err := build()
	if err != nil {
		t.Fatal(err)
	}
	g, n, err := build()
	if err != nil {
		t.Fatal(err)
	}
	x := must(g.Instantiate())
	var all sync.WaitGroup
	var over atomic.Bool
	use := func(what string, do func(s *cuda.Stream) error) {
		s := must(dev.NewStream())
		all.Go(func() {
			for !over.Load() {
				err := do(s)
				switch {
				case err == nil:
				case errors.Is(err, cuda.ErrClosed), errors.Is(err, cuda.ErrDeviceLost):
					return
				case errors.Is(err, cuda.ErrIllegalState): // a node is set after an update
				default:
					t.Errorf("%s: %v", what, err)
					return
				}
			}
		})
	}
	launch := func(x *cuda.GraphExec, s *cuda.Stream, functions int64) error {
		err := x.Launch(s)
		if err == nil {
			due.Add(functions)
		}
		return err
	}
	for range 2 {
		use("launch", func(s *cuda.Stream) error { return errors.Join(launch(x, s, 2), s.Sync()) })
		use("embed", func(s *cuda.Stream) error {
			g, err := dev.NewGraph()
			if err != nil {
				return err
			}
			defer g.Close()
			if _, err := g.AddNode(cuda.ChildGraphParams(child)); err != nil {
				return err
			}
			x, err := g.Instantiate()
			if err != nil {
				return err
			}
			defer x.Close()
			return launch(x, s, 2)
		})
	}
	use("set", func(*cuda.Stream) error { return x.SetParams(n, node()) })
	use("update", func(*cuda.Stream) error {
		time.Sleep(time.Millisecond)
		g, _, err := build()
		if err != nil {
			return err
		}
		defer g.Close()
		return x.Update(g)
	})
	time.Sleep(3 * time.Millisecond)
	switch end {
	case "lose":
		k := must(must(dev.LoadModule([]byte(".version 8.3\n.target sm_70\n.entry fault()\n"))).Kernel("fault"))
		if err := dev.DefaultStream().Launch(k, cuda.Grid1D(1, 1)); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Millisecond)
	case "close what is used":
		err := errors.Join(child.Close(), g.Close(), x.Close())
		if err != nil {
			t.Error(err)
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Close hangs")
	}
	over.Store(true)
	all.Wait()
	if told.Load() != due.Load() {
		t.Errorf("%d ends were told of %d runs", told.Load(), due.Load())
	}
	if st := d.Stats(); st != (cuda.Stats{}) {
		t.Errorf("left: %+v", st)
	}
}

// TestCloneBesideSet: a graph is cloned while another goroutine sets its nodes in an executable, which finds out which functions
// they have. The clones have all functions.
func TestCloneBesideSet(t *testing.T) {
	const functions, rounds = 50, 20
	d := softcuda.New(softcuda.Options{})
	defer d.Close()
	s := must(must(d.Device(0)).NewStream())
	for range rounds {
		runs := 0
		g := must(cuda.Capture(s, cuda.CaptureRelaxed, func(b *cuda.GraphBuilder) (err error) {
			for range functions {
				err = errors.Join(err, cuda.HostLaunch(b, func() { runs++ }))
			}
			return err
		}))
		x, nodes := must(g.Instantiate()), must(g.Nodes())
		var set sync.WaitGroup
		begun := make(chan struct{})
		set.Go(func() {
			close(begun)
			for _, n := range nodes {
				if err := x.SetParams(n, cuda.HostParams(func() {})); err != nil {
					t.Error(err)
				}
			}
		})
		<-begun
		clones := []*cuda.Graph{must(g.Clone()), must(g.Clone()), must(g.Clone())}
		set.Wait()
		for _, clone := range clones {
			runs = 0
			y := must(clone.Instantiate())
			if err := errors.Join(y.Launch(s), s.Sync()); err != nil || runs != functions {
				t.Fatalf("a clone runs %d functions of %d (%v)", runs, functions, err)
			}
			if err := errors.Join(y.Close(), clone.Close()); err != nil {
				t.Error(err)
			}
		}
		if err := errors.Join(x.Close(), g.Close()); err != nil {
			t.Error(err)
		}
	}
}
