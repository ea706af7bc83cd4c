package softcuda_test

import (
	"strings"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/cudatest"
	"github.com/hostlaunch/cuda/internal/nativetest"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestTraceByEvents runs the cases about traces on devices that tell no times but by events, as NVIDIA's driver does.
func TestTraceByEvents(t *testing.T) {
	cudatest.RunSome(t, cudatest.Config{
		Open: func(opts ...cuda.Option) (*cuda.Driver, error) {
			return softcuda.NewWithoutStamps(softcuda.Options{Devices: 2, Kernels: testkernels.Twins()}, opts...)
		},
		PTX:    testkernels.PTX,
		Native: func(name string) cuda.NativeFunc { return cuda.NativeFunc(nativetest.ByName(name)) },
		Noted:  nativetest.Noted,
		Test:   "TestTraceByEvents",
	}, func(c cudatest.Case) bool { return strings.HasPrefix(c.ID, "TR-") })
}
