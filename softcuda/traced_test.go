package softcuda_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/cudatest"
	"github.com/hostlaunch/cuda/internal/nativetest"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestTraceByEvents runs the cases about traces on devices that tell no times but by events, as NVIDIA's driver does.
func TestTraceByEvents(t *testing.T) {
	cudatest.RunSome(t, tracedConfig("TestTraceByEvents", openWithoutStamps), func(c cudatest.Case) bool { return strings.HasPrefix(c.ID, "TR-") })
}

// TestConformanceTraced runs the suite while everything is traced: nothing may come out otherwise.
func TestConformanceTraced(t *testing.T) {
	open := func(opts ...cuda.Option) (*cuda.Driver, error) {
		return softcuda.New(softcuda.Options{Devices: 2, Kernels: testkernels.Twins()}, opts...), nil
	}
	wholeSuite(t)
	cudatest.RunSome(t, tracedConfig("TestConformanceTraced", tracing(open)), besideTraces)
}

// TestConformanceTracedByEvents is TestConformanceTraced on devices that tell no times but by events.
func TestConformanceTracedByEvents(t *testing.T) {
	wholeSuite(t)
	cudatest.RunSome(t, tracedConfig("TestConformanceTracedByEvents", tracing(openWithoutStamps)), withoutStamps)
}

// wholeSuite leaves out what takes long, unless the environment asks for it, as .ci/run does.
func wholeSuite(t *testing.T) {
	if os.Getenv("HOSTLAUNCH_TRACED") == "" {
		t.Skip("set HOSTLAUNCH_TRACED=1 to run the whole suite while everything is traced")
	}
}

func openWithoutStamps(opts ...cuda.Option) (*cuda.Driver, error) {
	return softcuda.NewWithoutStamps(softcuda.Options{Devices: 2, Kernels: testkernels.Twins()}, opts...)
}

// tracing opens a driver that is traced until it is closed.
func tracing(open func(...cuda.Option) (*cuda.Driver, error)) func(...cuda.Option) (*cuda.Driver, error) {
	return func(opts ...cuda.Option) (*cuda.Driver, error) {
		d, err := open(opts...)
		if err == nil {
			_, err = d.StartTrace()
		}
		return d, err
	}
}

func tracedConfig(test string, open func(...cuda.Option) (*cuda.Driver, error)) cudatest.Config {
	return cudatest.Config{
		Open: open,
		OpenSpin: tracing(func(opts ...cuda.Option) (*cuda.Driver, error) {
			return softcuda.NewSpinning(softcuda.Options{Devices: 2, Kernels: testkernels.Twins()}, opts...)
		}),
		PTX:            testkernels.PTX,
		ConditionalPTX: testkernels.ConditionalPTX,
		Native:         func(name string) cuda.NativeFunc { return cuda.NativeFunc(nativetest.ByName(name)) },
		Noted:          nativetest.Noted,
		Test:           test,
	}
}

// besideTraces are the cases that start no tracer themselves. Those of LI-05 collect garbage beside a tight loop on one P, which goes by
// the size of the heap, and that is the trace's; HL-24 wants no memory to be left of functions, and a trace is.
func besideTraces(c cudatest.Case) bool {
	return !strings.HasPrefix(c.ID, "TR-") && c.ID != "LI-05" && (c.ID != "HL-24" || c.Name != "100,000 behind a gate")
}

// withoutStamps are besideTraces that do without what NewWithoutStamps hides beside stamps: which CUDA version has a call.
func withoutStamps(c cudatest.Case) bool {
	return besideTraces(c) && c.ID != "CP-13" && c.Name != "a stream's multiprocessors"
}

// TestTraceWithoutEvents: a driver that gives no events, or tells no times, costs the trace those times and nothing else; nobody waits for
// them.
func TestTraceWithoutEvents(t *testing.T) {
	for _, call := range []string{"cuEventCreate", "cuEventRecord", "cuEventElapsedTime"} {
		f := new(softcuda.Faults)
		d, err := softcuda.NewWithoutStamps(softcuda.Options{Faults: f})
		noErr(t, err)
		dev, err := d.Device(0)
		noErr(t, err)
		s, err := dev.NewStream()
		noErr(t, err)
		b, err := dev.Alloc(64)
		noErr(t, err)
		tracer, err := d.StartTrace()
		noErr(t, err)
		noErr(t, f.Add(softcuda.Fault{Call: call, Times: -1, Result: cuda.ErrOperatingSystem}))
		for range 100 {
			noErr(t, s.Memset(b, 1))
		}
		noErr(t, s.Sync())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		trace, err := tracer.Stop(ctx)
		cancel()
		if err != nil || trace.Dropped != 0 || len(trace.Spans) != 101 || trace.Spans[0].End != -1 {
			t.Errorf("%s: %v, %+v", call, err, trace)
		}
		f.Clear()
		noErr(t, d.Close())
	}
}
