package softcuda_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// openDevice is device 0 of a new driver, which the test closes.
func openDevice(t *testing.T, o softcuda.Options, opts ...cuda.Option) (*cuda.Driver, *cuda.Device) {
	t.Helper()
	d := softcuda.New(o, opts...)
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	return d, dev
}

// TestBuilderClosedInHostFunction: CP-10 and HL-06, a builder that is closed inside a host function ends its capture soon afterwards,
// though what is to be closed otherwise rests while something is captured.
func TestBuilderClosedInHostFunction(t *testing.T) {
	d, dev := openDevice(t, softcuda.Options{})
	defer d.Close()
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	b, err := dev.NewGraphBuilder()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Begin(cuda.CaptureRelaxed), cuda.HostLaunch(s, func() { b.Close() }), s.Sync()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(3 * time.Second); d.Stats().Streams > 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the builder's stream is there still: %+v", d.Stats())
		}
	}
}
