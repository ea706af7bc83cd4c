package libcuda_test

import (
	"testing"

	"github.com/ebitengine/purego"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/cudatest"
	"github.com/hostlaunch/cuda/internal/nativetest"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/libcuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestConformance runs the whole suite on the NVIDIA driver. Without a GPU it is skipped.
func TestConformance(t *testing.T) {
	cudatest.Run(t, config("TestConformance", libcuda.Open))
}

// TestNativeOnSoftware runs the cases of native functions on a software device in a program that calls C, where they are not
// replaced by Go functions.
func TestNativeOnSoftware(t *testing.T) {
	cfg := config("TestNativeOnSoftware", func(opts ...cuda.Option) (*cuda.Driver, error) {
		return softcuda.New(softcuda.Options{Devices: 2, Kernels: testkernels.Twins()}, opts...), nil
	})
	cudatest.RunSome(t, cfg, cudatest.Case.Native)
}

func config(test string, open func(...cuda.Option) (*cuda.Driver, error)) cudatest.Config {
	return cudatest.Config{
		Open:           open,
		PTX:            testkernels.PTX,
		ConditionalPTX: testkernels.ConditionalPTX,
		Native:         func(name string) cuda.NativeFunc { return cuda.NativeFunc(nativetest.ByName(name)) },
		Noted:          nativetest.Noted,
		Callback:       func(fn func()) cuda.NativeFunc { return cuda.NativeFunc(purego.NewCallback(func(uintptr) { fn() })) },
		Test:           test,
	}
}
