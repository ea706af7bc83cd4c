package softcuda_test

import (
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/cudatest"
	"github.com/hostlaunch/cuda/internal/nativetest"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestConformance runs the conformance suite on two software devices.
func TestConformance(t *testing.T) {
	cudatest.Run(t, cudatest.Config{
		Open: func(opts ...cuda.Option) (*cuda.Driver, error) {
			return softcuda.New(softcuda.Options{Devices: 2, Kernels: testkernels.Twins()}, opts...), nil
		},
		OpenChecked: func(opts ...cuda.Option) (*cuda.Driver, error) {
			return softcuda.New(softcuda.Options{Devices: 2, Kernels: testkernels.Twins(), NoConcurrentManagedAccess: true}, opts...), nil
		},
		OpenSpin: func(opts ...cuda.Option) (*cuda.Driver, error) {
			return softcuda.NewSpinning(softcuda.Options{Devices: 2, Kernels: testkernels.Twins()}, opts...)
		},
		PTX:            testkernels.PTX,
		ConditionalPTX: testkernels.ConditionalPTX,
		Native:         func(name string) cuda.NativeFunc { return cuda.NativeFunc(nativetest.ByName(name)) },
		Noted:          nativetest.Noted,
		Test:           "TestConformance",
	})
}
