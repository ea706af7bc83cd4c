package softcuda_test

import (
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/graphtest"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestRandomGraphs runs random graphs on the software device.
func TestRandomGraphs(t *testing.T) { graphtest.Run(t, graphs(500, 50)) }

// TestGraphEdits changes graphs at random, rightly and wrongly.
func TestGraphEdits(t *testing.T) { graphtest.RunEdits(t, graphs(300, 30)) }

// FuzzGraph does what both do, as bytes say.
func FuzzGraph(f *testing.F) {
	for seed := range uint64(16) {
		f.Add(append([]byte{byte(seed)}, noise(seed, 16<<(seed%5))...))
	}
	graphtest.Fuzz(f, graphs(0, 0))
}

func graphs(many, few int) graphtest.Config {
	if testing.Short() {
		many = few
	}
	return graphtest.Config{
		Open: func(opts ...cuda.Option) (*cuda.Driver, error) {
			return softcuda.New(softcuda.Options{Kernels: testkernels.Twins()}, opts...), nil
		},
		PTX:    testkernels.PTX,
		Graphs: many,
	}
}
