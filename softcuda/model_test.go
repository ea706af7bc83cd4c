package softcuda_test

import (
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/modeltest"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestModel compares the software device with the model of stream order, on random programs.
func TestModel(t *testing.T) {
	programs := 5000
	if testing.Short() {
		programs = 500
	}
	modeltest.Run(t, modeltest.Config{
		Open: func(opts ...cuda.Option) (*cuda.Driver, error) {
			return softcuda.New(softcuda.Options{Kernels: testkernels.Twins()}, opts...), nil
		},
		PTX:      testkernels.PTX,
		Programs: programs,
		Workers:  2,
	})
}

// TestTaskModel runs random programs of tasks, some of which deadlock.
func TestTaskModel(t *testing.T) {
	programs := 1000
	if testing.Short() {
		programs = 200
	}
	modeltest.RunTasks(t, modeltest.Config{
		Open: func(opts ...cuda.Option) (*cuda.Driver, error) {
			return softcuda.New(softcuda.Options{Kernels: testkernels.Twins()}, opts...), nil
		},
		Programs: programs,
	})
}
