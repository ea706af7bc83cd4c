package libcuda_test

import (
	"testing"

	"github.com/hostlaunch/cuda/internal/graphtest"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/libcuda"
)

// TestRandomGraphs runs random graphs on the NVIDIA driver. Without a GPU it is skipped.
func TestRandomGraphs(t *testing.T) {
	t.Setenv("CUDA_MODULE_LOADING", "EAGER")
	graphtest.Run(t, graphtest.Config{Open: libcuda.Open, PTX: testkernels.PTX, Graphs: 300})
}
