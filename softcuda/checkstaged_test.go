package softcuda_test

import (
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// Staged copies fill and empty slots of the library's own after the work on them is queued, which is no mistake of the program's.
func TestCheckStaged(t *testing.T) {
	check := new(softcuda.Check)
	d := softcuda.New(softcuda.Options{Check: check})
	defer d.Close()
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	b, err := dev.Alloc(8 << 20)
	if err != nil {
		t.Fatal(err)
	}
	in, out := make([]byte, b.Len()), make([]byte, b.Len())
	for i := range in {
		in[i] = byte(i % 251)
	}
	for range 3 {
		for _, err := range []error{cuda.CopyToDevice(s, b, in), cuda.CopyToHost(s, out, b), s.Sync()} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, r := range check.Reports() {
		t.Error(r)
	}
	if out[1<<20] != in[1<<20] {
		t.Error("copied something else")
	}
}
