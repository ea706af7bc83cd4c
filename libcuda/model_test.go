package libcuda_test

import (
	"testing"

	"github.com/hostlaunch/cuda/internal/modeltest"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/libcuda"
)

// TestModel compares the NVIDIA driver with the model of stream order, on random programs. Without a GPU it is skipped.
func TestModel(t *testing.T) {
	t.Setenv("CUDA_MODULE_LOADING", "EAGER")
	modeltest.Run(t, modeltest.Config{Open: libcuda.Open, PTX: testkernels.PTX, Programs: 2000})
}

// TestTaskModel runs random programs of tasks, some of which deadlock. Without a GPU it is skipped.
func TestTaskModel(t *testing.T) {
	t.Setenv("CUDA_MODULE_LOADING", "EAGER")
	modeltest.RunTasks(t, modeltest.Config{Open: libcuda.Open, Programs: 500})
}
