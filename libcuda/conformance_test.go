package libcuda_test

import (
	"testing"

	"github.com/hostlaunch/cuda/internal/cudatest"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/libcuda"
)

// TestConformance runs the whole suite on the NVIDIA driver. Without a GPU it is skipped.
func TestConformance(t *testing.T) {
	cudatest.Run(t, cudatest.Config{Open: libcuda.Open, PTX: testkernels.PTX, ConditionalPTX: testkernels.ConditionalPTX, Test: "TestConformance"})
}
