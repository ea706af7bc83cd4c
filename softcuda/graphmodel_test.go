package softcuda_test

import (
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/graphtest"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestRandomGraphs runs random graphs on the software device.
func TestRandomGraphs(t *testing.T) {
	graphs := 500
	if testing.Short() {
		graphs = 50
	}
	graphtest.Run(t, graphtest.Config{
		Open: func(opts ...cuda.Option) (*cuda.Driver, error) {
			return softcuda.New(softcuda.Options{Kernels: testkernels.Twins()}, opts...), nil
		},
		PTX:    testkernels.PTX,
		Graphs: graphs,
	})
}
